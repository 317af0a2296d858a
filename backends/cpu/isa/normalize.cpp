// normalize.cpp - a leaf's sum and squares about its mean; rows divided, weighed, rounded and written.
// Idea    a row that is in the cache is walked again: for its mean, for the squares about it, for the results. Lanes
//         of a leaf as in float_sums.cpp: in registers, or in passes over what sits in L1.
// Moves   a row read once from memory, its result written once, around the caches where all of them are too large
// Limit   L2: conversions to double and back; the copy limit in DRAM
// Watch   an f16 or bf16 result rounds once from double: by way of f32 rounded to odd (results.hpp)
// Source  lib/order_rows.hpp, lockstep.h
#include "../normalize_kernels.hpp"
#include "leaves.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <class E>
void moments(const void* src, int64_t stride, int64_t n, int64_t count, double* sum, double* m2) {
  const auto* p = static_cast<const typename E::type*>(src);
  for (int64_t first = 0; first < count; first += W, p += W * stride) {  // the second time from the cache
    const int64_t some = count - first < W ? count - first : W;
    each_leaf(some, sum + first, [&](int64_t s) {
      return leaf_vector<E>(p + s * stride, p + s * stride, n, [](vd acc, vd x, vd) { return acc + x; });
    });
    each_leaf(some, m2 + first, [&](int64_t s) {
      const vd mean = splat(sum[first + s] / static_cast<double>(n));
      return leaf_vector<E>(p + s * stride, p + s * stride, n,
                            [mean](vd acc, vd x, vd) { return fused_square(x - mean, acc); });
    });
  }
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

// F64 rows are divided; the others' doubles have bits to spare for the reciprocal's rounding.
template <class E, with extra>
inline vd result_of(vd h, vd mean, vd scale, vd weight, vd bias) {
  constexpr bool divides = sizeof(typename E::type) == 8;
  const vd t = divides ? (h - mean) / scale : (h - mean) * scale;
  if constexpr (extra == with::nothing) return t;
  if constexpr (extra == with::weight) return t * weight;
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_fmadd_pd(t, weight, bias);
#elif defined(LOCKSTEP_ISA_AVX2)
  return _mm256_fmadd_pd(t, weight, bias);
#else
  return vd{__builtin_fma(t[0], weight[0], bias[0]), __builtin_fma(t[1], weight[1], bias[1])};
#endif
}

template <class E, class R, with extra, bool streams>
inline void one_row(const normalized_rows& r, int64_t s) {
  typedef typename weights_of<E>::element P;
  typedef typename R::type T;
  const auto* p = static_cast<const typename E::type*>(r.src) + s * r.src_stride;
  auto* to = static_cast<T*>(r.dst) + s * r.dst_stride;
  const auto* weight = static_cast<const typename P::type*>(r.weight);
  const auto* bias = static_cast<const typename P::type*>(r.bias);
  const double divisor = r.divisor[s];
  const vd mean = splat(r.mean[s]), scale = splat(sizeof(typename E::type) == 8 ? divisor : 1.0 / divisor);
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + W <= r.n; i += W) {
    vd w{}, b{};
    if constexpr (extra != with::nothing) w = P::load(weight + i);
    if constexpr (extra == with::weight_and_bias) b = P::load(bias + i);
    const auto y = rounded<R>(result_of<E, extra>(E::load(p + i), mean, scale, w, b));
    if constexpr (streams)
      stream_store(to + i, y);
    else
      memcpy(to + i, &y, sizeof y);
  }
  if (i < r.n && !LOCKSTEP_MUTANT("normalized_tail_lost")) {
    const int64_t m = r.n - i;
    vd w{}, b{};
    if constexpr (extra != with::nothing) w = load_few<P>(weight + i, m);
    if constexpr (extra == with::weight_and_bias) b = load_few<P>(bias + i, m);
    store_few<R>(to + i, rounded<R>(result_of<E, extra>(load_few<E>(p + i, m), mean, scale, w, b)), m);
  }
}

template <class E, class R, with extra>
void rows_with(const normalized_rows& r, int64_t count) {
  for (int64_t s = 0; s < count; ++s) {
    const auto* to = static_cast<typename R::type*>(r.dst) + s * r.dst_stride;
    if (r.stream && reinterpret_cast<uintptr_t>(to) % sizeof(typename R::vector) == 0)
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
        {add<A>, moments<A>, widen<A>, {rows<A, A>, rows<A, B>, rows<A, C>}},
        {add<B>, moments<B>, widen<B>, {rows<B, A>, rows<B, B>, rows<B, C>}},
        {add<C>, moments<C>, nullptr, {rows<C, A>, rows<C, B>, rows<C, C>}},
        {add<D>, moments<D>, nullptr, {rows<D, A>, rows<D, B>, rows<D, C>, rows<D, D>}},
    },
    fence};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
