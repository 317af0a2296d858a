// transpose.hpp - which elements a thread of the lesson kernels of transpose.cu moves.
#pragma once

#include "device.hpp"

namespace lockstep::cuda {

// One launch: matrices of rows x cols, cut into square tiles.
struct square_extent {
  int64_t rows, cols, src_ld, dst_ld, src_batch, dst_batch;
  int64_t tiles_j, tiles_of_matrix, tiles;
};

// A kernel's tile and block; explain brings a struct of run-time numbers.
struct square_shape {
  static constexpr int side = 32;       // elements of a square tile
  static constexpr int block_rows = 8;  // a block is side x block_rows threads; each takes side / block_rows elements
};

// The tile number -> matrix, first row and column in src. 64-bit: one division a tile.
struct square_tile {
  int64_t matrix, i0, j0;
  template <class Shape>
  LOCKSTEP_INDEX square_tile(const Shape& shape, const square_extent& all, int64_t number)
      : matrix(number / all.tiles_of_matrix),
        i0(number % all.tiles_of_matrix / all.tiles_j * shape.side),
        j0(number % all.tiles_of_matrix % all.tiles_j * shape.side) {}
};

// Bodies get the tile's row that the thread is at, and element offsets from the matrix's
// start or within the tile. x, y: the thread within the block.

// Lanes along a row of src: body(step, offset in src, offset in dst).
template <class Shape, class Body>
LOCKSTEP_INDEX void walk_naive_read(const Shape& shape, const square_extent& all, const square_tile& at, int x, int y,
                                    const Body& body) {
  const int64_t j = at.j0 + x;
  for (int step = y; step < shape.side; step += shape.block_rows)
    if (const int64_t i = at.i0 + step; i < all.rows && j < all.cols)
      body(step, i * all.src_ld + j, j * all.dst_ld + i);
}

// Lanes along a row of dst: body(step, offset in src, offset in dst).
template <class Shape, class Body>
LOCKSTEP_INDEX void walk_naive_write(const Shape& shape, const square_extent& all, const square_tile& at, int x, int y,
                                     const Body& body) {
  const int64_t i = at.i0 + x;
  for (int step = y; step < shape.side; step += shape.block_rows)
    if (const int64_t j = at.j0 + step; i < all.rows && j < all.cols)
      body(step, i * all.src_ld + j, j * all.dst_ld + i);
}

enum class layout { plain, padded, swizzled };

template <layout how, class Shape>
LOCKSTEP_INDEX constexpr int tile_pitch(const Shape& shape) {
  return how == layout::padded ? shape.side + 1 : shape.side;
}

// Where a tile's element (i, j) lies in shared memory.
template <layout how, class Shape>
LOCKSTEP_INDEX int tile_place(const Shape& shape, int i, int j) {
  if constexpr (how == layout::padded) return i * (shape.side + 1) + j;
  if constexpr (how == layout::swizzled) return i * shape.side + (j ^ i);
  return i * shape.side + j;
}

// A tile by rows of src: body(step, offset in src, place in the tile).
template <layout how, class Shape, class Body>
LOCKSTEP_INDEX void walk_tile_in(const Shape& shape, const square_extent& all, const square_tile& at, int x, int y,
                                 const Body& body) {
  for (int step = y; step < shape.side; step += shape.block_rows)
    if (at.i0 + step < all.rows && at.j0 + x < all.cols)
      body(step, (at.i0 + step) * all.src_ld + at.j0 + x, tile_place<how>(shape, step, x));
}

// And by rows of dst, which are its columns: body(step, place in the tile, offset in dst).
template <layout how, class Shape, class Body>
LOCKSTEP_INDEX void walk_tile_out(const Shape& shape, const square_extent& all, const square_tile& at, int x, int y,
                                  const Body& body) {
  for (int step = y; step < shape.side; step += shape.block_rows)
    if (at.j0 + step < all.cols && at.i0 + x < all.rows)
      body(step, tile_place<how>(shape, x, step), (at.j0 + step) * all.dst_ld + at.i0 + x);
}

}  // namespace lockstep::cuda
