// order_rows.hpp - order id 1 of normalizations and scans, beside order.hpp: sums of leaves and the tree over them are
// the same; here stands what else has an order.
#pragma once

#include "order.hpp"

namespace lockstep::order {

// ---- mean and variance ----------------------------------------------------
// Of a leaf: its sum as in order.hpp, and m2, the sum of (x - sum / count)^2: d = x - mean
// is rounded, then fma(d, d, acc) enters d's lane. Leaves, and subtrees of them, join
// in the tree by Chan's formula, every operation rounded as it stands here.
struct moments {
  double count, sum, m2;
};
LOCKSTEP_HD moments operator+(const moments& a, const moments& b) {
  const double delta = b.sum / b.count - a.sum / a.count, count = a.count + b.count;
  return {count, a.sum + b.sum, (a.m2 + b.m2) + (delta * delta) * (a.count * (b.count / count))};
}

// ---- scans ------------------------------------------------------------------
// A float sum up to element i of a sequence is (before + rows) + group, each rounded
// in double, whoever computes it:
//   before  the tree of order.hpp over the whole leaves before i's
//   leaf    16 rows of 128 elements, a row 16 groups of 8
//   group   elements up to i within its group of 8, by doubling: for d = 1, 2, 4 every
//           x[j], j >= d, becomes x[j - d] + x[j], all of them at once; and before them
//           the groups before it in its row, added one after the other:
//           g[0] = -0.0, g[k + 1] = g[k] + last element of group k; group = g[k] + x[j]
//   rows    the rows before i's in its leaf, one after the other:
//           r[0] = -0.0, r[k + 1] = r[k] + group of the last element of row k
// What is not there is -0.0. An exclusive sum is the inclusive one of the element
// before, the first one +0.0.
inline constexpr int scan_group = 8;

inline constexpr uint16_t nan_f16 = 0x7E00u, nan_bf16 = 0x7FC0u;

}  // namespace lockstep::order
