// sweeps.hpp - how a pass of several sweeps is cut: a line (stencil/registers.cu) into stretches that a warp each
// holds, a plane (stencil/sweeps_streamed.cu) into strips that warps stream along; and what is near the ends and edges,
// where every sweep folds anew. Positions are those of src's elements; a result has the position of its centre.
#pragma once

#include <algorithm>

#include "device.hpp"
#include "lockstep/lockstep.h"

namespace lockstep::cuda::stencil {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

struct cut_line {
  int32_t depth;
  int32_t halo;         // positions at either end of a stretch that are stale after the pass
  int32_t head, tail;   // results at the line's ends that blocks compute in shared memory
  int64_t first, last;  // results of stretches: [first, last)
  int64_t stretches;    // a line
  int64_t ends;         // blocks a line for head and tail: 0, 1 or 2
};
// Where a stretch begins, and its results: positions [halo, last) of it.
LOCKSTEP_INDEX int64_t stretch_begin(const cut_line& cut, int64_t number, int32_t stretch) {
  return cut.first + number * (stretch - 2 * cut.halo) - cut.halo;
}
LOCKSTEP_INDEX int64_t stretch_last(const cut_line& cut, int64_t begin, int32_t stretch) {
  return cut.last - begin < stretch - cut.halo ? cut.last - begin : stretch - cut.halo;
}
// line: elements in 128 bytes.
inline cut_line cut_sweeps(int64_t n, int32_t boundary, int32_t radius, int32_t depth, int32_t halo, int32_t stretch,
                           int32_t line) {
  cut_line c{};
  const int64_t reach = int64_t{radius} * depth;
  c.depth = depth;
  c.halo = halo;
  c.first = 0, c.last = n;
  if (boundary == LOCKSTEP_BOUNDARY_VALID) {
    c.first = reach, c.last = n - reach;
  } else if (boundary != LOCKSTEP_BOUNDARY_WRAP) {
    const int64_t head = round_up(reach, line);
    if (n <= head + reach) {
      c.head = static_cast<int32_t>(n), c.ends = 1;
      c.first = c.last;
    } else {
      c.head = static_cast<int32_t>(head), c.tail = static_cast<int32_t>(reach), c.ends = 2;
      c.first = head, c.last = n - reach;
    }
  }
  c.stretches = (c.last - c.first + stretch - 2 * c.halo - 1) / (stretch - 2 * c.halo);
  return c;
}

// Results of one side of a plane, or of all of it, and the results of a tile of them.
struct edge_side {
  int64_t y0, y1, x0, x1;
  int32_t tall, wide;
  int64_t tiles_x, tiles;
};

struct cut_plane {
  int32_t depth;
  int32_t reach;           // radius times depth: rows that a result needs above and below
  int32_t halo;            // columns at either end of a strip that are stale after the pass
  int64_t y0, y1, x0, x1;  // results of strips
  int64_t strips, chunks, chunk;
  edge_side sides[4];  // results that tiles compute: their sweeps fold at the plane's edges
  int64_t side_tiles;  // a plane
};

// A tile of results [y0, y1) x [x0, x1), and the elements that they come from: [low_y, high_y) x [low_x, high_x).
struct edge_tile {
  int64_t y0, y1, x0, x1, low_y, high_y, low_x, high_x;
};
LOCKSTEP_INDEX edge_tile edge_tile_of(const cut_plane& cut, int64_t number, int64_t ny, int64_t nx) {
  int side = 0;
  while (side < 3 && number >= cut.sides[side].tiles) number -= cut.sides[side++].tiles;
  const edge_side& of = cut.sides[side];
  const int64_t row = number / of.tiles_x, column = number - row * of.tiles_x;
  edge_tile t{};
  t.y0 = of.y0 + row * of.tall;
  t.x0 = of.x0 + column * of.wide;
  t.y1 = of.y1 - t.y0 < of.tall ? of.y1 : t.y0 + of.tall;
  t.x1 = of.x1 - t.x0 < of.wide ? of.x1 : t.x0 + of.wide;
  t.low_y = t.y0 > cut.reach ? t.y0 - cut.reach : 0;
  t.low_x = t.x0 > cut.reach ? t.x0 - cut.reach : 0;
  t.high_y = ny - t.y1 > cut.reach ? t.y1 + cut.reach : ny;
  t.high_x = nx - t.x1 > cut.reach ? t.x1 + cut.reach : nx;
  return t;
}
// Elements of a row of the tile in shared memory, with `radius` elements beyond either end: odd, so that lanes may also
// go down a column.
LOCKSTEP_INDEX int32_t edge_pitch(const edge_tile& t, int32_t radius) {
  return static_cast<int32_t>(t.high_x - t.low_x + 2 * radius) | 1;
}

// The part of a plane that a warp streams along: rows [y0, y0 + count) of results, from the row `reach` above them on;
// the strip's first column lies at begin, its results are columns [halo, last).
struct strip_walk {
  int64_t begin, y0;
  int32_t count, last;
};
LOCKSTEP_INDEX strip_walk strip_of(const cut_plane& cut, int64_t strip, int64_t chunk, int32_t columns) {
  strip_walk w{};
  const int32_t width = columns - 2 * cut.halo;
  w.begin = cut.x0 + strip * width - cut.halo;
  w.y0 = cut.y0 + chunk * cut.chunk;
  w.count = static_cast<int32_t>(cut.y1 - w.y0 < cut.chunk ? cut.y1 - w.y0 : cut.chunk);
  w.last = static_cast<int32_t>(cut.x1 - w.begin < columns - cut.halo ? cut.x1 - w.begin : columns - cut.halo);
  return w;
}
// Lanes copy a row's vectors of 16 bytes as they come, and a lane takes `of_lane` that follow one another. Where a
// vector lies in the row: eight lanes then meet different banks either way.
LOCKSTEP_INDEX int vector_place(int vector, int of_lane) { return of_lane == 2 ? vector ^ (vector >> 3 & 1) : vector; }

inline edge_side side_of(int64_t y0, int64_t y1, int64_t x0, int64_t x1, int64_t ny, int64_t nx, int32_t radius,
                         int64_t reach, int64_t room) {
  constexpr int64_t short_axis = 32, long_axis = 64;  // results of a tile at most
  edge_side s{y0, y1, x0, x1, 0, 0, 0, 0};
  if (y0 >= y1 || x0 >= x1) return s;
  // Elements along an axis of n that `results` of [from, to) come from, and those beyond its ends.
  const auto span = [&](int64_t results, int64_t from, int64_t to, int64_t n) {
    const bool all = results >= to - from;
    return std::min(n, results + (all && from == 0 ? 0 : reach) + (all && to == n ? 0 : reach)) + 2 * radius;
  };
  int64_t tall = std::min(y1 - y0, short_axis), wide = std::min(x1 - x0, short_axis);
  if (wide == x1 - x0)
    tall = std::min({y1 - y0, long_axis, room / (span(wide, x0, x1, nx) | 1) - 2 * (reach + radius)});
  else
    wide = std::min({x1 - x0, long_axis, ((room / span(tall, y0, y1, ny) - 1) | 1) - 2 * (reach + radius)});
  s.tall = static_cast<int32_t>(tall), s.wide = static_cast<int32_t>(wide);
  s.tiles_x = (x1 - x0 + wide - 1) / wide;
  s.tiles = s.tiles_x * ((y1 - y0 + tall - 1) / tall);
  return s;
}

// Without chunks, which are chosen later. columns: of a strip; vector: elements in 16 bytes; room: elements of a tile.
inline cut_plane cut_sweeps(int64_t ny, int64_t nx, int32_t boundary, int32_t radius, int32_t depth, int32_t halo,
                            int32_t columns, int32_t vector, int64_t room) {
  cut_plane c{};
  const int64_t reach = int64_t{radius} * depth;
  c.depth = depth, c.reach = static_cast<int32_t>(reach), c.halo = halo;
  c.y1 = ny, c.x1 = nx;
  if (boundary == LOCKSTEP_BOUNDARY_VALID) {
    c.y0 = c.x0 = reach;
    c.y1 -= reach, c.x1 -= reach;
  } else if (boundary != LOCKSTEP_BOUNDARY_WRAP) {
    const int64_t left = round_up(reach, 2 * vector);  // strips start on 32 bytes
    if (ny <= 2 * reach || nx <= left + reach) {
      c.y1 = c.x1 = 0;
      c.sides[0] = side_of(0, ny, 0, nx, ny, nx, radius, reach, room);
    } else {
      c.y0 = reach, c.y1 = ny - reach, c.x0 = left, c.x1 = nx - reach;
      c.sides[0] = side_of(0, c.y0, 0, nx, ny, nx, radius, reach, room);
      c.sides[1] = side_of(c.y1, ny, 0, nx, ny, nx, radius, reach, room);
      c.sides[2] = side_of(c.y0, c.y1, 0, c.x0, ny, nx, radius, reach, room);
      c.sides[3] = side_of(c.y0, c.y1, c.x1, nx, ny, nx, radius, reach, room);
    }
  }
  for (const edge_side& s : c.sides) c.side_tiles += s.tiles;
  const int64_t width = columns - 2 * halo;
  if (c.y0 < c.y1 && c.x0 < c.x1) c.strips = (c.x1 - c.x0 + width - 1) / width;
  return c;
}

}  // namespace lockstep::cuda::stencil
