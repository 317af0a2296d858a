// moments.cu - means and variances: of each leaf about its own mean, leaves joined by Chan's formula.
// Idea    a warp goes through a leaf twice, for its sum and for the squares about its mean; the second time it lies in
//         the L1. Short sequences stay in registers between the two
// Moves   every element once
// Limit   memory reads; of 16-bit elements the conversions to double
// Watch   the formula does not commute: the left subtree comes first
// Source  lib/bits/order_rows.hpp
#include "../normalize/rows.cuh"
#include "moments_ahead.cuh"
#include "short_columns.cuh"

namespace lockstep::cuda {
namespace {

struct moment_results {
  using partial = order::moments;
  static constexpr bool ordered = true, commutes = false;
  __device__ static partial none() { return {0.0, 0.0, 0.0, 0.0}; }
  __device__ static partial join(const partial& a, const partial& b) {
    if (a.count == 0.0) return b;
    return b.count == 0.0 ? a : a + b;
  }
  __device__ static void store(const term_sums& d, int64_t s, const partial& m, int64_t length) {
    const int64_t divisor = length - d.correction;
    store_float(d.dst, d.result, 2 * s, m.mean());
    store_float(
        d.dst, d.result, 2 * s + 1,
        divisor > 0 ? __ddiv_rn(m.squares(), static_cast<double>(divisor)) : __longlong_as_double(order::nan_f64));
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) {
    for (int k = 0; k < 2; ++k) store_float(d.dst, d.result, 2 * s + k, __longlong_as_double(order::nan_f64));
  }
};

template <class E>
struct moments_of_elements : moment_results {
  static constexpr int blocks = sizeof(E) == 8 ? 2 : 3;
  struct plain {
    __device__ double operator()(double acc, double x, double) const { return __dadd_rn(acc, x); }
  };
  __device__ static double squared_from(double mean, double acc, double x) {
    const double off = __dsub_rn(x, mean);
    return __fma_rn(off, off, acc);
  }
  __device__ static bool whole(const term_sums& d, const E* x, int n) {
    return n % 4 == 0 && whole_units(x, d.element_stride, sizeof(E) == 2 ? 8 : 16);
  }

  // enter(acc, x, .) takes an element into its lane.
  template <int R, bool full, class Enter>
  __device__ __forceinline__ static void take(const E* x, int64_t stride, bool whole, int i, int n, double (&lane)[4],
                                              const Enter& enter) {
    quad<E> q[R];
    if (stride == 1)
      load_columns(x, whole, i, order::lanes, n, q);  // by way of the L1
    else
      load_quads(x, i, order::lanes, n, false, stride, q);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (full || i + r * order::lanes + j < n) lane[j] = enter(lane[j], value(q[r], j), 0.0);
  }
  template <class Enter>
  __device__ static double pass(const E* x, int64_t stride, bool whole, int n, int t, const Enter& enter) {
    constexpr int R = 8;
    double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
    int row = 0;
#pragma unroll 1
    for (; (row + R) * order::lanes <= n; row += R)
      take<R, true>(x, stride, whole, (row * 32 + t) * 4, n, lane[0], enter);
    if ((row + R / 2) * order::lanes < n) {
      take<R, false>(x, stride, whole, (row * 32 + t) * 4, n, lane[0], enter);
    } else {
#pragma unroll 1
      for (; row * order::lanes < n; row += 2) take<2, false>(x, stride, whole, (row * 32 + t) * 4, n, lane[0], enter);
    }
    join_rows<4>(sum_fold{}, lane, sum, t);
    return sum[0];
  }

  __device__ static partial leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t,
                                 const partial&) {
    const E* x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    const bool by_quads = whole(d, x, n);
    const double sum = pass(x, d.element_stride, by_quads, n, t, plain{});
    const double mean = __ddiv_rn(sum, static_cast<double>(n));
    const double m2 = pass(x, d.element_stride, by_quads, n, t,
                           [mean](double acc, double y, double) { return squared_from(mean, acc, y); });
    double equal = 0.0;
    if constexpr (sizeof(E) == 8)
      equal = equal_of(x[0], mean, t, 32, [&](double value) {
        bool same = true;
        for (int i = t; i < n; i += 32) same = same && x[i * d.element_stride] == value;
        return same;
      });
    return {static_cast<double>(n), sum, m2, equal};
  }

  __device__ static partial leaf_by_lanes(const term_sums& d, const pair_places& at, int64_t first, int n,
                                          double (&room)[order::lanes]) {
    const E* x = static_cast<const E*>(d.src) + at.src + first;
    E a[order::rows];
    const int last = load_lane(x, n, a);
    const auto sum_by = [&](const auto& enter) {
      double lane = -0.0;
#pragma unroll
      for (int row = 0; row < order::rows; ++row)
        if (row * order::lanes <= last) lane = enter(lane, widened(a[row]), 0.0);
      return sum_of_lanes(lane, room);
    };
    const double sum = sum_by(plain{}), mean = __ddiv_rn(sum, static_cast<double>(n));
    const double m2 = sum_by([mean](double acc, double y, double) { return squared_from(mean, acc, y); });
    double equal = 0.0;
    if constexpr (sizeof(E) == 8) {
      const double own = x[0];
      const bool may = order::may_all_be(own, mean);
      if (__syncthreads_or(may)) {  // of any leaf of the block
        const double others = sum_by([own](double acc, double y, double) { return y == own ? acc : 1.0; });
        equal = may && !(others > 0.0) ? own : 0.0;
      }
    }
    return {static_cast<double>(n), sum, m2, equal};
  }

