// layout.hpp - axes that lie one within another, as one.
#pragma once

#include "exchange.hpp"

namespace lockstep::python {

// An axis, or several that lie one within another.
struct run_of_axes {
  int64_t length = 1, stride = 1;
};

// Merges axes, outermost first, into one. False when they do not lie so.
inline bool merge(const array& x, const int* axes, int count, run_of_axes& to) {
  bool first = true;
  to = {};
  for (int i = 0; i < count; ++i) {
    const int64_t n = x.shape[axes[i]], stride = x.strides[axes[i]];
    if (n == 1) continue;
    if (!first && to.stride != n * stride) return false;
    to.length = first ? n : to.length * n;
    to.stride = stride;
    first = false;
  }
  return true;
}

inline bool is_packed(const array& a) {
  int64_t stride = 1;
  for (int k = a.rank - 1; k >= 0; --k) {
    if (a.shape[k] != 1 && a.strides[k] != stride && a.size > 0) return false;
    stride *= a.shape[k];
  }
  return true;
}

}  // namespace lockstep::python
