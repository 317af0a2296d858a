// narrow.cuh - rows of up to 1,024 elements by groups of 4 to 32 threads, up to 8 quads per thread.
//
// Idea    The fewer threads a row has, the more of its tree of lanes each joins in its own registers, without shuffles,
//         and the fewer threads work out its divisor
// Moves   every element once in and once out
// Limit   memory; conversions of 16-bit elements
// Watch   in place: all of a row is in registers before its first result is written
// Source  lib/bits/order_rows.hpp
#pragma once

#include <bit>

#include "float_results.cuh"

namespace lockstep::cuda {

// Lengths of rows; of shorter ones a thread has too few elements, and holds several rows (held.cuh).
constexpr int narrow_from = 32, narrow_to = 1024;
constexpr int narrow_quads = 8;      // of a thread at most
constexpr int narrow_threads = 128;  // of a block

// The threads of a row of n elements: as few as hold it, or, where rows are few, so many that `wanted` are at work.
inline int narrow_group(int64_t n, int64_t count, int64_t wanted) {
  int threads = 4;
  while (threads < 32 && threads * 4 * narrow_quads < n) threads *= 2;
  while (threads < 32 && threads * 4 < n && count * threads < wanted) threads *= 2;
  return threads;
}

// The quads that a row has.
template <class E, int R>
__device__ __forceinline__ void load_row(const E* at, int n, int t, int threads, bool whole, quad<E> (&h)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (r * threads * 4 >= n) break;
    quad<E> one[1];
    load_quads(at, (r * threads + t) * 4, 4, n, whole, 1, one);
    h[r] = one[0];
  }
}
// h of a row: x, or x + residual, which goes to sum.
template <class E, int R, bool whole = false>
__device__ __forceinline__ void load_narrow(const normalized_rows& d, int64_t row, int n, int t, int threads,
                                            bool wanted, quad<E> (&h)[R]) {
  load_row(static_cast<const E*>(d.src) + row * d.src_stride, n, t, threads, whole || d.whole_src, h);
  if (d.residual == nullptr) return;
  quad<E> more[R];
  load_row(static_cast<const E*>(d.residual) + row * d.residual_stride, n, t, threads, whole || d.whole_residual, more);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (r * threads * 4 >= n) break;
    h[r] = sum_of(h[r], more[r]);
    if (d.sum != nullptr && wanted)
      store_quad(static_cast<E*>(d.sum) + row * d.sum_stride, (r * threads + t) * 4, n, whole || d.whole_sum, h[r]);
  }
}

// Of a thread's quads those that begin a row of lanes' quarter q of Q and lie apart by `stride` quarters joined by the
// order's steps: lanes far apart first. Thread t of T has quads t, t + T, ... of a row, Q of them of each row of lanes.
// enter(acc, r, j): element j of quad r taken into its lane. all: what stands in for missing elements may be taken too.
// whole: all quads are.
template <int Q, int R, bool all, bool whole, int q, int stride, class Enter>
__device__ __forceinline__ void join_quarters(int n, int t, const Enter& enter, double (&lane)[4]) {
  constexpr int T = 32 / Q;
  if constexpr (stride < Q) {
    double right[4];
    join_quarters<Q, R, all, whole, q, 2 * stride>(n, t, enter, lane);
    join_quarters<Q, R, all, whole, q + stride, 2 * stride>(n, t, enter, right);
#pragma unroll
    for (int j = 0; j < 4; ++j) lane[j] = __dadd_rn(lane[j], right[j]);
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) lane[j] = -0.0;
#pragma unroll
    for (int r = q; r < R; r += Q) {
      if (r * T * 4 >= n) break;
      const int left = n - (r * T + t) * 4;
      if (all || left >= 4) {
#pragma unroll
        for (int j = 0; j < 4; ++j) lane[j] = enter(lane[j], r, j);
      } else if constexpr (!whole) {
#pragma unroll
        for (int j = 0; j < 3; ++j)
          if (j < left) lane[j] = enter(lane[j], r, j);
      }
    }
  }
}
// A row's sum by order id 1, in every thread of its group.
template <int R, bool all = false, bool whole = false, class Enter>
__device__ __forceinline__ double narrow_sum(int n, int t, int threads, const Enter& enter) {
  double lane[1][4], sum[1];
  switch (threads) {  // the same for all threads of the grid
    case 4: join_quarters<8, R, all, whole, 0, 1>(n, t, enter, lane[0]); break;
    case 8: join_quarters<4, R, all, whole, 0, 1>(n, t, enter, lane[0]); break;
    case 16: join_quarters<2, R, all, whole, 0, 1>(n, t, enter, lane[0]); break;
    default: join_quarters<1, R, all, whole, 0, 1>(n, t, enter, lane[0]); break;
  }
  join_rows<4>(sum_fold{}, lane, sum, t, threads);
  return sum[0];
}

