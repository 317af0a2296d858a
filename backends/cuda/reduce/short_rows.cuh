// short_rows.cuh - rows of one leaf straight from global memory.
//
//   reduce_packed     rows of at most 128: 1 to 32 threads per row, several rows per warp
//   reduce_row_pairs  contiguous rows of one leaf, two a warp; many short ones of 2 or 4 bytes are for
//                     split_rows.cuh and staged_rows.cuh
//
// Idea    A row's threads are as few as its lanes allow, so that a warp has several rows,
//         and several batches of loads, in flight before the first join.
// Moves   n elements read once; rows at odd addresses by the vectors around them
// Limit   memory for 8-byte elements (sums of 508,400 rows of 33 f64 0.71 of it, H200);
//         shuffles below
// Watch   A vector may reach into a neighbouring row, never out of src. The lanes of a row
//         at an odd address are rotated back (unrotate) before they join.
// Source  lib/bits/order.hpp; figures in tests/results/tries.md.
#pragma once

#include "lane_rows.cuh"
#include "way.cuh"

namespace lockstep::cuda {

// ---- several rows per warp ---------------------------------------------------------------
// `threads` (a power of two) threads hold the lanes of a row, four each: V = 4 as
// neighbours by one load, V = 1 as u + threads * slot for any alignment and stride.
// Several batches of rows are loaded before the first is joined: `first` is this thread's of the
// first batch.
template <int V, class Fold, int batches>
__device__ __forceinline__ void fold_packed(const Fold& fold, const sequences& all, int threads, int64_t first,
                                            typename Fold::partial (&value)[batches]) {
  using T = typename Fold::element;
  const int t = threadIdx.x % 32, u = t & (threads - 1), rows = 32 / threads;
  const int length = static_cast<int>(all.length);
  const auto lane_at = [&](int slot) { return V == 1 ? u + threads * slot : V * u + slot; };
  int64_t offset[4];
#pragma unroll
  for (int slot = 0; slot < 4; slot += V) offset[slot] = min(lane_at(slot), length - V) * all.element_stride;
  T x[batches][4];
#pragma unroll
  for (int b = 0; b < batches; ++b) {
    const T* at = static_cast<const T*>(all.src) + min(first + b * rows, all.count - 1) * all.sequence_stride;
#pragma unroll
    for (int slot = 0; slot < 4; slot += V) load_neighbours<V>(at + offset[slot], &x[b][slot]);
  }
  typename Fold::lane lane[batches][Fold::slots];
#pragma unroll
  for (int b = 0; b < batches; ++b) {
    for (auto& l : lane[b]) l = fold.empty_lane();
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      fold.take_if(lane[b][slot % Fold::slots], x[b][slot], lane_at(slot), lane_at(slot) < length);
  }
  if constexpr (Fold::ordered)
    join_rows<V>(fold, lane, value, t, threads);
  else
    join_rows_exactly(fold, lane, value, threads);
}

// spread: rows of 4 threads and more, of which each stores one batch's value: one store, and of a norm one root.
template <class Fold, int V, bool spread>
__global__ __launch_bounds__(block_threads, packed_blocks) void reduce_packed(Fold fold, const sequences all,
                                                                              const int threads) {
  using P = typename Fold::partial;
  constexpr int batches = 4;
  const int u = threadIdx.x & (threads - 1), rows = 32 / threads;
  const int64_t warp = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
  const int64_t first = warp * (rows * batches) + threadIdx.x % 32 / threads;
  P value[batches];
  follow_on();
  fold_packed<V>(fold, all, threads, first, value);
  if constexpr (is_norm<Fold>) {
    bool again = false;
#pragma unroll
    for (int b = 0; b < batches; ++b) again = again || fold.needs_again(value[b]);
    if (__any_sync(all_lanes, again)) {
#pragma unroll 1
      for (int b = 0; b < batches; ++b) {
        const int64_t s = first + b * rows;
        const auto folded = [&](const auto& by) {
          typename std::remove_cvref_t<decltype(by)>::partial one[1];
          fold_packed<V>(by, all, threads, s, one);
          return one[0];
        };
        const double root = norm_again(folded(fold), folded);
        if (u == 0 && s < all.count) fold.store_root(root, s);
      }
      return;
    }
  }
  if constexpr (spread) {
    P mine = value[0];
#pragma unroll
    for (int b = 1; b < batches; ++b)
      if (u == b) mine = value[b];
    if (u < batches && first + u * rows < all.count) fold.store(mine, first + u * rows);
  } else {
#pragma unroll
    for (int b = 0; b < batches; ++b)
      if (u == 0 && first + b * rows < all.count) fold.store(value[b], first + b * rows);
  }
}

// ---- a warp two contiguous rows ----------------------------------------------------------
// Rows of one leaf at any alignment, by 16-byte loads from the boundary before; the
// two rows' loads and shuffles overlap. A vector may reach into the neighbouring rows,
// but not out of src: rows at its ends that would are folded element by element.
template <class Fold, int V, int few>
__global__ __launch_bounds__(block_threads, 4) void reduce_row_pairs(Fold fold, const sequences all) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  constexpr int pair = 2;
  const int t = threadIdx.x % 32;
  const int64_t first = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32 * pair;
  if (first >= all.count) return;
  const T* begin = static_cast<const T*>(all.src);
  const T* end = begin + (all.count - 1) * all.sequence_stride + all.length;
  const int n = static_cast<int>(all.length);
  const T* base[pair];
  int m[pair];
  bool inside = first + pair <= all.count;
#pragma unroll
  for (int b = 0; b < pair; ++b) {
    const T* at = begin + (first + b) * all.sequence_stride;
    m[b] = static_cast<int>(reinterpret_cast<uintptr_t>(at) / sizeof(T)) & (V - 1);
    base[b] = at - m[b];
    inside = inside && base[b] >= begin && base[b] + (m[b] + n + V - 1) / V * V <= end;
  }
  follow_on();
  if (!inside) {
    for (int64_t s = first; s < first + pair && s < all.count; ++s)
      store_sequence(fold, begin + s * all.sequence_stride, 1, n, s, t);
    return;
  }
  typename Fold::lane lane[pair][Fold::slots];
#pragma unroll
  for (int b = 0; b < pair; ++b)
    for (auto& l : lane[b]) l = fold.empty_lane();
#pragma unroll 1
  for (int row = 0; row * order::lanes < n + max(m[0], m[1]); row += few) {
    T x[pair][few][4];
#pragma unroll
    for (int b = 0; b < pair; ++b)
#pragma unroll
      for (int r = 0; r < few; ++r)
#pragma unroll
        for (int slot = 0; slot < 4; slot += V) {
          const int i = (row + r) * order::lanes + lane_of<V>(t, slot);
          load_neighbours<V>(base[b] + min(i, (m[b] + n - 1) & -V), &x[b][r][slot]);
        }
#pragma unroll
    for (int b = 0; b < pair; ++b) {
#pragma unroll
      for (int r = 0; r < few; ++r) {
        const bool whole = row + r > 0 && (row + r + 1) * order::lanes <= m[b] + n;
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) {
          const int i = (row + r) * order::lanes + lane_of<V>(t, slot) - m[b];
          if (whole)
            fold.take(lane[b][slot % Fold::slots], x[b][r][slot], i);
          else
            fold.take_if(lane[b][slot % Fold::slots], x[b][r][slot], i, i >= 0 && i < n);
        }
      }
    }
  }
  P value[pair];
  if constexpr (Fold::ordered) {
#pragma unroll
    for (int b = 0; b < pair; ++b) unrotate<V>(lane[b], m[b], t);
    join_rows<V>(fold, lane, value, t);
  } else {
    join_rows_exactly(fold, lane, value, 32);
  }
  if constexpr (is_norm<Fold>) {
    if (fold.needs_again(value[0]) || fold.needs_again(value[1])) {  // every thread has the values
      for (int b = 0; b < pair; ++b)
        store_sequence(fold, begin + (first + b) * all.sequence_stride, 1, n, first + b, t);
      return;
    }
    if (t < pair) fold.store(t == 0 ? value[0] : value[1], first + t);  // one root for both
  } else {
#pragma unroll
    for (int b = 0; b < pair; ++b)
      if (t == 0) fold.store(value[b], first + b);
  }
}

