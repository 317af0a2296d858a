// leaves.hpp - the value of a leaf of the fixed order, for any way of adding elements to lanes.
#pragma once

#include "order_rows.hpp"
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

// At most V vectors, without a branch on their number.
template <class E, int V, class Enter>
inline vd short_leaf(const typename E::type* p, const typename E::type* q, int64_t n, const Enter& enter) {
  vd lane[V];
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) {
    const int64_t rest = n - k * W, m = rest < 0 ? 0 : rest < W ? rest : W;
    lane[k] = first_of(m, enter(splat(-0.0), load_few<E>(p + k * W, m), load_few<E>(q + k * W, m)), splat(-0.0));
  }
#pragma GCC unroll 4
  for (int d = V / 2; d >= 1; d /= 2)
#pragma GCC unroll 8
    for (int k = 0; k < d; ++k) lane[k] += lane[k + d];
  return lane[0];
}

// A leaf of two arrays whose pairs enter their lanes by enter(acc, x, y), joined down to one vector. Without reads
// ahead: they cost a third of the speed in DRAM on Zen 4, whose prefetchers follow both arrays.
template <class E, class Enter>
inline vd leaf_vector(const typename E::type* p, const typename E::type* q, int64_t n, const Enter& enter) {
  if constexpr (W == 8 || (W == 4 && sizeof(typename E::type) > 2)) {  // masked loads
    if (n <= 4 * W) return short_leaf<E, 4>(p, q, n, enter);
    if (n <= 8 * W) return short_leaf<E, 8>(p, q, n, enter);
  }
  vd lane[vectors];
  const int64_t full = n / lanes, rest = n % lanes;
  for (int first = 0; first < vectors; first += at_once) {
    vd acc[at_once];
#pragma GCC unroll 16
    for (int k = 0; k < at_once; ++k) acc[k] = splat(-0.0);
    const typename E::type *a = p + first * W, *b = q + first * W;
#pragma GCC unroll 1
    for (int64_t r = 0; r < full; ++r, a += lanes, b += lanes)
#pragma GCC unroll 16
      for (int k = 0; k < at_once; ++k) acc[k] = enter(acc[k], E::load(a + k * W), E::load(b + k * W));
#pragma GCC unroll 16
    for (int k = 0; k < at_once; ++k) lane[first + k] = acc[k];
  }
  p += full * lanes, q += full * lanes;
  const int whole = static_cast<int>(rest / W), part = static_cast<int>(rest % W);
  for (int k = 0; k < whole; ++k) lane[k] = enter(lane[k], E::load(p + k * W), E::load(q + k * W));
  if (part != 0)
    lane[whole] = first_of(part, enter(lane[whole], load_few<E>(p + whole * W, part), load_few<E>(q + whole * W, part)),
                           lane[whole]);
  return joined(lane, full > 0 ? vectors : whole + (part != 0));
}
// out[s] of `count` leaves by vector(s), W of them together, so that their lanes are joined by whole registers.
template <class Vector>
inline void each_leaf(int64_t count, double* out, const Vector& vector) {
  int64_t s = 0;
  for (; s + W <= count; s += W) {
    vd v[W];
#pragma GCC unroll 1
    for (int i = 0; i < W; ++i) v[i] = vector(s + i);
    const vd sums = join_lanes(v);
    memcpy(out + s, &sums, sizeof sums);
  }
  for (; s < count; ++s) out[s] = joined(vector(s));
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
