// cache.cuh - hints about memory that is read once.
//
// Idea    Lines that are not to be found again give up their places first (load_of_stream): the L1's and, though
//         only the L1 is named, the L2's, where they displace one another and nothing else. An array that fits
//         the L2 must not be read so: 24 MiB read again and again took 8.3 us, by plain loads 5.0.
//         Where an array is moved and is about as large as the L2 or larger, its lines on their way in are the
//         last that the L2 gives up (evict_last): what makes room for them are lines that have been written,
//         which so leave early. What is still kept at a kernel's end is released, or the next one would find a
//         third of the L2 taken: 40 MiB read again and again took 11.5 us after a kernel that released nothing,
//         7.4 after one that did, or had kept nothing.
// Moves   nothing.
// Limit   on an H200, transposes of f32: 16384 squared 517 us without hints, 509.6 kept (a copy 509), 4096
//         squared 35.7 and 35.4, (32,112,112,64) -> 0312 52.4 and 51.3, from a cold L2 54.1 and 52.9. evict_first
//         in its place took 532. Release costs 0.1 to 0.5 us; of twice as many lines 0.9 to 1.8.
// Watch   createpolicy and applypriority are from sm_80 on; before, loads are plain.
// Source  PTX ISA, "Cache eviction priority hints"; that it pays was read off Triton's transposes.
#pragma once

#include <cstdint>

#include "queue.hpp"

namespace lockstep::cuda {

// Whether an array of so many bytes is too large to be found in the L2 by whoever reads it next. 24 MiB of 60 are
// (f32 squares 11.7 us as a stream, 8.3 by plain loads), 40 are not (10.5, and 17.2 by the kernel for small arrays).
inline bool streams(const lockstep_queue& queue, double bytes) { return bytes > 0.5 * queue.facts->l2_bytes; }

// 16 bytes of a stream: squares of 256 Mi f32 239.2 -> 237.2 us, of 1 Gi 926 -> 923.
__device__ __forceinline__ uint4 load_of_stream(const uint4* at) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(at));
  return x;
}
__device__ __forceinline__ float load_of_stream(const float* at) {
  float x;
  asm volatile("ld.global.nc.L1::no_allocate.f32 %0, [%1];" : "=f"(x) : "l"(at));
  return x;
}

// Whether an array of so many bytes that is moved is large enough to be kept (of 34 MB of f16, 4096 squared, the
// transpose takes 20.5 us kept and 18.7 not; of 52 MB 34.2 and 35.4).
inline bool keeps_reads(const lockstep_queue& queue, double bytes) {
  return queue.facts->major >= 8 && bytes > queue.facts->l2_bytes * 2.0 / 3;
}
// What was read last and may still be kept when a kernel ends: of all that it has read, so many bytes.
inline int64_t kept_at_end(const lockstep_queue& queue) { return queue.facts->l2_bytes / 3; }

// Loads whose lines are the last to go, until they are released.
class kept_reads {
 public:
  __device__ __forceinline__ kept_reads() {
#if __CUDA_ARCH__ >= 800
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy_));
#endif
  }
  // Of 4, 8 or 16 bytes.
  template <class T>
  __device__ __forceinline__ T load(const T* at) const {
#if __CUDA_ARCH__ >= 800
    T x;
    if constexpr (sizeof(T) == 16)
      asm volatile("ld.global.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
                   : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                   : "l"(at), "l"(policy_));
    else if constexpr (sizeof(T) == 8)
      asm volatile("ld.global.L2::cache_hint.v2.u32 {%0, %1}, [%2], %3;"
                   : "=r"(x.x), "=r"(x.y)
                   : "l"(at), "l"(policy_));
    else
      asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;" : "=r"(x) : "l"(at), "l"(policy_));
    return x;
#else
    return *at;
#endif
  }
  // at: where a line begins.
  static __device__ __forceinline__ void release(const void* at) {
#if __CUDA_ARCH__ >= 800
    asm volatile("applypriority.global.L2::evict_normal [%0], 128;" ::"l"(at) : "memory");
#endif
  }

 private:
  uint64_t policy_ = 0;
};

}  // namespace lockstep::cuda
