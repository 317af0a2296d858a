// from.cpp - reads a results file of --json, so that the current rules can judge it, and a
// page can be drawn on a machine without a device.
#include "../cli.hpp"
#include "../file.hpp"
#include "../json.hpp"
#include "commit.hpp"
#include "probe.hpp"

namespace lockstep::tool::probe {
namespace {

using nlohmann::ordered_json;

void read(const ordered_json& file, report& to) {
  for (const auto& [name, value] : file.at("meta").items()) {
    if (name == "devices")
      for (const auto& [backend, device] : value.items())
        to.devices.push_back({backend, device.at("name"), device.at("detail")});
    else if (name != "tally" && name != "judged")
      to.machine.emplace_back(name, value);
  }
  to.machine.emplace_back("judged", LOCKSTEP_COMMIT);
  for (const auto& one : file.at("readings"))
    to.all.keep({one.at("row"), one.at("name"), one.value("kernel", ""), one.at("unit"), one.value("x", double{NAN}),
                 one.at("value"), one.at("low"), one.at("high"), one.at("values_right") ? 1u : 0u, 1u});
  for (const auto& why : file.at("missing")) to.missing.push_back(why);
}

}  // namespace

report read_results(const std::string& path) {
  const input_file file(path);
  report out;
  constexpr const char* wanted = "give it a file that lockstep probe --json FILE wrote";
  const ordered_json all = read_json(file.bytes());  // members keep their order: it is the page's
  if (const std::string_view kind = npy::kind_of(file.bytes()); !kind.empty())
    refuse("--from {} is {}; {}", path, kind, wanted);
  if (!all.is_object()) refuse("--from {} is no JSON; {}", path, wanted);
  if (!all.contains("readings"))
    refuse("--from {} holds no readings{}; {}", path,
           all.contains("benchmarks") ? " but results of lockstep bench" : "", wanted);
  try {
    read(all, out);
  } catch (const nlohmann::json::exception& e) {
    refuse("--from {} is no whole results file: {}; {}", path, e.what(), wanted);
  }
  return out;
}

}  // namespace lockstep::tool::probe
