// page.cpp - lockstep bench --html: the results as one page, most important first.
#include "../../pages/page.hpp"

#include <algorithm>

#include "../bench.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {

void write_page(std::vector<nlohmann::ordered_json> runs, const std::vector<std::string>& names,
                const std::string& path) {
  const material all = read_runs(std::move(runs), names);
  if (all.rows.empty()) fail("--html: there is no result to show; choose cases that run, or other files");
  std::vector<std::string> devices;
  for (const std::string& place : all.places)
    if (const std::string name = place.substr(0, place.find(','));
        std::find(devices.begin(), devices.end(), name) == devices.end())
      devices.push_back(name);
  pages::page p(fmt::format("lockstep bench: {}", fmt::join(devices, " and ")),
                "Memory-bound array operations with the same bits on every backend, as fractions of memory limits "
                "measured in the same run.");
  add_method(p, all);
  add_fractions(p, all);
  add_roofline(p, all);
  add_ladder(p, all);
  add_sweep(p, all);
  add_crossover(p, all);
  add_peers(p, all);
  add_limits(p, all);
  add_skipped(p, all);
  p.write(path);
}

}  // namespace lockstep::tool::bench
