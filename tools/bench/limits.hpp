// limits.hpp - the limits of the machine, measured in the same run as the cases.
#pragma once

#include <map>
#include <string>
#include <tuple>

#include "bench.hpp"

namespace lockstep::tool::bench {

class limits {
 public:
  limits(lockstep_context* context, const options& asked, report& out) : context_(context), asked_(asked), out_(out) {}

  // An empty call, arithmetic and, of a device, the link: into report::limits.
  void of_backend(const std::string& backend);
  // GB/s of the fastest copy, or read, of so many bytes where the case's data lie.
  double of_case(const std::string& backend, bool reads_only, double bytes);

 private:
  timing measured(const std::string& backend, lockstep_limit kind, size_t bytes);
  double gflop_s(const std::string& backend, lockstep_limit kind, double launch_ms);

  lockstep_context* context_;
  const options& asked_;
  report& out_;
  std::map<std::tuple<std::string, bool, size_t>, double> known_;
};

// Copies between ordinary and page-locked host memory in both directions at once, as a call on ordinary host memory
// needs them. Counts the bytes of both directions. The device moves nothing.
double host_copies_gb_s(lockstep_context* context, const std::string& backend);

}  // namespace lockstep::tool::bench
