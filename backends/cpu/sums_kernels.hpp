// sums_kernels.hpp - the micro-kernels of sums, for each ISA level. Kinds are numbered as in
// lockstep_sums_kind (means and variances: normalize_kernels.hpp). Kinds with one array do
// not read y.
#pragma once

#include "reduce_kernels.hpp"

namespace lockstep::cpu {

inline constexpr int sums_kinds = 4;
struct sums_kernels {
  // A leaf, 1 to order::leaf elements; by dtype less one: F16, BF16, F32, F64.
  double (*floats[4][sums_kinds])(const void* x, const void* y, int64_t n);
  // At most exact_chunk elements; by dtype less I32.
  wide (*exact[9][sums_kinds])(const void* x, const void* y, int64_t n);
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(sums_kernels, summers)
