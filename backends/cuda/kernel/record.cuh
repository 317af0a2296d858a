// record.cuh - the addresses that lanes really touch, for a test (tests/explain): .cu
// files compiled with -DLOCKSTEP_RECORD append each access to a log of its thread. In
// any other build the macro is empty and nothing of this exists.
//
//   LOCKSTEP_SEEN(read_src, job.src, &src[from]);
#pragma once

#include "../index/device.hpp"

#if defined(LOCKSTEP_RECORD)
#include <cuda_runtime_api.h>

namespace lockstep::cuda {

struct seen_access {
  int32_t site, bytes;
  int64_t offset;  // bytes from the array's start
};

// Thread number of the grid -> `capacity` accesses in the order of its program.
struct seen_log {
  seen_access* accesses;
  uint32_t* counts;  // what a thread saw, also beyond its capacity
  uint32_t threads, capacity;
  const void* src;  // for helpers that know no array's start
};

// The .cu files, each with the way to its own copy of the log's addresses.
struct seen_file {
  cudaError_t (*open)(const seen_log& log);
  seen_file* next;
  static inline seen_file* first = nullptr;
  explicit seen_file(cudaError_t (*how)(const seen_log&)) : open(how), next(first) { first = this; }
};

#if defined(__CUDACC__)
namespace {
__device__ seen_log seen_here;
[[maybe_unused]] const seen_file this_seen_file([](const seen_log& log) {
  return cudaMemcpyToSymbol(seen_here, &log, sizeof log);
});

__device__ __forceinline__ void see(site where, int bytes, int64_t offset) {
  const uint32_t thread = (blockIdx.x * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  if (thread >= seen_here.threads) return;
  const uint32_t k = seen_here.counts[thread]++;
  if (k < seen_here.capacity)
    seen_here.accesses[uint64_t{thread} * seen_here.capacity + k] = {static_cast<int>(where), bytes, offset};
}
__device__ __forceinline__ int64_t seen_offset(const void* at) {
  return static_cast<const char*>(at) - static_cast<const char*>(seen_here.src);
}
template <class T>
__device__ __forceinline__ void see(site where, const void* base, const T* at) {
  see(where, static_cast<int>(sizeof(T)), reinterpret_cast<const char*>(at) - static_cast<const char*>(base));
}
}  // namespace
#endif

}  // namespace lockstep::cuda
#define LOCKSTEP_SEEN(where, ...) ::lockstep::cuda::see(::lockstep::cuda::site::where, __VA_ARGS__)
#else
#define LOCKSTEP_SEEN(where, ...) static_cast<void>(0)
#endif
