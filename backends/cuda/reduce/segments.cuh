// segments.cuh - the kernels for sequences whose lengths only the device knows.
//
//   reduce_segments   a warp four segments: 8 threads each where all four have at most 32 elements,
//                     together up to 512, else the warp one after another; those of more than 16
//                     leaves go onto a list. Of very many segments a warp takes 32, staged in shared
//                     memory and folded by a thread each where all are short
//   reduce_few_segments  a block eight segments, whose leaves its warps share; long ones are listed too
//   reduce_listed     every block takes tasks of every listed segment; a segment's last
//                     block joins them
//
// Idea    Who works is decided where the offsets are known: a thread, 8 threads or a warp a
//         segment by its length, all blocks together for long ones.
// Moves   n elements and the offsets read once; of a listed segment a partial result a
//         task written and read
// Limit   latencies: offsets, then elements. 0.30 to 0.54 of the memory's speed at a mean
//         of 10 elements (H200)
// Watch   A full list costs time only: the warp then folds the segment itself. The list's order, which
//         atomics decide, says which block works on which segment, never what is added to what.
// Source  lib/bits/order.hpp; figures in tests/results/tries.md.
#pragma once

#include "subtree.cuh"
#include "way.cuh"

namespace lockstep::cuda {

struct listed_segment {
  int64_t sequence;
  int slot, tasks, leaves_a_task;  // partial results slot, slot + 1, ...
  unsigned ticket;
};
struct segment_list {
  unsigned segments, slots, unused[2];  // cleared before reduce_segments
  listed_segment segment[most_listed];
};

// By one thread; false when the list is full.
__device__ inline bool enlist(segment_list* list, int64_t s, int64_t leaves) {
  int task = short_leaves;
  while (task < most_leaves && int64_t{task} * 256 < leaves) task *= 2;
  const int64_t tasks = (leaves + task - 1) / task;
  if (tasks > most_slots) return false;
  const unsigned slot = atomicAdd(&list->slots, static_cast<unsigned>(tasks));
  if (slot + tasks > most_slots) return false;
  const unsigned place = atomicAdd(&list->segments, 1u);
  if (place >= most_listed) return false;
  list->segment[place] = {s, static_cast<int>(slot), static_cast<int>(tasks), task, 0};
  return true;
}

// A thread's own sequence of at most S elements: lanes l, l + d, l + 2 d ... of S, depth first, so that
// few values wait for their partners. n may be 0.
template <int S, int d, class Fold>
__device__ __forceinline__ typename Fold::partial fold_lanes(const Fold& fold, const typename Fold::element* at, int n,
                                                             int l) {
  if constexpr (d == S) {
    typename Fold::lane lane = fold.empty_lane();
    fold.take_if(lane, at[min(l, max(n, 1) - 1)], l, l < n);
    return lane;
  } else {
    return fold.join(fold_lanes<S, 2 * d>(fold, at, n, l), fold_lanes<S, 2 * d>(fold, at, n, l + d));
  }
}
template <int S, class Fold>
__device__ __forceinline__ typename Fold::partial fold_alone(const Fold& fold, const typename Fold::element* at,
                                                             int n) {
  if constexpr (Fold::ordered) {
    return fold_lanes<S, 1>(fold, at, n, 0);
  } else {
    typename Fold::lane lane = fold.empty_lane();
#pragma unroll
    for (int l = 0; l < S; ++l) fold.take_if(lane, at[min(l, max(n, 1) - 1)], l, l < n);
    return fold.close(lane, 0);
  }
}

// `each` segments of a warp, from `first` on, a thread each. False: not all are short.
template <class Fold>
__device__ __forceinline__ bool fold_staged(const Fold& fold, const sequences& all, int64_t first, int each,
                                            typename Fold::element* tile) {
  using T = typename Fold::element;
  constexpr int most = staged_bytes / sizeof(T), ahead = 12;  // loads in flight: one round for a mean of 12
  const int t = threadIdx.x % 32;
  const int64_t s = first + t, past = min(first + each, all.count);
  const int64_t begin = all.offsets[min(s, past)], end = all.offsets[min(s + 1, past)];
  const int64_t left = __shfl_sync(all_lanes, begin, 0), total = __shfl_sync(all_lanes, end, 31) - left;
  const bool fits = begin >= left && are_offsets(begin, end, all.length) && end - begin <= short_segment && left >= 0 &&
                    total <= most;
  if (!__all_sync(all_lanes, fits)) return false;
  const T* from = static_cast<const T*>(all.src) + left;
  for (int i = t; i < total; i += 32 * ahead) {
    T x[ahead];
#pragma unroll
    for (int k = 0; k < ahead; ++k) x[k] = from[min(i + 32 * k, static_cast<int>(total) - 1)];
#pragma unroll
    for (int k = 0; k < ahead; ++k)
      if (i + 32 * k < total) tile[i + 32 * k] = x[k];
  }
  __syncwarp();  // each thread reads what the others have put there
  const int n = static_cast<int>(end - begin);
  const T* at = tile + (n > 0 ? begin - left : 0);
  bool longer = __any_sync(all_lanes, n > 16);
  const bool middle = __any_sync(all_lanes, n > 8);
  const auto folded = [&](const auto& by) {
    return longer ? fold_alone<32>(by, at, n) : middle ? fold_alone<16>(by, at, n) : fold_alone<8>(by, at, n);
  };
  const auto value = folded(fold);
  if constexpr (is_norm<Fold>) {
    if (__any_sync(all_lanes, n > 0 && fold.needs_again(value))) {
      const double root = norm_again(n > 0 ? value : 0.0, folded);
      if (s < past) fold.store_root(root, s);
      return true;
    }
  }
  if (s < past) {
    if (n > 0)
      fold.store(value, s);
    else
      fold.store_empty(s);
  }
  return true;
}

// Four segments of a warp, 8 threads each.
template <class Fold>
__device__ __forceinline__ void fold_four(const Fold& fold, const sequences& all, int64_t first, report_word word,
                                          segment_list* list) {
  using T = typename Fold::element;
  constexpr int group = 8;
  const int t = threadIdx.x % 32, u = t % group;
  const int64_t s = first + t / group;
  const int64_t stride = all.element_stride;
  one_sequence<T> mine{static_cast<const T*>(all.src), -1};  // -1: nothing to do
  if (s < all.count) mine = sequence_at<T>(all, s, word);
  if (__all_sync(all_lanes, mine.length <= short_segment)) {
    const int n = static_cast<int>(mine.length);
    const auto folded = [&](const auto& by) {
      using by_fold = std::remove_cvref_t<decltype(by)>;
      T x[4] = {};
      if (n > 0) {
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) x[slot] = mine.at[min(u + group * slot, n - 1) * stride];
      }
      typename by_fold::lane lane[1][by_fold::slots];
      for (auto& l : lane[0]) l = by.empty_lane();
#pragma unroll
      for (int slot = 0; slot < 4; ++slot)
        by.take_if(lane[0][slot % by_fold::slots], x[slot], u + group * slot, u + group * slot < n);
      typename by_fold::partial value[1];
      if constexpr (by_fold::ordered)
        join_rows<1>(by, lane, value, t, group);
      else
        join_rows_exactly(by, lane, value, group);
      return value[0];
    };
    const auto value = folded(fold);
    if (u == 0 && n == 0) fold.store_empty(s);
    if constexpr (is_norm<Fold>) {
      if (__any_sync(all_lanes, n > 0 && fold.needs_again(value))) {
        const double root = norm_again(value, folded);
        if (u == 0 && n > 0) fold.store_root(root, s);
        return;
      }
    }
    if (u == 0 && n > 0) fold.store(value, s);
    return;
  }
  if (__all_sync(all_lanes, mine.length >= 0 && mine.length <= joined_segment)) {
    constexpr int four = 32 / group;
    one_sequence<T> seq[four];
    int longest = 0;
#pragma unroll
    for (int b = 0; b < four; ++b) {
      seq[b] = from_thread(mine, b * group);
      longest = max(longest, static_cast<int>(seq[b].length));
    }
    typename Fold::lane lane[four][Fold::slots];
#pragma unroll
    for (int b = 0; b < four; ++b)
      for (auto& l : lane[b]) l = fold.empty_lane();
#pragma unroll 1
    for (int row = 0; row < longest; row += order::lanes) {
      T x[four][4] = {};
#pragma unroll
      for (int b = 0; b < four; ++b)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          if (seq[b].length > 0)
            x[b][slot] = seq[b].at[min(row + lane_of<1>(t, slot), static_cast<int>(seq[b].length) - 1) * stride];
#pragma unroll
      for (int b = 0; b < four; ++b)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) {
          const int i = row + lane_of<1>(t, slot);
          fold.take_if(lane[b][slot % Fold::slots], x[b][slot], i, i < seq[b].length);
        }
    }
    typename Fold::partial value[four];
    if constexpr (Fold::ordered)
      join_rows<1>(fold, lane, value, t);
    else
      join_rows_exactly(fold, lane, value, 32);
    auto own = value[0];  // of this thread's own group
#pragma unroll
    for (int b = 1; b < four; ++b)
      if (t / group == b) own = value[b];
    bool again = false;  // a norm's elements are scaled by their own segment's exponent: one after another
    if constexpr (is_norm<Fold>) again = __any_sync(all_lanes, mine.length > 0 && fold.needs_again(own));
    if (!again) {
      if (u == 0 && mine.length == 0) fold.store_empty(s);
      if (u == 0 && mine.length > 0) fold.store(own, s);
      return;
    }
  }
  for (int64_t k = first; k < first + 32 / group; ++k) {
    const int from = static_cast<int>(k - first) * group;
    const one_sequence<T> seq = from_thread(mine, from);
    if (seq.length < 0) continue;
    if (seq.length == 0) {
      if (t == 0) fold.store_empty(k);
      continue;
    }
    const int64_t leaves = order::leaves(seq.length);
    bool listed = false;
    if (leaves > short_leaves) {
      if (t == 0) listed = enlist(list, k, leaves);
      listed = __shfl_sync(all_lanes, listed, 0);
    }
    if (!listed) store_sequence(fold, seq.at, stride, seq.length, k, t);
  }
}

