// reduce_kernels.hpp - the micro-kernels of square_sum and reduce, per ISA level.
// Each takes either `count` rows of contiguous elements, or n rows of a matrix
// (`ld` apart) of which it reduces `width` columns. A row, and n, is at most one leaf
// (order::leaf) for float sums and one exact_chunk for the others, so that nothing
// overflows; the callers join the results. two() takes `count` whole leaves or chunks
// starting at a and as many starting at b, and reads both at the same time.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// Row s: n elements from s * stride on; with offsets, those from offsets[s] up to, not
// including, offsets[s+1] (the result of an empty row is undefined).
struct packed_rows {
  const void* src;
  int64_t n, stride;
  const int64_t* offsets;
  bool cached = false;  // the data is in a cache, so whole leaves are read without prefetches
};

// The number of columns that a column kernel takes at a time: see isa/float_sums.cpp.
inline constexpr int64_t column_block = 256;

// ---- float sums: leaves of the fixed order ----------------------------------
enum float_term { sum_f16, sum_bf16, sum_f32, sum_f64, square_f16, square_bf16, square_f32, square_f64, float_terms };
struct float_sum_kernels {
  struct {
    void (*rows)(const packed_rows& r, int64_t count, double* out);
    void (*two)(const void* a, const void* b, int64_t count, double* out_a, double* out_b);
    void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, double* out);
    // Row r begins at element at[r].
    void (*listed)(const void* src, int64_t n, const int64_t* at, int64_t width, double* out);
  } of[float_terms];
};

// The number of elements that the kernels below take at a time: below 2^31, so that 64-bit
// lanes cannot overflow, and enough to hide the work at the end of a chunk.
inline constexpr int64_t exact_chunk = 8192;

// ---- exact sums ---------------------------------------------------------------
// 192-bit two's complement, least significant limb first.
struct wide {
  uint64_t limb[3];
};
enum exact_term {
  sum_i32,
  sum_i64,
  square_i32,
  square_i64,
  sum_i8,
  sum_i16,
  sum_u8,
  sum_u16,
  sum_u32,
  sum_u64,
  sum_bool,  // also of squares
  square_i8,
  square_i16,
  square_u8,
  square_u16,
  square_u32,
  square_u64,
  exact_terms
};
struct exact_sum_kernels {
  struct {
    void (*rows)(const packed_rows& r, int64_t count, wide* out);
    void (*two)(const void* a, const void* b, int64_t count, wide* out_a, wide* out_b);
    void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, wide* out);
  } of[exact_terms];
};

// ---- extremes -------------------------------------------------------------------
// key grows with the element: order::key_f32 and key_f64, likewise for 16-bit floats; the
// integer itself; for u64 the integer minus 2^63. NaN is INT64_MAX for the largest and
// INT64_MIN for the smallest. index is the first element with that key; rows set it only
// if asked.
struct extreme {
  int64_t key, index;
};
enum extreme_term {
  largest_i32,
  largest_i64,
  largest_f32,
  largest_f64,
  smallest_i32,
  smallest_i64,
  smallest_f32,
  smallest_f64,
  largest_u32,
  largest_u64,
  largest_i8,
  largest_i16,
  largest_u8,
  largest_u16,
  largest_bool,
  largest_f16,
  largest_bf16,
  smallest_u32,
  smallest_u64,
  smallest_i8,
  smallest_i16,
  smallest_u8,
  smallest_u16,
  smallest_bool,
  smallest_f16,
  smallest_bf16,
  extreme_terms
};
struct extreme_kernels {
  struct {
    void (*rows)(const packed_rows& r, int64_t count, bool index, extreme* out);
    void (*two)(const void* a, const void* b, int64_t count, extreme* out_a, extreme* out_b);  // no index
    // Rows of equal length (no offsets): the extremes as elements (a NaN as the canonical one) or, with index, their
    // indices as int64_t.
    void (*winners)(const packed_rows& r, int64_t count, bool index, void* out);
    // With winners, results as by winners() go there, and none to out.
    void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, bool index, extreme* out, void* winners);
  } of[extreme_terms];
};

}  // namespace lockstep::cpu

LOCKSTEP_HALVES_TABLES(float_sum_kernels, float_sums)
LOCKSTEP_HALVES_TABLES(exact_sum_kernels, exact_sums)
LOCKSTEP_HALVES_TABLES(extreme_kernels, extremes)
