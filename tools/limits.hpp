// limits.hpp - times as median and spread, and the memory limits to compare them with,
// measured in the same run on the same backend and threads.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cli.hpp"

namespace lockstep::tool {

// A warning if more threads want to run than there are processors, because times then mean little; else "".
std::string busy_machine();

struct timing {
  double seconds = 0;  // median
  double spread = 0;   // (third quartile - first quartile) / median
  std::vector<double> samples_ms;
};
timing timing_of(std::vector<double> samples_ms);

// Times plan on src and dst, which the backend can reach, so that this is device time.
timing time_plan(lockstep_plan* plan, const void* src, void* dst, uint32_t flags, int samples);

class limits {
 public:
  limits(lockstep_context* context, int samples) : context_(context), samples_(samples) {}
  // The seconds of the fastest known copy (or read) of that many bytes; a copy of n bytes
  // reads n / 2 and writes n / 2. Measured once for each size. 0 if the backend cannot
  // measure it.
  double seconds(const std::string& backend, lockstep_limit limit, size_t bytes, uint32_t flags);

 private:
  lockstep_context* context_;
  int samples_;
  std::map<std::tuple<std::string, lockstep_limit, size_t, uint32_t>, double> known_;
};

}  // namespace lockstep::tool