// staged: a warp 32 segments, otherwise four.
template <class Fold, bool staged>
__global__ __launch_bounds__(block_threads, 3) void reduce_segments(Fold fold, const sequences all, report_word word,
                                                                    segment_list* list) {
  constexpr int each = staged ? 32 : 4;
  const int64_t first = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32 * each;
  if (first >= all.count) return;
  if constexpr (staged) {
    __shared__ __align__(16) unsigned char tiles[block_threads / 32][staged_bytes];
    if (fold_staged(fold, all, first, each, reinterpret_cast<typename Fold::element*>(tiles[threadIdx.x / 32]))) return;
  }
#pragma unroll 1
  for (int64_t k = first; k < first + each && k < all.count; k += 4) fold_four(fold, all, k, word, list);
}

// Eight segments a block, whose warps take the leaves in turn: none waits for another's long segment.
template <class Fold>
__global__ __launch_bounds__(block_threads, 3) void reduce_few_segments(Fold fold, const sequences all,
                                                                        report_word word, segment_list* list) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  constexpr int warps = block_threads / 32;
  __shared__ one_sequence<T> segments[warps];
  __shared__ int ends[warps];  // of the segments' leaves among the block's
  __shared__ P values[warps * short_leaves];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t first = int64_t{blockIdx.x} * warps, stride = all.element_stride;
  follow_on();
  if (warp == 0) {
    one_sequence<T> mine{static_cast<const T*>(all.src), -1};  // -1: nothing to do
    int leaves = 0;
    if (t < warps && first + t < all.count) {
      mine = sequence_at<T>(all, first + t, word);
      const int64_t all_leaves = order::leaves(max(mine.length, int64_t{0}));
      if (all_leaves <= short_leaves)
        leaves = static_cast<int>(all_leaves);
      else if (enlist(list, first + t, all_leaves))
        mine.length = -1;
    }
#pragma unroll
    for (int d = 1; d < warps; d *= 2) {
      const int before = __shfl_up_sync(all_lanes, leaves, d);
      if (t >= d) leaves += before;
    }
    if (t < warps) segments[t] = mine, ends[t] = leaves;
  }
  __syncthreads();  // all warps read the segments
  int of = 0;
  for (int k = warp; k < ends[warps - 1]; k = next_turn(k, warps)) {
    while (k >= ends[of]) ++of;
    const one_sequence<T> segment = segments[of];
    const int64_t i = (k - (of == 0 ? 0 : ends[of - 1])) * order::leaf;
    P value = fold_leaf<1>(fold, segment.at + i * stride, stride, segment.length - i, i, t);
    if constexpr (!Fold::ordered) value = join_warp(fold, value);
    if (t == 0) values[k] = value;
  }
  __syncthreads();  // a warp joins what all have left
  const one_sequence<T> own = segments[warp];
  if (own.length < 0) return;
  const int64_t s = first + warp;
  if (own.length == 0) {
    if (t == 0) fold.store_empty(s);
    return;
  }
  const int begin = warp == 0 ? 0 : ends[warp - 1], leaves = ends[warp] - begin;
  bool again = leaves == 0;  // a long one for which the list had no room
  if (!again) {
    const P value = join_values(fold, leaves, t, [&](int i) { return values[begin + i]; });
    if constexpr (is_norm<Fold>) again = fold.needs_again(value);  // every thread has the value
    if (!again && t == 0) fold.store(value, s);
  }
  if (again) store_sequence(fold, own.at, stride, own.length, s, t);
}

