// cache.cuh - hints about memory that is read once.
//
// Idea    Data read once is loaded with L1::no_allocate (load_of_stream), so that it evicts only itself, from L1
//         and from L2. An array that fits the L2 must not be read so: the next reader would miss it.
//         A large array that is moved is read with evict_last: the L2 then evicts written lines before lines
//         that are still to be read. What is kept at a kernel's end is released, or the next kernel would find
//         a third of the L2 taken.
// Moves   nothing.
// Limit   large transposes run at the speed of a copy with these hints, 1.5 % below it without (H200; figures in
//         tests/results/tries.md).
// Watch   createpolicy and applypriority are from sm_80 on; before, loads are plain.
// Source  PTX ISA, "Cache eviction priority hints"; that it pays was read off Triton's transposes.
#pragma once

#include <cstdint>

#include "../device/queue.hpp"

namespace lockstep::cuda {

// Whether an array of so many bytes is too large for its next reader to find it in the L2.
inline bool streams(const lockstep_queue& queue, double bytes) {
  return bytes > static_cast<double>(queue.facts->tuned.reductions.stream_bytes);
}

// 16 bytes that are read once.
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

// Whether keeping what is read pays for an array of so many bytes that is moved; below, it costs time.
inline bool keeps_reads(const lockstep_queue& queue, double bytes) {
  const move_tuning& tuned = queue.facts->tuned.moves;
  return tuned.keeps_reads && bytes > static_cast<double>(tuned.kept_from);
}
// How many of the bytes that a kernel read last may still be kept when it ends.
inline int64_t kept_at_end(const lockstep_queue& queue) { return queue.facts->tuned.moves.kept_at_end; }

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
