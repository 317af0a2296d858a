// stats.hpp - samples of one measurement: median and quartiles, because on shared machines
// the mean mostly shows other load.
#pragma once

#include <algorithm>
#include <vector>

namespace lockstep::probe {

struct stats {
  double value = 0, low = 0, high = 0;
  stats scaled(double factor) const { return {value * factor, low * factor, high * factor}; }
  // A time becomes a rate: the quartiles change places.
  stats rate(double amount) const { return {amount / value, amount / high, amount / low}; }
};

inline stats stats_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const size_t n = samples.size();
  return {samples[n / 2], samples[n / 4], samples[3 * n / 4]};
}

}  // namespace lockstep::probe
