// normalize_kernels.hpp - the micro-kernels of normalize, per ISA level. Types are
// numbered as lockstep_dtype less one: F16, BF16, F32, F64. Sums of squares are
// float_sums' (reduce_kernels.hpp).
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// Rows to be written: y of lockstep.h from h, the row's mean and divisor.
struct normalized_rows {
  const void* src;
  void* dst;
  int64_t n, src_stride, dst_stride;  // elements
  const double *mean, *divisor;       // of each row
  const void *weight, *bias;          // F32, of F64 rows F64; both or the weight alone, or NULL
  bool stream;                        // past the caches
};

struct normalize_kernels {
  struct {
    void (*add)(const void* x, const void* residual, void* h, int64_t n);  // rounded to the type
    // Of rows of 1 to order::leaf elements: sums, and squares about the mean.
    void (*moments)(const void* h, int64_t stride, int64_t n, int64_t count, double* sum, double* m2);
    void (*widen)(const void* from, int64_t n, float* to);     // NULL for F32 and F64
    void (*rows[4])(const normalized_rows& r, int64_t count);  // by result; NULL where there is none
  } of[4];
  void (*fence)();  // after rows that streamed
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(normalize_kernels, normalizers)