// Counts a block as finished; true for the last of `blocks`, which leaves 0 (the step of the CUDA sample
// threadFenceReduction). What the block wrote before is seen by whoever sees its ticket, and the last block,
// past its next barrier, sees what all others wrote (release and acquire in one; a __threadfence on
// both sides does the same and costs a second round to the L2).
__device__ __forceinline__ bool take_ticket(unsigned* ticket, unsigned blocks) {
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.inc.u32 %0, [%1], %2;"
               : "=r"(before)
               : "l"(ticket), "r"(blocks - 1)
               : "memory");
  return before == blocks - 1;
}

template <class Fold>
__global__ __launch_bounds__(block_threads, 3) void reduce_listed(Fold fold, const sequences all, report_word word,
                                                                  segment_list* list,
                                                                  typename Fold::partial* partials) {
  using P = typename Fold::partial;
  __shared__ P values[most_leaves];
  __shared__ bool last;
  follow_on();
  const unsigned segments = min(list->segments, most_listed), blocks = gridDim.x;
  unsigned turn = 0;  // the block that takes this segment's first task
  for (unsigned k = 0; k < segments; ++k) {
    listed_segment& item = list->segment[k];
    const int tasks = item.tasks;
    const int64_t s = item.sequence;
    int task = static_cast<int>((blockIdx.x + blocks - turn) % blocks);
    turn = (turn + static_cast<unsigned>(tasks)) % blocks;
    if (task >= tasks || !fold.open(s)) continue;
    const auto seq = sequence_at<typename Fold::element>(all, s, word);
    const int64_t leaves = order::leaves(seq.length);
    for (; task < tasks; task += static_cast<int>(blocks)) {
      const int64_t first = int64_t{task} * item.leaves_a_task;
      const int here = static_cast<int>(leaves - first < item.leaves_a_task ? leaves - first : item.leaves_a_task);
      P value = fold_subtree<1, rows_ahead<false, typename Fold::element>, false>(fold, seq.at, all.element_stride,
                                                                                  seq.length, first, here, values);
      if (threadIdx.x == 0) {
        partials[item.slot + task] = value;
        last = take_ticket(&item.ticket, static_cast<unsigned>(tasks));
      }
      __syncthreads();  // every warp waits for thread 0's `last`, and for warp 0 to have read values
      if (!last) continue;
      value = join_tasks(fold, partials + item.slot, tasks, values);
      if (threadIdx.x == 0) fold.store(value, s);
      __syncthreads();  // the next task writes values after warp 0 has read them
    }
  }
}

