// reduce_kernels.hpp - the micro-kernels of reductions of one array, per ISA level.
// Each takes either `count` rows of contiguous elements, or n rows of a matrix
// (`ld` apart) of which it reduces `width` columns. A row, and n, is at most one leaf
// (order::leaf) for float sums and one exact_chunk for the others, so that nothing
// overflows; the callers join the results. two() takes `count` whole leaves or chunks
// starting at a and as many starting at b, and reads both at the same time.
#pragma once

#include "bits/exact_values.hpp"
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

// Terms are in the order of lockstep_dtype. Those from `looped` on have the kernels of isa/loops.cpp.
inline constexpr int float_types = 4, integer_types = 9, all_types = float_types + integer_types;

// ---- floats added or multiplied: leaves of the fixed order -------------------
enum float_term {
  sum_f16,
  sum_bf16,
  sum_f32,
  sum_f64,
  square_f16,
  square_bf16,
  square_f32,
  square_f64,
  looped_floats,
  number_f16 = looped_floats,  // a NaN counts as +0.0
  number_bf16,
  number_f32,
  number_f64,
  factor_f16,  // of a product
  factor_bf16,
  factor_f32,
  factor_f64,
  float_terms
};
struct float_kernels {
  void (*rows)(const packed_rows& r, int64_t count, double* out);
  void (*two)(const void* a, const void* b, int64_t count, double* out_a, double* out_b);
  void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, double* out);
  // Row r begins at element at[r].
  void (*listed)(const void* src, int64_t n, const int64_t* at, int64_t width, double* out);
};
struct float_sum_kernels {
  float_kernels of[looped_floats];
};

// The number of elements that the kernels below take at a time: below 2^31, so that 64-bit
// lanes cannot overflow, and enough to hide the work at the end of a chunk.
inline constexpr int64_t exact_chunk = 8192;

// ---- exact sums ---------------------------------------------------------------
using order::wide;
enum exact_term {
  sum_i32,
  sum_i64,
  sum_i8,
  sum_i16,
  sum_u8,
  sum_u16,
  sum_u32,
  sum_u64,
  sum_bool,
  square_i32,
  square_i64,
  square_i8,
  square_i16,
  square_u8,
  square_u16,
  square_u32,
  square_u64,
  square_bool,
  looped_exact,
  truth_f16 = looped_exact,  // bf16 too
  truth_f32,
  truth_f64,
  truth_16,  // integers of 16 bits; those of 8 are sum_bool
  truth_32,
  truth_64,
  exact_terms
};
struct exact_kernels {
  void (*rows)(const packed_rows& r, int64_t count, wide* out);
  void (*two)(const void* a, const void* b, int64_t count, wide* out_a, wide* out_b);
  void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, wide* out);
};
struct exact_sum_kernels {
  exact_kernels of[looped_exact];
};

// ---- exact products -------------------------------------------------------------
using order::exact_factor;
struct product_kernels {
  void (*rows)(const packed_rows& r, int64_t count, exact_factor* out);
  void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, exact_factor* out);
};

// ---- extremes -------------------------------------------------------------------
// key grows with the element: order::key_f32 and key_f64, likewise for 16-bit floats; the
// integer itself; for u64 the integer minus 2^63. NaN is INT64_MAX for the largest and
// INT64_MIN for the smallest; where NaNs do not count, it is the other one, and remains only
// if there is no number. index is the first element with that key; rows set it only if asked.
struct extreme {
  int64_t key, index;
};
// By all_types; smallest are all_types further on.
enum extreme_term {
  largest = 0,
  largest_f32 = largest + 2,
  largest_f64,
  largest_i32,
  largest_i64,
  smallest = all_types,
  smallest_f32 = smallest + 2,
  smallest_f64,
  smallest_i32,
  smallest_i64,
  looped_extremes = 2 * all_types,
  largest_number = looped_extremes,  // by float_types
  smallest_number = largest_number + float_types,
  extreme_terms = smallest_number + float_types
};
struct extreme_kernels {
  void (*rows)(const packed_rows& r, int64_t count, bool index, extreme* out);
  void (*two)(const void* a, const void* b, int64_t count, extreme* out_a, extreme* out_b);  // no index
  // Rows of equal length (no offsets): the extremes as elements (a NaN as the canonical one) or, with index, their
  // indices as int64_t.
  void (*winners)(const packed_rows& r, int64_t count, bool index, void* out);
  // With winners, results as by winners() go there, and none to out.
  void (*columns)(const void* src, int64_t n, int64_t ld, int64_t width, bool index, extreme* out, void* winners);
  // The index of the first of n elements with this key, which one has.
  int64_t (*find)(const void* src, int64_t n, int64_t key);
};
struct all_extreme_kernels {
  extreme_kernels of[looped_extremes];
};

// ---- what is too rare for kernels of its own (isa/loops.cpp) --------------------
struct loop_kernels {
  float_kernels floats[float_terms - looped_floats];
  exact_kernels exact[exact_terms - looped_exact];
  extreme_kernels extremes[extreme_terms - looped_extremes];
  product_kernels products[integer_types];
};

}  // namespace lockstep::cpu

LOCKSTEP_HALVES_TABLES(float_sum_kernels, float_sums)
LOCKSTEP_HALVES_TABLES(exact_sum_kernels, exact_sums)
LOCKSTEP_HALVES_TABLES(all_extreme_kernels, extremes)
LOCKSTEP_ISA_TABLES(loop_kernels, loops)

namespace lockstep::cpu {

inline const float_kernels& term_kernels(kernel_set set, float_term term) {
  return term < looped_floats ? float_sums(set).of[term] : loops(set).floats[term - looped_floats];
}
inline const exact_kernels& term_kernels(kernel_set set, exact_term term) {
  return term < looped_exact ? exact_sums(set).of[term] : loops(set).exact[term - looped_exact];
}
inline const extreme_kernels& term_kernels(kernel_set set, extreme_term term) {
  return term < looped_extremes ? extremes(set).of[term] : loops(set).extremes[term - looped_extremes];
}

}  // namespace lockstep::cpu
