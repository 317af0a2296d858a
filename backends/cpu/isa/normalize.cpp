// normalize.cpp - a leaf's sum and squares about its mean; rows divided, weighed, rounded and written.
// Idea    a row that is in the cache is walked again: for its mean, for the squares about it, for the results. Lanes
//         of a leaf as in float_sums.cpp: in registers, or in passes over what sits in L1.
// Moves   a row read once from memory, its result written once, around the caches where all of them are too large
// Limit   L2: conversions to double and back; the copy limit in DRAM
// Watch   an f16 or bf16 result rounds once from double: by way of f32 rounded to odd (results.hpp), or in float where
//         a bound of the error shows that nothing else can come out (in_floats)
// Source  lib/bits/order_rows.hpp, lockstep.h
#include "../normalize_kernels.hpp"
#include "leaves.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <class E, int V>
__attribute__((noinline)) void moments_of(const typename E::type* p, int64_t stride, int64_t n, int64_t count,
                                          double* sum, double* m2) {
  const row_leaf<E, V> leaf(n);
  for (; count > 0; count -= W, p += W * stride, sum += W, m2 += W) {  // the second time from the cache
    const int64_t some = count < W ? count : W;
    each_leaf<leaf.unrolled>(some, sum, [=](int64_t s) {
      return leaf(p + s * stride, p + s * stride, [](vd acc, vd x, vd) { return acc + x; });
    });
    double means[W];
    for (int64_t s = 0; s < some; ++s) means[s] = sum[s] / static_cast<double>(n);
    each_leaf<leaf.unrolled>(some, m2, [=, &means](int64_t s) {
      return leaf(p + s * stride, p + s * stride,
                  [mean = splat(means[s])](vd acc, vd x, vd) { return fused_square(x - mean, acc); });
    });
  }
}
template <class E>
void moments(const void* src, int64_t stride, int64_t n, int64_t count, double* sum, double* m2) {
  by_length<E>(
      n, [&](auto v) { moments_of<E, v.value>(static_cast<const typename E::type*>(src), stride, n, count, sum, m2); });
}

// The sum in double, rounded, is the sum rounded once: double has twice the bits of f32 and two more.
template <class E>
void add(const void* x, const void* residual, void* h, int64_t n) {
  typedef typename E::type T;
  const auto *p = static_cast<const T*>(x), *q = static_cast<const T*>(residual);
  auto* to = static_cast<T*>(h);
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const auto sum = rounded<E>(E::load(p + i) + E::load(q + i));
    memcpy(to + i, &sum, sizeof sum);
  }
  if (i < n) store_few<E>(to + i, rounded<E>(load_few<E>(p + i, n - i) + load_few<E>(q + i, n - i)), n - i);
}

template <class E>
void widen(const void* from, int64_t n, float* to) {
  const auto* p = static_cast<const typename E::type*>(from);
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const vf x = to_float(E::load(p + i));
    memcpy(to + i, &x, sizeof x);
  }
  if (i < n) store_few<f32_element>(to + i, to_float(load_few<E>(p + i, n - i)), n - i);
}

template <class E>
struct weights_of {
  typedef f32_element element;
};
template <>
struct weights_of<f64_element> {
  typedef f64_element element;
};

enum class with { nothing, weight, weight_and_bias };

// a * b + c, rounded once.
inline vd fused(vd a, vd b, vd c) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(LOCKSTEP_ISA_AVX2)
  return _mm256_fmadd_pd(a, b, c);
#else
  return vd{__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#endif
}

