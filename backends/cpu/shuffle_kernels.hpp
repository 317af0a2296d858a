// shuffle_kernels.hpp - the micro-kernels of shuffle, for each level.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// dst[w][lane] = src[w][source[lane]] for `warps` warps of 32 lanes; src == dst is
// allowed. stream: non-temporal stores; dst is then aligned to 64 bytes.
template <class T>
using shuffle_kernel = void (*)(const T* src, T* dst, int64_t warps, const T* source, bool stream);

struct shuffle_kernels {
  shuffle_kernel<uint32_t> four;
  shuffle_kernel<uint64_t> eight;
  bool streams;  // whether they have non-temporal stores
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(lockstep::cpu::shuffle_kernels, shuffle_kernels_of)
