// cache.cuh - hints about memory that is read once.
//
// Idea    A stream's lines get no place in the L1. Where arrays are far larger than the L2, lines on
//         their way in are the last that the L2 gives up (evict_last): what makes room for them are
//         lines that have been written, which so leave early. The lines that are kept when a kernel
//         ends are released, or the next one would find a third of the L2 taken: 40 MiB read
//         again and again took 12.1 us after a kernel that released nothing, 8.6 us after one
//         that did, or had kept nothing.
// Moves   nothing.
// Limit   on an H200, transposes of 1 GiB: f32 16384 squared 523 us without hints, 511 kept, 513 where each line
//         was released when used; a copy 509. evict_first in its place took 532; 16384 squared in u8, 268 MB, is the
//         first size that gains, and 4096 squared in f32, 67 MB, loses (33 us, 35).
// Watch   createpolicy and applypriority are from sm_80 on; before, loads are plain.
// Source  PTX ISA, "Cache eviction priority hints"; that it pays was read off Triton's transposes.
#pragma once

#include <cstdint>

#include "queue.hpp"

namespace lockstep::cuda {

// 16 bytes of a stream.
__device__ __forceinline__ uint4 load_past_l1(const uint4* at) {
  uint4 x;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
               : "l"(at));
  return x;
}

// Whether an array of so many bytes, read once, is large enough to be kept.
inline bool keeps_reads(const lockstep_queue& queue, double bytes) {
  return queue.facts->major >= 8 && bytes >= 4.0 * queue.facts->l2_bytes;
}

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