// Segments per SM. So few are shared out by leaves.
constexpr int64_t few_segments = 64;

// staged: 32 segments a warp, folded in shared memory by a thread each where all are short.
template <bool staged>
struct by_segments : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    if (call.reduce.offsets == nullptr) return "needs segments, sequences of lengths of their own";
    return staged && call.reduce.element_stride != 1 ? "needs segments without gaps between their elements" : nullptr;
  }
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    return staged && call.reduce.count < queue.facts->processors * queue.facts->tuned.reductions.staged_segments;
  }
  static size_t partials(const lockstep_call& call) {
    return shares(call) ? sizeof(segment_list) + most_slots * partial_bytes : 0;
  }
  // Whether a segment may be too long for one warp: an array of few elements has none.
  static bool shares(const lockstep_call& call) {
    const int64_t length = call.reduce.length;
    return length == 0 || length > short_leaves * order::leaf;
  }
  template <class Fold>
  static constexpr bool takes = !narrow_extreme<Fold>;

  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    const sequences all = sequences_of(call);
    auto* list = static_cast<segment_list*>(call.workspace);
    lockstep_status status = LOCKSTEP_OK;
    if constexpr (!follows<Fold>)
      if (!shares(call)) return run_all(queue, fold, all, nullptr);
    if constexpr (is_norm<Fold>) {  // which finishes what it does not list
      Fold alone = fold;
      alone.plain = nullptr;
      status = run_all(queue, alone, all, list);
    } else if constexpr (!follows<Fold>) {
      status = run_all(queue, fold, all, list);
    }
    if (status != LOCKSTEP_OK) return status;
    const int64_t blocks = queue.facts->processors * queue.facts->tuned.reductions.listed_blocks;
    return launch_early(queue, "reduce_listed", reduce_listed<Fold>, static_cast<unsigned>(blocks), block_threads, 0,
                        fold, all, queue.report, list, reinterpret_cast<typename Fold::partial*>(list + 1));
  }

 private:
  template <class Fold>
  static lockstep_status run_all(lockstep_queue& queue, const Fold& fold, const sequences& all, segment_list* list) {
    if (list != nullptr) LOCKSTEP_CUDA(cudaMemsetAsync(list, 0, 2 * sizeof(unsigned), queue.stream));
    if (!staged && all.count <= queue.facts->processors * few_segments)
      return launch_soon(queue, "reduce_few_segments", reduce_few_segments<Fold>,
                         blocks_for(all.count, block_threads / 32), block_threads, 0, fold, all, queue.report, list);
    return launch(queue, "reduce_segments", reduce_segments<Fold, staged>,
                  blocks_for(all.count, block_threads / 32 * (staged ? 32 : 4)), block_threads, 0, fold, all,
                  queue.report, list);
  }
};

}  // namespace lockstep::cuda
