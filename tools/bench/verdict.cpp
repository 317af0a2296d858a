// verdict.cpp - see verdict.hpp.
#include "verdict.hpp"

#include <algorithm>
#include <cmath>

namespace lockstep::tool::bench {

std::string pairing::verdict() const { return rounds == 0 ? "" : low > 1 ? "ahead" : high < 1 ? "behind" : "level"; }

pairing pair_up(std::vector<double> ratios) {
  pairing p;
  p.rounds = static_cast<int>(ratios.size());
  if (ratios.empty()) return p;
  std::sort(ratios.begin(), ratios.end());
  const size_t n = ratios.size();
  p.ratio = n % 2 == 1 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2;
  // The median is below the k-th smallest of n with the probability that fewer than k of n fair coins fall on one side:
  // the largest k for which that is at most 0.05 %. Below eleven samples there is none, and the ends must do.
  double term = std::ldexp(1.0, -static_cast<int>(n)), below = term;
  size_t k = 0;
  while (below <= 0.0005) {
    ++k;
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += term;
  }
  const size_t at = k == 0 ? 0 : k - 1;
  p.low = ratios[at], p.high = ratios[n - 1 - at];
  return p;
}

pace pace_of(const std::vector<double>& ratios) {
  if (ratios.size() < 3) return pace::open;
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  if (*low > 2 || *high < 0.5) return pace::settled;
  if (ratios.size() >= fewest_rounds && (*low > 1.25 || *high < 0.8)) return pace::settled;
  const pairing so_far = pair_up(ratios);
  const bool near = ratios.size() >= fewest_rounds && so_far.low < 1.05 && so_far.high > 0.95;
  if (ratios.size() >= (near ? most_rounds : many_rounds)) return pace::settled;
  return near ? pace::near : pace::open;
}

}  // namespace lockstep::tool::bench
