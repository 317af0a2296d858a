// leaf_of_block.cuh - a block scans a leaf, four rows per warp: for few leaves, which would leave most warps idle.
//
// Idea    As staged.cuh, its steps dealt out: while one warp finds what stands before the leaf, another walks its
// groups Moves   every element once in and once out; a mailbox a leaf, through the L2 Limit   latencies: of the load,
// of 16 additions along lanes, groups and rows, and of the chain of mailboxes Watch   two barriers: all groups are
// summed before they are walked, and all that stands before is there before it is used Source  lib/bits/order_rows.hpp
#pragma once

#include "staged.cuh"

namespace lockstep::cuda {

constexpr int rows_a_warp = 4, block_warps = order::rows / rows_a_warp;

// What the warps of a block tell one another.
template <class K>
struct told {
  alignas(16) typename K::local warps[block_warps];  // exact kinds: what each has
  alignas(16) typename K::partial before;            // the leaf; apart, since the warps' are read 16 bytes at a time
  double rows_before[order::rows], row_sums[order::rows];  // float sums: what stands before a row in the leaf
};

// Whether elements and results lie as leaf_in_units: exact kinds, which read quads only, gain nothing by it.
template <class K>
constexpr bool in_units = K::ordered && sizeof(typename K::element) == 8 && sizeof(typename K::result) == 8;
// Rows of a leaf from `first` on, which a warp reads.
template <class K>
__device__ __forceinline__ auto rows_of_leaf(quad<typename K::element>* leaf, int first, int64_t n, int t) {
  using E = typename K::element;
  if constexpr (in_units<K>)
    return leaf_in_units<E>{reinterpret_cast<uint4*>(leaf + 32 * first), staged_rows(n), t};
  else
    return staged_leaf<E>{leaf + 32 * first + (K::ordered ? place_in_row(t) : t), staged_rows(n)};
}

template <class K, class Rows>
__device__ __forceinline__ void scan_leaf_in_order(const K& kind, const places<K>& at, const places<K>& mine,
                                                   const Rows& x, const Rows& own, quad<typename K::element>* leaf,
                                                   double* groups, told<K>& all, mailbox* boxes, mailbox* edges,
                                                   const scanned& d, int64_t k, int64_t leaves, int t, int warp) {
  const int first = warp * rows_a_warp;
#pragma unroll
  for (int r = 0; r < rows_a_warp; ++r) {
    if (r >= own.rows) break;
    const auto q = own.get(r);
    const double sum = __dadd_rn(__dadd_rn(value(q, 0), value(q, 1)), __dadd_rn(value(q, 2), value(q, 3)));
    const double left = from_xor(sum, 1);
    if (t % 2 == 1) groups[17 * (first + r) + t / 2] = __dadd_rn(left, sum);
  }
  __syncthreads();
  if (warp == 0) {
    double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, total[1] = {-0.0};
    if (k + 1 < leaves) {  // only a leaf that others follow is asked, and it is whole
#pragma unroll
      for (int r = 0; r < order::rows; ++r) {
        const auto q = x.get(r);
#pragma unroll
        for (int j = 0; j < 4; ++j) lane[0][j] = __dadd_rn(lane[0][j], value(q, j));
      }
      join_rows<4>(kind, lane, total, t);
    }
    const double before = look_back(kind, boxes, k, 0, leaves, total[0], t);
    if (t == 0) all.before = before;
  } else if (warp == 1) {
    double row_sum = -0.0, run = -0.0, rows = -0.0;
    if (t < x.rows) {
      double group[16];
#pragma unroll
      for (int g = 0; g < 16; ++g) group[g] = groups[17 * t + g];
#pragma unroll
      for (int g = 0; g < 16; ++g) {
        groups[17 * t + g] = row_sum;
        row_sum = __dadd_rn(row_sum, group[g]);
      }
    }
#pragma unroll
    for (int r = 0; r < order::rows; ++r) {
      if (t == r) rows = run;
      run = __dadd_rn(run, from_thread(row_sum, r));
    }
    if (t < order::rows) all.rows_before[t] = rows, all.row_sums[t] = row_sum;
  }
  __syncthreads();
  const auto end_of_row = [&](int r) { return __dadd_rn(__dadd_rn(all.before, all.rows_before[r]), all.row_sums[r]); };
  double entering = kind.first();
  if (at.exclusive) {
    if (warp == 0) {
      if (k + 1 < leaves && t == 0) hand_over(edges + k, end_of_row(order::rows - 1));
      if (k > 0) wait_for(edges + k - 1, true, entering);
    } else {
      entering = end_of_row(first - 1);
    }
  }
  const bool last = warp == 0 && reads_last(d, leaves, t);
  if (t < own.rows) groups[17 * (first + t) + 16] = __dadd_rn(all.before, all.rows_before[first + t]);
  __syncwarp();  // all read what stands before each row
  write_staged_sums<in_units<K>>(kind, mine, leaf + 32 * first, own.rows, groups + 17 * first, entering, t);
  if (last) clear_boxes(d, t);
}

template <class K, class Rows>
__device__ __forceinline__ void scan_leaf_exactly(const K& kind, const places<K>& mine, const Rows& own, told<K>& all,
                                                  mailbox* boxes, const scanned& d, int64_t k, int64_t leaves, int t,
                                                  int warp) {
  using P = typename K::partial;
  using L = typename K::local;
  const L none = static_cast<L>(kind.none());
  L sum = none;
  if (mine.n == rows_a_warp * order::lanes) {  // others in the leaf may follow
#pragma unroll
    for (int r = 0; r < rows_a_warp; ++r) {
      const auto q = own.get(r);
#pragma unroll
      for (int j = 0; j < 4; ++j) sum = kind.join(sum, kind.of(q, j));
    }
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) sum = kind.join(sum, from_xor(sum, mask));
  }
  if (t == 0) all.warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    L total = none;
#pragma unroll
    for (int w = 0; w < block_warps; ++w) total = kind.join(total, all.warps[w]);
    const P before = look_back(kind, boxes, k, 0, leaves, static_cast<P>(total), t);
    if (t == 0) all.before = before;
  }
  __syncthreads();
  const bool last = warp == 0 && reads_last(d, leaves, t);
  P before = all.before;
  for (int w = 0; w < warp; ++w) before = kind.join(before, static_cast<P>(all.warps[w]));
