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

// Of one row, or of some of its columns: y of the kinds *_BACKWARD, as lockstep.h names what it takes.
struct gradient_row {
  const void *h, *g;
  const double* weight;
  void* dst;
  int64_t n;
  double mean, scale, a, b;
  double *of_weight, *of_bias;  // to which g * t and g are added; either may be NULL
};

struct normalize_kernels {
  struct {
    void (*add)(const void* x, const void* residual, void* h, int64_t n);  // rounded to the type
    // Of rows of 1 to order::leaf elements: sums, and squares about the mean.
    void (*moments)(const void* h, int64_t stride, int64_t n, int64_t count, double* sum, double* m2);
    void (*widen)(const void* from, int64_t n, float* to);     // NULL for F32 and F64
    void (*rows[4])(const normalized_rows& r, int64_t count);  // by result; NULL where there is none
    // off = h - pivot, u = g * weight
    void (*weigh)(const void* h, const void* g, const double* weight, double pivot, int64_t n, double* off, double* u);
    void (*gradients)(const gradient_row& r);
  } of[4];
  void (*fence)();  // after rows that streamed
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(normalize_kernels, normalizers)
