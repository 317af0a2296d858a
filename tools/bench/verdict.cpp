// verdict.cpp - see verdict.hpp.
#include "verdict.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

namespace lockstep::tool::bench {
namespace {
constexpr double error_of_a_side = 0.001 / 2 / std::size(looks);
}

std::string pairing::verdict() const {
  if (rounds == 0) return "";
  if (static_cast<size_t>(rounds) < looks[0]) return "level";
  return low > 1 ? "ahead" : high < 1 ? "behind" : "level";
}

pairing pair_up(std::vector<double> ratios) {
  pairing p;
  p.rounds = static_cast<int>(ratios.size());
  if (ratios.empty()) return p;
  std::sort(ratios.begin(), ratios.end());
  const size_t n = ratios.size();
  p.ratio = n % 2 == 1 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2;
  // The median is below the k-th smallest of n with the probability that fewer than k of n fair coins fall on one side.
  // k is the largest for which that is at most the error that a side may have.
  double term = std::ldexp(1.0, -static_cast<int>(n)), below = term;
  size_t k = 0;
  while (below <= error_of_a_side) {
    ++k;
    term *= static_cast<double>(n - k + 1) / static_cast<double>(k);
    below += term;
  }
  const size_t at = k == 0 ? 0 : k - 1;
  p.low = ratios[at], p.high = ratios[n - 1 - at];
  return p;
}

bool more_rounds_due(const std::vector<double>& ratios) {
  const size_t n = ratios.size();
  if (n >= most_rounds) return false;
  if (std::find(std::begin(looks), std::end(looks), n) == std::end(looks)) return true;  // on the way to the next look
  return pair_up(ratios).verdict() == "level";
}

comparison beside(const timed& ours, const timed& peer) {
  const double ratio = peer.median / ours.median;
  if (ours.low <= peer.high && peer.low <= ours.high) return {ratio, "level"};
  return {ratio, ratio > 1 ? "ahead" : "behind"};
}

bool adds_in_float(const std::string& source) {
  const std::string_view name = source;
  return name.ends_with("float") || name.ends_with("float32");
}

chosen choose(const std::vector<std::string>& sources, const std::vector<comparison>& all) {
  chosen c;
  const auto better = [&](size_t k, int than) {
    if (than < 0) return true;
    const comparison &one = all[k], &other = all[static_cast<size_t>(than)];
    const bool behind = one.verdict == "behind", other_behind = other.verdict == "behind";
    return behind != other_behind ? behind : one.ratio < other.ratio;
  };
  for (size_t k = 0; k < all.size(); ++k) {
    int& kept = adds_in_float(sources[k]) ? c.best_float : c.best;
    if (better(k, kept)) kept = static_cast<int>(k);
  }
  return c;
}

}  // namespace lockstep::tool::bench
