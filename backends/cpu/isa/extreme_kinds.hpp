// extreme_kinds.hpp - helpers of extremes.cpp: the element types as integers, vectors of them, joins across lanes.
#pragma once

#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

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
  static constexpr bool is_signed = I(-1) < I(0);
  static constexpr I highest = static_cast<I>(is_signed ? sign - 1 : ~U{0}),
                     lowest = static_cast<I>(is_signed ? sign : 0);
  // extreme.key for an integer.
  static int64_t key(I x) {
    return static_cast<int64_t>(sizeof(I) < 8 || is_signed ? static_cast<uint64_t>(static_cast<int64_t>(x))
                                                           : static_cast<uint64_t>(x) ^ uint64_t{1} << 63);
  }
  static I element_of(int64_t key) {
    return static_cast<I>(static_cast<uint64_t>(key) ^ (sizeof(I) < 8 || is_signed ? 0 : uint64_t{1} << 63));
  }
  static S load(const I* p) {
    S x;
    memcpy(&x, p, sizeof x);
    return x;
  }
};
typedef kind<int32_t, uint32_t, vs32, vu32, false> i32;
typedef kind<int64_t, uint64_t, vs64, vu64, false> i64;
typedef kind<uint32_t, uint32_t, vu32, vu32, false> u32;
typedef kind<uint64_t, uint64_t, vu64, vu64, false> u64;
typedef kind<int32_t, uint32_t, vs32, vu32, true> f32;
typedef kind<int64_t, uint64_t, vs64, vu64, true> f64;

// The last vector of a row overlaps the one before, or repeats the first element.
// Neither changes an extreme.
template <class K>
inline typename K::vector last_vector(const typename K::element* p, int64_t n) {
  typedef typename K::vector V [[maybe_unused]];
  if (n >= K::width) return K::load(p + n - K::width);
#if defined(LOCKSTEP_ISA_AVX512)
  const __m512i fill = reinterpret_cast<__m512i>(V{} + p[0]);
  if constexpr (sizeof(*p) == 4)
    return reinterpret_cast<V>(_mm512_mask_loadu_epi32(fill, static_cast<__mmask16>((1 << n) - 1), p));
  else
    return reinterpret_cast<V>(_mm512_mask_loadu_epi64(fill, static_cast<__mmask8>((1 << n) - 1), p));
#elif defined(LOCKSTEP_ISA_AVX2)
  const __m256i fill = reinterpret_cast<__m256i>(V{} + p[0]);
  __m256i mask, some;
  if constexpr (sizeof(*p) == 4) {
    mask = first_lanes32(n);
    some = _mm256_maskload_epi32(reinterpret_cast<const int*>(p), mask);
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
  static V of(V a, V b) {
    return greater(a, b);
  }
};
struct take_lesser {
  template <class V>
  static V of(V a, V b) {
    return lesser(a, b);
  }
};

// Neighbouring lanes of a, then of b, joined.
template <class Take, class V>
inline V halved(V a, V b) {
  constexpr int n = sizeof(V) / sizeof(a[0]);
  if constexpr (n == 16)
    return Take::of(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30),
                    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31));
  else if constexpr (n == 8)
    return Take::of(__builtin_shufflevector(a, b, 0, 2, 4, 6, 8, 10, 12, 14),
                    __builtin_shufflevector(a, b, 1, 3, 5, 7, 9, 11, 13, 15));
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

