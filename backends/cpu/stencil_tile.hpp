// stencil_tile.hpp - one application of a star stencil to one tile of results. stencil.cpp and
// stencil_sweeps.cpp cut arrays into tiles.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "bits/order.hpp"
#include "queue.hpp"
#include "stencil_kernels.hpp"

namespace lockstep::cpu {

constexpr int max_radius = 16;
constexpr int max_taps = 2 * 8 * 3 + 1;
constexpr int max_rows = 2 * 2 * 8;  // of the outer axes

// An array, or the rows (rank 2) or planes (rank 3) of one that a ring in a cache holds.
template <class T>
struct window {
  static constexpr int64_t no_ring = std::numeric_limits<int64_t>::max();
  T* data;
  int64_t strides[3] = {0, 0, 1}, batch_stride = 0;
  int64_t origin[2] = {0, 0};            // the index of data on the outer axes
  int64_t ring[2] = {no_ring, no_ring};  // an index this much larger is at the same place

  T* row(int64_t z, int64_t y) const {
    z -= origin[0], y -= origin[1];
    if (z >= ring[0]) z -= ring[0];
    if (y >= ring[1]) y -= ring[1];
    const int64_t plane = z * strides[0];
    return data + plane + y * strides[1];
  }
};

// One application to batch arrays. A missing outer axis has length 1, no taps.
template <class T>
struct sweep {
  stencil_kernel<T> kernel;
  const stencil_block_kernels<T>* blocks;  // NULL: row by row
  const stencil_lanes<T>* lanes;           // NULL: not by the lanes of registers
  lockstep_boundary boundary;
  int rank, radius;
  T value;
  const T* coefficients;
  window<const T> src;
  window<T> dst;
  int64_t batch, src_shape[3], dst_shape[3];
  bool stream;      // non-temporal stores
  bool ends_stand;  // the folded ends of src's rows are in memory next to them
};

struct extent {
  int64_t b, z, y, x;
};

// ---- rows ---------------------------------------------------------------------
// Results of one row, first <= x < last, whose inner taps reach beyond the array. They are
// computed from a copy of their piece of the row together with the folded ends.
constexpr int64_t piece = stencil_piece;  // a whole number of registers

template <class T>
void fold_piece(const sweep<T>& s, const T* line, int64_t first, int64_t last, T* copy) {
  const int64_t n = s.src_shape[2], from = first - s.radius, to = last + s.radius;
  const int64_t inside = std::max<int64_t>(from, 0), outside = std::min(to, n);
  for (int64_t x = from; x < to; ++x) {
    if (x == inside && outside > inside) {
      std::memcpy(copy + (x - from), line + x, static_cast<size_t>(outside - inside) * sizeof(T));
      x = outside - 1;
    } else {
      copy[x - from] = s.boundary == LOCKSTEP_BOUNDARY_CONSTANT
                           ? s.value
                           : line[order::folded(x, n, static_cast<order::fold>(s.boundary))];
    }
  }
}

// Cuts first <= x < last into the ends of the array and the part between, and calls
// body(a, b, folds) for each.
template <class T, class Body>
void over_pieces(const sweep<T>& s, int64_t first, int64_t last, const Body& body) {
  const int64_t n = s.src_shape[2], r = s.radius;
  if (s.boundary == LOCKSTEP_BOUNDARY_VALID || s.ends_stand) return body(first, last, false);
  if (first < r) {
    const int64_t b = last - first <= piece ? last : first + piece / 2;
    body(first, b, true);
    first = b;
  }
  if (first >= last) return;
  if (last <= n - r) return body(first, last, false);
  const int64_t a = last - first <= piece ? first : last - piece / 2;
  if (first < a) body(first, a, false);
  body(a, last, true);
}

template <class T>
struct line {
  const T* rows[max_rows];  // at x = 0
  const T* centre;
  T* dst;
};

template <class T>
void run_row(const sweep<T>& s, const line<T>& l, int64_t first, int64_t last) {
  const int outer = s.radius * (s.rank - 1);
  const T* rows[max_rows];
  over_pieces(s, first, last, [&](int64_t a, int64_t b, bool folds) {
    T copy[piece + 2 * max_radius];
    if (folds) fold_piece(s, l.centre, a, b, copy);
    for (int k = 0; k < 2 * outer; ++k) rows[k] = l.rows[k] + a;
    s.kernel(
        {rows, folds ? copy + s.radius : l.centre + a, s.coefficients, l.dst + a, b - a, outer, s.radius, s.stream});
  });
}

// ---- a tile -------------------------------------------------------------------
template <class T>
struct planes {
  const sweep<T>& s;
  window<const T> array;  // this array of the batch, at the x of dst's 0
  const T* value_row;     // CONSTANT: a row of the value, at the x of dst's 0
  int64_t shift[2];       // from dst's coordinate to src's

