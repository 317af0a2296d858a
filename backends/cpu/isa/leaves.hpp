// leaves.hpp - the value of a leaf of the fixed order, for any way of adding elements to lanes.
#pragma once

#include "order_rows.hpp"
#include "results.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

using order::lanes;
constexpr int vectors = lanes / W, at_once = W == 8 ? vectors : 8;

inline double joined(vd* lane) {
  for (int d = vectors / 2; d >= 1; d /= 2)
    for (int k = 0; k < d; ++k) lane[k] += lane[k + d];
  double last[W];
  memcpy(last, &lane[0], sizeof last);
  for (int d = W / 2; d >= 1; d /= 2)
    for (int k = 0; k < d; ++k) last[k] = last[k] + last[k + d];
  return last[0];
}

// The value of a leaf whose elements are added to their lanes by enter(acc, x).
template <class E, class Enter>
inline double leaf_of(const typename E::type* p, int64_t n, const Enter& enter) {
  vd lane[vectors];
  const int64_t full = n / lanes, rest = n % lanes;
  for (int first = 0; first < vectors; first += at_once) {
    vd acc[at_once];
#pragma GCC unroll 16
    for (int k = 0; k < at_once; ++k) acc[k] = splat(-0.0);
    const typename E::type* q = p + first * W;
#pragma GCC unroll 1
    for (int64_t r = 0; r < full; ++r, q += lanes)
#pragma GCC unroll 16
      for (int k = 0; k < at_once; ++k) acc[k] = enter(acc[k], E::load(q + k * W));
#pragma GCC unroll 16
    for (int k = 0; k < at_once; ++k) lane[first + k] = acc[k];
  }
  p += full * lanes;
  const int whole = static_cast<int>(rest / W), part = static_cast<int>(rest % W);
  for (int k = 0; k < whole; ++k) lane[k] = enter(lane[k], E::load(p + k * W));
  if (part != 0) {  // missing lanes stay unchanged
    const vd entered = enter(lane[whole], load_few<E>(p + whole * W, part));
    for (int i = 0; i < part; ++i) lane[whole][i] = entered[i];
  }
  return joined(lane);
}

// The value of a leaf of two arrays, whose pairs enter by enter(acc, x, y). Without reads ahead: they cost a third of
// the speed in DRAM on Zen 4, whose prefetchers follow both arrays.
template <class E, class Enter>
inline double leaf_of_two(const typename E::type* p, const typename E::type* q, int64_t n, const Enter& enter) {
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
  if (part != 0) {  // lanes that are missing stay as they are
    const vd entered = enter(lane[whole], load_few<E>(p + whole * W, part), load_few<E>(q + whole * W, part));
    for (int i = 0; i < part; ++i) lane[whole][i] = entered[i];
  }
  return joined(lane);
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
