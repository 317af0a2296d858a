// exponentials_long.cuh - rows of exponentials that no block can hold, read three times: for their extremes, for their
// sums, for their results.
//
//   exponentials_extremes   one warp per leaf: its extreme, and h where a residual is added
//   exponentials_centre     one block per row: the extreme of all its leaves
//   exponentials_sums       one warp per leaf: the sum of its exponentials
//   exponentials_join       one block per row: the tree above its leaves, and what results take, or the one result
//   exponentials_apply      one warp per leaf: results
//
// Moves   every element three times in and once out; 24 bytes per leaf
// Limit   memory
// Watch   where sum is src or residual, later passes find h there
// Source  lib/bits/functions.hpp, lib/bits/order.hpp
#pragma once

#include "exponentials.cuh"
#include "long.cuh"

namespace lockstep::cuda {

template <class E>
__global__ __launch_bounds__(long_threads) void exponentials_extremes(const exponential_rows d, compared<E>* extremes) {
  const int t = threadIdx.x % 32;
  const leaf_of_row at(d);
  if (at.row >= d.count) return;
  const bool negated = d.scale < 0;
  quad<E> h[16];
  load_h<E, 16>(d, at.row, at.first, at.n, t, 32, false, true, h);
  const compared<E> most = largest_of_group(largest_of(h, negated), 32);
  if (t == 0) extremes[at.row * order::leaves(d.length) + at.leaf] = most;
}

template <class E>
__global__ __launch_bounds__(long_threads) void exponentials_centre(const exponential_rows d,
                                                                    const compared<E>* extremes, spread* found) {
  __shared__ compared<E> of_warps[long_threads / 32];
  const int64_t leaves = order::leaves(d.length);
  for (int64_t row = blockIdx.x; row < d.count; row += gridDim.x) {
    const compared<E>* const of_row = extremes + row * leaves;
    compared<E> most = of_row[min(int64_t{threadIdx.x}, leaves - 1)];
    for (int64_t k = threadIdx.x; k < leaves; k += long_threads) most = larger(most, of_row[k]);
    most = largest_of_group(most, 32);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = most;
    __syncthreads();  // thread 0 reads every warp's
    if (threadIdx.x == 0) {
      for (const compared<E> other : of_warps) most = larger(most, other);
      found[row].mean = d.scale < 0 ? -most : most;
    }
    __syncthreads();  // the next row's come after thread 0 has read these
  }
}

template <class E>
__global__ __launch_bounds__(long_threads) void exponentials_sums(const exponential_rows d, const spread* found,
                                                                  double* values) {
  const int t = threadIdx.x % 32;
  const leaf_of_row at(d);
  if (at.row >= d.count) return;
  const double m = found[at.row].mean;
  quad<E> h[16];
  load_h<E, 16>(d, at.row, at.first, at.n, t, 32, d.sum != nullptr, false, h);
  fill_missing(h, at.n, t, 32, d.scale < 0);
  double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
#pragma unroll
  for (int r = 0; r < 16; ++r) {
    double e[4];
    exponentials_of(h[r], m, d.scale, false, e);
#pragma unroll
    for (int j = 0; j < 4; ++j) lane[0][j] = __dadd_rn(lane[0][j], e[j]);
  }
  join_rows<4>(sum_fold{}, lane, sum, t, 32);
  if (t == 0) values[at.row * order::leaves(d.length) + at.leaf] = sum[0];
}

template <class E>
__global__ __launch_bounds__(long_threads) void exponentials_join(const exponential_rows d, const double* values,
                                                                  spread* found) {
  __shared__ double subtrees[long_threads];
  const int64_t leaves = order::leaves(d.length);
  for (int64_t row = blockIdx.x; row < d.count; row += gridDim.x) {
    const double total = tree_of_block<long_threads>(values + row * leaves, leaves, subtrees);
    if (threadIdx.x == 0) {
      const double m = found[row].mean, part = part_of(d, m, total);
      found[row].divisor = part;
      if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || d.kind == LOCKSTEP_NORMALIZE_PICKED) store_one<E>(d, row, m, part);
    }
    __syncthreads();  // the next row's subtrees come after thread 0 has read these
  }
}

template <class E, bool same>
__global__ __launch_bounds__(long_threads) void exponentials_apply(const exponential_rows d, const spread* found) {
  const int t = threadIdx.x % 32;
  const leaf_of_row at(d);
  if (at.row >= d.count) return;
  const spread s = found[at.row];
  quad<E> h[16];
  load_h<E, 16>(d, at.row, at.first, at.n, t, 32, d.sum != nullptr, false, h);
#pragma unroll
  for (int r = 0; r < 16; ++r) {
    double y[4];
    if (d.kind == LOCKSTEP_NORMALIZE_SOFTMAX) {
      exponentials_of(h[r], s.mean, d.scale, false, y);
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(y[j], s.divisor);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dsub_rn(below(h[r], j, s.mean, d.scale), s.divisor);
    }
    store_results<E, same>(d, at.row * d.dst_stride + at.first, (r * 32 + t) * 4, at.n, y);
  }
}

}  // namespace lockstep::cuda
