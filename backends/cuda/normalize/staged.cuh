// staged.cuh - rows that a block holds in shared memory: one read, one write.
//
// Idea    One warp per leaf, so that sums have the fixed order's shape as they are; the leaves of a row are one block's
//         warps and exchange their values once. Each thread finds its own quads again where it has put them, so that
//         loops over a leaf's rows stay loops: unrolled, as registers would need, they were ten thousand instructions,
//         and registers for few warps
// Moves   every element once in and once out
// Limit   instructions for 16-bit elements, else memory
// Watch   in place: all of a row is in shared memory before its first result is written
// Source  lib/bits/order_rows.hpp
#pragma once

#include "float_results.cuh"
#include "leaf_in_shared.cuh"

namespace lockstep::cuda {

template <class E>
constexpr int held_leaves = sizeof(E) == 8 ? 8 : 16;  // of a row

// Elements [first, first + n) of a row: h = x, or x + residual, which goes to sum.
template <class E>
__device__ __forceinline__ void stage_h(const normalized_rows& d, int64_t row, int64_t first, int n, int t,
                                        const staged_leaf<E>& h) {
  stage(h, static_cast<const E*>(d.src) + row * d.src_stride + first, n, t, d.whole_src, 1);
  if (d.residual == nullptr) return;
  const auto* residual = static_cast<const E*>(d.residual) + row * d.residual_stride + first;
  auto* sum = static_cast<E*>(d.sum) + row * d.sum_stride + first;
#pragma unroll 1
  for (int r0 = 0; r0 < h.rows; r0 += step_rows) {
    quad<E> more[step_rows];
    load_quads(residual, (r0 * 32 + t) * 4, order::lanes, n, d.whole_residual, 1, more);
#pragma unroll
    for (int r = 0; r < step_rows; ++r) {
      if (r0 + r >= h.rows) break;
      const quad<E> both = sum_of(h.get(r0 + r), more[r]);
      h.put(r0 + r, both);
      if (d.sum != nullptr) store_quad(sum, ((r0 + r) * 32 + t) * 4, n, d.whole_sum, both);
    }
  }
}

// A leaf's sum, in every thread: enter(acc, q, j) takes element j of a quad into its lane.
template <class E, class Enter>
__device__ __forceinline__ double staged_sum(const staged_leaf<E>& h, int n, int t, const Enter& enter) {
  double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
  const int full = n / order::lanes;
#pragma unroll 4
  for (int r = 0; r < full; ++r) {
    const quad<E> q = h.get(r);
#pragma unroll
    for (int j = 0; j < 4; ++j) lane[0][j] = enter(lane[0][j], q, j);
  }
  const int left = n - (full * 32 + t) * 4;
  if (left > 0) {
    const quad<E> q = h.get(full);
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j < left) lane[0][j] = enter(lane[0][j], q, j);
  }
  join_rows<4>(sum_fold{}, lane, sum, t, 32);
  return sum[0];
}

// Results of elements [first, first + n) of a row. W: the type of weight and bias. whole: all quads are.
template <class E, class W, bool layer, bool same, bool weighed, bool biased, bool whole>
__device__ __forceinline__ void write_terms(const normalized_rows& d, const staged_leaf<E>& h, int64_t row,
                                            int64_t first, int n, int t, double mean, double scale) {
  [[maybe_unused]] const float_scales in_float = scales_in_float(layer ? mean : 0.0, scale);
  const W* const weights = opaque(static_cast<const W*>(d.weight) + first);
  const W* const biases = opaque(static_cast<const W*>(d.bias) + first);
  [[maybe_unused]] E* const dst = opaque(static_cast<E*>(d.dst) + row * d.dst_stride + first);
  constexpr int rows_at_once = 2;  // four with their weights do not fit 64 registers
  constexpr bool in_16_bits = same && sizeof(E) == 2;
  quad<W> weight[rows_at_once], bias[rows_at_once];
  quad<E> q[rows_at_once];
  [[maybe_unused]] quad<E> out[rows_at_once];
  const auto load = [&](int r0, int at) {
    if constexpr (weighed) load_columns(weights, whole || d.whole_weight, at, order::lanes, n, weight);
    if constexpr (biased) load_columns(biases, whole || d.whole_weight, at, order::lanes, n, bias);
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r) q[r] = h.get(r0 + r);
  };
  [[maybe_unused]] const auto store = [&](int at) {
#pragma unroll
    for (int r = 0; r < rows_at_once; ++r) store_quad(dst, at + r * order::lanes, n, whole || d.whole_dst, out[r]);
  };
  [[maybe_unused]] uint32_t doubted = 0;  // bit r: rows of lanes from r on