  // The row at z, y of dst's coordinates; one of them may be outside the array.
  const T* operator()(int64_t z, int64_t y) const {
    z += shift[0], y += shift[1];
    if (z < 0 || z >= s.src_shape[0] || y < 0 || y >= s.src_shape[1]) {
      if (s.boundary == LOCKSTEP_BOUNDARY_CONSTANT) return value_row;
      z = order::folded(z, s.src_shape[0], static_cast<order::fold>(s.boundary));
      y = order::folded(y, s.src_shape[1], static_cast<order::fold>(s.boundary));
    }
    return array.row(z, y);
  }
};

template <class T>
void run_one_row(const sweep<T>& s, const planes<T>& row, const window<T>& dst, int64_t z, int64_t y,
                 const extent& first, const extent& last) {
  const int r = s.radius;
  line<T> l;
  l.centre = row(z, y);
  l.dst = dst.row(z, y);
  const T** below = l.rows;
  const T** above = l.rows + 2 * r * (s.rank - 1) - 1;
  if (s.rank == 3)
    for (int k = r; k >= 1; --k) *below++ = row(z - k, y), *above-- = row(z + k, y);
  if (s.rank >= 2)
    for (int k = r; k >= 1; --k) *below++ = row(z, y - k), *above-- = row(z, y + k);
  run_row(s, l, first.x, last.x);
}

template <class T>
void run_block(const sweep<T>& s, const planes<T>& row, const window<T>& dst, int64_t z0, int64_t y0,
               const extent& first, const extent& last) {
  const int r = s.radius, deep = s.blocks->deep, high = s.blocks->high;
  stencil_block<T> block;
  // The rows that only the next block will read: in rank 3 in the planes at the far end of
  // its column (of the next column at the end of the tile), in rank 2 its last rows.
  const bool ends = s.rank == 3 && y0 + high >= last.y;
  const int64_t next_z = s.rank == 2 ? 0 : z0 + r + (ends ? deep : 0);
  const int64_t next_y = s.rank == 2 ? y0 + high + r : ends ? first.y : y0 + high;
  for (int z = 0; z < deep; ++z) {
    for (int y = 0; y < high + 2 * r; ++y) block.side[z][y] = row(z0 + z, y0 + y - r);
    for (int y = 0; y < high; ++y) {
      block.dst[z * high + y] = dst.row(z0 + z, y0 + y);
      block.ahead[z * high + y] = row(next_z + z, next_y + y);
    }
  }
  if (s.rank == 3)
    for (int z = 0; z < deep + 2 * r; ++z)
      for (int y = 0; y < high; ++y) block.column[z][y] = row(z0 + z - r, y0 + y);
  block.coefficients = s.coefficients;
  // Non-temporal stores need aligned addresses, and all rows of a block start at the same x,
  // so they are all aligned only if the pitch is a whole number of cache lines.
  const auto whole_lines = [](int64_t stride) { return stride * static_cast<int64_t>(sizeof(T)) % 64 == 0; };
  block.stream = s.stream && whole_lines(dst.strides[1]) && whole_lines(dst.strides[0]);
  over_pieces(s, first.x, last.x, [&](int64_t a, int64_t b, bool folds) {
    T copies[16][piece + 2 * max_radius];
    for (int z = 0; z < deep; ++z)
      for (int y = 0; y < high; ++y) {
        const T*& centre = block.centre[z * high + y];
        centre = block.side[z][y + r];
        if (!folds) continue;
        T* const copy = copies[z * high + y];
        fold_piece(s, centre, a, b, copy);
        centre = copy + r - a;
      }
    block.first = a;
    block.last = b;
    s.blocks->rows[r - 1](block);
  });
}

template <class T>
void run_tile(const sweep<T>& s, const extent& first, const extent& last, const T* value_row) {
  const int64_t shift = s.boundary == LOCKSTEP_BOUNDARY_VALID ? s.radius : 0;
  const int64_t deep = s.blocks ? s.blocks->deep : 1, high = s.blocks ? s.blocks->high : 1;
  const bool blocked = s.blocks && last.x - first.x >= s.blocks->least;
  for (int64_t b = first.b; b < last.b; ++b) {
    planes<T> row{s, s.src, value_row - first.x, {s.rank == 3 ? shift : 0, s.rank >= 2 ? shift : 0}};
    row.array.data += b * s.src.batch_stride + shift;
    window<T> dst = s.dst;
    dst.data += b * dst.batch_stride;
    for (int64_t z = first.z; z < last.z; z += deep)
      for (int64_t y = first.y; y < last.y; y += high) {
        if (blocked && z + deep <= last.z && y + high <= last.y) {
          run_block(s, row, dst, z, y, first, last);
          continue;
        }
        for (int64_t i = z; i < std::min(z + deep, last.z); ++i)
          for (int64_t j = y; j < std::min(y + high, last.y); ++j) run_one_row(s, row, dst, i, j, first, last);
      }
  }
}

}  // namespace lockstep::cpu
