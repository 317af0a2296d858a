// sweeps_cube.hpp - how a pass of several sweeps of a cube is cut (stencil/sweeps_planes.cu): columns of tiles that
// blocks stream along z. Axes z, y, x are 0, 1, 2. Positions are those of src's elements; a result has the position of
// its centre.
#pragma once

#include "sweeps.hpp"

namespace lockstep::cuda::stencil {

struct cut_cube {
  int32_t depth;
  // Positions at either end of a tile that are stale after the pass where the cube goes on; along z: what a chunk
  // starts early.
  int32_t halo[3];
  int64_t from[3], to[3];           // results
  int64_t tiles[2], chunks, chunk;  // along y and x; along z
};
// The first position of a tile along y (axis 1) or x (axis 2).
LOCKSTEP_INDEX int64_t tile_begin(const cut_cube& cut, int axis, int64_t number, int32_t tile) {
  return cut.from[axis] + number * (tile - 2 * cut.halo[axis]) - cut.halo[axis];
}
// Planes that a chunk takes in, [first, last), and the planes of its results, [from, to). A boundary that folds ends
// them at the cube's ends: there every sweep folds anew.
struct chunk_walk {
  int64_t first, last, from, to;
  bool at_first, at_last;  // it meets that end of the cube
};
LOCKSTEP_INDEX chunk_walk chunk_of(const cut_cube& cut, int64_t number, int64_t nz, bool folds) {
  chunk_walk w{};
  w.from = cut.from[0] + number * cut.chunk;
  w.to = cut.to[0] - w.from < cut.chunk ? cut.to[0] : w.from + cut.chunk;
  w.at_first = folds && w.from <= cut.depth;
  w.at_last = folds && nz - w.to <= cut.depth;
  w.first = w.at_first ? 0 : w.from - cut.depth;
  w.last = w.at_last ? nz : w.to + cut.depth;
  return w;
}

// Without chunks, which are chosen later. tile: elements along y and x.
inline cut_cube cut_sweeps(const int64_t* n, int32_t boundary, int32_t depth, const int32_t* halo,
                           const int32_t* tile) {
  cut_cube c{};
  c.depth = depth;
  const int64_t ends = boundary == LOCKSTEP_BOUNDARY_VALID ? depth : 0;
  for (int a = 0; a < 3; ++a) c.halo[a] = halo[a], c.from[a] = ends, c.to[a] = n[a] - ends;
  for (int a = 1; a < 3; ++a) {
    const int64_t width = tile[a - 1] - 2 * halo[a];
    c.tiles[a - 1] = (c.to[a] - c.from[a] + width - 1) / width;
  }
  return c;
}

}  // namespace lockstep::cuda::stencil
