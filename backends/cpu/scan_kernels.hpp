// scan_kernels.hpp - the micro-kernels of scan, per ISA level. Types are numbered as
// lockstep_dtype less one: F16, BF16, F32, F64, I32, I64.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// Elements of a leaf, from its first on, and where their results go, both packed.
struct scanned_leaf {
  const void* src;
  void* dst;
  int64_t n;
  bool shifted;                                       // result i goes to dst[i + 1], the last one nowhere
  int64_t count = 1, src_stride = 0, dst_stride = 0;  // leaves of as many sequences that begin there, side by side
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
  double* lanes;  // room for order::lanes values per column
};

// Extremes, and sums of integers that fit 64 bits: what stands before an element is one number, of which the next one
// is made. The extremes' numbers are keys, integers that grow with the element.
inline constexpr int64_t running_most_columns = 1024;  // at most at once
struct running_kernels {
  int64_t nothing;  // what stands before the first element
  int64_t (*of_leaf)(const void* src, int64_t n);
  int64_t (*scan)(const scanned_leaf& leaf, int64_t before);        // gives what stands behind the last leaf
  void (*columns)(const scanned_columns& columns, int64_t* state);  // before them, then behind them
  void (*put)(void* dst, int64_t number);
};

struct running_scan_kernels {
  running_kernels extremes[6][2];  // by type; MIN, MAX
  running_kernels sums[2];         // of I32 and I64, as I64
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
LOCKSTEP_ISA_TABLES(running_scan_kernels, running_scanners)
