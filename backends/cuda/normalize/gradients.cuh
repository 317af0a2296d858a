// gradients.cuh - the gradients of RMS and LAYER: of the rows, of weight, of bias.
//
//   gradient_short    rows of up to 512 elements: a group of threads takes a lane of the columns' order
//   gradient_lanes    longer ones that a block holds: four warps per leaf, a lane of the columns' order a block
//   gradient_leaves   rows of any length: one warp per leaf; its sums
//   gradient_join     one block per row: the tree above its leaves, and what its results take
//   gradient_columns  one thread per column of one lane's rows: results
//   gradient_sums     a leaf of a column: its 128 lanes joined
//   gradient_totals   a column: the tree above its leaves
//
// Idea    A lane of a column's sum is 16 rows, 128 apart. Who has a lane's rows one after the other adds their terms in
//         registers, so that rows are read once and only a sixteenth of the products is ever written. gradient_lanes
//         brings the next row to shared memory while it works on one
// Moves   src and gradient once in, dst once out, rows of any length twice in; 8 bytes a column for 16 rows, out and in
// Limit   memory; registers: 16 columns per thread, a double each for weight and bias
// Watch   in place: all of a row is in registers or shared memory before its first result is written
// Source  lib/bits/order.hpp, lockstep.h
#pragma once

#include "../stencil/async.cuh"
#include "gradients.hpp"
#include "rows.cuh"

namespace lockstep::cuda {

struct gradient_rows : normalized_rows {
  const void* gradient;
  int64_t gradient_stride;
  bool whole_gradient;
  double *of_weight, *of_bias;  // sums of lanes, `length` apart; NULL: not wanted
};
template <class P>
__device__ __forceinline__ gradient_terms<P> joined(const gradient_terms<P>& x, const gradient_terms<P>& y) {
  return x + y;
}

__device__ __forceinline__ gradient_row gradient_row_of(const normalized_rows& d, double squares, double a, double b,
                                                        double mean, double pivot) {
  const double n = static_cast<double>(d.length);
  const double scale = __drcp_rn(__dsqrt_rn(__dadd_rn(__ddiv_rn(squares, n), d.eps)));
  return {mean, scale, __ddiv_rn(a, n), __ddiv_rn(__dmul_rn(__fma_rn(__dsub_rn(pivot, mean), a, b), scale), n)};
}
__device__ __forceinline__ gradient_row gradient_row_of(const normalized_rows& d, const gradient_terms<double>& s,
                                                        double) {
  return gradient_row_of(d, s.of_row, 0, s.b, 0, 0);
}
__device__ __forceinline__ gradient_row gradient_row_of(const normalized_rows& d,
                                                        const gradient_terms<order::moments>& s, double pivot) {
  return gradient_row_of(d, s.of_row.squares(), s.a, s.b, s.of_row.mean(), pivot);
}

// t of an element, and its result.
__device__ __forceinline__ double normalized(const gradient_row& f, double h) {
  return __dmul_rn(__dsub_rn(h, f.mean), f.scale);
}
__device__ __forceinline__ double gradient_of(const gradient_row& f, double t, double u) {
  return __dmul_rn(__fma_rn(-t, f.b, __dsub_rn(u, f.a)), f.scale);
}

// The rows of a lane of the columns' order: 128 apart. Lanes are numbered through all leaves.
struct rows_of_lane {
  int64_t first;
  int count;
  __device__ __forceinline__ rows_of_lane(int64_t rows, int64_t lane) {
    const int64_t leaf = lane / order::lanes, within = lane % order::lanes;
    first = leaf * order::leaf + within;
    count = static_cast<int>((min(rows - leaf * order::leaf, order::leaf) - within + order::lanes - 1) / order::lanes);
  }
  __device__ __forceinline__ int64_t row(int k) const { return first + int64_t{k} * order::lanes; }
};

// A weight waits as a float where that holds it.
template <class E>
using kept_weight = std::conditional_t<sizeof(E) == 8, double, float>;
template <class E>
__device__ __forceinline__ kept_weight<E> weight_at(const normalized_rows& d, int64_t i) {
  if (d.weight == nullptr) return 1;
  if constexpr (!std::is_same_v<E, float>)
    if (d.f32_weight) return __ldg(static_cast<const float*>(d.weight) + i);
  return static_cast<kept_weight<E>>(widened(static_cast<const E*>(d.weight)[i]));
}
// x + residual, rounded to E.
template <class E>
__device__ __forceinline__ E with_residual(E x, E residual) {
  return rounded_to<E>::of(__dadd_rn(widened(x), widened(residual)));
}
template <class E>
__device__ __forceinline__ E h_at(const normalized_rows& d, int64_t row, int64_t i) {
  const E x = static_cast<const E*>(d.src)[row * d.src_stride + i];
  if (d.residual == nullptr) return x;
  return with_residual(x, static_cast<const E*>(d.residual)[row * d.residual_stride + i]);
}

// ---- short rows ------------------------------------------------------------------------
constexpr int gradient_threads = 128;  // of a block
constexpr int64_t gradient_short_length = 512;

// sums_of where a term is worked out from several arrays: enter(acc, b, r, j).
template <int R, int S, class Enter>
__device__ __forceinline__ void terms_of(int n, int t, int threads, double (&sum)[S], const Enter& enter) {
  double lane[S][4];
#pragma unroll
  for (int b = 0; b < S; ++b)
#pragma unroll
    for (int j = 0; j < 4; ++j) lane[b][j] = -0.0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int left = n - (r * threads + t) * 4;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j < left)
#pragma unroll
        for (int b = 0; b < S; ++b) lane[b][j] = enter(lane[b][j], b, r, j);
  }
  join_rows<4>(sum_fold{}, lane, sum, t, threads);
}

