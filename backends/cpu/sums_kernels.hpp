// sums_kernels.hpp - the micro-kernels of sums, for each ISA level. Kinds are numbered as in
// lockstep_sums_kind (means and variances: normalize_kernels.hpp). Kinds with one array do
// not read y.
#pragma once

#include "reduce_kernels.hpp"

namespace lockstep::cpu {

inline constexpr int sums_kinds = 4;
// Rows of n elements, 1 to order::leaf, of one array or two.
struct rows_of_two {
  const void *x, *y;
  int64_t n, x_stride = 0, y_stride = 0;  // between rows, in elements
};

struct pair_kernels {
  // out[s]: of row s; by dtype less one: F16, BF16, F32, F64.
  void (*of[4][sums_kinds])(const rows_of_two& rows, int64_t count, double* out);
};
struct sums_kernels {
  // Leaves of `width` columns, at most column_block; rows are ld apart. sum and m2 as of the kernel `moments` of
  // normalize_kernels.hpp; room: for a copy of n * width elements, if they lie far apart, else null.
  void (*columns[4][sums_kinds])(const void* x, int64_t x_ld, const void* y, int64_t y_ld, int64_t n, int64_t width,
                                 double* out);
  void (*moment_columns[4])(const void* x, int64_t ld, int64_t n, int64_t width, void* room, double* sum, double* m2);
  // At most exact_chunk elements; by dtype less I32.
  wide (*exact[9][sums_kinds])(const void* x, const void* y, int64_t n);
  // Adds the terms of words to both sums of a digest; key: of the first (lib/bits/digest.hpp).
  void (*digest)(const void* words, int64_t count, uint64_t key, uint64_t sums[2]);
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(sums_kernels, summers)
LOCKSTEP_HALVES_TABLES(pair_kernels, pair_sums)
