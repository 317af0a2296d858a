// columns.cuh - sequences that lie side by side: one thread per sequence.
//
// Idea    Neighbouring threads take neighbouring sequences, so that the elements at one index are one contiguous read
//         and their results one contiguous write. All that the order asks for is a thread's own. Where float sums of
//         more leaves follow, the lanes of a leaf are summed beside the results, in shared memory
// Moves   every element once in and once out
// Limit   memory, where there are threads enough; else the loads that a thread has in flight
// Watch   in place: a thread reads ahead, but only of its own sequence
// Source  lib/bits/order_rows.hpp
#pragma once

#include "look_back.cuh"

namespace lockstep::cuda {

constexpr int column_threads = 64;
// Elements that a thread has in flight; all of them are loaded before the ones before them are summed.
template <class K>
constexpr int column_ahead = sizeof(typename K::element) == 8 ? 16 : 32;

// What stands before a group of 8 elements, and what it gives.
template <class K, bool several>
struct down_a_column {
  typename K::partial run = K::none();

  // Gives the first exclusive result.
  __device__ __forceinline__ typename K::partial resume(const K& kind, const scanned& d, int64_t s) {
    return run = kind.before(d.before, s);
  }
  __device__ __forceinline__ void group(const K& kind, const typename K::element (&x)[8], int64_t, int64_t,
                                        typename K::partial (&y)[8], double*) {
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      quad<typename K::element> one{};
      set_element(one, 0, x[j]);
      run = kind.join(run, static_cast<typename K::partial>(kind.of(one, 0)));
      y[j] = run;
    }
  }
};

// Float sums. lanes: the thread's, column_threads apart.
template <class E, class R, bool several>
struct down_a_column<float_scan<E, R>, several> {
  double leaves_before = -0.0, rows_before = -0.0, groups_before = -0.0;
  order::tree<double> tree;

  __device__ __forceinline__ double resume(const float_scan<E, R>&, const scanned& d, int64_t s) {
    if (d.leaves_before != 0) {
      each_subtree_before(d, s, [&](int level, double sum) { tree.push(sum, level); });
      leaves_before = tree.total();
    }
    return *floats_before(d, s);
  }
  __device__ __forceinline__ void group(const float_scan<E, R>&, const E (&x)[8], int64_t first, int64_t length,
                                        double (&y)[8], double* lanes) {
    const auto in_leaf = static_cast<int>(first % order::leaf);
    double v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      quad<E> one{};
      set_element(one, 0, x[j]);
      v[j] = y[j] = value(one, 0);
    }
#pragma unroll
    for (int d = 1; d < order::scan_group; d *= 2)
#pragma unroll
      for (int j = 7; j >= d; --j) y[j] = __dadd_rn(y[j - d], y[j]);
    const double base = __dadd_rn(leaves_before, rows_before), after = __dadd_rn(groups_before, y[7]);
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = __dadd_rn(base, __dadd_rn(groups_before, y[j]));
    groups_before = after;
    if (in_leaf % order::lanes == order::lanes - 8) {
      rows_before = __dadd_rn(rows_before, groups_before);
      groups_before = -0.0;
    }
    if constexpr (several) {
      if (first - in_leaf + order::leaf >= length) return;  // the last leaf: nobody asks for its sum
      double* const mine = lanes + in_leaf % order::lanes * column_threads;
      const bool begins = in_leaf < order::lanes;
#pragma unroll
      for (int j = 0; j < 8; ++j) mine[j * column_threads] = __dadd_rn(begins ? -0.0 : mine[j * column_threads], v[j]);
      if (in_leaf == order::leaf - 8) {
        tree.push(joined(lanes));
        leaves_before = tree.total();
        rows_before = -0.0;
      }
    }
  }

 private:
  static __device__ __forceinline__ double joined(double* lanes) {
#pragma unroll 1
    for (int d = order::lanes / 2; d >= 1; d /= 2)
#pragma unroll 4
      for (int l = 0; l < d; ++l)
        lanes[l * column_threads] = __dadd_rn(lanes[l * column_threads], lanes[(l + d) * column_threads]);
    return lanes[0];
  }
};

// several: float sums of more leaves than one, whose lanes need shared memory.
template <class K, bool several>
__global__ __launch_bounds__(column_threads) void scan_columns(const K kind, const scanned d) {
  using E = typename K::element;
  using R = typename K::result;
  using P = typename K::partial;
  constexpr int ahead = column_ahead<K>;
  extern __shared__ double lanes[];
  const int64_t s = int64_t{blockIdx.x} * column_threads + threadIdx.x, n = d.length;
  if (s >= d.count) return;
  const E* from = static_cast<const E*>(d.src) + s * d.sequence_stride;
  R* to = static_cast<R*>(d.dst) + s * d.dst_sequence_stride;
  follow_on();
  E next[ahead];
  const auto load = [&](int64_t first) {  // from on; in place of missing elements the last one comes again
    if (first + ahead <= n) {
#pragma unroll
      for (int j = 0; j < ahead; ++j, from += d.element_stride) next[j] = *from;
    } else {
      const auto left = static_cast<int>(n - first);
#pragma unroll
      for (int j0 = 0; j0 < ahead; j0 += 8) {
        if (j0 >= left) break;
#pragma unroll
        for (int j = j0; j < j0 + 8; ++j) next[j] = from[min(j, left - 1) * d.element_stride];
      }
    }
  };
  down_a_column<K, several> column;
  P entering = kind.first();
  if (d.before != nullptr) entering = column.resume(kind, d, s);
  load(0);
#pragma unroll 1
  for (int64_t first = 0; first < n; first += ahead) {
    E x[ahead];
#pragma unroll
    for (int j = 0; j < ahead; ++j) x[j] = next[j];
    if (first + ahead < n) load(first + ahead);
    const auto here = static_cast<int>(min(n - first, static_cast<int64_t>(ahead)));
#pragma unroll
    for (int j0 = 0; j0 < ahead; j0 += 8) {
      if (j0 >= here) break;
      E eight[8];
#pragma unroll
      for (int j = 0; j < 8; ++j) eight[j] = x[j0 + j];
      P y[8];
      column.group(kind, eight, first + j0, n, y, lanes + threadIdx.x);
#pragma unroll
      for (int j = 0; j < 8; ++j, to += d.dst_element_stride)
        if (j0 + j < here) *to = kind.put(d.exclusive ? (j == 0 ? entering : y[(j + 7) % 8]) : y[j], s);
      entering = y[7];
    }
  }
}

}  // namespace lockstep::cuda