template <class E, bool layer, int R, int S>
__global__ __launch_bounds__(gradient_threads, 4) void gradient_short(const gradient_rows d, const int threads,
                                                                      const int64_t lanes) {
  using P = std::conditional_t<layer, order::moments, double>;
  const int in_warp = threadIdx.x % 32, t = in_warp % threads, n = static_cast<int>(d.length);
  const int64_t first_of_warp = (int64_t{blockIdx.x} * gradient_threads + threadIdx.x - in_warp) / threads;
  const int64_t mine = first_of_warp + in_warp / threads;
  follow_on();
  if (first_of_warp >= lanes) return;
  const rows_of_lane rows(d.count, min(mine, lanes - 1));
  const int turns = rows_of_lane(d.count, first_of_warp).count;  // no lane further on has more rows
  kept_weight<E> weight[R][4];
  double of_weight[R][4], of_bias[R][4];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      weight[r][j] = weight_at<E>(d, min((r * threads + t) * 4 + j, n - 1));
      of_weight[r][j] = of_bias[r][j] = -0.0;
    }
#pragma unroll 1
  for (int k = 0; k < turns; k += S) {
    quad<E> h[S][R], g[S][R];
#pragma unroll
    for (int b = 0; b < S; ++b) {
      const int64_t row = rows.row(min(k + b, rows.count - 1));
      load_h<E, R>(d, row, 0, n, t, threads, false, false, h[b]);
      load_quads(static_cast<const E*>(d.gradient) + row * d.gradient_stride, t * 4, threads * 4, n, d.whole_gradient,
                 1, g[b]);
    }
    double pivot[S], a[S] = {}, sum[S];
    P of_row[S];
#pragma unroll
    for (int b = 0; b < S; ++b) pivot[b] = layer ? from_thread(value(h[b][0], 0), in_warp - t) : 0.0;
    if constexpr (layer) {
      moments_of(h, n, t, threads, of_row);
      terms_of<R>(n, t, threads, a, [&](double acc, int b, int r, int j) {
        return __dadd_rn(acc, __dmul_rn(value(g[b][r], j), weight[r][j]));
      });
    } else {
      squares_of(h, n, t, threads, of_row);
    }
    terms_of<R>(n, t, threads, sum, [&](double acc, int b, int r, int j) {
      const double x = value(h[b][r], j);
      return __fma_rn(__dmul_rn(value(g[b][r], j), weight[r][j]), layer ? __dsub_rn(x, pivot[b]) : x, acc);
    });
    // A group's threads share its S roots and quotients: thread b does row b's.
    gradient_terms<P> terms{of_row[0], a[0], sum[0]};
    double pivot_of_mine = pivot[0];
#pragma unroll
    for (int b = 1; b < S; ++b)
      if (t % S == b) terms = {of_row[b], a[b], sum[b]}, pivot_of_mine = pivot[b];
    const gradient_row found = gradient_row_of(d, terms, pivot_of_mine);
#pragma unroll
    for (int b = 0; b < S; ++b) {
      const gradient_row f = S == 1 ? found : from_thread(found, in_warp - t + b);
      const bool there = mine < lanes && k + b < rows.count;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        double y[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const double x = value(g[b][r], j), normal = normalized(f, value(h[b][r], j));
          y[j] = gradient_of(f, normal, __dmul_rn(x, weight[r][j]));
          if (there) {
            of_weight[r][j] = __fma_rn(x, normal, of_weight[r][j]);
            of_bias[r][j] = __dadd_rn(of_bias[r][j], x);
          }
        }
        if (there)
          store_quad(static_cast<E*>(d.dst) + rows.row(k + b) * d.dst_stride, (r * threads + t) * 4, n, d.whole_dst,
                     rounded_quad<E>(y));
      }
    }
  }
  if (mine >= lanes) return;
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (const int i = (r * threads + t) * 4 + j; i < n) {
        if (d.of_weight != nullptr) d.of_weight[mine * n + i] = of_weight[r][j];
        if (d.of_bias != nullptr) d.of_bias[mine * n + i] = of_bias[r][j];
      }
}

