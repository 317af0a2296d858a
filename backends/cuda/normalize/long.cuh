// long.cuh - rows that no block can hold: read once for their sums, once more for their results.
//
//   normalize_leaves   one warp per leaf: its value, and h where a residual is added
//   normalize_join     one block per row: the tree above its leaves, and the divisor
//   normalize_again    one block per row, for the norms of F64 that leave the range of a double
//   normalize_apply    one warp per leaf: results
//
// Moves   every element twice in and once out; 24 bytes per leaf
// Limit   memory
// Watch   where sum is src or residual, the second pass finds h there
// Source  lib/bits/order_rows.hpp
#pragma once

#include "rows.cuh"

namespace lockstep::cuda {

constexpr int long_threads = 256;

// Where a warp of the grid works.
struct leaf_of_row {
  int64_t row, leaf, first;
  int n;
  __device__ __forceinline__ explicit leaf_of_row(const normalized_rows& d) {
    const int64_t leaves = order::leaves(d.length);
    const int64_t at = int64_t{blockIdx.x} * (long_threads / 32) + threadIdx.x / 32;
    row = at / leaves;
    leaf = at - row * leaves;
    first = leaf * order::leaf;
    n = static_cast<int>(min(d.length - first, order::leaf));
  }
};

template <class E, class P>
__global__ __launch_bounds__(long_threads) void normalize_leaves(const normalized_rows d, P* values) {
  const int t = threadIdx.x % 32;
  const leaf_of_row at(d);
  if (at.row >= d.count) return;
  quad<E> h[1][16];
  load_h<E, 16>(d, at.row, at.first, at.n, t, 32, false, true, h[0]);
  P value[1];
  if constexpr (std::is_same_v<P, order::moments>)
    moments_of(h, at.n, t, 32, value);
  else
    squares_of(h, at.n, t, 32, value);
  if (t == 0) values[at.row * order::leaves(d.length) + at.leaf] = value[0];
}

template <class P>
__global__ __launch_bounds__(long_threads) void normalize_join(const normalized_rows d, const P* values, spread* found,
                                                               double* plain) {
  __shared__ P subtrees[long_threads];
  const int64_t leaves = order::leaves(d.length);
  for (int64_t row = blockIdx.x; row < d.count; row += gridDim.x) {
    const P total = tree_of_block<long_threads>(values + row * leaves, leaves, subtrees);
    if (threadIdx.x == 0) {
      found[row] = spread_of(d, total);
      if constexpr (std::is_same_v<P, double>)
        if (plain != nullptr) plain[row] = total;
    }
    __syncthreads();  // the next row's subtrees come after thread 0 has read these
  }
}

// Only norms of F64 come here; nearly all of them have nothing to do.
template <class E>
__global__ __launch_bounds__(long_threads) void normalize_again(const normalized_rows d, double* values, spread* found,
                                                                const double* plain) {
  __shared__ double subtrees[long_threads];
  __shared__ uint64_t most_of_warps[long_threads / 32];
  const int64_t leaves = order::leaves(d.length);
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int64_t row = blockIdx.x; row < d.count; row += gridDim.x) {
    if (!norm_sum::needs_again(plain[row])) continue;
    const auto h_at = [&](int64_t i) {
      if (d.sum != nullptr) return static_cast<const double*>(d.sum)[row * d.sum_stride + i];
      const double x = static_cast<const double*>(d.src)[row * d.src_stride + i];
      if (d.residual == nullptr) return x;
      return __dadd_rn(x, static_cast<const double*>(d.residual)[row * d.residual_stride + i]);
    };
    uint64_t most = 0;
    for (int64_t i = threadIdx.x; i < d.length; i += long_threads)
      most = max(most, static_cast<uint64_t>(__double_as_longlong(h_at(i))) & 0x7FFFFFFFFFFFFFFFu);
    for (int mask = 16; mask >= 1; mask /= 2) most = max(most, from_xor(most, mask));
    if (t == 0) most_of_warps[warp] = most;
    __syncthreads();  // all read every warp's
    for (int k = 0; k < long_threads / 32; ++k) most = max(most, most_of_warps[k]);
    if (order::needs_rescale(plain[row], __longlong_as_double(static_cast<int64_t>(most)))) {
      const int e = order::rescale_exponent(most);
      const double down = scaled_sum::power_of_two(-e);
      for (int64_t leaf = warp; leaf < leaves; leaf += long_threads / 32) {
        const int64_t first = leaf * order::leaf;
        const int n = static_cast<int>(min(d.length - first, order::leaf));
        double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
        for (int r = 0; r < order::rows; ++r)
          for (int j = 0; j < 4; ++j) {
            const int i = r * order::lanes + 4 * t + j;
            if (i >= n) continue;
            const double scaled = __dmul_rn(h_at(first + i), down);
            lane[0][j] = __fma_rn(scaled, scaled, lane[0][j]);
          }
        join_rows<4>(sum_fold{}, lane, sum, t, 32);
        if (t == 0) values[row * leaves + leaf] = sum[0];
      }
      __syncthreads();  // the tree reads every warp's leaves
      const double scaled = tree_of_block<long_threads>(values + row * leaves, leaves, subtrees);
      if (threadIdx.x == 0) found[row] = spread_of_norm(d, __dmul_rn(__dsqrt_rn(scaled), scaled_sum::power_of_two(e)));
    }
    __syncthreads();  // the next row's words come after these have been read
  }
}

template <class E, bool layer, bool same>
__global__ __launch_bounds__(long_threads) void normalize_apply(const normalized_rows d, const spread* found) {
  const int t = threadIdx.x % 32;
  const leaf_of_row at(d);
  if (at.row >= d.count) return;
  quad<E> h[1][16];
  load_h<E, 16>(d, at.row, at.first, at.n, t, 32, d.sum != nullptr, false, h[0]);
  const spread s = found[at.row];
  const double mean[1] = {s.mean}, scale[1] = {scale_of<E>(s.divisor)};
  write_rows<E, layer, same>(d, h, at.row, 1, at.first, at.n, t, 32, mean, scale);
}

}  // namespace lockstep::cuda
