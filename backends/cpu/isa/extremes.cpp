// extremes.cpp - the largest or smallest element, and where it first occurs.
// Idea    floats compare as integers. Three extremes of their bits decide both ends: the largest as signed, the
//         smallest and the largest as unsigned; no per-element work for signs, -0.0 or NaN. Where the index is
//         asked for, the row is searched for the winner's bits: it is still in L1.
// Moves   every element read once (twice in L1 for an index); 16 bytes written a row
// Limit   3 operations a vector of floats, 1 of integers; DRAM: the read limit
// Watch   NaN of either sign wins both ways; among NaNs payloads do not count
// Source  lib/order.hpp (keys)
#include "../reduce_kernels.hpp"
#include "order.hpp"
#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

constexpr int ahead = 8192;  // bytes; see float_sums.cpp
constexpr int bytes = W * 8;

typedef int32_t vs32 __attribute__((vector_size(bytes)));
typedef uint32_t vu32 __attribute__((vector_size(bytes)));
typedef int64_t vs64 __attribute__((vector_size(bytes)));
typedef uint64_t vu64 __attribute__((vector_size(bytes)));

template <class V>
inline V greater(V a, V b) {
  return a > b ? a : b;
}
template <class V>
inline V lesser(V a, V b) {
  return a < b ? a : b;
}

// float_bits: elements are IEEE floats seen as integers of their size.
template <class I, class U, class S, class V, bool FloatBits>
struct kind {
  typedef I element;
  typedef U word;
  typedef S vector;
  typedef V word_vector;
  static constexpr bool float_bits = FloatBits;
  static constexpr int width = bytes / static_cast<int>(sizeof(I));
  static constexpr U sign = U{1} << (sizeof(I) * 8 - 1);
  static constexpr U infinity = sizeof(I) == 4 ? static_cast<U>(0x7F800000u) : static_cast<U>(0x7FF0000000000000u);
  static constexpr I highest = static_cast<I>(sign - 1), lowest = static_cast<I>(sign);
  static S load(const I* p) {
    S x;
    memcpy(&x, p, sizeof x);
    return x;
  }
};
typedef kind<int32_t, uint32_t, vs32, vu32, false> i32;
typedef kind<int64_t, uint64_t, vs64, vu64, false> i64;
typedef kind<int32_t, uint32_t, vs32, vu32, true> f32;
typedef kind<int64_t, uint64_t, vs64, vu64, true> f64;

// The last vector of a row overlaps the one before, or repeats the first element:
// neither changes an extreme.
template <class K>
inline typename K::vector last_vector(const typename K::element* p, int64_t n) {
  if (n >= K::width) return K::load(p + n - K::width);
  typename K::element part[K::width];
  for (int i = 0; i < K::width; ++i) part[i] = p[i < n ? i : 0];
  return K::load(part);
}

template <class V>
inline V swapped_halves(V v, int half) {
  constexpr int n = sizeof(V) / sizeof(v[0]);
  V r;
  for (int i = 0; i < n; ++i) r[i] = v[i ^ half];
  return r;
}

struct take_greater {
  template <class V>
  static V of(V a, V b) { return greater(a, b); }
};
struct take_lesser {
  template <class V>
  static V of(V a, V b) { return lesser(a, b); }
};

template <class Take, class V>
inline auto across(V v) {
  constexpr int n = sizeof(V) / sizeof(v[0]);
#pragma GCC unroll 4
  for (int half = n / 2; half >= 1; half /= 2) v = Take::of(v, swapped_halves(v, half));
  return v[0];
}

// Runs body(k, vector) over a row; k alternates between two chains.
template <class K, class Body>
inline void over_row(const typename K::element* p, int64_t n, const Body& body) {
  int64_t i = 0;
  for (; i + 2 * K::width <= n; i += 2 * K::width) {
    for (int b = 0; b < 2 * bytes; b += 64) __builtin_prefetch(reinterpret_cast<const char*>(p + i) + ahead + b);
    body(0, K::load(p + i));
    body(1, K::load(p + i + K::width));
  }
  if (i + K::width <= n) {
    body(0, K::load(p + i));
    i += K::width;
  }
  if (i < n) body(1, last_vector<K>(p, n));
}

// The bits of the winner; found_nan where a NaN is.
template <class K, bool Largest>
inline typename K::element winner(const typename K::element* p, int64_t n, bool& found_nan) {
  typedef typename K::vector V;
  typedef typename K::word_vector VU;
  found_nan = false;
  if constexpr (!K::float_bits) {
    V best[2] = {V{} + (Largest ? K::lowest : K::highest), V{} + (Largest ? K::lowest : K::highest)};
    over_row<K>(p, n, [&](int k, V x) { best[k] = Largest ? greater(best[k], x) : lesser(best[k], x); });
    if (Largest) return across<take_greater>(greater(best[0], best[1]));
    return across<take_lesser>(lesser(best[0], best[1]));
  } else {
    V top[2] = {V{} + K::lowest, V{} + K::lowest};
    VU low[2] = {~VU{}, ~VU{}}, high[2] = {VU{}, VU{}};
    over_row<K>(p, n, [&](int k, V x) {
      const VU u = reinterpret_cast<VU>(x);
      top[k] = greater(top[k], x);
      low[k] = lesser(low[k], u);
      high[k] = greater(high[k], u);
    });
    const auto most_signed = across<take_greater>(greater(top[0], top[1]));
    const auto least = across<take_lesser>(lesser(low[0], low[1]));
    const auto most = across<take_greater>(greater(high[0], high[1]));
    found_nan = most_signed > static_cast<typename K::element>(K::infinity) || most > (K::infinity | K::sign);
    if (Largest) return most_signed >= 0 ? most_signed : static_cast<typename K::element>(least);
    return static_cast<typename K::element>((most & K::sign) != 0 ? most : least);
  }
}