#pragma unroll 1
  for (int r0 = 0; r0 < h.rows; r0 += rows_at_once) {
    const int at = (r0 * 32 + t) * 4;
    load(r0, at);
    if constexpr (in_16_bits) {
      if (!quads_by_float<E, W, layer, weighed, biased>(in_float, q, weight, bias, out)) doubted |= 1u << r0;
      store(at);
    } else {
#pragma unroll
      for (int r = 0; r < rows_at_once; ++r) {
        const int i = at + r * order::lanes;
        double y[4];
        results_by_double<E, W, layer, weighed, biased>(q[r], weight[r], bias[r], mean, scale, y);
        if constexpr (same)
          store_quad(dst, i, n, whole || d.whole_dst, rounded_quad<E>(y));
        else
          store_results<E, same>(d, row * d.dst_stride + first, i, n, y);
      }
    }
  }
  // What is in doubt is written again, and not between the others, which would be code to jump over for each.
  if constexpr (in_16_bits) {
#pragma unroll 1
    for (; doubted != 0; doubted &= doubted - 1) {
      const int r0 = __ffs(static_cast<int>(doubted)) - 1, at = (r0 * 32 + t) * 4;
      load(r0, at);
      quads_of_results<E, W, layer, weighed, biased>(in_float, q, weight, bias, mean, scale, out);
      store(at);
    }
  }
}

template <class E, class W, bool layer, bool same, bool whole>
__device__ __forceinline__ void write_by_terms(const normalized_rows& d, const staged_leaf<E>& h, int64_t row,
                                               int64_t first, int n, int t, double mean, double scale) {
  if (d.bias == nullptr && d.weight == nullptr)
    write_terms<E, W, layer, same, false, false, whole>(d, h, row, first, n, t, mean, scale);
  else if (d.bias == nullptr)
    write_terms<E, W, layer, same, true, false, whole>(d, h, row, first, n, t, mean, scale);
  else if (d.weight == nullptr)
    write_terms<E, W, layer, same, false, true, whole>(d, h, row, first, n, t, mean, scale);
  else
    write_terms<E, W, layer, same, true, true, whole>(d, h, row, first, n, t, mean, scale);
}
template <class E, class W, bool layer, bool same>
__device__ __forceinline__ void write_staged(const normalized_rows& d, const staged_leaf<E>& h, int64_t row,
                                             int64_t first, int n, int t, double mean, double scale) {
  if (same && d.whole_dst && d.whole_weight)
    write_by_terms<E, W, layer, same, true>(d, h, row, first, n, t, mean, scale);
  else
    write_by_terms<E, W, layer, same, false>(d, h, row, first, n, t, mean, scale);
}

