// scan_kernels.hpp - the micro-kernels of scan's float sums, per ISA level. Types are
// numbered as lockstep_dtype less one: F16, BF16, F32, F64.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// Elements of a leaf, from its first on, and where their results go, both packed.
struct scanned_leaf {
  const void* src;
  void* dst;
  int64_t n;
  bool shifted;  // result i goes to dst[i + 1], the last one nowhere
};

// A leaf of each of `count` neighbouring columns: element i of column k at src[i * stride + k].
struct scanned_columns {
  const void* src;
  void* dst;
  int64_t stride, dst_stride;  // in elements
  int64_t n, count;
  bool shifted;  // result i goes to element i + 1; of a column's first one `entering`, which becomes the last one's
  const double* total;  // of each column: of all leaves before; -0.0 where there is none
  double* entering;
  double* sums;   // to be filled with the leaves' sums, or NULL
  double* lanes;  // room for order::lanes values a column
};

struct scan_kernels {
  struct {
    // total: of all leaves before; -0.0 where there is none.
    void (*to[4])(const scanned_leaf& leaf, double total);     // by result; NULL where there is none
    double (*last)(const void* src, int64_t n, double total);  // the last element's result, not yet rounded
    void (*columns[4])(const scanned_columns& columns);        // by result
  } of[4];
  void (*put[4])(void* dst, double y);  // one result, rounded
};

}  // namespace lockstep::cpu

LOCKSTEP_ISA_TABLES(scan_kernels, scanners)