// extreme_kernels::find by rows, which work the extreme out again.
template <void (*rows)(const packed_rows& r, int64_t count, bool index, extreme* out)>
int64_t find_by_rows(const void* src, int64_t n, int64_t) {
  extreme found;
  rows({src, n, 0, nullptr}, 1, true, &found);
  return found.index;
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
  const auto equal = x == wanted;
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

template <class K>
inline bool any_lane(typename K::vector x) {
  return hits<K>(x, 0) != (1u << K::width) - 1;
}

// ---- whole chunks ----------------------------------------------------------------
// Floats as integers that grow with them (order::key_f32, key_f64); a NaN of one sign is beyond infinity.
template <class K>
inline typename K::vector ordered(typename K::vector x) {
  if constexpr (!K::float_bits)
    return x;
  else
    return x ^ ((x < 0) & K::highest);
}

// A chunk's vectors are entered two at a time; the extreme of keys() is then the chunk's, unless undecided(). ends:
// floats by their largest bits as signed and as unsigned integers, which is undecided if all signs are those of the
// other end or one is a NaN.
template <class K, bool Largest>
struct ends {
  typedef typename K::vector V;
  typedef typename K::word_vector VU;
  static constexpr bool top = Largest || K::float_bits, any_sign = !K::float_bits;
  V t[2] = {V{} + (top ? K::lowest : K::highest), V{} + (top ? K::lowest : K::highest)};
  VU h[2] = {VU{}, VU{}};

  void enter(int, V x, V y) {
    t[0] = top ? greater(t[0], x) : lesser(t[0], x);
    t[1] = top ? greater(t[1], y) : lesser(t[1], y);
    if constexpr (K::float_bits) {
      h[0] = greater(h[0], reinterpret_cast<VU>(x));
      h[1] = greater(h[1], reinterpret_cast<VU>(y));
    }
  }
  V largest() const { return top ? greater(t[0], t[1]) : lesser(t[0], t[1]); }
  V keys() const {
    return ordered<K>(Largest || !K::float_bits ? largest() : reinterpret_cast<V>(greater(h[0], h[1])));
  }
  bool undecided() const {
    if constexpr (!K::float_bits) return false;
    const VU high = greater(h[0], h[1]);
    const bool nan = any_lane<K>((largest() > static_cast<typename K::element>(K::infinity)) |
                                 reinterpret_cast<V>(high > (K::infinity | K::sign)));
    const bool other_sign = !any_lane<K>(Largest ? largest() >= 0 : reinterpret_cast<V>(high) < 0);
    return nan || other_sign;
  }
};

#if defined(LOCKSTEP_ISA_AVX512)
// vrange takes the larger or the smaller of two, -0.0 below +0.0, and a NaN only where both are.
template <int Range>
inline vs32 ranged(vs32 a, vs32 b) {
  return reinterpret_cast<vs32>(_mm512_range_ps(reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), Range));
}
template <int Range>
inline vs64 ranged(vs64 a, vs64 b) {
  return reinterpret_cast<vs64>(_mm512_range_pd(reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), Range));
}
inline __mmask16 both_numbers(__mmask16 before, vs32 a, vs32 b) {
  return _mm512_mask_cmp_ps_mask(before, reinterpret_cast<__m512>(a), reinterpret_cast<__m512>(b), _CMP_ORD_Q);
}
inline __mmask8 both_numbers(__mmask8 before, vs64 a, vs64 b) {
  return _mm512_mask_cmp_pd_mask(before, reinterpret_cast<__m512d>(a), reinterpret_cast<__m512d>(b), _CMP_ORD_Q);
}
inline __mmask16 all_lanes(vs32) { return 0xFFFF; }
inline __mmask8 all_lanes(vs64) { return 0xFF; }

// Floats as numbers, of any sign: 3 operations for two vectors, where ends takes 4. Needs the default floating-point
// mode, because vrange flushes denormals if the mode does.
template <class K, bool Largest, int Chains>
struct numbers {
  typedef typename K::vector V;
  typedef decltype(all_lanes(V{})) mask;
  static constexpr bool any_sign = true;
  static constexpr int range = Largest ? 5 : 4;  // the larger or the smaller, its own sign
  V best[Chains];
  mask whole[Chains];

  numbers() {
    for (V& v : best) v = V{} + static_cast<typename K::element>(Largest ? K::infinity | K::sign : K::infinity);
    for (mask& m : whole) m = all_lanes(V{});
  }
  void enter(int j, V x, V y) {
    best[j % Chains] = ranged<range>(ranged<range>(best[j % Chains], x), y);
    whole[j % Chains] = both_numbers(whole[j % Chains], x, y);
  }
  V keys() const {
    V all = best[0];
    for (int k = 1; k < Chains; ++k) all = ranged<range>(all, best[k]);
    return ordered<K>(all);
  }
  bool undecided() const {
    mask all = whole[0];
    for (int k = 1; k < Chains; ++k) all &= whole[k];
    return all != all_lanes(V{});
  }
};
template <class K, bool Largest, int Chains, bool Floats>
struct fold_of {
  typedef ends<K, Largest> type;
};
template <class K, bool Largest, int Chains>
struct fold_of<K, Largest, Chains, true> {
  typedef numbers<K, Largest, Chains> type;
};
template <class K, bool Largest, int Chains>
using chunk_fold = typename fold_of<K, Largest, Chains, K::float_bits>::type;
#else
template <class K, bool Largest, int>
using chunk_fold = ends<K, Largest>;
#endif

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
