// axes.hpp - the axes of two arrays that hold the same elements in two orders, as few of them as the strides allow, and
// what they are for the walks of tiles.hpp; used by permute, convert and map.
#pragma once

#include <optional>

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

// The axes of a move whose elements have `from` bytes in src and `to` in dst.
struct move_axes : fused_axes {
  int64_t from = 0, to = 0;

  // The axis along which src's elements are contiguous; -1 if there is none.
  int dense_in_src() const {
    for (int k = 0; k < axes; ++k)
      if (axis[k].src == from) return k;
    return -1;
  }
  // All axes but two (or one, named twice), which are not yet the rows and columns of the matrices.
  tiles without(int a, int b) const {
    tiles t;
    t.log2_bytes = log2_of(static_cast<size_t>(to));
    for (int k = 0; k < axes; ++k)
      if (k != a && k != b) t.outer[t.axes++] = axis[k];
    return t;
  }
  // Both sides run along one axis, or along none.
  std::optional<tiles> runs() const {
    const int last = axes - 1;
    tiles t = without(last, last);
    if (axes == 0) return t;
    if (dense_in_src() != last || axis[last].dst != to) return {};
    t.cols = axis[last].count;
    t.dst_ld = axis[last].dst;
    return t;
  }
  // src runs along one axis and dst along another: rows and columns of matrices.
  std::optional<tiles> matrices() const {
    const int along_src = dense_in_src(), along_dst = axes - 1;
    if (along_src < 0 || along_src == along_dst || axis[along_dst].dst != to) return {};
    tiles t = without(along_src, along_dst);
    t.cols = axis[along_src].count;
    t.dst_ld = axis[along_src].dst;
    t.rows = axis[along_dst].count;
    t.src_ld = axis[along_dst].src;
    return t;
  }
};

// The runs in the order of src.
inline std::optional<tiles> copies_of(const move_axes& a) {
  std::optional<tiles> t = a.runs();
  if (t) in_order_of_src(*t);
  return t;
}

}  // namespace lockstep::cpu
