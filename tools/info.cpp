// info.cpp - lockstep info: what this machine has, and why the rest is missing.
#include <unistd.h>

#include <algorithm>

#include "cli.hpp"
#include "file.hpp"
#include "json.hpp"

namespace lockstep::tool {
namespace {

using nlohmann::ordered_json;

constexpr std::pair<uint32_t, const char*> flag_names[] = {{LOCKSTEP_OWN_ORDER, "own order"},
                                                           {LOCKSTEP_LIBRARY, "library"},
                                                           {LOCKSTEP_LESSON, "lesson"},
                                                           {LOCKSTEP_REFERENCE, "reference"}};

ordered_json variants_of(const char* backend, lockstep_op op) {
  ordered_json list = ordered_json::array();
  for (int32_t i = 0; i < lockstep_variant_count(backend, op); ++i) {
    lockstep_variant_info row{};
    row.size = sizeof row;
    check(lockstep_variant_get(backend, op, i, &row));
    ordered_json flags = ordered_json::array();
    for (const auto& [flag, name] : flag_names)
      if ((row.flags & flag) != 0) flags.push_back(name);
    list.push_back({{"name", row.name}, {"idea", row.idea}, {"flags", flags}});
  }
  return list;
}

ordered_json devices_of(const lockstep_backend_info& backend) {
  ordered_json list = ordered_json::array();
  for (int32_t i = 0; i < backend.devices; ++i) {
    lockstep_device_info device{};
    device.size = sizeof device;
    check(lockstep_device_get(backend.name, i, &device));
    list.push_back({{"name", device.name},
                    {"detail", device.detail},
                    {"memory_bytes", device.memory_bytes},
                    {"last_level_cache_bytes", device.last_level_cache_bytes},
                    {"processors", device.processors},
                    {"usable", device.usable != 0}});
  }
  return list;
}

ordered_json cache_sizes() {
  ordered_json caches = ordered_json::object();
  const std::pair<const char*, int> levels[] = {
      {"l1d_bytes", _SC_LEVEL1_DCACHE_SIZE}, {"l2_bytes", _SC_LEVEL2_CACHE_SIZE}, {"l3_bytes", _SC_LEVEL3_CACHE_SIZE}};
  for (const auto& [name, code] : levels)
    if (const long bytes = sysconf(code); bytes > 0) caches[name] = bytes;
  return caches;
}

// The cost model of auto.
ordered_json model() {
  const context c;
  lockstep_model_info now{};
  now.size = sizeof now;
  check(lockstep_model_get(c, &now));
  return {{"source", now.source}, {"path", now.path}, {"reason", now.reason}};
}

// Variants chosen by measuring.
ordered_json tuning() {
  const context c;
  lockstep_tuning_info now{};
  now.size = sizeof now;
  check(lockstep_tuning_get(c, &now));
  ordered_json choices = ordered_json::array();
  const std::string text = now.choices;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    choices.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return {{"path", now.path}, {"reason", now.reason}, {"choices", choices}};
}

ordered_json collect() {
  ordered_json all;
  all["version"] = lockstep_version();
  all["abi"] = LOCKSTEP_ABI_VERSION;
  all["order"] = LOCKSTEP_ORDER_1;
  all["search_path"] = lockstep_backend_path();
  all["cpu_caches"] = cache_sizes();
  all["model"] = model();
  all["tuning"] = tuning();
  all["backends"] = ordered_json::array();
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info backend{};
    backend.size = sizeof backend;
    check(lockstep_backend_get(i, &backend));
    ordered_json entry = {{"name", backend.name},
                          {"usable", backend.usable != 0},
                          {"reason", backend.reason},
                          {"path", backend.path},
                          {"description", backend.description}};
    entry["devices"] = backend.usable != 0 ? devices_of(backend) : ordered_json::array();
    entry["variants"] = ordered_json::object();
    for (int op = 0; op < LOCKSTEP_OP_COUNT; ++op)
      entry["variants"][lockstep_op_name(static_cast<lockstep_op>(op))] =
          variants_of(backend.name, static_cast<lockstep_op>(op));
    all["backends"].push_back(std::move(entry));
  }
  return all;
}

const std::string& text_of(const ordered_json& value) { return value.get_ref<const std::string&>(); }

void print_variants(const ordered_json& variants, const style& s) {
  size_t width = 0;
  for (const auto& [op, rows] : variants.items())
    for (const auto& row : rows) width = std::max(width, text_of(row["name"]).size());
  for (const auto& [op, rows] : variants.items()) {
    if (rows.empty()) print("  {:<11} not supported\n", op);
    bool first = true;
    for (const auto& row : rows) {
      std::string flags;
      for (const auto& flag : row["flags"]) flags += format_text(" [{}]", text_of(flag));
      print("  {:<11} {}{:<{}}{}  {}{}{}{}\n", first ? op : "", s.bold, text_of(row["name"]), width, s.off,
            text_of(row["idea"]), s.dim, flags, s.off);
      first = false;
    }
  }
}

void print_text(const ordered_json& all) {
  const style s = stdout_style();
  print("lockstep {}, ABI {}, order {}\n", text_of(all["version"]), all["abi"].get<int>(), all["order"].get<int>());
  print("modules from {}\n", text_of(all["search_path"]));
  for (const auto& backend : all["backends"]) {
    const bool usable = backend["usable"].get<bool>();
    print("\n{}{}{}: {}{}{}{}\n", s.bold, text_of(backend["name"]), s.off, usable ? s.good : s.bad,
          usable ? "usable" : "not usable", s.off,
          usable ? ", " + text_of(backend["description"]) : ": " + text_of(backend["reason"]));
    if (const std::string& path = text_of(backend["path"]); !path.empty()) print("  module {}\n", path);
    int index = 0;
    for (const auto& device : backend["devices"])
      print("  device {}: {}, {}; {}\n", index++, text_of(device["name"]),
            bytes_text(device["memory_bytes"].get<double>()), text_of(device["detail"]));
    print_variants(backend["variants"], s);
  }
  const auto& model = all["model"];
  print("\nauto chooses by the figures of {}", text_of(model["source"]));
  if (const std::string& reason = text_of(model["reason"]); !reason.empty())
    print("{}; {}", text_of(model["path"]).empty() ? "" : "; " + text_of(model["path"]), reason);
  const auto& tuned = all["tuning"];
  print("\nplans take {} rows chosen by measuring (lockstep tune)", tuned["choices"].size());
  if (const std::string& reason = text_of(tuned["reason"]); !reason.empty())
    print("{}; {}", text_of(tuned["path"]).empty() ? "" : "; " + text_of(tuned["path"]), reason);
  print("\n");
  for (const auto& choice : tuned["choices"]) print("  {}\n", text_of(choice));
  print("\nVariants are listed best first; auto takes the first without a mark that accepts the call.\n");
}

}  // namespace

void info_command(command root, action& chosen) {
  auto command = root.add_command("info", "What there is: backends and why the others are not, devices, variants");
  auto json = std::make_shared<std::string>();
  command.add_json(*json, "the same for programs");
  command.when_called([&chosen, json] {
    chosen = [json] {
      const bool piped = take_stdout({{"--json", *json}});
      const ordered_json all = collect();
      if (!json->empty()) write_file(*json, all.dump(2) + "\n");
      if (!piped) print_text(all);
      return 0;
    };
  });
}

}  // namespace lockstep::tool
