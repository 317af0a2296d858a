// axes.hpp - the axes of two arrays that hold the same elements in two orders, as few of them as the strides allow;
// used by permute and convert.
#pragma once

#include "tiles.hpp"

namespace lockstep::cpu {

// Both strides in bytes, slowest in dst first.
struct fused_axes {
  int axes = 0;
  tiles::axis axis[LOCKSTEP_MAX_RANK];

  void add(int64_t count, int64_t src, int64_t dst) {
    if (count > 1) axis[axes++] = {count, src, dst};
  }
  void remove(int k) {
    for (--axes; k < axes; ++k) axis[k] = axis[k + 1];
  }
  // Sorts the axes, because dst's strides may be in any order, and merges those that are adjacent on both sides.
  void fuse() {
    for (int k = 1; k < axes; ++k)
      for (int l = k; l > 0 && axis[l - 1].dst < axis[l].dst; --l) {
        const tiles::axis t = axis[l];
        axis[l] = axis[l - 1];
        axis[l - 1] = t;
      }
    for (int k = axes - 1; k > 0; --k) {
      tiles::axis &inner = axis[k], &outer = axis[k - 1];
      // The step to inner's last element is compared, because its stride times its count may not fit an int64_t.
      if (outer.src - inner.src != inner.src * (inner.count - 1) ||
          outer.dst - inner.dst != inner.dst * (inner.count - 1))
        continue;
      outer = {outer.count * inner.count, inner.src, inner.dst};
      remove(k);
    }
  }
};

// Copies keep the order of src, because reads scattered over pages are several times slower than non-temporal writes
// of the same runs. Tiles gain nothing by it.
inline void in_order_of_src(tiles& t) {
  for (int k = 1; k < t.axes; ++k)
    for (int l = k; l > 0 && t.outer[l - 1].src < t.outer[l].src; --l) {
      const tiles::axis slower = t.outer[l];
      t.outer[l] = t.outer[l - 1];
      t.outer[l - 1] = slower;
    }
}

}  // namespace lockstep::cpu
