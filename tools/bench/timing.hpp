// timing.hpp - the host's clock, and statistics of samples.
#pragma once

#include <string>
#include <vector>

namespace lockstep::tool::bench {

double now_ms();

// Median and the spread of the middle half, because on shared machines mean and maximum mostly show other load.
struct timing {
  std::vector<double> ms;
  double median = 0, low = 0, high = 0;  // quartiles low and high
  double noise = 0;                      // (high - low) / median
  std::string stopped;                   // "noise" or "time"
};
timing summarise(std::vector<double> ms, std::string stopped = "");

}  // namespace lockstep::tool::bench
