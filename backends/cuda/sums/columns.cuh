// columns.cuh - sequences that lie side by side: one block per leaf of 8 or 32 of them.
//
// Idea    Neighbouring threads read neighbouring sequences. A thread holds every G-th lane of its own one, so that all
//         but the last joins are its own; those are one thread's, from shared memory. Tasks of 2^k leaves, so that
//         narrow arrays are many blocks' work too
// Moves   every element once; twice for moments, of which the second time comes from the L2
// Limit   memory reads
// Watch   the last block's sequences that are not there stand for the last one, and are not stored
// Source  lib/bits/order.hpp
#pragma once

#include "sums.hpp"

namespace lockstep::cuda {

// Of one sequence in the fixed order, in the threads below C: enter(acc, x, y) takes an element into its lane. Before
// the room is used again all threads must have met.
template <int C, bool two, class E, class Enter>
__device__ __forceinline__ double sum_of_column(const E* x, int64_t stride, const E* y, int64_t y_stride, int n,
                                                double (&room)[sum_threads], const Enter& enter) {
  constexpr int G = sum_threads / C, lanes = order::lanes / G, rows = 16 / lanes;  // of a thread; rows at once
  const int g = threadIdx.x / C;
  double lane[lanes];
#pragma unroll
  for (double& l : lane) l = -0.0;
#pragma unroll 1
  for (int row = 0; row * order::lanes < n; row += rows) {
    E a[rows][lanes], b[two ? rows : 1][lanes];
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int k = 0; k < lanes; ++k) {
        const int64_t i = min((row + r) * order::lanes + g + G * k, n - 1);
        a[r][k] = x[i * stride];
        if constexpr (two) b[r][k] = y[i * y_stride];
      }
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int k = 0; k < lanes; ++k)
        if ((row + r) * order::lanes + g + G * k < n)
          lane[k] = enter(lane[k], widened(a[r][k]), two ? widened(b[two ? r : 0][k]) : 0.0);
  }
#pragma unroll
  for (int d = lanes / 2; d >= 1; d /= 2)
#pragma unroll
    for (int k = 0; k < d; ++k) lane[k] = __dadd_rn(lane[k], lane[k + d]);
  room[threadIdx.x] = lane[0];
  __syncthreads();  // a thread joins what all have left
  if (threadIdx.x >= C) return 0.0;
  double part[G];
#pragma unroll
  for (int k = 0; k < G; ++k) part[k] = room[k * C + threadIdx.x];
#pragma unroll
  for (int d = G / 2; d >= 1; d /= 2)
#pragma unroll
    for (int k = 0; k < d; ++k) part[k] = __dadd_rn(part[k], part[k + d]);
  return part[0];
}

template <class Fold, int C>
__global__ __launch_bounds__(sum_threads, 2) void sums_of_columns(const term_sums d, const task_shares shares,
                                                                  typename Fold::partial* partials) {
  using P = typename Fold::partial;
  __shared__ double room[sum_threads];
  __shared__ double means[C];
  const int c = threadIdx.x % C;
  const int64_t leaves = order::leaves(d.length), groups = (d.count + C - 1) / C;
  follow_on();
  for (int64_t work = blockIdx.x; work < groups * shares.tasks; work += gridDim.x) {
    const int64_t task = work / groups, s = (work - task * groups) * C + c, from = min(s, d.count - 1);
    const int64_t begin = first_leaf(task, shares.leaves_a_task);
    const int here = leaves_here(leaves, begin, shares.leaves_a_task);
    order::tree<P> tree;
    for (int k = 0; k < here; ++k) {
      const int64_t first = (begin + k) * order::leaf;
      const int n = static_cast<int>(min(d.length - first, order::leaf));
      const pair_places at{from * d.sequence_stride + first * d.element_stride,
                           from * d.other_sequence_stride + first * d.other_element_stride};
      const P value = Fold::template column<C>(d, at, n, room, means);
      if (threadIdx.x < C) tree.push(value);
      __syncthreads();  // the next leaf's lanes come after these have been read
    }
    if (threadIdx.x >= C || s >= d.count) continue;
    if (shares.tasks == 1)
      Fold::store(d, s, tree.total(), d.length);
    else
      partials[s * shares.tasks + task] = tree.total();
  }
}

}  // namespace lockstep::cuda
