// sequences.cuh - the kernels that run any fold over the sequences of a
// lockstep_reduce_desc; shapes.cuh says which of them takes which shape.
//
//   reduce_warp     a warp a sequence, leaf after leaf: strided ones of one leaf, empty ones
//   reduce_tree     a block takes an aligned subtree of 2^k leaves; where a sequence
//                   has several, one block joins them
//   reduce_alone    a thread a sequence: the naive rung
// short_rows.cuh, split_rows.cuh and rows.cuh hold those for short rows, lane_rows.cuh one for rows of few leaves,
// columns.cuh and segments.cuh the rest.
//
// Idea    square_sum.cu's: leaves to warps in turn, so that a block streams contiguous
//         memory; values wait in shared memory for the tree; one block joins the others' (mailbox.cuh)
// Moves   n elements read once; a partial result a task, of at most 256 leaves
// Limit   memory reads, from about 16 Mi elements; below that the way to the block that joins
// Watch   who waits for a mailbox must find it written; indices of elements are 64 bits wide
// Source  lib/order.hpp
#pragma once

#include "mailbox.cuh"
#include "norm.cuh"

namespace lockstep::cuda {

struct sequences {
  const void* src;
  int64_t count, length, element_stride, sequence_stride;
  const int64_t* offsets;
};

template <class T>
struct one_sequence {
  const T* at;
  int64_t length;
};

// Sequence s; one whose offsets decrease is reported and taken as empty.
template <class T>
__device__ __forceinline__ one_sequence<T> sequence_at(const sequences& all, int64_t s, report_word word) {
  const T* src = static_cast<const T*>(all.src);
  if (all.offsets == nullptr) return {src + s * all.sequence_stride, all.length};
  const int64_t begin = all.offsets[s], end = all.offsets[s + 1];
  if (begin < 0 || end < begin) {
    report(word, fault::invalid, s);
    return {src, -1};
  }
  return {src + begin * all.element_stride, end - begin};
}

constexpr int block_threads = 256;
constexpr int most_leaves = 256;  // of a block's subtree; values wait in shared memory

// ---- a thread a sequence -------------------------------------------------------------
// Lanes visited in bit-reversed order join like a binary counter's carries, so 7
// partials stand in for 128.
template <class Fold>
__global__ __launch_bounds__(block_threads) void reduce_alone(Fold fold, const sequences all, report_word word) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  const int64_t s = int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (s >= all.count || !fold.open(s)) return;
  const one_sequence<T> seq = sequence_at<T>(all, s, word);
  if (seq.length < 0) return;
  if (seq.length == 0) return fold.store_empty(s);
  const int64_t stride = all.element_stride;
  P part[64];
  int64_t count = 0;
  const auto push = [&](P value, int64_t before, int level) {
    for (; (before >> level) & 1; ++level) value = fold.join(part[level], value);
    part[level] = value;
  };
  for (int64_t first = 0; first < seq.length; first += order::leaf, ++count) {
    P lanes[8];
    P value{};
    for (int k = 0; k < order::lanes; ++k) {
      typename Fold::lane acc = fold.empty_lane();
      for (int row = 0; row < order::rows; ++row) {
        const int i = row * order::lanes + static_cast<int>(__brev(static_cast<unsigned>(k)) >> 25);
        if (first + i < seq.length) fold.take(acc, seq.at[(first + i) * stride], i);
      }
      if constexpr (Fold::ordered)
        value = acc;
      else
        value = fold.close(acc, first);
      int level = 0;
      for (; (k >> level) & 1; ++level) value = fold.join(lanes[level], value);
      lanes[level] = value;
    }
    push(lanes[7], count, 0);
  }
  P total = fold.none();
  for (int level = 0; level < 64; ++level)
    if ((count >> level) & 1) total = fold.join(part[level], total);
  fold.store(total, s);
}

// ---- a warp a sequence -----------------------------------------------------------------
template <class Fold, int V>
__device__ __forceinline__ typename Fold::partial fold_sequence(const Fold& fold, const typename Fold::element* at,
                                                                int64_t stride, int64_t length, int t) {
  using P = typename Fold::partial;
  if constexpr (!Fold::ordered) {
    P mine = fold.none();
    for (int64_t first = 0; first < length; first += order::leaf)
      mine = fold.join(mine, fold_leaf<V>(fold, at + first * stride, stride, length - first, first, t));
    return join_warp(fold, mine);
  } else {
    warp_counter<Fold> tree;
    for (int64_t first = 0; first < length; first += order::leaf)
      tree.push(fold, fold_leaf<V>(fold, at + first * stride, stride, length - first, first, t), t);
    return tree.total(fold);
  }
}

