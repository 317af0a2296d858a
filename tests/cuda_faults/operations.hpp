// operations.hpp - the operations during which the runtime fails: every entry of the module.
#pragma once

#include <cuda_runtime_api.h>
#include <lockstep/lockstep.h>

#include <functional>
#include <string>
#include <vector>

namespace faults {

// Memory of every kind, made before any failure is scripted. Large enough for
// the slab pipeline (arrays of 32 MiB and more).
class world {
 public:
  world();
  ~world();
  world(const world&) = delete;
  world& operator=(const world&) = delete;

  static void prepare();  // once, before any child: they share the host's arrays until they write
  static constexpr size_t bytes = size_t{40} << 20;
  void *device_a = nullptr, *device_b = nullptr, *other_device = nullptr, *pinned_a = nullptr, *pinned_b = nullptr,
       *managed = nullptr;
  std::vector<unsigned char>&host_a, &host_b;
  std::vector<int64_t> offsets;
  cudaStream_t stream = nullptr;
  lockstep_options options = lockstep_options_defaults();  // of every call
  std::string text;                                        // last error of an operation that went on after it
};

struct operation {
  std::string name;
  std::function<lockstep_status(lockstep_context*, world&)> run;
  bool large = false;  // moves tens of MiB
  long keeps = 0;      // objects of its first run that live as long as the process
};
std::vector<operation> operations();

// A call on host memory that auto can finish on the CPU: its result in host_b.
struct host_call {
  std::string name;
  std::function<lockstep_status(lockstep_context*, world&)> run;
  size_t result_bytes;
};
std::vector<host_call> host_calls();

}  // namespace faults
