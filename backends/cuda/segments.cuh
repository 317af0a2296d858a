// segments.cuh - the kernels for sequences whose lengths only the device knows.
//
//   reduce_segments   a warp four segments: 8 threads each where all four have at most
//                     32 elements, else the warp one after another; those of more than
//                     16 leaves go onto a list
//   reduce_listed     every block takes tasks of every listed segment; a segment's last
//                     block joins them
// A list that is full costs time only: the warp folds the segment itself. Its order,
// which atomics decide, says who works where, never what is added to what.
#pragma once

#include "sequences.cuh"

namespace lockstep::cuda {

struct listed_segment {
  int64_t sequence;
  int slot, tasks, leaves_a_task;  // partial results slot, slot + 1, ...
  unsigned ticket;
};
struct segment_list {
  unsigned segments, slots, unused[2];  // cleared before reduce_segments
  listed_segment segment[1024];
};
constexpr unsigned most_slots = 32768;
constexpr int short_leaves = 16;

// By one thread; false when the list is full.
__device__ inline bool enlist(segment_list* list, int64_t s, int64_t leaves) {
  int task = short_leaves;
  while (task < most_leaves && int64_t{task} * 256 < leaves) task *= 2;
  const int64_t tasks = (leaves + task - 1) / task;
  if (tasks > most_slots) return false;
  const unsigned slot = atomicAdd(&list->slots, static_cast<unsigned>(tasks));
  if (slot + tasks > most_slots) return false;
  const unsigned place = atomicAdd(&list->segments, 1u);
  if (place >= 1024) return false;
  list->segment[place] = {s, static_cast<int>(slot), static_cast<int>(tasks), task, 0};
  return true;
}

template <class Fold>
__global__ __launch_bounds__(block_threads, 3) void reduce_segments(Fold fold, const sequences all, report_word word,
                                                                    segment_list* list) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  constexpr int group = 8;
  const int t = threadIdx.x % 32, u = t % group;
  const int64_t first = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32 * (32 / group), s = first + t / group;
  const int64_t stride = all.element_stride;
  one_sequence<T> mine{static_cast<const T*>(all.src), -1};  // -1: nothing to do
  if (s < all.count && fold.open(s)) mine = sequence_at<T>(all, s, word);
  if (__all_sync(all_lanes, mine.length <= 4 * group)) {
    const int n = static_cast<int>(mine.length);
    T x[4] = {};
    if (n > 0) {
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) x[slot] = mine.at[min(u + group * slot, n - 1) * stride];
    }
    typename Fold::lane lane[1][Fold::slots];
    for (auto& l : lane[0]) l = fold.empty_lane();
#pragma unroll
    for (int slot = 0; slot < 4; ++slot)
      fold.take_if(lane[0][slot % Fold::slots], x[slot], u + group * slot, u + group * slot < n);
    P value[1];
    if constexpr (Fold::ordered)
      join_rows<1>(fold, lane, value, t, group);
    else
      join_rows_exactly(fold, lane, value, group);
    if (u == 0 && n > 0) fold.store(value[0], s);
    if (u == 0 && n == 0) fold.store_empty(s);
    return;
  }
  for (int64_t k = first; k < first + 32 / group; ++k) {
    const int from = static_cast<int>(k - first) * group;
    const one_sequence<T> seq = from_thread(mine, from);
    if (seq.length < 0) continue;
    (void)fold.open(k);
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
    if (listed) continue;
    const P value = fold_sequence<Fold, 1>(fold, seq.at, stride, seq.length, t);
    if (t == 0) fold.store(value, k);
  }
}

template <class Fold>
__global__ __launch_bounds__(block_threads, 3) void reduce_listed(Fold fold, const sequences all, report_word word,
                                                                  segment_list* list,
                                                                  typename Fold::partial* partials) {
  using P = typename Fold::partial;
  __shared__ P values[most_leaves];
  __shared__ bool last;
  const unsigned segments = min(list->segments, 1024u), blocks = gridDim.x;
  unsigned turn = 0;  // the block that takes this segment's first task
  for (unsigned k = 0; k < segments; ++k) {
    listed_segment& item = list->segment[k];
    const int tasks = item.tasks;
    const int64_t s = item.sequence;
    int task = static_cast<int>((blockIdx.x + blocks - turn) % blocks);
    turn = (turn + static_cast<unsigned>(tasks)) % blocks;
    if (task >= tasks) continue;
    (void)fold.open(s);
    const auto seq = sequence_at<typename Fold::element>(all, s, word);
    const int64_t leaves = order::leaves(seq.length);
    for (; task < tasks; task += static_cast<int>(blocks)) {
      const int64_t first = int64_t{task} * item.leaves_a_task;
      const int here = static_cast<int>(leaves - first < item.leaves_a_task ? leaves - first : item.leaves_a_task);
      P value = fold_subtree<1, rows_ahead<false, typename Fold::element>>(fold, seq.at, all.element_stride, seq.length,
                                                                           first, here, values);
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

}  // namespace lockstep::cuda