// ---- rows that a block holds --------------------------------------------------------------
// A leaf is four warps', a lane of it one thread's.
template <class E>
constexpr int gradient_leaves_held = sizeof(E) == 8 ? 2 : 4;

// N sums of each leaf, in every thread's reach: warp q of a leaf joins the lanes of sum q.
template <int N, int Q, int leaves>
__device__ __forceinline__ void join_leaves(const double (&lane)[N], double (&room)[Q][leaves][order::lanes],
                                            double (&total)[N][leaves]) {
  const int t = threadIdx.x % order::lanes, leaf = threadIdx.x / order::lanes;
#pragma unroll
  for (int q = 0; q < N; ++q) room[q][leaf][t] = lane[q];
  __syncthreads();  // warps read all lanes of a leaf
  if (const int q = t / 32; q < N) {
    const double* at = room[q][leaf] + t % 32;
    double sum = __dadd_rn(__dadd_rn(at[0], at[64]), __dadd_rn(at[32], at[96]));
    for (int mask = 16; mask >= 1; mask /= 2) sum = __dadd_rn(sum, from_xor(sum, mask));
    if (t % 32 == 0) total[q][leaf] = sum;
  }
  __syncthreads();  // threads read all leaves' totals
}

// Leaves of a block: of rows of fewer than 16 rows of lanes one.
template <class E, int R>
constexpr int leaves_of_block = R < order::rows ? 1 : gradient_leaves_held<E>;

