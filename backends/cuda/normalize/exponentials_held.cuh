// exponentials_held.cuh - rows of exponentials that a block holds: one read, one write.
//
// Idea    A group of threads a row (narrow.cuh), or a warp a leaf of a longer one, whose leaves are one block's or, if
//         the chip has them, those of a cluster of blocks, which read each other's extremes and sums. Elements wait
//         in registers for the extreme, and for SOFTMAX their exponentials for the sum: as doubles, half of a long
//         leaf's in shared memory
// Moves   every element once in and once out
// Limit   operations of doubles for 16-bit elements, else memory
// Watch   in place: all of a row is in registers before its first result is written
// Source  lib/bits/functions.hpp, lib/bits/order.hpp
#pragma once

#include "../kernel/cluster.cuh"
#include "exponentials.cuh"
#include "exponentials.hpp"
#include "narrow.cuh"

namespace lockstep::cuda {

constexpr int exponential_leaves = exponential_length / order::leaf;  // of a row that a block holds
constexpr int exponential_warps = 4;                                  // of a block of shorter rows

// Of R rows of lanes the last so many wait in registers, those before them in shared memory: what comes last has the
// registers of elements that are used up.
template <int R>
constexpr int kept_rows = R < order::rows ? R : R / 2;
template <int R>
constexpr int shared_rows = R - kept_rows<R>;
// Bytes of a warp.
template <int R>
constexpr int shared_exponentials = shared_rows<R>* order::lanes * 8;

template <class E, int R>
constexpr int exponential_block = (R < order::rows ? exponential_warps
                                                   : exponential_leaves * (sizeof(E) == 8 ? 1 : 2)) *
                                  32;
// Rows of several quads per thread (narrow.cuh): few, so that code is short and many warps find room, or 8.
template <int R>
constexpr bool is_narrow = R == narrow_quads || R == narrow_quads / 2;
// Blocks per SM, which say how many registers a thread may have.
template <class E, int R>
constexpr int exponential_blocks = R == order::rows    ? 1
                                   : R == narrow_quads ? (sizeof(E) == 8 ? 3 : 4)
                                                       : (sizeof(E) == 8 ? 5 : 6);

// threads: of a row, or of a leaf where a row has several. S rows of a group at once. blocks: of a row's cluster.
template <class E, bool divides, bool same, int R, int S>
__global__ __launch_bounds__(exponential_block<E, R>,
                             exponential_blocks<E, R>) void exponentials_held(const exponential_rows d,
                                                                              const int threads, const int blocks) {
  extern __shared__ uint4 room[];
  [[maybe_unused]] __shared__ compared<E> extremes[2 * exponential_leaves];
  [[maybe_unused]] __shared__ double values[2 * exponential_leaves];
  [[maybe_unused]] __shared__ double of_block[2];  // for the other blocks of the cluster
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, t = lane % threads;
  const int rows_at_once = 32 / threads, warps = static_cast<int>(blockDim.x / 32);
  // Of several leaves all warps have one row's.
  const bool shares = R == order::rows && d.length > order::leaf;
  const int rank = shares ? static_cast<int>(blockIdx.x) % blocks : 0, leaf = shares ? rank * warps + warp : 0;
  const int64_t turn = shares ? blockIdx.x / blocks : int64_t{blockIdx.x} * warps + warp;
  const int64_t row = turn * rows_at_once * S + lane / threads;
  const int64_t first = leaf * order::leaf;
  // Warps beyond a row's end have no elements.
  const int n = static_cast<int>(R == order::rows ? max(min(d.length - first, order::leaf), int64_t{0}) : d.length);
  const int leaves = shares ? static_cast<int>(min(order::leaves(d.length) - rank * warps, int64_t{warps})) : 1;
  const bool negated = d.scale < 0;
  follow_on();

  quad<E> h[S][R];
  double m[S];
#pragma unroll
  for (int b = 0; b < S; ++b) {
    const int64_t s = row + b * rows_at_once;
    if constexpr (is_narrow<R>)
      load_narrow(d, min(s, d.count - 1), n, t, threads, s < d.count, h[b]);
    else if (n > 0)
      load_h<E, R>(d, min(s, d.count - 1), first, n, t, threads, false, s < d.count, h[b]);
  }
#pragma unroll
  for (int b = 0; b < S; ++b) {
    fill_missing(h[b], n, t, threads, negated);
    compared<E> most = largest_of_group(largest_of(h[b], negated), threads);
    if constexpr (R == order::rows) {
      if (shares) {
        if (lane == 0) extremes[warp] = most;
        __syncthreads();  // every thread reads all leaves' extremes
        for (int k = 0; k < warps; ++k) most = larger(most, extremes[k]);
        if (blocks > 1) {
          if (threadIdx.x == 0) of_block[0] = most;
          cluster_meets();  // every block reads all blocks' extremes
          for (int k = 0; k < blocks; ++k) most = larger(most, static_cast<compared<E>>(of_other_block(of_block, k)));
        }
      }
    }
    m[b] = negated ? -most : most;
  }

  constexpr bool keeps = divides || is_narrow<R>;
  double kept[keeps ? S : 1][keeps ? kept_rows<R> : 1][4];
  double2* const rest = reinterpret_cast<double2*>(room) + warp * (shared_exponentials<R> / 16) + lane;
  double lanes[S][4], sum[S];
#pragma unroll
  for (int b = 0; b < S; ++b) {
#pragma unroll
    for (int j = 0; j < 4; ++j) lanes[b][j] = -0.0;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (R > 1 && r * threads * 4 >= n) break;
      double e[4];
      exponentials_of(h[b][r], m[b], d.scale, true, e);
      if constexpr (!is_narrow<R>) {
#pragma unroll
        for (int j = 0; j < 4; ++j) lanes[b][j] = __dadd_rn(lanes[b][j], e[j]);
      }
      if constexpr (keeps) {
        if (r >= shared_rows<R>) {
#pragma unroll
          for (int j = 0; j < 4; ++j) kept[b][r - shared_rows<R>][j] = e[j];
        } else {
          rest[r * 64] = make_double2(e[0], e[1]);
          rest[r * 64 + 32] = make_double2(e[2], e[3]);
        }
      }
    }
  }
  if constexpr (!divides) {
#pragma unroll
    for (int b = 0; b < S; ++b) forget_doubles(h[b]);
  }
  if constexpr (is_narrow<R>)
    sum[0] =
        narrow_sum<R, true>(n, t, threads, [&](double acc, int r, int j) { return __dadd_rn(acc, kept[0][r][j]); });
  else
    join_rows<4>(sum_fold{}, lanes, sum, t, threads);
  if constexpr (R == order::rows) {
    if (shares) {
      if (lane == 0) values[warp] = sum[0];
      __syncthreads();  // every warp reads all leaves' values
      sum[0] = tree_of_warp(values[min(lane, leaves - 1)], leaves, lane);
      if (blocks > 1) {
        if (threadIdx.x == 0) of_block[1] = sum[0];
        cluster_meets();  // every block reads all blocks' sums
        sum[0] = tree_of_warp(of_other_block(of_block + 1, min(lane, blocks - 1)), blocks, lane);
        cluster_leaves();
      }
    }
  }
  // A group's threads share its S rows' quotients or logarithms: thread b does row b's.
  double mine = sum[0], centre = m[0];
#pragma unroll
  for (int b = 1; b < S; ++b)
    if (t % S == b) mine = sum[b], centre = m[b];
  const double part = part_of(d, centre, mine);
  if constexpr (!divides) {
    if (d.kind != LOCKSTEP_NORMALIZE_LOG_SOFTMAX) {
      const int64_t s = row + t * rows_at_once;
      __syncwarp();  // what a group's threads wrote to sum
      if (t < S && leaf == 0 && s < d.count) store_one<E>(d, s, centre, part);
      if (shares && blocks > 1) cluster_left();
      return;
    }
  }
#pragma unroll
  for (int b = 0; b < S; ++b) {
    const double factor = S == 1 ? part : from_thread(part, lane - t + b);
    const int64_t s = row + b * rows_at_once;
    if (s >= d.count) continue;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (R > 1 && r * threads * 4 >= n) break;
      double y[4];
      if constexpr (divides) {
        if (r >= shared_rows<R>) {
#pragma unroll
          for (int j = 0; j < 4; ++j) y[j] = kept[b][r - shared_rows<R>][j];
        } else {
          const double2 low = rest[r * 64], high = rest[r * 64 + 32];
          y[0] = low.x, y[1] = low.y, y[2] = high.x, y[3] = high.y;
        }
#pragma unroll
        for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(y[j], factor);
      } else {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          // held_below's infinity is none here.
          const bool none = sizeof(E) == 2 && fabs(value(h[b][r], j)) == HUGE_VAL;
          const double off = none ? -HUGE_VAL : held_below(h[b][r], j, m[b], d.scale);
          y[j] = __dsub_rn(off, factor);
        }
      }
      if constexpr (divides)
        store_shares<E, same>(d, s * d.dst_stride + first, (r * threads + t) * 4, n, y, factor == factor);
      else
        store_results<E, same>(d, s * d.dst_stride + first, (r * threads + t) * 4, n, y);
    }
  }
  if constexpr (R == order::rows)
    if (shares && blocks > 1) cluster_left();
}

}  // namespace lockstep::cuda
