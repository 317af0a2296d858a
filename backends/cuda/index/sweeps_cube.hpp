// sweeps_cube.hpp - how a pass of several sweeps of a cube is cut (stencil/sweeps_planes.cu): columns of tiles that
// blocks stream along z, and boxes near the faces, where every sweep folds anew. Axes z, y, x are 0, 1, 2. Positions
// are those of src's elements; a result has the position of its centre.
#pragma once

#include "sweeps.hpp"

namespace lockstep::cuda::stencil {

struct box {
  int64_t from[3], to[3];
};
// Results near a face, or all of a cube, and the results of a box of them along each axis.
struct face {
  box all;
  int32_t size[3];
  int64_t boxes[3], count;
};
struct cut_cube {
  int32_t depth, reach;
  int32_t
      halo[3];  // positions at either end of a tile that are stale after the pass; along z: what a chunk starts early
  box inner;    // results of tiles
  int64_t tiles[2], chunks, chunk;  // along y and x; along z
  face faces[6];
  int64_t face_boxes;  // a cube
};

// Results of a box, and the elements that they come from.
struct face_box {
  box results, elements;
};
LOCKSTEP_INDEX face_box face_box_of(const cut_cube& cut, int64_t number, const int64_t* n) {
  int k = 0;
  while (k < 5 && number >= cut.faces[k].count) number -= cut.faces[k++].count;
  const face& of = cut.faces[k];
  int64_t at[3];
  at[2] = number % of.boxes[2];
  number /= of.boxes[2];
  at[1] = number % of.boxes[1];
  at[0] = number / of.boxes[1];
  face_box b{};
  LOCKSTEP_UNROLL
  for (int a = 0; a < 3; ++a) {
    const int64_t from = of.all.from[a] + at[a] * of.size[a];
    const int64_t to = of.all.to[a] - from < of.size[a] ? of.all.to[a] : from + of.size[a];
    b.results.from[a] = from, b.results.to[a] = to;
    b.elements.from[a] = from > cut.reach ? from - cut.reach : 0;
    b.elements.to[a] = n[a] - to > cut.reach ? to + cut.reach : n[a];
  }
  return b;
}

// Elements along an axis of n that `results` of [from, to) come from, at most.
inline int64_t span_of(int64_t results, int64_t from, int64_t to, int64_t n, int64_t reach) {
  const bool all = results >= to - from;
  return std::min(n, results + (all && from == 0 ? 0 : reach) + (all && to == n ? 0 : reach));
}
inline face face_of(const box& all, const int64_t* n, int64_t reach, int64_t room) {
  face f{};
  f.all = all;
  int64_t size[3];
  for (int a = 0; a < 3; ++a) {
    if (all.from[a] >= all.to[a]) return f;
    size[a] = std::min<int64_t>(all.to[a] - all.from[a], 30);
  }
  // The longest axis gives way until the box fits, with an element beyond each end.
  const auto elements = [&] {
    int64_t product = 1;
    for (int a = 0; a < 3; ++a) product *= span_of(size[a], all.from[a], all.to[a], n[a], reach) + 2;
    return product;
  };
  while (elements() > room) {
    int longest = 0;
    for (int a = 1; a < 3; ++a)
      if (size[a] > size[longest]) longest = a;
    --size[longest];
  }
  f.count = 1;
  for (int a = 0; a < 3; ++a) {
    f.size[a] = static_cast<int32_t>(size[a]);
    f.boxes[a] = (all.to[a] - all.from[a] + size[a] - 1) / size[a];
    f.count *= f.boxes[a];
  }
  return f;
}

// Without chunks, which are chosen later. tile: elements along y and x; room: elements of a box.
inline cut_cube cut_sweeps(const int64_t* n, int32_t boundary, int32_t radius, int32_t depth, const int32_t* halo,
                           const int32_t* tile, int32_t vector, int64_t room) {
  cut_cube c{};
  const int64_t reach = int64_t{radius} * depth;
  c.depth = depth, c.reach = static_cast<int32_t>(reach);
  for (int a = 0; a < 3; ++a) c.halo[a] = halo[a], c.inner.to[a] = n[a];
  box& in = c.inner;
  if (boundary == LOCKSTEP_BOUNDARY_VALID) {
    for (int a = 0; a < 3; ++a) in.from[a] = reach, in.to[a] -= reach;
  } else if (boundary != LOCKSTEP_BOUNDARY_WRAP) {
    bool small = false;
    for (int a = 0; a < 3; ++a) {
      in.from[a] = a == 2 ? round_up(reach, 2 * vector) : reach;  // tiles start on 32 bytes
      in.to[a] = n[a] - reach;
      small = small || in.from[a] >= in.to[a];
    }
    if (small) {
      box whole{{0, 0, 0}, {n[0], n[1], n[2]}};
      for (int a = 0; a < 3; ++a) in.from[a] = in.to[a] = 0;
      c.faces[0] = face_of(whole, n, reach, room);
    } else {
      // Before and behind along each axis, between the faces of the axes before it.
      box rest{{0, 0, 0}, {n[0], n[1], n[2]}};
      for (int a = 0; a < 3; ++a) {
        box low = rest, high = rest;
        low.to[a] = in.from[a], high.from[a] = in.to[a];
        c.faces[2 * a] = face_of(low, n, reach, room);
        c.faces[2 * a + 1] = face_of(high, n, reach, room);
        rest.from[a] = in.from[a], rest.to[a] = in.to[a];
      }
    }
  }
  for (const face& f : c.faces) c.face_boxes += f.count;
  if (in.from[0] < in.to[0] && in.from[1] < in.to[1] && in.from[2] < in.to[2])
    for (int a = 1; a < 3; ++a) {
      const int64_t width = tile[a - 1] - 2 * halo[a];
      c.tiles[a - 1] = (in.to[a] - in.from[a] + width - 1) / width;
    }
  return c;
}

}  // namespace lockstep::cuda::stencil
