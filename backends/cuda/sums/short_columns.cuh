// short_columns.cuh - few elements per sequence, sequences side by side: one thread per sequence.
//
// Idea    All lanes are a thread's own, all its loads are in flight together, and no thread waits for another.
//         Means and variances go through their elements twice,
//         the second time from registers or the L1
// Moves   every element once
// Limit   memory reads
// Watch   threads without a sequence take the last one, and store nothing
// Source  lib/bits/order.hpp; reduce/columns.cuh
#pragma once

#include "../reduce/by_fold.cuh"
#include "../reduce/columns.cuh"
#include "sums.hpp"

namespace lockstep::cuda {

// Of at most `most` elements, a power of two: enter(acc, x, y) takes one of each array into its lane.
template <int most, bool two, class E, class Enter>
__device__ __forceinline__ double sum_of_short_column(const E* x, int64_t stride, const E* y, int64_t y_stride, int n,
                                                      const Enter& enter) {
  E a[most], b[two ? most : 1];
#pragma unroll
  for (int k = 0; k < most; ++k) {
    a[k] = x[min(k, n - 1) * stride];
    if constexpr (two) b[k] = y[min(k, n - 1) * y_stride];
  }
  double lane[most];
#pragma unroll
  for (int k = 0; k < most; ++k)
    lane[k] = k < n ? enter(-0.0, widened(a[k]), two ? widened(b[two ? k : 0]) : 0.0) : -0.0;
  join_down<most>(float_sum<E, false>{}, lane);
  return lane[0];
}

// A fold has
//   short_column(d, s, n)   the value of sequence s of at most short_column_elements
//   short_column_blocks     per SM
template <class Fold>
__global__ __launch_bounds__(sum_threads, Fold::short_column_blocks) void sums_of_short_columns(const term_sums d) {
  const int64_t s = int64_t{blockIdx.x} * sum_threads + threadIdx.x;
  follow_on();
  const auto value = Fold::short_column(d, min(s, d.count - 1), static_cast<int>(d.length));
  if (s < d.count) Fold::store(d, s, value, d.length);
}

// The limits of reduce's short_columns.
template <class Fold>
bool are_short_columns(const lockstep_queue& queue, const term_sums& d) {
  const reduction_tuning& tuned = queue.facts->tuned.reductions;
  return lie_side_by_side(d) && d.length <= Fold::short_column_elements &&
         (d.length <= tuned.shortest_column || d.count >= queue.facts->processors * tuned.short_columns);
}

template <class Fold>
lockstep_status launch_short_columns(const lockstep_queue& queue, const term_sums& d) {
  return launch_soon(queue, "sums_of_short_columns", sums_of_short_columns<Fold>, blocks_for(d.count, sum_threads),
                     sum_threads, 0, d);
}

}  // namespace lockstep::cuda