struct by_short_rows : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    if (const char* why = not_of_one_length(call.reduce); why != nullptr) return why;
    return call.reduce.length > order::lanes ? "needs sequences of at most 128 elements" : nullptr;
  }
  template <class Fold>
  static constexpr bool takes = !follows<Fold>;
  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    const lockstep_reduce_desc& d = call.reduce;
    constexpr int V = sizeof(typename Fold::element) <= 4 ? 4 : 1;
    int threads = 1;
    while (threads * 4 < d.length) threads *= 2;
    const bool vectors = V == 4 && d.length > 8 && d.length % 4 == 0 && loads_neighbours(call);
    const auto kernel = vectors        ? reduce_packed<Fold, V, true>
                        : threads >= 4 ? reduce_packed<Fold, 1, true>
                                       : reduce_packed<Fold, 1, false>;
    return launch_soon(queue, "reduce_packed", kernel, blocks_for(d.count, 8 * 4 * (32 / threads)), block_threads, 0,
                       fold, sequences_of(call), threads);
  }
};

struct by_row_pairs : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    if (const char* why = not_rows(call.reduce); why != nullptr) return why;
    return call.reduce.length > order::leaf ? "needs rows of at most 2048 elements" : nullptr;
  }
  // A warp has enough to load of a row of 8-byte elements, and of a long one of 2-byte elements; so it has of few rows,
  // for which there are warps enough. Of extremes of 2-byte floats it is any_type that would have the row.
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    const int64_t bytes = element_bytes(d);
    if (bytes == 2 && finds_extremes(d)) return false;
    if (bytes != 4) return d.length >= (bytes == 8 ? tuned.warp_row_of_8 : tuned.warp_row_of_2);
    return by_lane_rows::suits(queue, d) || (finds_extremes(d) && d.count <= tuned.few_rows * queue.facts->processors);
  }
  template <class Fold>
  static constexpr bool takes = !follows<Fold>;
  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    constexpr int V = neighbours_of<Fold>;
    // Three rows of lanes at a time where they take no more rounds than four. Rows between loads may take one more.
    const int64_t rows = (call.reduce.length + (loads_neighbours(call) ? -1 : V - 2)) / order::lanes + 1;
    const auto kernel = (rows + 2) / 3 == (rows + 3) / 4 ? reduce_row_pairs<Fold, V, 3> : reduce_row_pairs<Fold, V, 4>;
    return launch_soon(queue, "reduce_row_pairs", kernel, blocks_for(call.reduce.count, block_threads / 32 * 2),
                       block_threads, 0, fold, sequences_of(call));
  }
};

}  // namespace lockstep::cuda
