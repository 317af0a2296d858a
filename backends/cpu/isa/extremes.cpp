// extremes.cpp - the largest or smallest element, and where it first occurs.
// Idea    floats compare as integers. Three extremes of their bits decide both ends: the largest as signed, the
//         smallest and the largest as unsigned; no per-element work for signs, -0.0 or NaN. Where the index is
//         asked for, the row is searched for the winner's bits: it is still in L1.
// Moves   every element read once (twice in L1 for an index); 16 bytes written a row
// Limit   3 operations a vector of floats, 1 of integers; DRAM: the read limit
// Watch   NaN of either sign wins both ways; among NaNs payloads do not count
// Source  lib/order.hpp (keys)
#include "../reduce_kernels.hpp"
#include "mutant.hpp"
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
  typedef typename K::vector V [[maybe_unused]];
  if (n >= K::width) return K::load(p + n - K::width);
#if defined(LOCKSTEP_ISA_AVX512)
  const __m512i fill = reinterpret_cast<__m512i>(V{} + p[0]);
  if constexpr (sizeof(*p) == 4) return reinterpret_cast<V>(_mm512_mask_loadu_epi32(fill, static_cast<__mmask16>((1 << n) - 1), p));
  else return reinterpret_cast<V>(_mm512_mask_loadu_epi64(fill, static_cast<__mmask8>((1 << n) - 1), p));
#elif defined(LOCKSTEP_ISA_AVX2)
  const __m256i fill = reinterpret_cast<__m256i>(V{} + p[0]);
  __m256i mask, some;
  if constexpr (sizeof(*p) == 4) {
    mask = first_lanes32(n);
    some = _mm256_maskload_epi32(p, mask);
  } else {
    mask = first_lanes64(n);
    some = _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), mask);
  }
  return reinterpret_cast<V>(_mm256_blendv_epi8(fill, some, mask));
#else
  typename K::element part[K::width];
  for (int i = 0; i < K::width; ++i) part[i] = p[i < n ? i : 0];
  return K::load(part);
#endif
}

struct take_greater {
  template <class V>
  static V of(V a, V b) { return greater(a, b); }
};
struct take_lesser {
  template <class V>
  static V of(V a, V b) { return lesser(a, b); }
};

