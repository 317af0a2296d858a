// held.cuh - rows that a warp, or the warps of a block, hold in registers: one read, one write.
//
// Idea    A warp a leaf, so that sums have the fixed order's shape as they are; the leaves of a row are one block's
//         warps and exchange their values once. Rows of up to 128 elements: several a warp, four at once a thread.
// Moves   every element once in and once out
// Limit   not profiled; probably instructions, since 16-bit elements are slower than f32 for the same bytes
// Watch   in place: all of a row is in registers before its first result is written
// Source  lib/order_rows.hpp
#pragma once

#include "rows.cuh"

namespace lockstep::cuda {

template <class E>
constexpr int held_leaves = sizeof(E) == 8 ? 8 : 16;  // of a row: what the registers of a multiprocessor hold

// P: double for squares, order::moments. threads: of a group; fewer than 32 only for R = 1. warps_a_row: more than one
// only for R = 16, and then those of the block.
template <class E, class P, bool same, int R, int S>
__global__ __launch_bounds__(held_leaves<E> * 32) void normalize_held(const normalized_rows d, const int threads,
                                                                      const int warps_a_row) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  __shared__ P values[held_leaves<E>];
  [[maybe_unused]] __shared__ uint64_t most_of_warps[held_leaves<E>];
  [[maybe_unused]] __shared__ double scaled_of_warps[held_leaves<E>];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = lane % threads;
  const int rows_at_once = 32 / threads, leaf = warp % warps_a_row;
  const int64_t turn = int64_t{blockIdx.x} * (blockDim.x / 32 / warps_a_row) + warp / warps_a_row;
  const int64_t row = turn * rows_at_once * S + lane / threads;
  const int64_t first = int64_t{leaf} * order::leaf;
  const int n = static_cast<int>(min(d.length - first, order::leaf));

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
  if (R == 16 && warps_a_row > 1) {
    if (lane == 0) values[leaf] = total[0];
    if (!LOCKSTEP_DEVICE_MUTANT("normalize_barrier_dropped")) __syncthreads();  // every warp reads all leaves' values
    total[0] = tree_of_warp(values[min(lane, warps_a_row - 1)], warps_a_row, lane);
  }

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
      // The warps of a block have one row, so all of them go this way or none.
      if (!__any_sync(all_lanes, again)) continue;
      const bool alone = R < 16 || warps_a_row == 1;
      const double norm = norm_of(
          h, b, n, t, threads, total[b],
          [&](uint64_t most) {
            if (alone) return most;
            if (lane == 0) most_of_warps[leaf] = most;
            __syncthreads();  // every warp reads all warps' largest magnitudes
            most = lane < warps_a_row ? most_of_warps[lane] : 0;
            for (int mask = 16; mask >= 1; mask /= 2) most = max(most, from_xor(most, mask));
            return most;
          },
          [&](double sum) {
            if (alone) return sum;
            if (lane == 0) scaled_of_warps[leaf] = sum;
            __syncthreads();  // every warp reads all leaves' scaled sums
            return tree_of_warp(scaled_of_warps[min(lane, warps_a_row - 1)], warps_a_row, lane);
          });
      if (again) scale[b] = spread_of_norm(d, norm).divisor;
    }
  }
  write_rows<E, layer, same>(d, h, row, rows_at_once, first, n, t, threads, mean, scale);
}

}  // namespace lockstep::cuda
