// equal_elements.hpp - the element that a leaf of F64 consists of (order_rows.hpp): their mean, exactly.
// Idea    the rounded mean rules out nearly every leaf; only where it is next to the first element are all compared,
//         and they lie in the L1 by then.
#pragma once

#include "bits/order_rows.hpp"

namespace lockstep::cpu {

// 0 where they are not the same.
inline double equal_elements(const void* leaf, int64_t n, double sum) {
  const auto* x = static_cast<const double*>(leaf);
  const double first = x[0];
  if (!order::may_all_be(first, sum / static_cast<double>(n))) return 0;
  constexpr int64_t step = 16;  // compared without a branch
  for (int64_t i = 0; i < n; i += step) {
    bool same = true;
    for (int64_t k = i; k < (i + step < n ? i + step : n); ++k) same &= x[k] == first;
    if (!same) return 0;
  }
  return first;
}

// Of `width` columns, each a leaf of n rows that are ld apart, whose sums are given.
inline void equal_columns(const void* leaf, int64_t ld, int64_t n, int64_t width, const double* sums, double* equal) {
  const auto* x = static_cast<const double*>(leaf);
  bool any = false;
  for (int64_t k = 0; k < width; ++k) {
    equal[k] = order::may_all_be(x[k], sums[k] / static_cast<double>(n)) ? x[k] : 0;
    any |= equal[k] != 0;
  }
  for (int64_t i = 1; any && i < n; ++i) {
    any = false;
    for (int64_t k = 0; k < width; ++k) {
      equal[k] = x[i * ld + k] == equal[k] ? equal[k] : 0;
      any |= equal[k] != 0;
    }
  }
}

}  // namespace lockstep::cpu
