// page.cpp - lockstep bench --html: the results as one page, most important first.
#include "../../pages/page.hpp"

#include <algorithm>

#include "../../file.hpp"
#include "../bench.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {

void write_page(std::vector<nlohmann::ordered_json> runs, const std::vector<std::string>& names,
                const std::string& path) {
  const material all = read_runs(std::move(runs), names);
  std::vector<std::string> devices;
  bool any = false;
  for (const auto& run : all.runs) {
    any = any || !run.at("benchmarks").empty();
    for (const auto& [backend, device] : run.at("meta").at("devices").items())
      if (const std::string name = device.value("name", backend);
          std::find(devices.begin(), devices.end(), name) == devices.end())
        devices.insert(backend == "cpu" ? devices.end() : devices.begin(), name);
  }
  if (!any) fail("--html: there is no result to show; choose cases that run, or other files");
  pages::page p(format_text("lockstep bench: {}", joined(devices, " and ")),
                "Memory-bound array operations with the same bits on every backend, as fractions of memory limits "
                "measured in the same run.");
  add_sample(p, all);
  const material rest = without_samples(all);
  add_verdict(p, rest);
  add_fractions(p, rest);
  add_roofline(p, rest);
  add_ladder(p, rest);
  add_sweep(p, rest);
  add_crossover(p, rest);
  add_choices(p, rest);
  add_peers(p, rest);
  add_limits(p, all);
  add_method(p, all);
  add_skipped(p, all);
  write_file(path, p.html());
}

}  // namespace lockstep::tool::bench
