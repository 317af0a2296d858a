// samples.hpp - how a call on the CPU is timed, ours by bench and theirs by the peer programs: from outside, as its
// user sees it, by the same lines.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <vector>

namespace lockstep::peers {

inline double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// After two untimed calls (one, if it takes 5 ms) so many samples: the mean of as many calls as fill 50 us, as the
// clock ticks in tens of ns; one call behind before(), where that is given.
template <class Body>
std::vector<double> samples(size_t count, const Body& body, const std::function<void()>& before = nullptr) {
  double once = 0;
  for (int untimed = 0; untimed < (once > 5 ? 1 : 2); ++untimed) {
    const double begin = now_ms();
    body();
    asm volatile("" ::: "memory");
    once = now_ms() - begin;
  }
  const int runs = before || once > 0.05 ? 1 : static_cast<int>(0.05 / std::max(once, 1e-4)) + 1;
  std::vector<double> ms;
  while (ms.size() < count) {
    if (before) before();
    const double begin = now_ms();
    for (int r = 0; r < runs; ++r) {
      body();
      asm volatile("" ::: "memory");  // or the compiler takes a result that it has for the next one
    }
    ms.push_back((now_ms() - begin) / runs);
  }
  return ms;
}

}  // namespace lockstep::peers
