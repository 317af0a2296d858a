// timing.cpp - see timing.hpp.
#include "timing.hpp"

#include <algorithm>
#include <chrono>

namespace lockstep::tool::bench {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

timing summarise(std::vector<double> ms, std::string stopped) {
  timing t;
  t.stopped = std::move(stopped);
  if (ms.empty()) return t;
  std::vector<double> sorted = ms;
  std::sort(sorted.begin(), sorted.end());
  const auto at = [&](double q) {
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1) + 0.5)];
  };
  t.median = at(0.5), t.low = at(0.25), t.high = at(0.75);
  t.noise = t.median > 0 ? (t.high - t.low) / t.median : 0;
  t.ms = std::move(ms);
  return t;
}

}  // namespace lockstep::tool::bench