template <class E, bool layer, bool weighed, bool biased, bool whole>
__device__ __forceinline__ void write_narrow(const normalized_rows& d, const quad<E> (&h)[narrow_quads], int64_t row,
                                             int n, int t, int threads, double mean, double scale) {
  [[maybe_unused]] const float_scales in_float = scales_in_float(layer ? mean : 0.0, scale);
  E* const dst = opaque(static_cast<E*>(d.dst) + row * d.dst_stride);
  quad<E> weight[1], bias[1], out[1];
  const auto load = [&](int at) {
    if constexpr (weighed) load_columns(static_cast<const E*>(d.weight), whole || d.whole_weight, at, 4, n, weight);
    if constexpr (biased) load_columns(static_cast<const E*>(d.bias), whole || d.whole_weight, at, 4, n, bias);
  };
  [[maybe_unused]] uint32_t doubted = 0;  // bit r: quad r
#pragma unroll
  for (int r = 0; r < narrow_quads; ++r) {
    if (r * threads * 4 >= n) break;
    const int at = (r * threads + t) * 4;
    load(at);
    if constexpr (sizeof(E) == 2) {
      const quad<E> x[1] = {h[r]};
      if (!quads_by_float<E, E, layer, weighed, biased>(in_float, x, weight, bias, out)) doubted |= 1u << r;
    } else {
      double y[4];
      results_by_double<E, E, layer, weighed, biased>(h[r], weight[0], bias[0], mean, scale, y);
      out[0] = rounded_quad<E>(y);
    }
    store_quad(dst, at, n, whole || d.whole_dst, out[0]);
  }
  // Written again, and not between the others, which would be code to jump over for each.
  if constexpr (sizeof(E) == 2) {
#pragma unroll 1
    for (; doubted != 0; doubted &= doubted - 1) {
      const int mine = __ffs(static_cast<int>(doubted)) - 1, at = (mine * threads + t) * 4;
      quad<E> x[1] = {h[0]};
#pragma unroll
      for (int r = 1; r < narrow_quads; ++r)
        if (r == mine) x[0] = h[r];
      load(at);
      quads_of_results<E, E, layer, weighed, biased>(in_float, x, weight, bias, mean, scale, out);
      store_quad(dst, at, n, whole || d.whole_dst, out[0]);
    }
  }
}

// 2 to the power of log_threads: the threads of a row. whole: all quads of all arrays are.
template <class E, class P, bool whole>
__global__ __launch_bounds__(narrow_threads, 6) void normalize_narrow(const normalized_rows d, const int log_threads) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  const int threads = 1 << log_threads, t = static_cast<int>(threadIdx.x) & (threads - 1);
  const int n = static_cast<int>(d.length);
  const int64_t row = int64_t{blockIdx.x} * (narrow_threads >> log_threads) + (threadIdx.x >> log_threads);
  follow_on();
  quad<E> h[narrow_quads];
  load_narrow<E, narrow_quads, whole>(d, min(row, d.count - 1), n, t, threads, row < d.count, h);
  P total;
  const double sum = narrow_sum<narrow_quads, false, whole>(n, t, threads, [&](double acc, int r, int j) {
    const double x = value(h[r], j);
    return layer ? __dadd_rn(acc, x) : __fma_rn(x, x, acc);
  });
  if constexpr (layer) {
    const double mean = __ddiv_rn(sum, static_cast<double>(n));
    total = {static_cast<double>(n), sum,
             narrow_sum<narrow_quads, false, whole>(n, t, threads, [&](double acc, int r, int j) {
               const double off = __dsub_rn(value(h[r], j), mean);
               return __fma_rn(off, off, acc);
             })};
  } else {
    total = sum;
  }
  const spread found = spread_of(d, total);
  const double scale = scale_of<E>(found.divisor);
  if (row >= d.count) return;
  if (d.weight == nullptr)
    return write_narrow<E, layer, false, false, whole>(d, h, row, n, t, threads, found.mean, scale);
  if constexpr (layer)
    if (d.bias != nullptr) return write_narrow<E, true, true, true, whole>(d, h, row, n, t, threads, found.mean, scale);
  write_narrow<E, layer, true, false, whole>(d, h, row, n, t, threads, found.mean, scale);
}

// The usual calls: weight and bias of the elements' type, a bias where there is a weight and a mean. Norms of F64 may
// have to be summed again, which other kernels do.
template <class E, class P>
bool suits_narrow(const normalized_rows& d) {
  return d.length > narrow_from && d.length <= narrow_to && (d.weight == nullptr || !d.f32_weight) &&
         (d.bias == nullptr || (d.weight != nullptr && std::is_same_v<P, order::moments>));
}
template <class E, class P>
lockstep_status launch_narrow(lockstep_queue& queue, const normalized_rows& d) {
  const int threads = narrow_group(d.length, d.count, int64_t{512} * queue.facts->processors);
  const bool whole = d.whole_src && d.whole_residual && d.whole_dst && d.whole_sum && d.whole_weight;
  return launch_soon(queue, "normalize_narrow", whole ? normalize_narrow<E, P, true> : normalize_narrow<E, P, false>,
                     dim3(static_cast<unsigned>((d.count - 1) / (narrow_threads / threads) + 1)), dim3(narrow_threads),
                     0, d, std::countr_zero(static_cast<unsigned>(threads)));
}

}  // namespace lockstep::cuda