// F64 rows are divided; the others' doubles have bits to spare for the reciprocal's rounding.
template <class E, with extra>
inline vd result_of(vd h, vd mean, vd scale, vd weight, vd bias) {
  constexpr bool divides = sizeof(typename E::type) == 8;
  const vd t = divides ? (h - mean) / scale : (h - mean) * scale;
  if constexpr (extra == with::nothing) return t;
  if constexpr (extra == with::weight) return t * weight;
  return fused(t, weight, bias);
}

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
inline vf2 magnitude(vf2 x) { return reinterpret_cast<vf2>(reinterpret_cast<vu2>(x) & 0x7FFFFFFFu); }
#if defined(LOCKSTEP_ISA_AVX512)
inline vf2 fused(vf2 a, vf2 b, vf2 c) { return _mm512_fmadd_ps(a, b, c); }
// a * b + c where x is not y, else 0.
inline vf2 fused_unless_equal(vf2 x, vf2 y, vf2 a, vf2 b, vf2 c) {
  return _mm512_maskz_fmadd_ps(_mm512_cmp_ps_mask(x, y, _CMP_NEQ_UQ), a, b, c);
}
inline vf2 at_least(vf2 x, vf2 bound) { return _mm512_maskz_max_ps(0xFFFF, x, bound); }  // bound for a NaN
inline bool same_upper_half(vu2 a, vu2 b) {
  return _mm512_test_epi32_mask(reinterpret_cast<__m512i>(a ^ b), _mm512_set1_epi32(-65536)) == 0;
}
inline bool all_zero(vh2 x) {
  return _mm256_testz_si256(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(x)) != 0;
}
inline vh2 upper_half(vu2 x) {
  return reinterpret_cast<vh2>(_mm512_maskz_cvtepi32_epi16(0xFFFF, reinterpret_cast<__m512i>(x >> 16)));
}
#else
inline vf2 fused(vf2 a, vf2 b, vf2 c) { return _mm256_fmadd_ps(a, b, c); }
inline vf2 fused_unless_equal(vf2 x, vf2 y, vf2 a, vf2 b, vf2 c) {
  return _mm256_and_ps(_mm256_cmp_ps(x, y, _CMP_NEQ_UQ), fused(a, b, c));
}
inline vf2 at_least(vf2 x, vf2 bound) { return _mm256_max_ps(x, bound); }
inline bool same_upper_half(vu2 a, vu2 b) {
  return _mm256_testz_si256(reinterpret_cast<__m256i>(a ^ b), _mm256_set1_epi32(-65536)) != 0;
}
inline bool all_zero(vh2 x) { return _mm_testz_si128(reinterpret_cast<__m128i>(x), reinterpret_cast<__m128i>(x)) != 0; }
inline vh2 upper_half(vu2 x) { return __builtin_convertvector(x >> 16, vh2); }
#endif

// What lies between low and high rounded, of y between them; false if not all of it rounds alike.
template <class R>
inline bool round_alike(vf2 low, vf2 high, vf2 y, vh2& out) {
  if constexpr (R::of_upper_half) {  // a tie would not round up, but none is certain
    constexpr uint32_t half = 0x8000;
    out = upper_half(reinterpret_cast<vu2>(y) + half);
    return same_upper_half(reinterpret_cast<vu2>(low) + half, reinterpret_cast<vu2>(high) + half);
  } else {
    out = through<R>::round(y);
    const vh2 apart = through<R>::round(low) ^ through<R>::round(high);
    return all_zero(apart);
  }
}

// Rows of 16-bit results in float, twice as many at once as in double: a result is certain where the ends of an
// interval that holds the exact one round alike.
template <class E, class R, with extra>
struct in_floats {
  static constexpr float u = 0x1p-24f;  // of one rounding
  vf2 mean, mean_rest, scale, of_weight, exact_zero;
  bool usable;

  in_floats(double exact_mean, double exact_scale) {
    const auto m = static_cast<float>(exact_mean), s = static_cast<float>(exact_scale);
    usable = s >= 0x1p-100f && s <= 0x1p100f;  // not for a NaN
    mean = m - vf2{}, mean_rest = static_cast<float>(exact_mean - m) - vf2{}, scale = s - vf2{};
    // What the mean as two floats lacks, and more than what underflows before it is weighed.
    of_weight = (s * (m < 0 ? -m : m) * 0x1p-44f + 0x1p-100f) - vf2{};
    exact_zero = (m == 0 ? 0.0f : __builtin_nanf("")) - vf2{};  // an element whose result is exact
  }
  // 2 W results; false where one is uncertain.
  bool results(const typename E::type* h, const float* weight, const float* bias, vh2& out) const {
    const vf2 x = through<E>::load(h), t = ((x - mean) - mean_rest) * scale;
    vf2 product = t, w = 1.0f - vf2{};
    if constexpr (extra != with::nothing) {
      memcpy(&w, weight, sizeof w);
      product = t * w;
    }
    // At most five roundings of the product, and of y one and those of the interval's ends.
    vf2 y = product, error = fused_unless_equal(x, exact_zero, magnitude(w), of_weight, 0x1p-110f - vf2{});
    if constexpr (extra == with::weight_and_bias) {
      vf2 b;
      memcpy(&b, bias, sizeof b);
      y = product + b;
      error = fused(magnitude(product), 8 * u - vf2{}, error);
    }
    const vf2 size = magnitude(y);
    error = fused(size, (extra == with::weight_and_bias ? 4 : 12) * u - vf2{}, error);
    // Products keep their sign, also of what underflows; sums need not: below 0 nothing rounds as above.
    const float least = extra == with::weight_and_bias ? -1 : 0;
    return round_alike<R>(at_least(size - error, least - vf2{}), size + error, y, out);
  }
};
#endif

