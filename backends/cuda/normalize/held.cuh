// held.cuh - rows of up to 128 elements that groups of threads hold in registers: one read, one write.
//
// Idea    4 to 32 threads per row, four rows at once per group, whose loads overlap
// Moves   every element once in and once out
// Limit   instructions
// Watch   in place: all of a row is in registers before its first result is written
// Source  lib/bits/order_rows.hpp
#pragma once

#include "rows.cuh"

namespace lockstep::cuda {

constexpr int held_warps = 8;  // of a block

// By one block. P: double for squares, order::moments. threads: of a group. S: rows a group holds.
template <class E, class P, bool same, int S>
__device__ __forceinline__ void held_rows(const normalized_rows& d, const int threads, const int64_t block) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  constexpr int R = 1;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = lane % threads;
  const int rows_at_once = 32 / threads;
  const int64_t turn = block * (blockDim.x / 32) + warp;
  const int64_t row = turn * rows_at_once * S + lane / threads;
  const int64_t first = 0;
  const int n = static_cast<int>(d.length);

  quad<E> h[S][R];
#pragma unroll
  for (int b = 0; b < S; ++b) {
    const int64_t s = row + b * rows_at_once;
    load_h<E, R>(d, min(s, d.count - 1), first, n, t, threads, false, s < d.count, h[b]);
  }

  P total[S];
  if constexpr (layer)
    moments_of(h, n, t, threads, total);
  else
    squares_of(h, n, t, threads, total);
  // A group's threads share its S rows' roots and quotients: thread b does row b's.
  P mine = total[0];
#pragma unroll
  for (int b = 1; b < S; ++b)
    if (t % S == b) mine = total[b];
  const spread found = spread_of(d, mine);
  double mean[S], scale[S];
  const double scale_of_mine = scale_of<E>(found.divisor);
#pragma unroll
  for (int b = 0; b < S; ++b) {
    const int from = lane - t + b;
    mean[b] = layer ? from_thread(found.mean, from) : 0.0;
    scale[b] = S == 1 ? scale_of_mine : from_thread(scale_of_mine, from);
  }
  if constexpr (std::is_same_v<E, double> && !layer) {
#pragma unroll
    for (int b = 0; b < S; ++b) {
      const bool again = d.kind == LOCKSTEP_NORMALIZE_L2 && norm_sum::needs_again(total[b]);
      if (!__any_sync(all_lanes, again)) continue;
      const double norm = norm_of(h, b, n, t, threads, total[b]);
      if (again) scale[b] = spread_of_norm(d, norm).divisor;
    }
  }
  write_rows<E, layer, same>(d, h, row, rows_at_once, first, n, t, threads, mean, scale);
}

template <class E, class P, bool same, int S>
__global__ __launch_bounds__(held_warps * 32) void normalize_held(const normalized_rows d, const int threads) {
  follow_on();
  held_rows<E, P, same, S>(d, threads, blockIdx.x);
}

}  // namespace lockstep::cuda
