// leaves.hpp - the value of a leaf of the fixed order, for any way of adding elements to lanes.
#pragma once

#include <algorithm>

#include "bits/order_rows.hpp"
#include "results.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

using order::lanes;
constexpr int vectors = lanes / W, at_once = W == 8 ? vectors : 8;

// The lanes of one vector joined.
inline double joined(vd x) {
#if defined(LOCKSTEP_ISA_AVX512)
  const v4d four = __builtin_shufflevector(x, x, 0, 1, 2, 3) + __builtin_shufflevector(x, x, 4, 5, 6, 7);
#elif defined(LOCKSTEP_ISA_AVX2)
  const v4d four = x;
#endif
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
  return (four[0] + four[2]) + (four[1] + four[3]);
#else
  return x[0] + x[1];
#endif
}
// The first `live` of a leaf's vectors joined down to one; those that are missing change nothing.
inline vd joined(vd* lane, int live) {
  for (int d = vectors / 2; d >= 1; d /= 2)
    for (int k = 0; k < d && k + d < live; ++k) lane[k] += lane[k + d];
  return lane[0];
}

// At most V vectors, of which the first half are whole, without a branch on their number. ends: lanes of the others.
template <class E, int V, class Enter>
inline vd short_leaf(const typename E::type* p, const typename E::type* q, const few_lanes* ends, const Enter& enter) {
  vd lane[V];
#pragma GCC unroll 8
  for (int k = 0; k < V / 2; ++k) lane[k] = enter(splat(-0.0), E::load(p + k * W), E::load(q + k * W));
#pragma GCC unroll 8
  for (int k = V / 2; k < V; ++k) {
    const few_lanes m = ends[k - V / 2];
    lane[k] = first_of(m, enter(splat(-0.0), load_lanes<E>(p + k * W, m), load_lanes<E>(q + k * W, m)), splat(-0.0));
  }
#pragma GCC unroll 4
  for (int d = V / 2; d >= 1; d /= 2)
#pragma GCC unroll 8
    for (int k = 0; k < d; ++k) lane[k] += lane[k + d];
  return lane[0];
}

// The registers that hold a leaf's lanes while whole rows of lanes enter.
template <class E>
struct whole_rows {
  typedef vd V;
  static constexpr int width = W, at_once = lockstep::cpu::LOCKSTEP_ISA::at_once;
  static V load(const typename E::type* p) { return E::load(p); }
};
#if defined(LOCKSTEP_ISA_AVX512_HALVES)
// Four floats from memory become doubles by one operation where eight take three.
template <>
struct whole_rows<f32_element> {
  typedef v4d V;
  static constexpr int width = 4, at_once = lanes / width;
  static V load(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
};
#endif

// A leaf of two arrays whose pairs enter their lanes by enter(acc, x, y), joined down to one vector. Without reads
// ahead: they cost a third of the speed in DRAM on Zen 4, whose prefetchers follow both arrays.
template <class E, class Enter>
inline vd leaf_vector(const typename E::type* p, const typename E::type* q, int64_t n, const Enter& enter) {
  typedef whole_rows<E> rows;
  vd lane[vectors];
  const int64_t full = n / lanes, rest = n % lanes;
  for (int first = 0; first < lanes; first += rows::at_once * rows::width) {
    typename rows::V acc[rows::at_once];
#pragma GCC unroll 32
    for (int k = 0; k < rows::at_once; ++k) acc[k] = all_lanes<typename rows::V>(-0.0);
    const typename E::type *a = p + first, *b = q + first;
#pragma GCC unroll 1
    for (int64_t r = 0; r < full; ++r, a += lanes, b += lanes)
#pragma GCC unroll 32
      for (int k = 0; k < rows::at_once; ++k)
        acc[k] = enter(acc[k], rows::load(a + k * rows::width), rows::load(b + k * rows::width));
    memcpy(reinterpret_cast<double*>(lane) + first, acc, sizeof acc);
  }
  p += full * lanes, q += full * lanes;
  const int whole = static_cast<int>(rest / W), part = static_cast<int>(rest % W);
  for (int k = 0; k < whole; ++k) lane[k] = enter(lane[k], E::load(p + k * W), E::load(q + k * W));
  if (part != 0)
    lane[whole] =
        first_of(first_lanes(part),
                 enter(lane[whole], load_few<E>(p + whole * W, part), load_few<E>(q + whole * W, part)), lane[whole]);
  return joined(lane, full > 0 ? vectors : whole + (part != 0));
}
// out[s] of `count` leaves by vector(s), W of them together, so that their lanes are joined by whole registers. A NaN
// is the canonical one, because a row's result may go straight to the caller.
template <bool unrolled, class Vector>
inline void each_leaf(int64_t count, double* out, const Vector& vector) {
  int64_t s = 0;
  for (; s + W <= count; s += W) {
    vd v[W];
    if constexpr (unrolled)
#pragma GCC unroll 8
      for (int i = 0; i < W; ++i) v[i] = vector(s + i);
    else
#pragma GCC unroll 1
      for (int i = 0; i < W; ++i) v[i] = vector(s + i);
    vd sums = join_lanes(v);
    sums = sums == sums ? sums : splat(__builtin_nan(""));
    memcpy(out + s, &sums, sizeof sums);
  }
  for (; s < count; ++s) {
    const double sum = joined(vector(s));
    out[s] = sum == sum ? sum : __builtin_nan("");
  }
}
// Rows of n elements: leaf(p, q, enter) is the vector of one of them. V: at most so many vectors, 0 for any number.
template <class E, int V>
struct row_leaf {
  static constexpr bool unrolled = V == 1 || V == 2 || V == 4;
  int64_t n;
  few_lanes ends[V / 2 + 1];
  explicit row_leaf(int64_t length) : n(length) {
    for (int k = V / 2; k < V; ++k) ends[k - V / 2] = first_lanes(std::clamp<int64_t>(n - k * W, 0, W));
  }
  template <class Enter>
  vd operator()(const typename E::type* p, const typename E::type* q, const Enter& enter) const {
    if constexpr (V == 0)
      return leaf_vector<E>(p, q, n, enter);
    else
      return short_leaf<E, V>(p, q, ends, enter);
  }
};
template <int V>
struct vectors_of {
  static constexpr int value = V;
};
// call(vectors_of<V>) for the V of row_leaf that suits rows of n elements.
template <class E, class Call>
inline void by_length(int64_t n, const Call& call) {
  if constexpr (W == 8 || (W == 4 && sizeof(typename E::type) > 2)) {  // masked loads
    if (n <= 1 * W) return call(vectors_of<1>{});
    if (n <= 2 * W) return call(vectors_of<2>{});
    if (n <= 4 * W) return call(vectors_of<4>{});
    if (n <= 8 * W) return call(vectors_of<8>{});
    if (n <= 16 * W) return call(vectors_of<16>{});
  }
  call(vectors_of<0>{});
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
