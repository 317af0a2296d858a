// order_rows.hpp - order id 1 of normalizations and scans. Sums of leaves and the tree over them are those of
// order.hpp; this file has the rest.
#pragma once

#include "order.hpp"

namespace lockstep::order {

// ---- mean and variance ----------------------------------------------------
// A leaf has its sum as in order.hpp, and m2, the sum of (x - sum / count)^2: d = x - mean
// is rounded, then fma(d, d, acc) is added to x's lane. Leaves and subtrees are joined by
// Chan's formula, each operation rounded, in the order written here.
// If all elements of an F64 sequence are the same finite x, its mean is x itself and its squares are 0: the rounded sum
// of n times x, divided by n, need not be x. Elements of fewer bits need no such rule, because their sums are exact.
struct moments {
  double count, sum, m2;
  double equal;  // the element that all are equal to, where it is finite and not 0 (whose sum is exact); else 0

  LOCKSTEP_HD double mean() const { return equal != 0 ? equal : sum / count; }
  LOCKSTEP_HD double squares() const { return equal != 0 ? 0 : m2; }
};
// Whether elements of F64 with this mean may all be x: few leaves pass, so that their elements need not be compared.
// A leaf's rounded sum is off by less than one part in 2^47; it is infinite where x is near the largest double.
LOCKSTEP_HD bool may_all_be(double x, double mean) {
  const double size = x < 0 ? -x : x, off = mean < x ? x - mean : mean - x;
  return size != 0 && size <= 0x1.fffffffffffffp1023 && (off <= 0x1p-40 * size || off > 0x1.fffffffffffffp1023);
}
LOCKSTEP_HD moments operator+(const moments& a, const moments& b) {
  const double delta = b.sum / b.count - a.sum / a.count, count = a.count + b.count;
  return {count, a.sum + b.sum, (a.m2 + b.m2) + (delta * delta) * (a.count * (b.count / count)),
          a.equal == b.equal ? a.equal : 0};
}

// ---- scans ------------------------------------------------------------------
// A float sum up to element i of a sequence is (before + rows) + group, each rounded in
// double:
//   before  the tree of order.hpp over the whole leaves before i's leaf
//   leaf    16 rows of 128 elements, each row 16 groups of 8
//   group   the elements up to i within its group of 8, by doubling: for d = 1, 2, 4 every
//           x[j], j >= d, becomes x[j - d] + x[j], all of them at once. The groups before
//           it in its row come first, added one after the other:
//           g[0] = -0.0, g[k + 1] = g[k] + last element of group k; group = g[k] + x[j]
//   rows    the rows before i's row in its leaf, one after the other:
//           r[0] = -0.0, r[k + 1] = r[k] + group of the last element of row k
// Missing elements count as -0.0. An exclusive sum is the inclusive sum of the element
// before; the first one is +0.0.
inline constexpr int scan_group = 8;

inline constexpr uint16_t nan_f16 = 0x7E00u, nan_bf16 = 0x7FC0u;

}  // namespace lockstep::order
