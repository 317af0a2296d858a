// tiny_rows.hpp - the micro-kernels for many rows of a few elements each, per ISA level.
#pragma once

#include "reduce_kernels.hpp"

namespace lockstep::cpu {

// The longest row for these kernels. Longer rows are faster as vectors of their own.
inline constexpr int64_t tiny_sum = 3, tiny_extreme = 7;

struct tiny_row_kernels {
  void (*sums[float_terms])(const packed_rows& r, int64_t count, double* out);  // NULL: no such kernel
  void (*extremes[extreme_terms])(const packed_rows& r, int64_t count, bool index, void* out);
  void (*roots)(double* values, int64_t count);  // each becomes its square root
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(tiny_row_kernels, tiny_rows)