// From element i on.
template <class E, class R, with extra, bool streams>
inline void one_row(const normalized_rows& r, int64_t s, int64_t i = 0) {
  typedef typename weights_of<E>::element P;
  typedef typename R::type T;
  const auto* p = static_cast<const typename E::type*>(r.src) + s * r.src_stride;
  auto* to = static_cast<T*>(r.dst) + s * r.dst_stride;
  const auto* weight = static_cast<const typename P::type*>(r.weight);
  const auto* bias = static_cast<const typename P::type*>(r.bias);
  const double divisor = r.divisor[s];
  const double factor = sizeof(typename E::type) == 8 ? divisor : 1.0 / divisor;
  const vd mean = splat(r.mean[s]), scale = splat(factor);
  const auto put = [&](int64_t at, auto y) {
    if constexpr (streams)
      stream_store(to + at, y);
    else
      memcpy(to + at, &y, sizeof y);
  };
  const auto exact = [&](int64_t at) {
    vd w{}, b{};
    if constexpr (extra != with::nothing) w = P::load(weight + at);
    if constexpr (extra == with::weight_and_bias) b = P::load(bias + at);
    put(at, rounded<R>(result_of<E, extra>(E::load(p + at), mean, scale, w, b)));
  };
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
  if constexpr (sizeof(typename E::type) <= 4 && sizeof(T) == 2) {
    const in_floats<E, R, extra> floats(r.mean[s], factor);
    for (; floats.usable && i + 2 * W <= r.n; i += 2 * W) {
      vh2 y;
      if (floats.results(p + i, extra != with::nothing ? weight + i : nullptr,
                         extra == with::weight_and_bias ? bias + i : nullptr, y))
        put(i, y);
      else
        exact(i), exact(i + W);
    }
  }
#endif
#pragma GCC unroll 4
  for (; i + W <= r.n; i += W) exact(i);
  if (i < r.n) {
    const int64_t m = r.n - i;
    vd w{}, b{};
    if constexpr (extra != with::nothing) w = load_few<P>(weight + i, m);
    if constexpr (extra == with::weight_and_bias) b = load_few<P>(bias + i, m);
    store_few<R>(to + i, rounded<R>(result_of<E, extra>(load_few<E>(p + i, m), mean, scale, w, b)), m);
  }
}

#if defined(LOCKSTEP_ISA_AVX512)
inline bool any_nan(vd a, vd b) { return _mm512_cmp_pd_mask(a, b, _CMP_UNORD_Q) != 0; }
#elif defined(LOCKSTEP_ISA_AVX2)
inline bool any_nan(vd a, vd b) { return _mm256_movemask_pd(_mm256_cmp_pd(a, b, _CMP_UNORD_Q)) != 0; }
#else
inline bool any_nan(vd, vd) { return true; }
#endif

// Rows side by side, for which weight and bias are widened once; a NaN, which is rare, costs half a comparison. Not
// past the caches, because each row would be a stream of stores of less than a line.
constexpr int together = 4;
template <class E, class R, with extra>
void some_rows(const normalized_rows& r, int64_t s) {
  typedef typename weights_of<E>::element P;
  const auto* const p = static_cast<const typename E::type*>(r.src) + s * r.src_stride;
  auto* const to = static_cast<typename R::type*>(r.dst) + s * r.dst_stride;
  const auto* const weight = static_cast<const typename P::type*>(r.weight);
  const auto* const bias = static_cast<const typename P::type*>(r.bias);
  const int64_t src_stride = r.src_stride, dst_stride = r.dst_stride, n = r.n;
  vd mean[together], scale[together];
  for (int k = 0; k < together; ++k) {
    mean[k] = splat(r.mean[s + k]);
    scale[k] = splat(1.0 / r.divisor[s + k]);
  }
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    vd w{}, b{}, y[together];
    if constexpr (extra != with::nothing) w = P::load(weight + i);
    if constexpr (extra == with::weight_and_bias) b = P::load(bias + i);
#pragma GCC unroll 4
    for (int k = 0; k < together; ++k)
      y[k] = result_of<E, extra>(E::load(p + k * src_stride + i), mean[k], scale[k], w, b);
    const bool nan = any_nan(y[0], y[1]) || any_nan(y[2], y[3]);
    if (__builtin_expect(nan, false))
#pragma GCC unroll 4
      for (vd& x : y) x = x == x ? x : splat(__builtin_nan(""));
#pragma GCC unroll 4
    for (int k = 0; k < together; ++k) {
      const typename R::vector x = R::round(y[k]);
      memcpy(to + k * dst_stride + i, &x, sizeof x);
    }
  }
  for (int k = 0; k < together; ++k) one_row<E, R, extra, false>(r, s + k, i);
}

