// tiny_rows.cpp - rows of a few elements each: sums, squares and extremes of many of them.
// Idea    a row's length is a template argument, so that the compiler unrolls it, keeps the row in registers and, where
//         rows lie close together, puts one row in each lane
// Moves   every element read once, one result written for each row
// Limit   few rows: instructions, about two for each element; many: the read limit
// Watch   lanes of the fixed order join in steps of 4, 2, 1, and missing lanes are skipped
// Source  lib/bits/order.hpp
#include "../tiny_rows.hpp"

#include "bits/order.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <class To, class From>
inline To bits_as(From x) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &x, sizeof to);
  return to;
}

constexpr int lanes = 8;  // no row has more

// ---- float sums ---------------------------------------------------------------------
inline double as_double(float x) { return static_cast<double>(x); }
inline double as_double(double x) { return x; }

struct f32_sum {
  typedef float element;
  static double term(float x) { return as_double(x); }
};
struct f64_sum {
  typedef double element;
  static double term(double x) { return x; }
};
struct f32_square {
  typedef float element;
  static double term(float x) { return as_double(x) * as_double(x); }
};
struct f64_square {
  typedef double element;
  static double term(double x) { return x * x; }
};
struct bf16_square {
  typedef uint16_t element;
  static double term(uint16_t x) { return f32_square::term(bits_as<float>(static_cast<uint32_t>(x) << 16)); }
};

// Lane l of a row of N after the steps down to d.
template <class K, int N, int l = 0, int d = 1>
inline double joined(const typename K::element* row) {
  if constexpr (d == lanes)
    return K::term(row[l]);
  else if constexpr (l + d < N)
    return joined<K, N, l, 2 * d>(row) + joined<K, N, l + d, 2 * d>(row);
  else
    return joined<K, N, l, 2 * d>(row);
}

inline double canonical(double x) { return x == x ? x : __builtin_nan(""); }

template <class K, int N>
void sums(const packed_rows& r, int64_t count, double* out) {
  const auto* row = static_cast<const typename K::element*>(r.src);
  if (r.stride == N)  // with a constant stride the compiler can put one row in each lane
    for (int64_t s = 0; s < count; ++s) out[s] = canonical(joined<K, N>(row + s * N));
  else
    for (int64_t s = 0; s < count; ++s) out[s] = canonical(joined<K, N>(row + s * r.stride));
}

// ---- extremes -----------------------------------------------------------------------
// Keys as in order::key_f32; a NaN has the best key.
template <class I, bool FloatBits, bool Largest>
struct extreme_key {
  typedef I element;
  static constexpr bool float_bits = FloatBits;
  static constexpr I highest = static_cast<I>(~(I{1} << (sizeof(I) * 8 - 1))), winner = Largest ? highest : ~highest;
  static constexpr I infinity = static_cast<I>(sizeof(I) == 4 ? 0x7F800000 : 0x7FF0000000000000);
  static constexpr I quiet = static_cast<I>(sizeof(I) == 4 ? 0x7FC00000 : 0x7FF8000000000000);
  static constexpr int sign_bit = sizeof(I) * 8 - 1;

  static I flip(I x) { return x ^ ((x >> sign_bit) & highest); }
  static I of(I x) {
    if (!FloatBits) return x;
    const bool nan = (x & highest) > infinity;
    return nan ? winner : flip(x);
  }
  static I element_of(I key) {
    if (!FloatBits) return key;
    return key == winner ? quiet : flip(key);
  }
  static bool better(I a, I b) { return Largest ? a > b : a < b; }
};

// The best key of elements l, l + d, ... of a row of N.
template <class K, int N, int l = 0, int d = 1>
inline typename K::element best_key(const typename K::element* row) {
  if constexpr (d == lanes) {
    return K::of(row[l]);
  } else if constexpr (l + d < N) {
    const auto a = best_key<K, N, l, 2 * d>(row), b = best_key<K, N, l + d, 2 * d>(row);
    return K::better(b, a) ? b : a;
  } else {
    return best_key<K, N, l, 2 * d>(row);
  }
}