// R: rows of lanes that a leaf has.
template <class E, bool layer, int R>
__global__ __launch_bounds__(leaves_of_block<E, R>* order::lanes,
                             R < order::rows ? 4 : 1) void gradient_lanes(const gradient_rows d, const int stages) {
  constexpr int L = leaves_of_block<E, R>, Q = layer ? 3 : 2;
  using P = std::conditional_t<layer, order::moments, double>;
  __shared__ double room[Q][L][order::lanes], total[Q][L];
  [[maybe_unused]] __shared__ double sum[1][L], first_of_leaf[L];
  [[maybe_unused]] __shared__ bool differs[L];  // whether elements of F64 are not all the leaf's first (order_rows.hpp)
  __shared__ gradient_row found;
  extern __shared__ uint4 rows_and_weights[];
  const int leaf = threadIdx.x / order::lanes, leaves = blockDim.x / order::lanes;
  const int columns = leaves * R * order::lanes;
  const int begin = leaf * static_cast<int>(order::leaf) + threadIdx.x % order::lanes;  // this thread's first column
  const int n = static_cast<int>(min(d.length - leaf * order::leaf, order::leaf));      // of its leaf
  const int left = n - static_cast<int>(threadIdx.x % order::lanes);  // columns r * 128 below this are there
  auto* const weights = reinterpret_cast<double*>(rows_and_weights);
  double* const weight = weights + begin;
  E* const staged = reinterpret_cast<E*>(weights + columns);
  const rows_of_lane rows(d.count, blockIdx.x);
  // Of rows that are not whole quads each thread copies its own columns.
  const auto bring = [&](int64_t row, E* to) {
    const E* const src = static_cast<const E*>(d.src) + row * d.src_stride;
    const E* const gradient = static_cast<const E*>(d.gradient) + row * d.gradient_stride;
    if (d.whole_src && d.whole_gradient) {
      constexpr int bytes = sizeof(E) == 2 ? 8 : 16, chunk = bytes / static_cast<int>(sizeof(E));
#pragma unroll 4
      for (int i = static_cast<int>(threadIdx.x) * chunk; i < static_cast<int>(d.length);
           i += static_cast<int>(blockDim.x) * chunk) {
        stencil::copy_async<bytes>(static_cast<uint32_t>(__cvta_generic_to_shared(to + i)), src + i);
        stencil::copy_async<bytes>(static_cast<uint32_t>(__cvta_generic_to_shared(to + columns + i)), gradient + i);
      }
    } else {
      constexpr int overlapped = sizeof(E) == 2 ? 8 : 1;  // loads; copies do without registers
#pragma unroll overlapped
      for (int r = 0; r < R; ++r) {
        const int i = begin + min(r * order::lanes, left - 1);
        E* const own = to + begin + r * order::lanes;
        if constexpr (sizeof(E) == 2) {
          own[0] = src[i], own[columns] = gradient[i];
        } else {
          stencil::copy_async<sizeof(E)>(static_cast<uint32_t>(__cvta_generic_to_shared(own)), src + i);
          stencil::copy_async<sizeof(E)>(static_cast<uint32_t>(__cvta_generic_to_shared(own + columns)), gradient + i);
        }
      }
    }
    stencil::copies_end_group();
  };
  follow_on();
  if (stages > 1) bring(rows.row(0), staged);
  double of_weight[R], of_bias[R];
#pragma unroll
  for (int r = 0; r < R; ++r) {
    weight[r * order::lanes] = weight_at<E>(d, begin + min(r * order::lanes, left - 1));
    of_weight[r] = of_bias[r] = -0.0;
  }
  // body(r) for the lane's columns.
  const auto of_lane = [&](const auto& body) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      if (r * order::lanes < left) body(r);
  };
