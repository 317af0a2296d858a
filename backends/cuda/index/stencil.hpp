// stencil.hpp - which elements an output of the stencil kernels needs, and which thread
// fetches them (stencil/global.cu, shared.cu, wide.cu).
#pragma once

#include "device.hpp"
#include "lockstep/lockstep.h"

namespace lockstep::cuda::stencil {

// The element that index i of an axis of n elements means; -1: none (CONSTANT's
// value, or beyond what VALID ever uses). Reflecting again and again is
// order::folded without its divisions: at most 16 rounds, more than one only where
// the axis is shorter than the radius.
LOCKSTEP_INDEX int64_t source_index(int64_t i, int64_t n, int32_t boundary) {
  while (static_cast<uint64_t>(i) >= static_cast<uint64_t>(n)) {
    const bool low = i < 0;
    switch (boundary) {
      case LOCKSTEP_BOUNDARY_NEAREST: return low ? 0 : n - 1;
      case LOCKSTEP_BOUNDARY_MIRROR:
        if (n == 1) return 0;
        i = low ? -i : 2 * (n - 1) - i;
        break;
      case LOCKSTEP_BOUNDARY_REFLECT: i = low ? -1 - i : 2 * n - 1 - i; break;
      case LOCKSTEP_BOUNDARY_WRAP: i += low ? n : -n; break;
      default: return -1;
    }
  }
  return i;
}

// A thread an output, or an item: block, thread -> its number.
LOCKSTEP_INDEX int64_t output_of(int64_t block, int threads, unsigned t) { return threads * block + t; }

// C1: the taps of an output in increasing memory address, the centre once:
// body(axis, distance along it, number of the coefficient). Axes z, y, x are 0, 1, 2.
template <int RANK, class Tap, class Centre>
LOCKSTEP_INDEX void walk_taps(int radius, const Tap& tap, const Centre& centre) {
  int k = 0;
  LOCKSTEP_UNROLL
  for (int a = 3 - RANK; a < 3; ++a)
    for (int j = -radius; j < 0; ++j, ++k) tap(a, j, k);
  centre(k++);
  LOCKSTEP_UNROLL
  for (int a = 2; a >= 3 - RANK; --a)
    for (int j = 1; j <= radius; ++j, ++k) tap(a, j, k);
}

// C2 and C3: a chunk's first output, the source element under the tile's first, and how many
// elements its outputs need: of a row's last tile no more are read, so that folding has few
// rounds to go.
LOCKSTEP_INDEX int64_t chunk_begin(int64_t chunk, int block) { return chunk * block; }
LOCKSTEP_INDEX int64_t halo_left(int64_t begin, int64_t origin, int radius) { return begin + origin - radius; }
LOCKSTEP_INDEX int64_t halo_last(int64_t outputs, int64_t begin, int radius) { return outputs - begin + 2 * radius; }
// Thread t of `block` brings elements e of the tile, which lie over source elements left + e.
// The tile has a halo of radius on both sides.
template <class Body>
LOCKSTEP_INDEX void walk_halo(int block, int tile, int64_t last, unsigned t, const Body& body) {
  for (int e = t; e < tile && e < last; e += block) body(e);
}
// The taps of thread t's output: body(tap, element of the tile).
template <bool unrolled, class Body>
LOCKSTEP_INDEX void walk_tile_taps(int radius, unsigned t, const Body& body) {
  if constexpr (unrolled) {
    LOCKSTEP_UNROLL
    for (int k = 0; k < 2 * radius + 1; ++k) body(k, t + k);
  } else {
    LOCKSTEP_ROLLED
    for (int k = 0; k < 2 * radius + 1; ++k) body(k, t + k);
  }
}
// Folded, without the centre: body(distance, elements of the tile on either side).
template <bool unrolled, class Body>
LOCKSTEP_INDEX void walk_tile_pairs(int radius, unsigned t, const Body& body) {
  if constexpr (unrolled) {
    LOCKSTEP_UNROLL
    for (int k = 1; k <= radius; ++k) body(k, t + radius - k, t + radius + k);
  } else {
    LOCKSTEP_ROLLED
    for (int k = 1; k <= radius; ++k) body(k, t + radius - k, t + radius + k);
  }
}

// C4, rows that are long and aligned alike. Blocks take chunks of block * V outputs, both
// ends of a row first: they take longest.
LOCKSTEP_INDEX int64_t aligned_chunk(int64_t chunk, int64_t blocks_a_row) {
  return chunk == 0 ? blocks_a_row - 1 : chunk - 1;
}
// Elements on either side of a vector of V that are loaded for a radius: whole vectors.
LOCKSTEP_INDEX constexpr int aligned_halo(int radius, int V) { return (radius + V - 1) / V * V; }
// Whether the chunk's windows lie within the row, so that nothing folds.
LOCKSTEP_INDEX bool chunk_is_inside(int64_t begin, int64_t origin, int64_t n, int outputs, int halo) {
  return begin + origin >= halo && begin + origin + outputs + halo <= n;
}
// The first output of thread t.
LOCKSTEP_INDEX int64_t aligned_output(int64_t begin, unsigned t, int V) { return begin + static_cast<int>(t) * V; }
// The window of output i, vector by vector: body(element of the window, element of src).
template <class Body>
LOCKSTEP_INDEX void walk_window(int V, int halo, int64_t i, const Body& body) {
  LOCKSTEP_UNROLL
  for (int k = 0; k < V + 2 * halo; k += V) body(k, i - halo + k);
}
// Chunks at a row's ends: an output at a time, body(output).
template <class Body>
LOCKSTEP_INDEX void walk_end(int64_t begin, int64_t end, int block, unsigned t, const Body& body) {
  LOCKSTEP_ROLLED
  for (int64_t i = begin + t; i < end; i += block) body(i);
}

// C4, any row: outputs are cut into items of V so that whole items are aligned in dst: item
// j of a row covers outputs j * V - skew ... + V - 1.
struct items {
  int64_t a_row, total;
  int32_t src_skew, dst_skew;          // elements beyond 16-byte alignment, of row 0
  int32_t src_row_skew, dst_row_skew;  // and what each further row adds
};

// Host: elements that arrays and rows are beyond 16 bytes -> items.
inline items cut_rows(int V, int64_t outputs, int64_t rows, int32_t src_skew, int32_t dst_skew, int64_t src_row,
                      int64_t dst_row) {
  items cut{};
  cut.src_skew = src_skew;
  cut.dst_skew = dst_skew;
  cut.src_row_skew = static_cast<int32_t>(src_row & (V - 1));
  cut.dst_row_skew = static_cast<int32_t>(dst_row & (V - 1));
  const int64_t most = outputs + (cut.dst_row_skew == 0 || rows == 1 ? cut.dst_skew : V - 1);
  cut.a_row = most / V + (most % V != 0);
  cut.total = cut.a_row * rows;
  return cut;
}
// The kernels for any row know their radius exactly up to 4, then a bound.
constexpr int radius_bound(int radius) { return radius <= 4 ? radius : radius <= 8 ? 8 : 16; }
// Rows of fewer outputs are not for the kernel of aligned ones.
constexpr int64_t least_aligned_outputs = 8192;

// Item j of a row: its outputs, and where its window of V + 2 R elements starts.
struct item_at {
  int64_t i;           // output of its element 0, may be negative
  int32_t begin, end;  // elements of it that are outputs
  int64_t left;        // the window's first element in src
  int32_t off;         // how far that is beyond an aligned vector
  bool inside;         // the vectors from left - off on lie within the row
};
LOCKSTEP_INDEX constexpr int window_vectors(int V, int R) { return (V + 2 * R + 2 * V - 2) / V; }
LOCKSTEP_INDEX item_at locate_item(const items& cut, int V, int R, int64_t row, int64_t j, int64_t outputs, int64_t n,
                                   int64_t origin) {
  item_at at{};
  const int32_t dst_skew = static_cast<int32_t>(cut.dst_skew + row * cut.dst_row_skew) & (V - 1);
  at.i = j * V - dst_skew;
  at.begin = at.i < 0 ? static_cast<int32_t>(-at.i) : 0;
  at.end = outputs - at.i < V ? static_cast<int32_t>(outputs - at.i) : V;
  at.left = at.i + origin - R;
  at.off = static_cast<int32_t>(cut.src_skew + row * cut.src_row_skew + at.left) & (V - 1);
  at.inside = at.left >= at.off && at.left - at.off + window_vectors(V, R) * V <= n;
  return at;
}
// Vector k of the window starts here; where the window needs no shift, it often ends before
// the last vector.
LOCKSTEP_INDEX bool vector_is_needed(int V, int R, int k, int32_t off) {
  return k < window_vectors(V, R) - 1 || k * V < off + V + 2 * R;
}
LOCKSTEP_INDEX int64_t vector_at(const item_at& at, int V, int k) { return at.left - at.off + k * V; }
// Which elements of a window have taps where a radius is below its bound, stencil_wide says itself
// (R - radius <= e < V + R + radius): as a function of this folder it changed the kernels' machine
// code. Explain has a copy; tests/explain holds it against the kernel.

}  // namespace lockstep::cuda::stencil
