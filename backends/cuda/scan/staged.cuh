// staged.cuh - a warp scans a leaf that it keeps in shared memory.
//
// Idea    A leaf is gone through twice: for what it gives the leaves behind it and what stands before its groups, then,
//         when what stands before the leaf is known, for its results (leaf.cuh)
// Moves   every element once in and once out
// Limit   latencies: a third of the waits are for shared memory
// Watch   in place: all of a leaf is in shared memory before its first result is written
// Source  lib/order_rows.hpp
#pragma once

#include "../normalize/leaf_in_shared.cuh"
#include "look_back.cuh"

namespace lockstep::cuda {

// Room for warps of rows_a_leaf rows: the leaf, then what stands before its groups.
template <class K>
constexpr int leaf_warps = sizeof(typename K::element) == 8 ? 2 : 4;
template <class K>
constexpr int leaf_blocks_each = sizeof(typename K::element) == 2 ? 8 : 5;  // of a multiprocessor
template <class K>
__host__ __device__ inline size_t bytes_of_leaf(int rows_a_leaf) {
  const size_t groups = K::ordered ? static_cast<size_t>(rows_a_leaf) * sizeof(double) * 17 : 0;
  return static_cast<size_t>(rows_a_leaf) * order::lanes * sizeof(typename K::element) + (groups + 15) / 16 * 16;
}

// One pass over the leaf: its total, as total_of_leaf's, and the sum of each group of 8, to groups[17 * row + group].
template <class K>
__device__ __forceinline__ double sums_of_groups(const K& kind, const staged_leaf<typename K::element>& x, int t,
                                                 double* groups) {
  double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
  const auto row = [&](int r) {
    const auto q = x.get(r);
    double v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      v[j] = value(q, j);
      lane[0][j] = __dadd_rn(lane[0][j], v[j]);
    }
    const double own = __dadd_rn(__dadd_rn(v[0], v[1]), __dadd_rn(v[2], v[3]));
    const double left = from_xor(own, 1);
    if (t % 2 == 1) groups[17 * r + t / 2] = __dadd_rn(left, own);
  };
  int r = 0;
#pragma unroll 1
  for (; r + step_rows <= x.rows; r += step_rows) {
#pragma unroll
    for (int k = 0; k < step_rows; ++k) row(r + k);
  }
  if (r < x.rows) row(r), row(r + 1);
  join_rows<4>(kind, lane, sum, t);
  return sum[0];
}

// The results of a leaf of float sums, as write_sums.
template <class K>
__device__ __forceinline__ void write_staged_sums(const K& kind, const places<K>& at,
                                                  const staged_leaf<typename K::element>& x, const double* groups,
                                                  double base, double entering, int t) {
  double carried = entering;
  const staged_leaf<typename K::element> partners{x.at - t % 2, x.rows};
#pragma unroll 1
  for (int r0 = 0; r0 < x.rows; r0 += 2) {
#pragma unroll
    for (int r = r0; r < r0 + 2; ++r) {
      double y[4];
      sums_in_row(x.get(r), partners.get(r), groups[17 * r + t / 2], t, y);
      const double row = from_thread(base, r);
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dadd_rn(row, y[j]);
      double entered = 0;
      if (at.exclusive) {
        entered = from_before(y[3], 1);
        if (t == 0) entered = carried;
        carried = from_thread(y[3], 31);
      }
      store_results(kind, at, (r * 32 + t) * 4, entered, y);
    }
  }
}

