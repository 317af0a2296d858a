// quota.hpp - how much of the processors' time the control groups leave this process.
#pragma once

#include <string>

namespace lockstep::cpu {
// In processors (2.5: two and a half); 0 where nothing limits it. root stands before /proc and /sys.
double cgroup_quota(const std::string& root);
// Of threads, as many as quota processors can keep busy: a part of one is a thread, too.
int within_quota(int threads, double quota);
}  // namespace lockstep::cpu