// By one block. warps_a_row: more than one only where those are all of the block. rows_a_leaf: what a warp has room
// for.
template <class E, class P, bool same>
__device__ __forceinline__ void staged_rows_of(const normalized_rows& d, const int warps_a_row, const int rows_a_leaf,
                                               const int64_t block) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  extern __shared__ uint4 room[];
  __shared__ P values[held_leaves<E>];
  [[maybe_unused]] __shared__ uint64_t most_of_warps[held_leaves<E>];
  [[maybe_unused]] __shared__ double scaled_of_warps[held_leaves<E>];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, leaf = warp % warps_a_row;
  const int64_t row = block * (blockDim.x / 32 / warps_a_row) + warp / warps_a_row;
  if (row >= d.count) return;  // a whole block's rows, or a warp that waits for nobody
  const int64_t first = int64_t{leaf} * order::leaf;
  const int n = static_cast<int>(min(d.length - first, order::leaf));
  const int rows = staged_rows(n);
  const staged_leaf<E> h{reinterpret_cast<quad<E>*>(room) + warp * rows_a_leaf * 32 + t, rows};
  stage_h(d, row, first, n, t, h);

  P total;
  if constexpr (layer) {
    [[maybe_unused]] float other = 0.0f;  // NaN where an element is not finite
    double sum = staged_sum(h, n, t, [&](double acc, const quad<E>& q, int j) {
      if constexpr (sizeof(E) == 4) other = __fmaf_rn(narrow_value(q, j), 0.0f, other);
      return plus_finite(acc, q, j);
    });
    if constexpr (sizeof(E) == 4)
      if (__any_sync(all_lanes, other != other)) sum = __longlong_as_double(static_cast<int64_t>(order::nan_f64));
    const double mean = __ddiv_rn(sum, static_cast<double>(n));
    const double squares = staged_sum(h, n, t, [mean](double acc, const quad<E>& q, int j) {
      const double off = plus_finite(-mean, q, j);
      return __fma_rn(off, off, acc);
    });
    total = {static_cast<double>(n), sum, squares, 0.0};
    if constexpr (sizeof(E) == 8)
      total.equal = equal_of(value(h.get(0), 0), mean, t, 32, [&](double x) {
        bool all = true;
        for (int r = 0; r < h.rows; ++r) {
          const quad<E> q = h.get(r);
#pragma unroll
          for (int j = 0; j < 4; ++j) all = all && ((r * 32 + t) * 4 + j >= n || value(q, j) == x);
        }
        return all;
      });
  } else {
    total = staged_sum(h, n, t, [](double acc, const quad<E>& q, int j) {
      const double x = value(q, j);
      return __fma_rn(x, x, acc);
    });
  }
  if (warps_a_row > 1) {
    if (t == 0) values[leaf] = total;
    __syncthreads();  // every warp reads all leaves' values
    total = tree_of_warp(values[min(t, warps_a_row - 1)], warps_a_row, t);
  }
  const spread found = spread_of(d, total);
  double scale = scale_of<E>(found.divisor);

  if constexpr (std::is_same_v<E, double> && !layer) {
    // The warps of a block have one row, so all of them go this way or none.
    if (d.kind == LOCKSTEP_NORMALIZE_L2 && norm_sum::needs_again(total)) {
      uint64_t most = 0;
#pragma unroll 1
      for (int r = 0; r < rows; ++r) {
        const quad<E> q = h.get(r);
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if ((r * 32 + t) * 4 + j < n)
            most = max(most, static_cast<uint64_t>(__double_as_longlong(value(q, j))) & 0x7FFFFFFFFFFFFFFFu);
      }
      for (int mask = 16; mask >= 1; mask /= 2) most = max(most, from_xor(most, mask));
      if (warps_a_row > 1) {
        if (t == 0) most_of_warps[leaf] = most;
        __syncthreads();  // every warp reads all warps' largest magnitudes
        most = t < warps_a_row ? most_of_warps[t] : 0;
        for (int mask = 16; mask >= 1; mask /= 2) most = max(most, from_xor(most, mask));
      }
      if (order::needs_rescale(total, __longlong_as_double(static_cast<int64_t>(most)))) {
        const int e = order::rescale_exponent(most);
        const double down = scaled_sum::power_of_two(-e);
        double sum = staged_sum(h, n, t, [down](double acc, const quad<E>& q, int j) {
          const double scaled = __dmul_rn(value(q, j), down);
          return __fma_rn(scaled, scaled, acc);
        });
        if (warps_a_row > 1) {
          if (t == 0) scaled_of_warps[leaf] = sum;
          __syncthreads();  // every warp reads all leaves' scaled sums
          sum = tree_of_warp(scaled_of_warps[min(t, warps_a_row - 1)], warps_a_row, t);
        }
        scale = spread_of_norm(d, __dmul_rn(__dsqrt_rn(sum), scaled_sum::power_of_two(e))).divisor;
      }
    }
  }
  if constexpr (!std::is_same_v<E, float>) {
    if (d.f32_weight) {
      write_staged<E, float, layer, same>(d, h, row, first, n, t, found.mean, scale);
      return;
    }
  }
  write_staged<E, E, layer, same>(d, h, row, first, n, t, found.mean, scale);
}

template <class E, class P, bool same>
__global__ __launch_bounds__(held_leaves<E> * 32, sizeof(E) == 8 ? 2
                                                                 : 2048 / 32 / held_leaves<E> /
                                                                       2) void normalize_staged(const normalized_rows d,
                                                                                                const int warps_a_row,
                                                                                                const int rows_a_leaf) {
  follow_on();
  staged_rows_of<E, P, same>(d, warps_a_row, rows_a_leaf, blockIdx.x);
}

}  // namespace lockstep::cuda