template <class K>
__device__ __forceinline__ void scan_leaf_in_order(const K& kind, const places<K>& at,
                                                   const staged_leaf<typename K::element>& x, double* groups,
                                                   mailbox* boxes, mailbox* edges, int64_t k, int64_t leaves, int t) {
  const double total = sums_of_groups(kind, x, t, groups);
  if (!LOCKSTEP_DEVICE_MUTANT("cuda_scan_warp_barrier_dropped")) __syncwarp();  // a thread walks what all have written
  double row_sum = -0.0;
  if (t < x.rows) {
#pragma unroll 4
    for (int g = 0; g < 16; ++g) {
      const double group = groups[17 * t + g];
      groups[17 * t + g] = row_sum;
      row_sum = __dadd_rn(row_sum, group);
    }
  }
  __syncwarp();  // all read what the walkers have written
  double run = -0.0, rows = -0.0;
#pragma unroll 4
  for (int r = 0; r < x.rows; ++r) {
    if (t == r) rows = run;
    run = __dadd_rn(run, from_thread(row_sum, r));
  }
  const double base = __dadd_rn(look_back(kind, boxes, k, leaves, total, t), rows);
  double entering = kind.first();
  if (at.exclusive) {  // this leaf's last result is handed over before the last one's is waited for
    if (k + 1 < leaves && t == order::rows - 1) hand_over(edges + k, __dadd_rn(base, row_sum));
    if (k > 0) wait_for(edges + k - 1, true, entering);
  }
  write_staged_sums(kind, at, x, groups, base, entering, t);
}

template <class K>
__device__ __forceinline__ void scan_leaf_exactly(const K& kind, const places<K>& at,
                                                  const staged_leaf<typename K::element>& x, mailbox* boxes, int64_t k,
                                                  int64_t leaves, int t) {
  using P = typename K::partial;
  using L = typename K::local;
  L mine = static_cast<L>(kind.none());
  if (k + 1 < leaves) {
#pragma unroll 4
    for (int r = 0; r < x.rows; ++r) {
      const auto q = x.get(r);
#pragma unroll
      for (int j = 0; j < 4; ++j) mine = kind.join(mine, kind.of(q, j));
    }
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) mine = kind.join(mine, from_xor(mine, mask));
  }
  P before = look_back(kind, boxes, k, leaves, static_cast<P>(mine), t);
#pragma unroll 1
  for (int r = 0; r < x.rows; ++r) {
    const int i = (r * 32 + t) * 4;
    L in_row[4], left, all;
    joins_in_row(kind, x.get(r), i, at.n, t, 32, in_row, left, all);
    const P entered = kind.join(before, static_cast<P>(left));
    P y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = kind.join(entered, static_cast<P>(in_row[j]));
    store_results(kind, at, i, entered, y);
    before = kind.join(before, static_cast<P>(all));
  }
}

// rows_a_leaf: what a warp has room for.
template <class K>
__global__ __launch_bounds__(leaf_warps<K> * 32, leaf_blocks_each<K>) void scan_leaves(const K kind, const scanned d,
                                                                                       const int rows_a_leaf) {
  using E = typename K::element;
  using P = typename K::partial;
  extern __shared__ uint4 room[];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t leaves = order::leaves(d.length), number = int64_t{blockIdx.x} * leaf_warps<K> + warp;
  const int64_t s = number / leaves, k = number - s * leaves;
  if (s >= d.count) return;
  const places<K> at = leaf_places<K>(d, s, k);
  mailbox* const boxes = d.boxes + s * d.boxes_a_sequence * words_of<P>;
  auto* const mine = reinterpret_cast<char*>(room) + warp * bytes_of_leaf<K>(rows_a_leaf);
  const staged_leaf<E> x{reinterpret_cast<quad<E>*>(mine) + t, staged_rows(at.n)};
  stage(x, at.src, at.n, t, at.whole_src, at.stride);
  __syncwarp();  // in place: all is read before the first result is written; and a thread reads its partner's quads
  if constexpr (K::ordered) {
    auto* const groups = reinterpret_cast<double*>(mine + int64_t{rows_a_leaf} * order::lanes * int64_t{sizeof(E)});
    mailbox* const edges = d.boxes + d.count * d.boxes_a_sequence + s * leaves;
    scan_leaf_in_order(kind, at, x, groups, boxes, edges, k, leaves, t);
  } else {
    scan_leaf_exactly(kind, at, x, boxes, k, leaves, t);
  }
}

}  // namespace lockstep::cuda
