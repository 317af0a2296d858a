// shuffle.hpp - which elements a thread of shuffle.cu moves. Which lane a lane receives
// from is order::source_lane for the rows that go through memory; __shfl_*_sync has it in
// hardware.
#pragma once

#include "device.hpp"

namespace lockstep::cuda {

// Groups of `warp` elements; a block's `warps` warps take `groups` neighbouring ones each.
// The first group of thread t's warp, and how far its next round is.
LOCKSTEP_INDEX int64_t first_group(int64_t block, int warps, int groups, unsigned t, int warp) {
  return (int64_t{warps} * block + t / warp) * groups;
}
LOCKSTEP_INDEX int64_t group_step(int64_t blocks, int warps, int groups) { return int64_t{warps} * groups * blocks; }

// A thread's element of the first group; group g's lies group_offset(g) further on.
LOCKSTEP_INDEX int64_t group_element(int64_t group, int lane, int warp) { return group * warp + lane; }
LOCKSTEP_INDEX int group_offset(int g, int warp) { return g * warp; }

// Where a warp has all its `groups`, they are loaded first, then exchanged and stored; the last
// warp's are done one by one. Bodies get the group and its offset from group_element.
LOCKSTEP_INDEX bool has_all(int64_t first, int groups, int64_t all) { return first + groups <= all; }
template <class Body>
LOCKSTEP_INDEX void walk_groups(int groups, int warp, const Body& body) {
  LOCKSTEP_UNROLL
  for (int g = 0; g < groups; ++g) body(g, group_offset(g, warp));
}
template <class Body>
LOCKSTEP_INDEX void walk_last_groups(int64_t first, int64_t all, int warp, const Body& body) {
  for (int64_t g = 0; first + g < all; ++g) body(g * warp);
}

}  // namespace lockstep::cuda