#pragma unroll 1
  for (int k = 0; k < rows.count; ++k) {
    const int64_t row = rows.row(k);
    E* const here = staged + (stages > 1 ? k % 2 * 2 * columns : 0);
    if (stages == 1) {
      __syncthreads();  // no thread works on the row before any longer
      bring(row, here);
    }
    stencil::copies_wait_but<0>();
    __syncthreads();  // the row is there, and no thread works on the one before any longer
    if (stages > 1 && k + 1 < rows.count) bring(rows.row(k + 1), staged + (k + 1) % 2 * 2 * columns);
    E* const h = here + begin;
    const E* const g = h + columns;
    if (d.residual != nullptr) {
      const E* const residual = static_cast<const E*>(d.residual) + row * d.residual_stride + begin;
#pragma unroll
      for (int r = 0; r < R; ++r)
        h[r * order::lanes] = with_residual(h[r * order::lanes], residual[min(r * order::lanes, left - 1)]);
    }
    double lane[Q];
#pragma unroll
    for (double& acc : lane) acc = -0.0;
    double pivot = 0;
    if constexpr (layer) {
      // Before anybody writes it; thread 0 may be adding the residual.
      pivot = widened(d.residual == nullptr ? here[0] : h_at<E>(d, row, 0));
      if (threadIdx.x % order::lanes == 0) first_of_leaf[leaf] = widened(h[0]), differs[leaf] = false;
      double one[1] = {-0.0};
      of_lane([&](int r) { one[0] = __dadd_rn(one[0], widened(h[r * order::lanes])); });
      join_leaves(one, room, sum);
      double mean = __ddiv_rn(sum[0][leaf], static_cast<double>(n));
      // Then an element is not finite, and all results are NaN whatever comes of it below.
      if (sizeof(E) < 8 && __dsub_rn(mean, mean) != 0)
        mean = __longlong_as_double(static_cast<int64_t>(order::nan_f64));
      if constexpr (sizeof(E) == 8) {
        const double first = first_of_leaf[leaf];
        bool same = order::may_all_be(first, mean);
        of_lane([&](int r) { same = same && h[r * order::lanes] == first; });
        if (!same) differs[leaf] = true;
      }
      of_lane([&](int r) {
        const E x = h[r * order::lanes];
        const double off = plus_finite(-mean, x), u = __dmul_rn(widened(g[r * order::lanes]), weight[r * order::lanes]);
        lane[0] = __fma_rn(off, off, lane[0]);
        lane[1] = __dadd_rn(lane[1], u);
        lane[2] = __fma_rn(u, plus_finite(-pivot, x), lane[2]);
      });
    } else {
      of_lane([&](int r) {
        const double x = widened(h[r * order::lanes]);
        lane[0] = __fma_rn(x, x, lane[0]);
        lane[1] = __fma_rn(__dmul_rn(widened(g[r * order::lanes]), weight[r * order::lanes]), x, lane[1]);
      });
    }
    join_leaves(lane, room, total);
    if (threadIdx.x < 32) {
      const int m = min(static_cast<int>(threadIdx.x), leaves - 1);
      gradient_terms<P> terms;
      if constexpr (layer)
        terms = {{static_cast<double>(min(d.length - m * order::leaf, order::leaf)), sum[0][m], total[0][m],
                  sizeof(E) == 8 && !differs[m] ? first_of_leaf[m] : 0.0},
                 total[1][m],
                 total[2][m]};
      else
        terms = {total[0][m], 0, total[1][m]};
      terms = tree_of_warp(terms, leaves, static_cast<int>(threadIdx.x));
      const gradient_row mine = gradient_row_of(d, terms, pivot);
      if (threadIdx.x == 0) found = mine;
    }
    __syncthreads();  // all threads read found
    const gradient_row f = found;
    E* const dst = static_cast<E*>(d.dst) + row * d.dst_stride + begin;
    of_lane([&](int r) {
      const double x = widened(g[r * order::lanes]);
      const double normal = layer ? __dmul_rn(plus_finite(-f.mean, h[r * order::lanes]), f.scale)
                                  : normalized(f, widened(h[r * order::lanes]));
      dst[r * order::lanes] = rounded_to<E>::of(gradient_of(f, normal, __dmul_rn(x, weight[r * order::lanes])));
      of_weight[r] = __fma_rn(x, normal, of_weight[r]);
      if constexpr (layer) of_bias[r] = __dadd_rn(of_bias[r], x);
    });
  }
  const int64_t to = blockIdx.x * d.length + begin;
  of_lane([&](int r) {
    if (d.of_weight != nullptr) d.of_weight[to + r * order::lanes] = of_weight[r];
    if constexpr (layer)
      if (d.of_bias != nullptr) d.of_bias[to + r * order::lanes] = of_bias[r];
  });
}

// ---- rows of any length ---------------------------------------------------------------------
constexpr int gradient_long_threads = 256;

