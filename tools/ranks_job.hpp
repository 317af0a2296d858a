// ranks_job.hpp - for `lockstep ranks`: its settings, and the job of ranks that it runs in.
#pragma once

#include <lockstep/ranks.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "cli.hpp"
#if defined(LOCKSTEP_TOOL_MPI)
#include <lockstep/ranks_mpi.h>
#endif

namespace lockstep::tool {

using comm_handle = std::unique_ptr<lockstep_comm, decltype(&lockstep_comm_destroy)>;
using plan_handle = std::unique_ptr<lockstep_ranks_plan, decltype(&lockstep_ranks_plan_destroy)>;

inline const std::string& device_of(const std::vector<std::string>& devices, int rank) {
  static const std::string none = "cpu";
  return devices.empty() ? none : devices[static_cast<size_t>(rank) % devices.size()];
}

// The job that a launcher has started this process in.
class job {
 public:
  job() {
#if defined(LOCKSTEP_TOOL_MPI)
    for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"})
      there_ = there_ || std::getenv(name) != nullptr;
    if (!there_) return;
    MPI_Init(nullptr, nullptr);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
#endif
  }
  ~job() {
#if defined(LOCKSTEP_TOOL_MPI)
    if (there_) MPI_Finalize();
#endif
  }
  job(const job&) = delete;
  job& operator=(const job&) = delete;
  bool there() const { return there_; }
  int size() const { return size_; }
  int rank() const { return rank_; }
  // The largest of the processes' numbers.
  int largest(int n) const {
#if defined(LOCKSTEP_TOOL_MPI)
    if (there_) MPI_Allreduce(MPI_IN_PLACE, &n, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
#endif
    return n;
  }
  // message_bytes 0, data "": the library's choice. devices: the backends of ranks, in turn.
  comm_handle open(lockstep_context* context, int seats, int64_t message_bytes, const std::vector<std::string>& devices,
                   const std::string& data) const {
    lockstep_comm* comm = nullptr;
    lockstep_comm_options o = lockstep_comm_defaults();
    o.seats = there_ ? 1 : seats;
    o.message_bytes = message_bytes;
    std::vector<const char*> names;
    for (int s = 0; s < o.seats && !devices.empty(); ++s) names.push_back(device_of(devices, rank_ + s).c_str());
    if (!devices.empty()) o.backends = names.data();
    if (!data.empty()) o.data = data.c_str();
#if defined(LOCKSTEP_TOOL_MPI)
    if (there_) {
      check(lockstep_comm_from_mpi(context, MPI_COMM_WORLD, &o, &comm));
      return {comm, &lockstep_comm_destroy};
    }
#endif
    check(lockstep_comm_local(context, &o, &comm));
    return {comm, &lockstep_comm_destroy};
  }

 private:
  bool there_ = false;
  int size_ = 1, rank_ = 0;
};

struct ranks_settings {
  std::vector<std::string> ops, ranks, devices;
  std::string data, op = "permute", shape, level = "quick";
  std::vector<std::string> shapes = {"4096x4096"};  // shape: the one at work
  int64_t seed = 1, message_bytes = 0;
  int samples = 9, queued = 0;
  double latency_us = 2, speed = 10;
  bool digest = false, weak = false;
};

inline std::vector<int> counts_of(const ranks_settings& s, const job& here, std::vector<int> usual) {
  if (here.there()) {
    if (!s.ranks.empty())
      refuse("--ranks is given, but the launcher has said how many ranks there are: {}", here.size());
    return {here.size()};
  }
  std::vector<int> counts;
  for (const std::string& text : s.ranks) {
    char* end = nullptr;
    const long n = std::strtol(text.c_str(), &end, 10);
    if (*end != '\0' || n < 1 || n > 1 << 20) refuse("--ranks is \"{}\"; give 1 to 1048576", text);
    counts.push_back(static_cast<int>(n));
  }
  return counts.empty() ? usual : counts;
}

// ranks_bench.cpp
int ranks_plan(const ranks_settings& s);
int ranks_bench(const ranks_settings& s);

}  // namespace lockstep::tool