  struct squares_about : float_sum<E, false> {
    double mean;
    __device__ void take(double& acc, E x, int) const { acc = squared_from(mean, acc, widened(x)); }
    __device__ void take_if(double& acc, E x, int, bool wanted) const {
      acc = wanted ? squared_from(mean, acc, widened(x)) : acc;
    }
  };
  static constexpr int short_column_elements = order::lanes, short_column_blocks = 4;
  __device__ static partial short_column(const term_sums& d, int64_t s, int n) {
    const E* const x = static_cast<const E*>(d.src) + s;
    const auto folded = [&](const auto& by) {
      return n <= 8    ? fold_column<8>(by, x, d.element_stride, n)
             : n <= 16 ? fold_column<16>(by, x, d.element_stride, n)
             : n <= 32 ? fold_column<32>(by, x, d.element_stride, n)
                       : fold_column<order::lanes>(by, x, d.element_stride, n);
    };
    const double sum = folded(float_sum<E, false>{}), mean = __ddiv_rn(sum, static_cast<double>(n));
    const double m2 = folded(squares_about{{}, mean});
    double equal = 0.0;
    if constexpr (sizeof(E) == 8) {
      if (order::may_all_be(x[0], mean)) {
        equal = x[0];
        for (int i = 1; i < n; ++i) equal = x[i * d.element_stride] == x[0] ? equal : 0.0;
      }
    }
    return {static_cast<double>(n), sum, m2, equal};
  }

  template <int C>
  __device__ static partial column(const term_sums& d, const pair_places& at, int n, double (&room)[sum_threads],
                                   double (&means)[C]) {
    const E* x = static_cast<const E*>(d.src) + at.src;
    const double sum = sum_of_column<C, false>(x, d.element_stride, x, 0, n, room, plain{});
    if (threadIdx.x < C) means[threadIdx.x] = __ddiv_rn(sum, static_cast<double>(n));
    __syncthreads();  // all threads of a sequence read its mean
    const double mean = means[threadIdx.x % C];
    const double m2 = sum_of_column<C, false>(x, d.element_stride, x, 0, n, room, [mean](double acc, double y, double) {
      return squared_from(mean, acc, y);
    });
    double equal = 0.0;
    if constexpr (sizeof(E) == 8) {
      const bool may = order::may_all_be(x[0], mean);
      if (__syncthreads_or(may)) {  // the room is free again
        bool same = may;
        for (int i = threadIdx.x / C; same && i < n; i += sum_threads / C) same = x[i * d.element_stride] == x[0];
        room[threadIdx.x] = same ? x[0] : 0.0;
        __syncthreads();  // a sequence's first thread looks at what all of its threads found
        if (threadIdx.x < C) {
          equal = x[0];
          for (int k = threadIdx.x; k < sum_threads; k += C) equal = room[k] == equal ? equal : 0.0;
        }
      }
    }
    return {static_cast<double>(n), sum, m2, equal};
  }

  template <int Q, int S>
  __device__ static void short_rows(const term_sums& d, const pair_places (&at)[S], int n, int t, int threads,
                                    partial (&m)[S]) {
    quad<E> h[S][Q];
#pragma unroll
    for (int b = 0; b < S; ++b) {
      const E* x = static_cast<const E*>(d.src) + at[b].src;
      load_quads(x, t * 4, threads * 4, n, whole(d, x, n), d.element_stride, h[b]);
    }
    const auto there = [&](int q, int j) { return (q * threads + t) * 4 + j < n; };
    double sum[S], mean[S], m2[S];
    sum_short_rows<Q>(t, threads, sum, [&](int b, int q, int j) { return there(q, j) ? value(h[b][q], j) : -0.0; });
    means_of(sum, n, t, mean);
    sum_short_rows<Q>(t, threads, m2, [&](int b, int q, int j) {
      return there(q, j) ? squared_from(mean[b], -0.0, value(h[b][q], j)) : -0.0;
    });
#pragma unroll
    for (int b = 0; b < S; ++b) {
      m[b] = {static_cast<double>(n), sum[b], m2[b], 0.0};
      if constexpr (sizeof(E) == 8)
        m[b].equal = equal_of(value(h[b][0], 0), mean[b], t, threads, [&](double x) {
          bool same = true;
#pragma unroll
          for (int q = 0; q < Q; ++q)
#pragma unroll
            for (int j = 0; j < 4; ++j) same = same && (!there(q, j) || value(h[b][q], j) == x);
          return same;
        });
    }
  }
};

}  // namespace

lockstep_status sum_moments(lockstep_queue& queue, const term_sums& d, void* workspace) {
  return by_float(d.dtype, [&]<class E>(E) {
    using fold = moments_of_elements<E>;
    return are_short_columns<fold>(queue, d) ? launch_short_columns<fold>(queue, d)
                                             : launch_sums<fold, moment_results>(queue, d, workspace);
  });
}

lockstep_status sum_moments_ahead(lockstep_queue& queue, const term_sums& d, void* workspace) {
  return by_float(d.dtype, [&]<class E>(E) { return launch_moments_ahead<moment_results, E>(queue, d, workspace); });
}

}  // namespace lockstep::cuda