template <class E, bool layer, class P>
__global__ __launch_bounds__(gradient_long_threads) void gradient_leaves(const gradient_rows d,
                                                                         gradient_terms<P>* values) {
  const int t = threadIdx.x % 32;
  const int64_t leaves = order::leaves(d.length);
  const int64_t at = int64_t{blockIdx.x} * (gradient_long_threads / 32) + threadIdx.x / 32;
  const int64_t row = at / leaves, first = (at - row * leaves) * order::leaf;
  if (row >= d.count) return;
  const int n = static_cast<int>(min(d.length - first, order::leaf));
  quad<E> h[1][order::rows];
  load_h<E, order::rows>(d, row, first, n, t, 32, false, false, h[0]);
  P of_row[1];
  if constexpr (layer)
    moments_of(h, n, t, 32, of_row);
  else
    squares_of(h, n, t, 32, of_row);
  const double pivot = layer ? widened(h_at<E>(d, row, 0)) : 0.0;
  const E* const g = static_cast<const E*>(d.gradient) + row * d.gradient_stride + first;
  double lane[2][4], sum[2];
#pragma unroll
  for (int j = 0; j < 4; ++j) lane[0][j] = lane[1][j] = -0.0;
  constexpr int step = 4;
#pragma unroll
  for (int r0 = 0; r0 < order::rows; r0 += step) {
    quad<E> some[step];
    load_quads(g, (r0 * 32 + t) * 4, order::lanes, n, d.whole_gradient, 1, some);
#pragma unroll
    for (int r = 0; r < step; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int i = ((r0 + r) * 32 + t) * 4 + j;
        if (i >= n) continue;
        const double u = __dmul_rn(value(some[r], j), weight_at<E>(d, first + i));
        if constexpr (layer) lane[0][j] = __dadd_rn(lane[0][j], u);
        const double x = value(h[0][r0 + r], j);
        lane[1][j] = __fma_rn(u, layer ? __dsub_rn(x, pivot) : x, lane[1][j]);
      }
  }
  join_rows<4>(sum_fold{}, lane, sum, t, 32);
  if (t == 0) values[at] = {of_row[0], sum[0], sum[1]};
}

template <class E, bool layer, class P>
__global__ __launch_bounds__(gradient_long_threads) void gradient_join(const gradient_rows d,
                                                                       const gradient_terms<P>* values,
                                                                       gradient_row* found) {
  __shared__ gradient_terms<P> subtrees[gradient_long_threads];
  const int64_t leaves = order::leaves(d.length);
  for (int64_t row = blockIdx.x; row < d.count; row += gridDim.x) {
    const gradient_terms<P> total = tree_of_block<gradient_long_threads>(values + row * leaves, leaves, subtrees);
    if (threadIdx.x == 0) found[row] = gradient_row_of(d, total, layer ? widened(h_at<E>(d, row, 0)) : 0.0);
    __syncthreads();  // the next row's subtrees come after thread 0 has read these
  }
}

template <class E>
__global__ __launch_bounds__(gradient_threads) void gradient_columns(const gradient_rows d, const int64_t blocks,
                                                                     const gradient_row* found) {
  const int64_t lane = blockIdx.x / blocks;
  const int64_t i = (blockIdx.x - lane * blocks) * gradient_threads + threadIdx.x;
  if (i >= d.length) return;
  const rows_of_lane rows(d.count, lane);
  const double weight = weight_at<E>(d, i);
  double of_weight = -0.0, of_bias = -0.0;
#pragma unroll 4
  for (int k = 0; k < rows.count; ++k) {
    const int64_t row = rows.row(k);
    const gradient_row f = found[row];
    const double x = widened(static_cast<const E*>(d.gradient)[row * d.gradient_stride + i]);
    const double normal = normalized(f, widened(h_at<E>(d, row, i)));
    static_cast<E*>(d.dst)[row * d.dst_stride + i] = rounded_to<E>::of(gradient_of(f, normal, __dmul_rn(x, weight)));
    of_weight = __fma_rn(x, normal, of_weight);
    of_bias = __dadd_rn(of_bias, x);
  }
  if (d.of_weight != nullptr) d.of_weight[lane * d.length + i] = of_weight;
  if (d.of_bias != nullptr) d.of_bias[lane * d.length + i] = of_bias;
}

}  // namespace lockstep::cuda
