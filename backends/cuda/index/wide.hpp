// wide.hpp - which 16 bytes a thread of transpose_wide (moves/wide.cuh) moves, where
// tiles are full and both sides aligned.
#pragma once

#include "../tuning.hpp"
#include "device.hpp"

namespace lockstep::cuda {

// The shape that large aligned matrices get.
constexpr wide_shape first_wide_shape(int element_bytes) {
  switch (element_bytes) {
    case 1: return wide_shapes<1>[0];
    case 2: return wide_shapes<2>[0];
    case 4: return wide_shapes<4>[0];
    case 8: return wide_shapes<8>[0];
    default: return wide_shapes<16>[0];
  }
}

// Item p of thread t, of a grid of items `across` wide: units of V x V elements (V of them
// are 16 bytes) when src is read, 16-byte chunks of the tile's dst rows when dst is written.
struct wide_item {
  int row, column;
};
LOCKSTEP_INDEX wide_item wide_item_of(unsigned t, int p, int threads, int across) {
  const int item = t + p * threads;
  return {item / across, item % across};
}

// All of a thread's items: body(p, row, column).
template <class Body>
LOCKSTEP_INDEX void walk_items(int items, unsigned t, int threads, int across, const Body& body) {
  LOCKSTEP_UNROLL
  for (int p = 0; p < items; ++p) {
    const auto [row, column] = wide_item_of(t, p, threads, across);
    body(p, row, column);
  }
}

// The rows of a unit, V x V elements: body(v, the tile's row of src, its row of dst).
template <class Body>
LOCKSTEP_INDEX void walk_unit(int V, int unit_row, int unit_column, const Body& body) {
  LOCKSTEP_UNROLL
  for (int v = 0; v < V; ++v) body(v, unit_row * V + v, unit_column * V + v);
}

// Chunk c of the tile's dst row j. The XOR stays within a row of banks (`bank_row` chunks, 8
// of 32 banks) because a unit's rows fill multiples of 8. spread: neighbouring chunks of a
// unit's column that a wavefront stores, where a row of units is narrower than it.
LOCKSTEP_INDEX constexpr int wide_spread(int unit_cols, int bank_row = 8) {
  return unit_cols < bank_row ? bank_row / unit_cols : 1;
}
LOCKSTEP_INDEX int wide_place(int j, int c, int chunks, int V, int spread, int bank_row = 8) {
  return (j * chunks + c) ^ (j / V * spread & (bank_row - 1));
}

}  // namespace lockstep::cuda
