// limits.cpp - see limits.hpp.
#include "limits.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

namespace lockstep::tool {

std::string busy_machine() {
  double load = 0;
  const unsigned processors = std::thread::hardware_concurrency();
  if (getloadavg(&load, 1) != 1 || load <= static_cast<double>(processors)) return "";
  return format_text("this machine is busy (load {:.1f} on {} processors): do not trust the times below", load,
                     processors);
}

timing timing_of(std::vector<double> samples_ms) {
  if (samples_ms.empty()) return {};
  std::vector<double> sorted = samples_ms;
  std::sort(sorted.begin(), sorted.end());
  const size_t n = sorted.size();
  const double median = n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
  const double spread = median > 0 ? (sorted[n * 3 / 4] - sorted[n / 4]) / median : 0;
  return {median * 1e-3, spread, std::move(samples_ms)};
}

timing time_plan(lockstep_plan* plan, const void* src, void* dst, uint32_t flags, int samples) {
  std::vector<double> ms(static_cast<size_t>(samples));
  check(lockstep_plan_measure(plan, src, dst, flags, samples, ms.data()));
  return timing_of(std::move(ms));
}

double limits::seconds(const std::string& backend, lockstep_limit limit, size_t bytes, uint32_t flags) {
  const auto [entry, is_new] = known_.try_emplace({backend, limit, bytes, flags}, 0.0);
  if (!is_new) return entry->second;
  std::vector<double> ms(static_cast<size_t>(samples_));
  const lockstep_status status =
      lockstep_measure_limit(context_, backend.c_str(), limit, bytes, flags, samples_, ms.data());
  if (status == LOCKSTEP_UNSUPPORTED) return 0;
  check(status);
  return entry->second = timing_of(std::move(ms)).seconds;
}

}  // namespace lockstep::tool
