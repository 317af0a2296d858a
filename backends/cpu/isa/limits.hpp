// limits.hpp - the plain loops that measure the limits of memory and arithmetic, one set for each ISA level.
#pragma once

#include "../isa.hpp"

namespace lockstep::cpu {

// Chains of x = fma(x, factor, addend), fma_steps in each block; every block starts from start[0..lanes-1]. The values
// do not converge within a block and differ without fusing, so the final values prove that every step was done.
constexpr int fma_steps = 1024, most_fma_lanes = 192;
constexpr double fma_factor = 0.9995, fma_addend = 0.3;
template <class T>
struct fma_chains {
  int lanes;
  uint64_t (*run)(int64_t blocks, const T* start, const T* want);  // 0: every block ended in want[0..lanes-1]
};

struct limit_kernels {
  void (*copy)(unsigned char* dst, const unsigned char* src, int64_t bytes);
  void (*copy_streaming)(unsigned char* dst, const unsigned char* src, int64_t bytes);  // non-temporal stores
  uint64_t (*read)(const unsigned char* src, int64_t bytes);
  uint64_t (*read_prefetched)(const unsigned char* src, int64_t bytes);
  uint64_t (*read_two)(const unsigned char* src, int64_t bytes);
  fma_chains<float> fma_f32;
  fma_chains<double> fma_f64;
};
}  // namespace lockstep::cpu
LOCKSTEP_ISA_TABLES(limit_kernels, limit_kernels_of)
