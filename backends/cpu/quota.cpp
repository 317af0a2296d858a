// quota.cpp - see quota.hpp. libgomp ignores quotas. Each group from the process's own up to the root limits it, so the
// smallest quota counts. In a container the process's path may be the host's; then only the root group is visible.
#include "quota.hpp"

#include <cmath>
#include <fstream>

namespace lockstep::cpu {
namespace {

// 0 if there is no quota: version 2 says "max", which is not a number, version 1 says -1.
double ratio(std::ifstream& quota_file, std::ifstream& period_file) {
  double quota = 0, period = 0;
  return quota_file >> quota && period_file >> period && quota > 0 && period > 0 ? quota / period : 0;
}
double quota_in(const std::string& folder) {  // version 2: both in one file
  std::ifstream both(folder + "/cpu.max");
  return ratio(both, both);
}
double old_quota_in(const std::string& folder) {
  std::ifstream quota(folder + "/cpu.cfs_quota_us"), period(folder + "/cpu.cfs_period_us");
  return ratio(quota, period);
}

}  // namespace

double cgroup_quota(const std::string& root) {
  double smallest = 0;
  // Lines are number:controllers:path; version 2 is number 0 without controllers.
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::string controllers = line.substr(first, second - first + 1);
    controllers.front() = controllers.back() = ',';
    const bool old = controllers.find(",cpu,") != std::string::npos;
    if (!old && line.rfind("0::", 0) != 0) continue;
    const std::string mounted = root + "/sys/fs/cgroup" + (old ? "/cpu" : "");
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    for (;; path.resize(path.find_last_of('/'))) {
      const double here = old ? old_quota_in(mounted + path) : quota_in(mounted + path);
      if (here > 0 && (smallest == 0 || here < smallest)) smallest = here;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return smallest;
}

int within_quota(int threads, double quota) {
  if (quota <= 0) return threads;
  const double whole = std::ceil(quota);
  return whole < threads ? static_cast<int>(whole) : threads;
}

}  // namespace lockstep::cpu
