// leaf.hpp - who reads which elements of a sum in the fixed order, and whom its partial
// results meet (leaf.cuh, lanes.cuh). The order itself is lib/bits/order.hpp's: a leaf is 16
// rows of 128 lanes. A warp of `warp` threads holds its row's lanes, four a thread.
#pragma once

#include "device.hpp"

namespace lockstep::cuda {

// The lane that slot 0 to 3 of thread t holds: V neighbours a load.
template <int V, int warp = 32>
LOCKSTEP_INDEX int lane_of(int t, int slot) {
  return slot / V * (warp * V) + V * t + slot % V;
}

// `ahead` rows of a leaf, which are in flight together: body(r, slot, element of the leaf). Leaves
// of whole loads come V elements at once (the slots that follow come with the first), others
// element by element: step 1.
template <int V, int warp = 32, int step = V, class Body>
LOCKSTEP_INDEX void walk_rows(int ahead, int row, int t, const Body& body) {
  LOCKSTEP_UNROLL
  for (int r = 0; r < ahead; ++r) {
    LOCKSTEP_UNROLL
    for (int slot = 0; slot < 4; slot += step) body(r, slot, (row + r) * (4 * warp) + lane_of<V, warp>(t, slot));
  }
}

// The joins of a row's lanes by the `threads` threads that hold it: split(values, mask), where each
// of two partners hands over `values` and joins as many, and by_xor(mask), where both do the same
// join. V = 2 and 1 join within the thread first.
template <int V, class Split, class Xor>
LOCKSTEP_INDEX void walk_joins(int threads, const Split& split, const Xor& by_xor) {
  if constexpr (V == 4) {  // of 32: d = 64 and 32 split, 16 8 4 by xor 4 2 1, 2 by xor 16, 1 by xor 8
    split(2, threads / 2);
    split(1, threads / 4);
    for (int mask = threads / 8; mask >= 1; mask /= 2) by_xor(mask);
    by_xor(threads / 2);
    by_xor(threads / 4);
  } else {
    if (V == 2) split(1, threads / 2);
    for (int mask = V == 1 ? threads / 2 : threads / 4; mask >= 1; mask /= 2) by_xor(mask);  // V = 2: d = 16 8 4 2
    if (V == 2) by_xor(threads / 2);                                                         // and 1
  }
}

// A block's warps take the leaves of its subtree in turn, so that it streams contiguous memory:
// this one is followed by that.
LOCKSTEP_INDEX int next_turn(int leaf, int warps) { return leaf + warps; }

// A task's leaves: from this one on, so many.
LOCKSTEP_INDEX int64_t first_leaf(int64_t task, int leaves_a_task) { return task * leaves_a_task; }
LOCKSTEP_INDEX int leaves_here(int64_t leaves, int64_t first, int leaves_a_task) {
  return static_cast<int>(leaves - first < leaves_a_task ? leaves - first : leaves_a_task);
}

constexpr int64_t most_tasks = 16384;  // of one sequence, up to 2^33 elements: mailbox_count

// A task of 2^k leaves. A sequence that one block takes in time is one: of up to 16 leaves where all have 16 Mi
// elements, of up to 64 at 256 Mi. Others are shared by tasks of 4 leaves at 1 Mi, so that every SM
// gets one, 8 at 4 Mi, 16 from 8 Mi on, and as many as it takes for most_tasks. Tried on an H200: 2 to 256; half
// costs 0 to 5 %, double 0 to 3.
inline int64_t leaves_a_task(int64_t leaves, int64_t count, int64_t most) {
  const int64_t total = leaves > INT64_MAX / count ? INT64_MAX : leaves * count;
  int64_t task = 4;
  while (task < most && task * task * 64 <= total) task *= 2;
  if (task < leaves)
    for (task = 4; task < most && (task < 16 ? task * 512 <= total : task * most_tasks < total);) task *= 2;
  while (task / 2 >= leaves) task /= 2;
  return task;
}

// Three loops of the joins are not here, since as functions of this folder they gave kernels of
// square_sum other machine code, some with up to 8 registers more: the masks of a warp's tree and
// its walk over more than 32 values (join_warp, join_values in leaf.cuh), and how many tasks a warp
// of the last block takes at a time (join_chunks in subtree.cuh). Explain has its own copies;
// tests/explain holds them against the kernel.

}  // namespace lockstep::cuda