template <class E, class R, with extra>
void rows_with(const normalized_rows& r, int64_t count) {
  int64_t s = 0;
  if constexpr (sizeof(typename E::type) <= 4 && sizeof(typename R::type) == 4)
    for (; !r.stream && s + together <= count; s += together) some_rows<E, R, extra>(r, s);
  for (; s < count; ++s) {
    const auto* to = static_cast<typename R::type*>(r.dst) + s * r.dst_stride;
    if (r.stream && reinterpret_cast<uintptr_t>(to) % (2 * sizeof(typename R::vector)) == 0)
      one_row<E, R, extra, true>(r, s);
    else
      one_row<E, R, extra, false>(r, s);
  }
}

template <class E, class R>
void rows(const normalized_rows& r, int64_t count) {
  if (r.bias != nullptr) return rows_with<E, R, with::weight_and_bias>(r, count);
  if (r.weight != nullptr) return rows_with<E, R, with::weight>(r, count);
  rows_with<E, R, with::nothing>(r, count);
}

// ---- gradients ------------------------------------------------------------------------
template <class E>
void weigh(const void* h, const void* g, const double* weight, double pivot, int64_t n, double* off, double* u) {
  typedef typename E::type T;
  const auto *p = static_cast<const T*>(h), *q = static_cast<const T*>(g);
  const vd centre = splat(pivot);
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    const vd x = E::load(p + i) - centre, y = E::load(q + i) * f64_element::load(weight + i);
    memcpy(off + i, &x, sizeof x);
    memcpy(u + i, &y, sizeof y);
  }
  if (i < n) {
    const int64_t m = n - i;
    store_few<f64_element>(off + i, load_few<E>(p + i, m) - centre, m);
    store_few<f64_element>(u + i, load_few<E>(q + i, m) * load_few<f64_element>(weight + i, m), m);
  }
}

template <class E, bool of_weight, bool of_bias>
void gradients_with(const gradient_row& r) {
  typedef typename E::type T;
  const auto *h = static_cast<const T*>(r.h), *g = static_cast<const T*>(r.g);
  auto* const to = static_cast<T*>(r.dst);
  const vd mean = splat(r.mean), scale = splat(r.scale), a = splat(r.a), b = splat(r.b);
  // load(element type, address) and store(element type, address, value), of a whole vector or of what is left.
  const auto some = [&](int64_t i, const auto& load, const auto& store) {
    const vd y = load(E{}, g + i), t = (load(E{}, h + i) - mean) * scale;
    const vd u = y * load(f64_element{}, r.weight + i);
    store(E{}, to + i, rounded<E>(fused(-t, b, u - a) * scale));
    if constexpr (of_weight) store(f64_element{}, r.of_weight + i, fused(y, t, load(f64_element{}, r.of_weight + i)));
    if constexpr (of_bias) store(f64_element{}, r.of_bias + i, load(f64_element{}, r.of_bias + i) + y);
  };
  int64_t i = 0;
  for (; i + W <= r.n; i += W)
    some(
        i, [](auto e, const auto* p) { return decltype(e)::load(p); },
        [](auto, auto* p, auto y) { memcpy(p, &y, sizeof y); });
  if (const int64_t m = r.n - i; m > 0)
    some(
        i, [m](auto e, const auto* p) { return load_few<decltype(e)>(p, m); },
        [m](auto e, auto* p, auto y) { store_few<decltype(e)>(p, y, m); });
}
template <class E>
void gradients(const gradient_row& r) {
  if (r.of_weight != nullptr)
    return r.of_bias != nullptr ? gradients_with<E, true, true>(r) : gradients_with<E, true, false>(r);
  return r.of_bias != nullptr ? gradients_with<E, false, true>(r) : gradients_with<E, false, false>(r);
}

void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

typedef f16_element A;
typedef bf16_element B;
typedef f32_element C;
typedef f64_element D;
}  // namespace

extern const normalize_kernels normalizers_table;
const normalize_kernels normalizers_table = {
    {
        {add<A>, moments<A>, widen<A>, {rows<A, A>, rows<A, B>, rows<A, C>}, weigh<A>, gradients<A>},
        {add<B>, moments<B>, widen<B>, {rows<B, A>, rows<B, B>, rows<B, C>}, weigh<B>, gradients<B>},
        {add<C>, moments<C>, nullptr, {rows<C, A>, rows<C, B>, rows<C, C>}, weigh<C>, gradients<C>},
        {add<D>, moments<D>, nullptr, {rows<D, A>, rows<D, B>, rows<D, C>, rows<D, D>}, weigh<D>, gradients<D>},
    },
    fence};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
