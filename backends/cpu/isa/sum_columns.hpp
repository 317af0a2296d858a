// sum_columns.hpp - leaves of neighbouring columns of one or two matrices, for any way of adding elements to lanes: a
// vector holds neighbouring columns, as in float_columns.hpp, whose lanes all add alike.
#pragma once

#include "../reduce_kernels.hpp"
#include "few_columns.hpp"
#include "leaves.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// ld: elements from a row to the next; apart: to the next row of the same lane.
template <class E>
struct matrix {
  const typename E::type* at;
  int64_t ld, apart = lanes * ld;
};

// Lane l of columns [c, c + width): elements l, l + 128, ... of each enter by enter(acc, x, y, column).
template <class E, class Enter>
inline void lane_of_columns(const matrix<E>& x, const matrix<E>& y, int64_t n, int64_t l, int64_t width,
                            const Enter& enter, double* out) {
  constexpr int together = 4;  // vectors: 4 chains of adds in flight
  int64_t c = 0;
  for (; c + together * W <= width; c += together * W) {
    vd acc[together];
    for (int k = 0; k < together; ++k) acc[k] = splat(-0.0);
    const typename E::type *p = x.at + l * x.ld + c, *q = y.at + l * y.ld + c;
    for (int64_t r = l; r < n; r += lanes, p += x.apart, q += y.apart)
      for (int k = 0; k < together; ++k) acc[k] = enter(acc[k], E::load(p + k * W), E::load(q + k * W), c + k * W);
    memcpy(out + c, acc, sizeof acc);
  }
  for (; c < width; c += W) {
    vd acc = splat(-0.0);
    const int64_t m = width - c < W ? width - c : W;
    const typename E::type *p = x.at + l * x.ld + c, *q = y.at + l * y.ld + c;
    for (int64_t r = l; r < n; r += lanes, p += x.apart, q += y.apart)
      acc = m == W ? enter(acc, E::load(p), E::load(q), c) : enter(acc, load_few<E>(p, m), load_few<E>(q, m), c);
    memcpy(out + c, &acc, sizeof acc);
  }
}

// out: room for column_block results. The lanes are visited in bit-reversed order, so that joins need a stack of eight.
template <class E, class Enter>
void leaf_of_columns(const matrix<E>& x, const matrix<E>& y, int64_t n, int64_t width, const Enter& enter,
                     double* out) {
  if (are_few_columns(n, width)) {
    const auto of_two = [=, &enter](vd acc, int64_t r, int64_t c, int64_t m) {
      const typename E::type *p = x.at + r * x.ld + c, *q = y.at + r * y.ld + c;
      return m >= W ? enter(acc, E::load(p), E::load(q), c) : enter(acc, load_few<E>(p, m), load_few<E>(q, m), c);
    };
    return few_columns<void>(n, width, of_two, out);
  }
  constexpr int depth = 8;
  alignas(64) double stack[depth][column_block];
  bool missing[depth];
  int top = 0;
  for (int i = 0; i < lanes; ++i) {
    int64_t l = 0;
    for (int b = 0; b < 7; ++b) l |= int64_t{(i >> b) & 1} << (6 - b);
    missing[top] = l >= n;
    if (!missing[top]) lane_of_columns<E>(x, y, n, l, width, enter, stack[top]);
    ++top;
    for (int b = i; (b & 1) != 0; b >>= 1) {
      --top;
      if (missing[top]) continue;
      for (int64_t c = 0; c < width; c += W) {
        vd first, second;
        memcpy(&first, stack[top - 1] + c, sizeof first);
        memcpy(&second, stack[top] + c, sizeof second);
        first += second;
        memcpy(stack[top - 1] + c, &first, sizeof first);
      }
    }
  }
  memcpy(out, stack[0], static_cast<size_t>(width) * sizeof(double));
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
