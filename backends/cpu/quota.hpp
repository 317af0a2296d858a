// quota.hpp - the processor time that the control groups (cgroups) allow this process.
#pragma once

#include <string>

namespace lockstep::cpu {
// In processors (2.5 is two and a half); 0 for no limit. root is a prefix for /proc and /sys, for tests.
double cgroup_quota(const std::string& root);
// The number of threads that a quota can keep busy, rounded up.
int within_quota(int threads, double quota);
}  // namespace lockstep::cpu