// Neighbouring lanes of a, then of b, joined.
template <class Take, class V>
inline V halved(V a, V b) {
  constexpr int n = sizeof(V) / sizeof(a[0]);
  if constexpr (n == 16)
    return Take::of(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
  else if constexpr (n == 8)
    return Take::of(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14), __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
  else if constexpr (n == 4)
    return Take::of(__builtin_shufflevector(a, b, 0, 2, 4, 6), __builtin_shufflevector(a, b, 1, 3, 5, 7));
  else
    return Take::of(__builtin_shufflevector(a, b, 0, 2), __builtin_shufflevector(a, b, 1, 3));
}
// Lane i: the extreme of v[i]. As many vectors as lanes, so that registers stay full.
template <class Take, class V>
inline V across(V* v) {
  constexpr int n = sizeof(V) / sizeof(v[0][0]);
#pragma GCC unroll 4
  for (int m = n / 2; m >= 1; m /= 2)
#pragma GCC unroll 8
    for (int i = 0; i < m; ++i) v[i] = halved<Take>(v[2 * i], v[2 * i + 1]);
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

// The extremes of up to K::width rows, a lane a row: of integers one, of floats
// the largest as signed (top), the smallest and the largest as unsigned.
template <class K, bool Largest>
struct group {
  typedef typename K::vector V;
  typedef typename K::word_vector VU;
  V top[K::width];
  VU low[K::width], high[K::width];

  void row(int i, const typename K::element* p, int64_t n) {
    if constexpr (!K::float_bits) {
      V best[2] = {V{} + (Largest ? K::lowest : K::highest), V{} + (Largest ? K::lowest : K::highest)};
      over_row<K>(p, n, [&](int k, V x) { best[k] = Largest ? greater(best[k], x) : lesser(best[k], x); });
      top[i] = Largest ? greater(best[0], best[1]) : lesser(best[0], best[1]);
    } else {
      V t[2] = {V{} + K::lowest, V{} + K::lowest};
      VU l[2] = {~VU{}, ~VU{}}, h[2] = {VU{}, VU{}};
      over_row<K>(p, n, [&](int k, V x) {
        const VU u = reinterpret_cast<VU>(x);
        t[k] = greater(t[k], x);
        l[k] = lesser(l[k], u);
        h[k] = greater(h[k], u);
      });
      top[i] = greater(t[0], t[1]);
      low[i] = lesser(l[0], l[1]);
      high[i] = greater(h[0], h[1]);
    }
  }
  // The winners' bits, and which rows have a NaN.
  void join(typename K::element* bits, bool* nan) {
    V winner;
    V nans = {};
    if constexpr (!K::float_bits) {
      winner = Largest ? across<take_greater>(top) : across<take_lesser>(top);
    } else {
      const V t = across<take_greater>(top);
      const VU l = across<take_lesser>(low), h = across<take_greater>(high);
      nans = (t > static_cast<typename K::element>(K::infinity)) | (LOCKSTEP_MUTANT("negative_nan_ignored") ? V{} : reinterpret_cast<V>(h > (K::infinity | K::sign)));
      if (Largest) winner = t >= 0 ? t : reinterpret_cast<V>(l);
      else winner = reinterpret_cast<V>(h) < 0 ? reinterpret_cast<V>(h) : reinterpret_cast<V>(l);
    }
    memcpy(bits, &winner, sizeof winner);
    for (int i = 0; i < K::width; ++i) nan[i] = nans[i] != 0;
  }
};

template <class K>
inline typename K::element key_of(typename K::element x) {
  if constexpr (!K::float_bits) return x;
  return x >= 0 ? x : static_cast<typename K::element>(~x ^ static_cast<typename K::element>(K::sign));
}
template <class K>
inline bool is_nan(typename K::element x) {
  return K::float_bits && (static_cast<typename K::word>(x) & ~K::sign) > K::infinity;
}

// Bit i: lane i of x has these bits.
template <class K>
inline uint32_t hits(typename K::vector x, typename K::element bits) {
  const typename K::vector wanted = typename K::vector{} + bits;
#if defined(LOCKSTEP_ISA_AVX512)
  if constexpr (sizeof(bits) == 4)
    return _mm512_cmpeq_epi32_mask(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(wanted));
  else
    return _mm512_cmpeq_epi64_mask(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(wanted));
#elif defined(LOCKSTEP_ISA_AVX2)
  const typename K::vector equal = x == wanted;
  if constexpr (sizeof(bits) == 4)
    return static_cast<uint32_t>(_mm256_movemask_ps(reinterpret_cast<__m256>(equal)));
  else
    return static_cast<uint32_t>(_mm256_movemask_pd(reinterpret_cast<__m256d>(equal)));
#else
  uint32_t found = 0;
  for (int k = 0; k < K::width; ++k) found |= static_cast<uint32_t>(x[k] == wanted[k]) << k;
  return found;
#endif
}

// The first element with these bits (or, nan, the first NaN); there is one. Rows of
// up to 64 take no branch that depends on where it is.
template <class K>
inline int64_t first_index(const typename K::element* p, int64_t n, typename K::element bits, bool nan) {
  int64_t i = 0;
  if (nan) {
    while (!is_nan<K>(p[i])) ++i;
    return i;
  }
  if (n <= 64) {
    uint64_t found = 0;
    for (; i + K::width <= n; i += K::width) found |= static_cast<uint64_t>(hits<K>(K::load(p + i), bits)) << i;
    if (i < n) found |= static_cast<uint64_t>(hits<K>(last_vector<K>(p, n), bits)) << (n > K::width && !LOCKSTEP_MUTANT("index_in_the_last_vector") ? n - K::width : 0);
    return __builtin_ctzll(found);
  }
  for (; i + K::width <= n; i += K::width)
    if (const uint32_t found = hits<K>(K::load(p + i), bits); found != 0) return i + __builtin_ctz(found);
  while (i < n - 1 && p[i] != bits) ++i;
  return i;
}

// ---- many short rows of one length ------------------------------------------------
// Floats are compared by key (order::key_f32), so that one vector joins across its lanes where group joins three; the
// other end of all rows together tells whether a NaN of the sign that cannot win is among them: only then group has to
// say whose it is.
template <class K>
inline typename K::vector ordered(typename K::vector x) {
  if constexpr (!K::float_bits) return x;
  else return x ^ ((x < 0) & K::highest);
}
template <class K>
inline bool any_lane(typename K::vector x) {
  return hits<K>(x, 0) != (1u << K::width) - 1;
}

template <class K, bool Largest>
__attribute__((noinline)) void whose_nan(const typename K::element* p, int64_t n, int64_t stride, int together,
                                         typename K::vector& winner, typename K::vector& nan) {
  group<K, Largest> g;
  if (together < K::width) memset(static_cast<void*>(&g), 0, sizeof g);
  for (int i = 0; i < together; ++i) g.row(i, p + i * stride, n);
  typename K::element bits[K::width];
  bool is[K::width];
  g.join(bits, is);
  winner = K::load(bits);
  for (int i = 0; i < K::width; ++i) nan[i] = is[i] ? -1 : 0;
}

// The extremes' bits of the `together` rows from p on, a lane a row; nan: all ones in lanes of rows that have one.
// Returns whether any has. V: vectors of a row, 0 for any number.
template <class K, bool Largest, int V>
bool short_rows(const typename K::element* p, int64_t n, int64_t stride, int together, typename K::vector& winner, typename K::vector& nan) {
  typedef typename K::vector vector;
  typedef typename K::element I;
  constexpr I infinity = static_cast<I>(K::infinity);  // the key of +inf; that of -inf is the complement
  vector best[K::width];
  vector other = vector{};
  if (together < K::width) memset(best, 0, sizeof best);
  const auto take = [&](vector x, vector& b) {
    const vector key = ordered<K>(x);
    b = Largest ? greater(b, key) : lesser(b, key);
    if constexpr (K::float_bits) other = Largest ? lesser(other, key) : greater(other, key);
  };
  for (int i = 0; i < together; ++i) {
    const I* row = p + i * stride;
    vector b[2] = {vector{} + (Largest ? K::lowest : K::highest), vector{} + (Largest ? K::lowest : K::highest)};
    if constexpr (V == 0) {
      over_row<K>(row, n, [&](int k, vector x) { take(x, b[k]); });
    } else {
#pragma GCC unroll 4
      for (int k = 0; k < V - 1; ++k) {
        __builtin_prefetch(reinterpret_cast<const char*>(row + k * K::width) + ahead);
        take(K::load(row + k * K::width), b[k & 1]);
      }
      __builtin_prefetch(reinterpret_cast<const char*>(row + (V - 1) * K::width) + ahead);
      take(V > 1 ? K::load(row + n - K::width) : last_vector<K>(row, n), b[1]);
    }
    best[i] = Largest ? greater(b[0], b[1]) : lesser(b[0], b[1]);
  }
  if constexpr (Largest) winner = across<take_greater>(best);
  else winner = across<take_lesser>(best);
  nan = vector{};
  if constexpr (K::float_bits) {
    nan = Largest ? winner > infinity : winner < static_cast<I>(~infinity);
    winner = ordered<K>(winner);
    if (any_lane<K>(Largest ? other < static_cast<I>(~infinity) : other > infinity) &&
        !LOCKSTEP_MUTANT("short_rows_one_sign_of_nan")) {
      vector bits, is;  // so that winner and nan stay in registers
      whose_nan<K, Largest>(p, n, stride, together, bits, is);
      winner = bits;
      nan = is;
    }
    return any_lane<K>(nan);
  }
  return false;
}

template <class K, bool Largest>
void winners(const packed_rows& r, int64_t count, bool index, void* out) {
  typedef typename K::vector V;
  typedef typename K::element I;
  constexpr I quiet = static_cast<I>(K::infinity | (K::infinity & (0 - K::infinity)) >> 1);
  const auto* src = static_cast<const I*>(r.src);
  static constexpr decltype(&short_rows<K, Largest, 0>) of_vectors[] = {
      short_rows<K, Largest, 1>, short_rows<K, Largest, 2>, short_rows<K, Largest, 3>, short_rows<K, Largest, 4>};
  const auto take = r.n <= 4 * K::width ? of_vectors[(r.n - 1) / K::width] : short_rows<K, Largest, 0>;
  for (int64_t first = 0; first < count; first += K::width) {
    const int together = count - first < K::width ? static_cast<int>(count - first) : K::width;
    const I* p = src + first * r.stride;
    V winner, nan;
    const bool any_nan = take(p, r.n, r.stride, together, winner, nan);
    if (!index) {
      if (K::float_bits) winner = nan != 0 ? V{} + quiet : winner;
      memcpy(static_cast<I*>(out) + first, &winner, static_cast<size_t>(together) * sizeof(I));
      continue;
    }
    I bits[K::width];
    memcpy(bits, &winner, sizeof bits);
    auto* at = static_cast<int64_t*>(out) + first;
    if (any_nan) {
      for (int i = 0; i < together; ++i) at[i] = first_index<K>(p + i * r.stride, r.n, bits[i], nan[i] != 0);
    } else {
      for (int i = 0; i < together; ++i) at[i] = first_index<K>(p + i * r.stride, r.n, bits[i], false);
    }
  }
}

template <class K, bool Largest>
void rows(const packed_rows& r, int64_t count, bool index, extreme* out) {
  const auto* src = static_cast<const typename K::element*>(r.src);
  const auto begin = [&](int64_t s) { return src + (r.offsets != nullptr ? r.offsets[s] : s * r.stride); };
  const auto length = [&](int64_t s) { return r.offsets != nullptr ? r.offsets[s + 1] - r.offsets[s] : r.n; };
  for (int64_t first = 0; first < count; first += K::width) {
    const int together = count - first < K::width ? static_cast<int>(count - first) : K::width;
    group<K, Largest> g;
    if (together < K::width) memset(static_cast<void*>(&g), 0, sizeof g);
    for (int i = 0; i < together; ++i) g.row(i, begin(first + i), length(first + i));
    typename K::element bits[K::width];
    bool nan[K::width];
    g.join(bits, nan);
    for (int i = 0; i < together; ++i) {
      const int64_t s = first + i;
      out[s].key = nan[i] ? (Largest ? INT64_MAX : INT64_MIN) : key_of<K>(bits[i]);
      out[s].index = index && length(s) > 0 ? first_index<K>(begin(s), length(s), bits[i], nan[i]) : 0;
    }
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
          const V wins = LOCKSTEP_MUTANT("column_tie_to_the_last") ? (Largest ? k >= b : k <= b) : (Largest ? k > b : k < b);
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
    {rows<i32, true>, winners<i32, true>, columns<i32, true>},
    {rows<i64, true>, winners<i64, true>, columns<i64, true>},
    {rows<f32, true>, winners<f32, true>, columns<f32, true>},
    {rows<f64, true>, winners<f64, true>, columns<f64, true>},
    {rows<i32, false>, winners<i32, false>, columns<i32, false>},
    {rows<i64, false>, winners<i64, false>, columns<i64, false>},
    {rows<f32, false>, winners<f32, false>, columns<f32, false>},
    {rows<f64, false>, winners<f64, false>, columns<f64, false>},
}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