template <class K, int N>
void winners_of(const packed_rows& r, int64_t count, typename K::element* out) {
  const auto* row = static_cast<const typename K::element*>(r.src);
  if (r.stride == N)
    for (int64_t s = 0; s < count; ++s) out[s] = K::element_of(best_key<K, N>(row + s * N));
  else
    for (int64_t s = 0; s < count; ++s) out[s] = K::element_of(best_key<K, N>(row + s * r.stride));
}

template <class K, int N>
void places_of(const packed_rows& r, int64_t count, int64_t* out) {
  typedef typename K::element I;
  const auto* row = static_cast<const I*>(r.src);
  for (int64_t s = 0; s < count; ++s, row += r.stride) {
    const I best = best_key<K, N>(row);
    int64_t at = N - 1;
#pragma GCC unroll 8
    for (int i = N - 2; i >= 0; --i) at = K::of(row[i]) == best ? i : at;
    out[s] = at;
  }
}

// ---- the tables, by length ------------------------------------------------------------
template <class K, int N>
void extremes_of(const packed_rows& r, int64_t count, bool index, void* out) {
  if (index)
    places_of<K, N>(r, count, static_cast<int64_t*>(out));
  else
    winners_of<K, N>(r, count, static_cast<typename K::element*>(out));
}

template <class K>
void any_sums(const packed_rows& r, int64_t count, double* out) {
  static constexpr decltype(&sums<K, 1>) of[] = {sums<K, 1>, sums<K, 2>, sums<K, 3>};
  static_assert(sizeof of / sizeof *of == tiny_sum);
  of[r.n - 1](r, count, out);
}
template <class K>
void any_extremes(const packed_rows& r, int64_t count, bool index, void* out) {
  static constexpr decltype(&extremes_of<K, 1>) of[] = {extremes_of<K, 1>, extremes_of<K, 2>, extremes_of<K, 3>,
                                                        extremes_of<K, 4>, extremes_of<K, 5>, extremes_of<K, 6>,
                                                        extremes_of<K, 7>};
  static_assert(sizeof of / sizeof *of == tiny_extreme);
  of[r.n - 1](r, count, index, out);
}

void roots(double* values, int64_t count) {
  for (int64_t k = 0; k < count; ++k) values[k] = __builtin_sqrt(values[k]);
}

constexpr tiny_row_kernels all_kernels() {
  tiny_row_kernels k = {};
  k.sums[cpu::sum_f32] = any_sums<f32_sum>;
  k.sums[cpu::sum_f64] = any_sums<f64_sum>;
  k.sums[cpu::square_bf16] = any_sums<bf16_square>;
  k.sums[cpu::square_f32] = any_sums<f32_square>;
  k.sums[cpu::square_f64] = any_sums<f64_square>;
  k.extremes[largest_i32] = any_extremes<extreme_key<int32_t, false, true>>;
  k.extremes[largest_i64] = any_extremes<extreme_key<int64_t, false, true>>;
  k.extremes[largest_f32] = any_extremes<extreme_key<int32_t, true, true>>;
  k.extremes[largest_f64] = any_extremes<extreme_key<int64_t, true, true>>;
  k.extremes[smallest_i32] = any_extremes<extreme_key<int32_t, false, false>>;
  k.extremes[smallest_i64] = any_extremes<extreme_key<int64_t, false, false>>;
  k.extremes[smallest_f32] = any_extremes<extreme_key<int32_t, true, false>>;
  k.extremes[smallest_f64] = any_extremes<extreme_key<int64_t, true, false>>;
  k.roots = roots;
  return k;
}
}  // namespace

extern const tiny_row_kernels tiny_rows_table;
const tiny_row_kernels tiny_rows_table = all_kernels();

}  // namespace lockstep::cpu::LOCKSTEP_ISA
