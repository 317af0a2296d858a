// square_sum.hpp - who reads which elements, and how a block's values become one, in the
// lesson kernels of square_sum/lessons.cu.
#pragma once

#include "device.hpp"

namespace lockstep::cuda {

// B1: one thread reads everything.
template <class Body>
LOCKSTEP_INDEX void walk_serial(int64_t n, const Body& body) {
  for (int64_t i = 0; i < n; ++i) body(i);
}

// B2: thread t takes the t-th slice of `threads`; the last ones may get less.
template <class Body>
LOCKSTEP_INDEX void walk_slice(int64_t n, int threads, unsigned t, const Body& body) {
  const int64_t slice = (n + threads - 1) / threads, begin = t * slice;
  for (int64_t i = begin; i < begin + slice && i < n; ++i) body(i);
}

// B3 to B9: thread k of all takes elements k, k + all, ... Index: wide enough for n + all.
template <class Index, class Body>
LOCKSTEP_INDEX void walk_strided(Index n, Index blocks, int threads, Index block, unsigned t, const Body& body) {
  const Index all = blocks * threads;
  for (Index i = block * threads + t; i < n; i += all) body(i);
}

enum class share { serial, masked, unrolled, conflicting, conflict_free };

// Where value i lies in shared memory. conflict_free: one value of padding after each row
// of banks, which holds `row` values.
template <share how>
LOCKSTEP_INDEX constexpr int share_place(int i, int row) {
  return how == share::conflict_free ? i + i / row : i;
}

// What thread t of `threads` (a power of two, two warps or more) does to make the block's
// values one, at value 0. Hand says how:
//   put(i)           value i = the thread's own
//   join(i, k)       value i = value i + value k
//   begin(i, k)      own = value i + value k
//   add(k)           own = own + value k
//   barrier(), warp_barrier()
template <share how, class Hand>
LOCKSTEP_INDEX void walk_share(const int threads, const int warp, const int t, Hand& hand) {
  hand.put(t);
  hand.barrier();  // everybody's value is there for the threads that add
  if constexpr (how == share::serial) {
    if (t == 0)
      for (int i = 1; i < threads; ++i) hand.join(0, i);
  } else if constexpr (how == share::masked) {
    for (int d = 1; d < threads; d *= 2) {
      if ((t & (2 * d - 1)) == 0) hand.join(t, t + d);
      hand.barrier();  // the next level reads what this one wrote
    }
  } else if constexpr (how == share::unrolled) {
    LOCKSTEP_UNROLL
    for (int d = threads / 2; d > warp; d /= 2) {
      if (t < d) hand.join(t, t + d);
      hand.barrier();  // the next level's threads read what twice as many wrote
    }
    if (t < warp) {
      hand.begin(t, t + warp);
      LOCKSTEP_UNROLL
      for (int d = warp / 2; d >= 1; d /= 2) {
        hand.put(t);
        hand.warp_barrier();  // the warp's stores before its loads: since Volta nothing else orders them
        hand.add(t ^ d);
        hand.warp_barrier();  // the loads before the next stores
      }
      if (t == 0) hand.put(0);
    }
  } else {  // neighbouring threads on addresses 2d apart: conflicts, unless padded
    for (int d = 1; d < threads; d *= 2) {
      const int i = 2 * d * t;
      if (i < threads) hand.join(i, i + d);
      hand.barrier();  // the next level reads what this one wrote
    }
  }
}

}  // namespace lockstep::cuda
