// device.hpp - index arithmetic that kernels and `lockstep explain` share: functions of
// this folder are inlined into a kernel by nvcc and replayed by the host's compiler.
// Sizes (a warp, a block, a tile) are parameters; a kernel passes constants. What is
// done with an index is the caller's: it comes as a body that gets the indices. A loop that as
// a function of this folder would give a kernel other machine code stays in the kernel; its
// header here says so.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define LOCKSTEP_INDEX __device__ __forceinline__
#define LOCKSTEP_UNROLL _Pragma("unroll")
#define LOCKSTEP_ROLLED _Pragma("unroll 1")
#else
#define LOCKSTEP_INDEX inline
#define LOCKSTEP_UNROLL
#define LOCKSTEP_ROLLED
#endif

namespace lockstep::cuda {

// The places in the kernels' source that touch memory, or another lane's register.
enum class site : int {
  read_src,
  write_dst,
  write_tile,  // shared memory, as it comes from src
  read_tile,
  put_value,  // a block's tree in shared memory: the thread's own value
  read_own,   // and a join of two: own = own + other
  read_other,
  write_joined,
  write_partial,
  read_partial,
  exchange,  // a shuffle: the lane whose value is received
  read_coefficient,
};

}  // namespace lockstep::cuda
