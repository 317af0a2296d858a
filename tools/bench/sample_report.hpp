// sample_report.hpp - the summary of a sample (sample.hpp), for the terminal and the page.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "../json.hpp"

namespace lockstep::tool::bench {

// A drawn shape. If several runs have it: the geometric means of its times and ratios; it is behind only if it is
// behind in every run.
struct sampled {
  std::string name, kind, place, variant, peer;  // kind: one of sampled_kinds
  std::string others;                            // every peer with its ratio, of the last run
  double bytes = 0, ms = 0, gb_s = 0, fraction = 0;
  double ratio = 0;  // the best peer's time over ours; 0: no peer
  bool behind = false;
  int runs = 0;
};
// Of runs that judge (judge.hpp) has seen, in their order; runs that are no sample give none.
std::vector<sampled> sampled_shapes(const std::vector<nlohmann::ordered_json>& runs);
std::vector<std::string> places_of(const std::vector<sampled>& all);

constexpr const char* sampled_kinds[] = {"transpose", "permute", "reduction",   "stencil", "normalize",
                                         "scan",      "sums",    "reduce_axes", "convert", "group"};

// Those that have a peer and fit, the worst first.
std::vector<const sampled*> worst_first(const std::vector<sampled>& all,
                                        const std::function<bool(const sampled&)>& fits);
// Ratios of several shapes.
struct spread {
  size_t count = 0, behind = 0;
  double worst = 0, tenth = 0, quarter = 0, median = 0, upper_quarter = 0, upper_tenth = 0,
         mean = 0;  // mean: geometric
};
spread spread_of(const std::vector<const sampled*>& worst_first);

// Classes of bytes moved: below 1 MB, to 8, to 64, more.
constexpr const char* byte_classes[] = {"below 1 MB", "1 to 8 MB", "8 to 64 MB", "64 MB and more"};
size_t byte_class(double bytes);

void print_sample(const std::vector<nlohmann::ordered_json>& runs);

}  // namespace lockstep::tool::bench
