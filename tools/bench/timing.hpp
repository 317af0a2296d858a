// timing.hpp - the host's clock, and samples with what they say.
#pragma once

#include <string>
#include <vector>

namespace lockstep::tool::bench {

double now_ms();

// Median with the middle half's spread: these machines are shared, so the mean and the maximum say more about the
// neighbours.
struct timing {
  std::vector<double> ms;
  double median = 0, low = 0, high = 0;  // quartiles low and high
  double noise = 0;                      // (high - low) / median
  std::string stopped;                   // "noise" or "time"
};
timing summarise(std::vector<double> ms, std::string stopped = "");

}  // namespace lockstep::tool::bench