// The same, and stores it.
template <class Fold>
__device__ __forceinline__ void store_sequence(const Fold& fold, const typename Fold::element* at, int64_t stride,
                                               int64_t length, int64_t s, int t) {
  const auto value = fold_sequence<Fold, 1>(fold, at, stride, length, t);
  if constexpr (is_norm<Fold>) {
    if (fold.needs_again(value)) {  // every thread has the value
      const double root = norm_again(value, [&](const auto& by) {
        return fold_sequence<std::remove_cvref_t<decltype(by)>, 1>(by, at, stride, length, t);
      });
      if (t == 0) fold.store_root(root, s);
      return;
    }
  }
  if (t == 0) fold.store(value, s);
}

template <class Fold>
__global__ __launch_bounds__(block_threads, 3) void reduce_warp(Fold fold, const sequences all, report_word word) {
  using T = typename Fold::element;
  const int t = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (block_threads / 32);
  for (int64_t s = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32; s < all.count; s += step) {
    const one_sequence<T> seq = sequence_at<T>(all, s, word);
    if (seq.length < 0) continue;
    if (seq.length == 0) {
      if (t == 0) fold.store_empty(s);
      continue;
    }
    store_sequence(fold, seq.at, all.element_stride, seq.length, s, t);
  }
}

// Lets the next kernel of this stream start its blocks while this one's last ones
// run, and waits for the one before to be done: launches overlap, effects do not.
__device__ __forceinline__ void overlap_launches() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// ---- a block a subtree -------------------------------------------------------------------
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
    if (LOCKSTEP_DEVICE_MUTANT("leaf_int32_index")) i = static_cast<int32_t>(i);
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
  if (!LOCKSTEP_DEVICE_MUTANT("subtree_barrier_dropped"))
    __syncthreads();  // warp 0 reads the values that every warp has written
  const auto load = [&](int i) {
    LOCKSTEP_SEEN(read_own, values, &values[i]);
    return values[i];
  };
  return warp == 0 ? join_values(fold, Fold::ordered ? here : warps, t, load) : fold.none();
}

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

// Where a sequence has several tasks their blocks hand over to its last one, or to a block that has no task and
// joins while the others read, which pays from 32 Mi elements on. Without mailboxes they leave partials, and
// join_partials follows. Rows in flight and blocks a multiprocessor: 8 and 4 are the fastest up to 4 Mi elements, 16
// and 2 beyond.
template <bool large, class T>
constexpr int rows_ahead = large && sizeof(T) > 2 ? 64 / sizeof(T) : 32 / sizeof(T);

template <class Fold, int V, bool large>
__global__ __launch_bounds__(block_threads,
                             large ? 2 : 4) void reduce_tree(Fold fold, const sequences all, const int leaves_a_task,
                                                             const int64_t tasks, typename Fold::partial* partials,
                                                             mailbox* boxes) {
  using P = typename Fold::partial;
  __shared__ P values[most_leaves];
  [[maybe_unused]] __shared__ bool again;
  overlap_launches();
  const int64_t leaves = order::leaves(all.length), total = all.count * tasks;
  const auto finish = [&](int64_t s) {
    const P value = join_handed_over(fold, boxes + s * tasks * words_of<P>, tasks, values);
    if (threadIdx.x != 0) return;
    LOCKSTEP_SEEN(write_dst, 8, s * 8);
    fold.store(value, s);
  };
  const bool apart = gridDim.x > total;  // block 0 has no task: it joins those of the one sequence
  if (apart && blockIdx.x == 0) {
    if (fold.open(0)) finish(0);
    return;
  }
  for (int64_t work = int64_t{blockIdx.x} - apart; work < total; work += gridDim.x) {
    const int64_t s = tasks == 1 ? work : work / tasks;
    const int64_t first = first_leaf(work - s * tasks, leaves_a_task);
    if (!fold.open(s)) continue;
    const int here = leaves_here(leaves, first, leaves_a_task);
    const auto* at = static_cast<const typename Fold::element*>(all.src) + s * all.sequence_stride;
    const P value = fold_subtree<V, rows_ahead<large, typename Fold::element>, large>(fold, at, all.element_stride,
                                                                                      all.length, first, here, values);
    if (threadIdx.x == 0) {
      if (tasks == 1) {
        LOCKSTEP_SEEN(write_dst, 8, s * 8);
        if constexpr (is_norm<Fold>) again = fold.needs_again(value);
        fold.store(value, s);
      } else if (boxes != nullptr) {
        LOCKSTEP_SEEN(write_partial, boxes, &boxes[work * words_of<P>]);
        hand_over(&boxes[work * words_of<P>], value);
      } else {
        partials[work] = value;
      }
    }
    __syncthreads();  // warp 0 has read values; a norm's warps wait for thread 0's `again`
    if constexpr (is_norm<Fold>) {
      if (tasks == 1 && again) {
        constexpr int ahead = rows_ahead<large, double>;
        const double root = norm_by_block<V, ahead, large>(value, at, all.element_stride, all.length, here, values);
        if (threadIdx.x == 0) fold.store_root(root, s);
      }
    }
    if (boxes == nullptr || apart || work != (s + 1) * tasks - 1) continue;
    finish(s);
    __syncthreads();  // the next task writes values after warp 0 has read them
  }
}

}  // namespace lockstep::cuda
