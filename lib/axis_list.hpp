// axis_list.hpp - the axes of a reduction over any axes, as few of them as the strides allow.
#pragma once

#include <algorithm>
#include <limits>

#include "lockstep/lockstep.h"

namespace lockstep {

// In an empty array the product of the extents before the 0 may overflow: then it is INT64_MAX.
inline int64_t saturated_product(int64_t a, int64_t b) {
  int64_t product;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

// Axes of an array in the order in which they are walked, the last one fastest. Axes of one element are left out, and
// neighbours that lie in memory like one axis are merged.
struct axis_list {
  int count = 0;
  int64_t shape[LOCKSTEP_MAX_RANK], stride[LOCKSTEP_MAX_RANK];

  void add(int64_t n, int64_t apart) {
    if (n == 1) return;
    const bool together = count > 0 && stride[count - 1] == saturated_product(n, apart);
    if (together) shape[count - 1] = saturated_product(shape[count - 1], n), stride[count - 1] = apart;
    if (!together) shape[count] = n, stride[count] = apart, ++count;
  }
  // Where element i lies, in elements.
  int64_t place(int64_t i) const {
    int64_t at = 0;
    for (int k = count - 1; k >= 0; --k) at += i % shape[k] * stride[k], i /= shape[k];
    return at;
  }
  // Calls body(place, n, rows) for elements [first, first + m), m > 0: n along the last axis, rows along the one
  // before.
  template <class Body>
  void pieces(int64_t first, int64_t m, const Body& body) const {
    if (count == 0) return body(0, m, 1);
    const int last = count - 1;
    int64_t index[LOCKSTEP_MAX_RANK] = {}, at = 0;
    for (int k = last; k >= 0 && first != 0; --k) {
      index[k] = first % shape[k], first /= shape[k];
      at += index[k] * stride[k];
    }
    for (;;) {
      const int64_t left = shape[last] - index[last], n = m < left ? m : left;
      int64_t rows = 1;
      if (count > 1 && index[last] == 0 && m >= 2 * n) rows = std::min(m / n, shape[last - 1] - index[last - 1]);
      body(at, n, rows);
      if ((m -= n * rows) == 0) return;
      at -= index[last] * stride[last], index[last] = 0;
      at += (rows - 1) * stride[last - 1], index[last - 1] += rows - 1;
      int k = last - 1;  // elements are left, so that some slower axis has a next one
      for (; index[k] == shape[k] - 1; --k) at -= index[k] * stride[k], index[k] = 0;
      ++index[k], at += stride[k];
    }
  }
  // Calls body(place, n) for each run along the last axis.
  template <class Body>
  void runs(int64_t first, int64_t m, const Body& body) const {
    pieces(first, m, [&](int64_t place, int64_t n, int64_t rows) {
      for (int64_t k = 0; k < rows; ++k) body(k == 0 ? place : place + k * stride[count - 2], n);
    });
  }
};

struct split_axes {
  axis_list kept, reduced;
  int64_t count = 1, length = 1;  // sequences, and elements of each

  explicit split_axes(const lockstep_reduce_axes_desc& d) {
    for (int k = 0, gone = 0; k < d.rank; ++k) {
      const bool goes = gone < d.axis_count && d.axes[gone] == k;
      gone += goes ? 1 : 0;
      int64_t& elements = goes ? length : count;
      elements = saturated_product(elements, d.shape[k]);
      (goes ? reduced : kept).add(d.shape[k], d.src_strides[k]);
    }
  }
};

}  // namespace lockstep