template <class K>
inline typename K::element key_of(typename K::element x) {
  if constexpr (!K::float_bits) return x;
  return x >= 0 ? x : static_cast<typename K::element>(~x ^ static_cast<typename K::element>(K::sign));
}
template <class K>
inline bool is_nan(typename K::element x) {
  return K::float_bits && (static_cast<typename K::word>(x) & ~K::sign) > K::infinity;
}

// The first element with these bits (or, nan, the first NaN); there is one.
template <class K>
inline int64_t first_index(const typename K::element* p, int64_t n, typename K::element bits, bool nan) {
  typedef typename K::vector V;
  int64_t i = 0;
  if (nan) {
    while (!is_nan<K>(p[i])) ++i;
    return i;
  }
  for (; i + K::width <= n; i += K::width) {
    const V x = K::load(p + i), wanted = V{} + bits;
#if defined(LOCKSTEP_ISA_AVX512)
    uint32_t hits;
    if constexpr (sizeof(bits) == 4)
      hits = _mm512_cmpeq_epi32_mask(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(wanted));
    else
      hits = _mm512_cmpeq_epi64_mask(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(wanted));
#elif defined(LOCKSTEP_ISA_AVX2)
    const V equal = x == wanted;
    uint32_t hits;
    if constexpr (sizeof(bits) == 4)
      hits = static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(equal)));
    else
      hits = static_cast<uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(equal)));
#else
    uint32_t hits = 0;
    for (int k = 0; k < K::width; ++k) hits |= static_cast<uint32_t>(x[k] == wanted[k]) << k;
#endif
    if (hits != 0) return i + __builtin_ctz(hits);
  }
  while (i < n - 1 && p[i] != bits) ++i;
  return i;
}

template <class K, bool Largest>
void rows(const void* src, int64_t count, int64_t n, int64_t stride, bool index, extreme* out) {
  const auto* p = static_cast<const typename K::element*>(src);
  for (int64_t s = 0; s < count; ++s, p += stride) {
    bool nan;
    const auto bits = winner<K, Largest>(p, n, nan);
    out[s].key = nan ? (Largest ? INT64_MAX : INT64_MIN) : key_of<K>(bits);
    out[s].index = index ? first_index<K>(p, n, bits, nan) : 0;
  }
}

// ---- columns: key and index of each column in L1, eight rows at a time -----------
template <class K, bool Largest>
inline typename K::vector keys(typename K::vector x) {
  typedef typename K::vector V;
  if constexpr (!K::float_bits) return x;
  const V magnitude = x & K::highest;
  const V key = x ^ ((x < 0) & K::highest);
  return magnitude > static_cast<typename K::element>(K::infinity) ? V{} + (Largest ? K::highest : K::lowest) : key;
}

template <class K, bool Largest, bool Index>
void extremes_of_columns(const typename K::element* p, int64_t n, int64_t ld, int64_t width, extreme* out) {
  typedef typename K::vector V;
  typedef typename K::element I;
  constexpr int together = 8;
  V best[column_block / K::width], where[column_block / K::width];
  for (auto& v : best) v = V{} + (Largest ? K::lowest : K::highest);
  for (auto& v : where) v = V{};
  for (int64_t r = 0; r < n; r += together) {
    const int64_t last = n - r < together ? n : r + together;
    for (int64_t c = 0; c < width; c += K::width) {
      V b = best[c / K::width], w = where[c / K::width];
      const I* q = p + r * ld + c;
      for (int64_t i = r; i < last; ++i, q += ld) {
        V x;
        if (width - c >= K::width) {
          __builtin_prefetch(q + together * ld);
          x = K::load(q);
        } else {
          x = last_vector<K>(q, width - c);
        }
        const V k = keys<K, Largest>(x);
        if constexpr (Index) {
          const V wins = Largest ? k > b : k < b;
          w = wins ? V{} + static_cast<I>(i) : w;
        }
        b = Largest ? greater(b, k) : lesser(b, k);
      }
      best[c / K::width] = b;
      where[c / K::width] = w;
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    const I key = best[c / K::width][c % K::width];
    const bool nan = K::float_bits && key == (Largest ? K::highest : K::lowest);
    out[c].key = nan ? (Largest ? INT64_MAX : INT64_MIN) : key;
    out[c].index = where[c / K::width][c % K::width];
  }
}
template <class K, bool Largest>
void columns(const void* src, int64_t n, int64_t ld, int64_t width, bool index, extreme* out) {
  const auto* p = static_cast<const typename K::element*>(src);
  if (index) return extremes_of_columns<K, Largest, true>(p, n, ld, width, out);
  extremes_of_columns<K, Largest, false>(p, n, ld, width, out);
}

}  // namespace

extern const extreme_kernels extremes_table;
const extreme_kernels extremes_table = {{
    {rows<i32, true>, columns<i32, true>},
    {rows<i64, true>, columns<i64, true>},
    {rows<f32, true>, columns<f32, true>},
    {rows<f64, true>, columns<f64, true>},
    {rows<i32, false>, columns<i32, false>},
    {rows<i64, false>, columns<i64, false>},
    {rows<f32, false>, columns<f32, false>},
    {rows<f64, false>, columns<f64, false>},
}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