#pragma unroll
  for (int r = 0; r < rows_a_warp; ++r) {
    if (r >= own.rows) break;
    const int i = (r * 32 + t) * 4;
    L in_row[4], left, row;
    joins_in_row(kind, own.get(r), i, mine.n, t, 32, in_row, left, row);
    const P entered = kind.join(before, static_cast<P>(left));
    P y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = kind.join(entered, static_cast<P>(in_row[j]));
    store_results(kind, mine, i, entered, y);
    before = kind.join(before, static_cast<P>(row));
  }
  if (last) clear_boxes(d, t);
}

template <class K>
__global__ __launch_bounds__(block_warps * 32) void scan_blocks_of_leaf(const K kind, const scanned d) {
  using E = typename K::element;
  using P = typename K::partial;
  extern __shared__ uint4 room[];
  __shared__ told<K> all;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t leaves = order::leaves(d.length), s = blockIdx.x / leaves, k = blockIdx.x - s * leaves;
  const places<K> at = leaf_places<K>(d, s, k);
  constexpr int each = rows_a_warp * order::lanes;
  places<K> mine = at;
  mine.n = max(0, min(each, at.n - warp * each));
  mine.src += int64_t{warp} * each * at.stride, mine.dst += int64_t{warp} * each * at.dst_stride;
  mailbox* const boxes = d.boxes + s * d.boxes_a_sequence * words_of<P>;
  auto* const leaf = reinterpret_cast<quad<E>*>(room);
  const auto x = rows_of_leaf<K>(leaf, 0, at.n, t);
  const auto own = rows_of_leaf<K>(leaf, rows_a_warp * warp, mine.n, t);
  follow_on();
  stage(own, mine.src, mine.n, t, mine.whole_src, mine.stride);
  __syncwarp();  // in place: all of a warp's rows are read before its first result is written
  if constexpr (K::ordered) {
    auto* const groups = reinterpret_cast<double*>(room + order::leaf * sizeof(E) / 16);
    mailbox* const edges = d.boxes + d.count * d.boxes_a_sequence + s * leaves;
    scan_leaf_in_order(kind, at, mine, x, own, leaf, groups, all, boxes, edges, d, k, leaves, t, warp);
  } else {
    scan_leaf_exactly(kind, mine, own, all, boxes, d, k, leaves, t, warp);
  }
}

}  // namespace lockstep::cuda
