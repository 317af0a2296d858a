// peers.cpp - see peers.hpp. A peer is called once, as
//   PEER --backend cpu --threads 2 --seconds 0.6 [--cold] CASE ...
// and prints one JSON object a line for each case and way that it has to do it:
//   {"name": "transpose/b4/512x512", "peer": "OpenBLAS 0.3.21 omatcopy", "ms": [...], "checked": "bits equal"}
// Cases that it cannot do are left out.
#include "peers.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace lockstep::tool::bench {
namespace {
namespace fs = std::filesystem;

std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::vector<std::string> output_lines(const std::string& command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
  std::vector<std::string> lines;
  if (pipe == nullptr) return lines;
  std::string text;
  char part[4096];
  for (size_t got; (got = std::fread(part, 1, sizeof part, pipe.get())) > 0;) text.append(part, got);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

}  // namespace

void run_peers(const options& asked, const std::string& backend, report& out) {
  std::vector<std::string> names;
  std::map<std::string, result> ours;  // for bytes and limit, the same for everybody
  for (const result& r : out.results)
    if (r.backend == backend && ours.emplace(r.name, r).second) names.push_back(r.name);
  std::vector<fs::path> programs;
  std::error_code ignored;
  for (const auto& item : fs::directory_iterator(asked.peers, ignored)) {
    const std::string name = item.path().filename().string();
    if (name.starts_with("peer_") && name.find('.') == std::string::npos && item.is_regular_file(ignored)) programs.push_back(item.path());
  }
  std::sort(programs.begin(), programs.end());
  for (const fs::path& program : programs) {
    std::string command = fmt::format("{} --backend {} --threads {} --seconds {}{}", quoted(program.string()), quoted(backend),
                                      asked.where.threads, asked.seconds > 0 ? asked.seconds : 0.3, asked.cold ? " --cold" : "");
    for (const std::string& name : names) command += ' ' + quoted(name);
    int measured = 0;
    for (const std::string& text : output_lines(command)) {
      const auto object = nlohmann::json::parse(text, nullptr, false);
      if (object.is_discarded() || !object.contains("peer") || !object.contains("ms") || !ours.contains(object.value("name", ""))) continue;
      result r = ours.at(object["name"].get<std::string>());
      r.source = r.variant = object["peer"].get<std::string>();
      r.time = summarise(object["ms"].get<std::vector<double>>(), "peer");
      r.checked = object.value("checked", "not checked");
      out.results.push_back(std::move(r));
      ++measured;
    }
    if (measured == 0) out.skipped.push_back(fmt::format("peer {} on {}: it measured nothing", program.filename().string(), backend));
  }
}

}  // namespace lockstep::tool::bench
