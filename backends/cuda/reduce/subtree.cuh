// subtree.cuh - a sequence by a block or by several: who folds which leaves, and how partial results meet.
//
// Idea    Leaves go to a block's warps in turn, so that it streams contiguous memory;
//         their values wait in shared memory for the tree.
//         Blocks hand their subtrees' values over (mailbox.cuh), or leave them for join_partials.
// Watch   indices of elements are 64 bits wide
// Source  lib/bits/order.hpp
#pragma once

#include <algorithm>

#include "mailbox.cuh"
#include "sequences.cuh"

namespace lockstep::cuda {

// ---- one block per subtree -------------------------------------------------------------------
// The value of `here` leaves from leaf `first` of a sequence, in warp 0. Warps take
// leaves in turn, so that the block streams contiguous memory.
template <int V, int ahead, bool streams, class Fold>
__device__ __forceinline__ typename Fold::partial fold_subtree(const Fold& fold, const typename Fold::element* at,
                                                               int64_t stride, int64_t length, int64_t first, int here,
                                                               typename Fold::partial* values) {
  using P = typename Fold::partial;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  P mine = fold.none();
  for (int leaf = warp; leaf < here; leaf = next_turn(leaf, warps)) {
    int64_t i = (first + leaf) * order::leaf;
    const P value =
        fold_leaf<V, Fold, ahead, takes_rows<Fold>, streams>(fold, at + i * stride, stride, length - i, i, t, mine);
    if constexpr (!Fold::ordered)
      mine = fold.join(mine, value);
    else if (t == 0) {
      LOCKSTEP_SEEN(put_value, values, &values[leaf]);
      values[leaf] = value;
    }
  }
  if constexpr (!Fold::ordered) {
    if constexpr (!starts_from<Fold>) mine = join_warp(fold, mine);  // whose threads have the same already
    if (t == 0) values[warp] = mine;
  }
  __syncthreads();  // warp 0 reads the values that every warp has written
  const auto load = [&](int i) {
    LOCKSTEP_SEEN(read_own, values, &values[i]);
    return values[i];
  };
  return warp == 0 ? join_values(fold, Fold::ordered ? here : warps, t, load) : fold.none();
}

// Rows of a leaf in flight.
template <bool large, class T>
constexpr int rows_ahead = (large && sizeof(T) > 2 ? stream_ahead_bytes : ahead_bytes) / static_cast<int>(sizeof(T));

// The tree above all tasks of a sequence, by one block, in warp 0: value_of(first, how many) is that of
// 32 to 1,024 tasks, a power of two or the last ones, by a warp.
template <class Fold, class Value>
__device__ __forceinline__ typename Fold::partial join_chunks(const Fold& fold, int64_t tasks,
                                                              typename Fold::partial* values, const Value& value_of) {
  using P = typename Fold::partial;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  int chunk = 32;
  while (chunk < most_chunk && chunk * warps < tasks) chunk *= 2;
  const int chunks = static_cast<int>((tasks + chunk - 1) / chunk);  // at most 256: 2^37 elements
  for (int c = warp; c < chunks; c = next_turn(c, warps)) {
    const int64_t begin = int64_t{c} * chunk;
    const P value = value_of(begin, static_cast<int>(tasks - begin < chunk ? tasks - begin : chunk));
    if (t == 0) {
      LOCKSTEP_SEEN(put_value, values, &values[c]);
      values[c] = value;
    }
  }
  __syncthreads();  // warp 0 reads every warp's chunk values
  const auto load = [&](int i) {
    LOCKSTEP_SEEN(read_own, values, &values[i]);
    return values[i];
  };
  return warp == 0 ? join_values(fold, chunks, t, load) : fold.none();
}

// The same of tasks whose partial results lie in memory.
template <class Fold>
__device__ __forceinline__ typename Fold::partial join_tasks(const Fold& fold, const typename Fold::partial* partials,
                                                             int64_t tasks, typename Fold::partial* values) {
  return join_chunks(fold, tasks, values, [&](int64_t first, int here) {
    return join_values(fold, here, threadIdx.x % 32, [&](int i) { return load_fresh(partials + first + i); });
  });
}

// And of tasks whose blocks hand them over.
template <class Fold>
__device__ __forceinline__ typename Fold::partial join_handed_over(const Fold& fold, mailbox* boxes, int64_t tasks,
                                                                   typename Fold::partial* values) {
  return join_chunks(fold, tasks, values,
                     [&](int64_t first, int here) { return collect(fold, boxes, first, here, threadIdx.x % 32); });
}

// A norm whose plain sum, in thread 0 of a block that has the whole sequence, needs more.
template <int V, int ahead, bool streams, class Values>
__device__ __forceinline__ double norm_by_block(double sum, const double* at, int64_t stride, int64_t length,
                                                int leaves, Values* values) {
  __shared__ uint64_t magnitude;
  const uint64_t bits =
      fold_subtree<V, ahead, streams>(magnitudes{}, at, stride, length, 0, leaves, reinterpret_cast<uint64_t*>(values));
  if (threadIdx.x == 0) magnitude = order::needs_rescale(sum, __longlong_as_double(bits)) ? bits : 0;
  __syncthreads();  // all wait for thread 0's word, and for warp 0 to have read values
  if (magnitude == 0) return __dsqrt_rn(sum);
  const int e = order::rescale_exponent(magnitude);
  const double scaled =
      fold_subtree<V, ahead, streams>(scaled_sum{scaled_sum::power_of_two(-e)}, at, stride, length, 0, leaves, values);
  __syncthreads();  // the next sequence writes values and the word after they are read
  return __dmul_rn(__dsqrt_rn(scaled), scaled_sum::power_of_two(e));
}

// A warp joins the leaves of each sequence, most_chunk at a time; a block does where there are more
// (16 Mi x 4 columns have 8,192).
__host__ __device__ inline bool joined_by_block(int64_t leaves) {
  return leaves > most_chunk && leaves <= most_chunk * most_leaves;
}

template <class Fold>
__global__ __launch_bounds__(block_threads) void join_partials(Fold fold, const int64_t count, const int64_t leaves,
                                                               const typename Fold::partial* partials) {
  using P = typename Fold::partial;
  __shared__ P values[most_leaves];
  const int t = threadIdx.x % 32;
  const bool by_block = joined_by_block(leaves);
  const int64_t s = by_block ? blockIdx.x : (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
  follow_on();
  if (s >= count || !fold.open(s)) return;
  const P* of_sequence = partials + s * leaves;
  if (by_block) {
    const P total = join_tasks(fold, of_sequence, leaves, values);
    if (threadIdx.x == 0) fold.store(total, s);
    return;
  }
  warp_counter<Fold> tree;
  for (int64_t begin = 0; begin < leaves; begin += most_chunk)
    tree.push(fold,
              join_values(fold, static_cast<int>(leaves - begin < most_chunk ? leaves - begin : most_chunk), t,
                          [&](int i) { return of_sequence[begin + i]; }),
              t);
  const P total = tree.total(fold);
  if (t == 0) fold.store(total, s);
}

template <class Fold>
lockstep_status launch_join(const lockstep_queue& queue, const Fold& fold, int64_t count, int64_t parts,
                            const typename Fold::partial* partials) {
  return launch_soon(queue, "join_partials", join_partials<Fold>,
                     blocks_for(count, joined_by_block(parts) ? 1 : block_threads / 32), block_threads, 0, fold, count,
                     parts, partials);
}

}  // namespace lockstep::cuda
