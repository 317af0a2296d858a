// lanes.cuh - one warp per leaf, one block per aligned subtree of 2^k leaves: long rows and whole arrays.
//
// Idea    square_sum.cu's: 16 bytes per thread where src allows, a leaf's lanes joined by shuffles, one launch:
//         the block of a sequence's last task joins what the
//         others hand over (mailbox.cuh)
// Moves   n elements read once; one partial result per task of at most 256 leaves
// Limit   memory reads, from about 16 Mi elements; below that the way to the block that joins
// Watch   who waits for a mailbox must find it written
// Source  lib/bits/order.hpp
#pragma once

#include "subtree.cuh"
#include "way.cuh"

namespace lockstep::cuda {

// Where a sequence has several tasks their blocks hand over to its last one, or to a block that has no task and
// joins while the others read, which pays from 32 Mi elements on. Without mailboxes they leave partials, and
// join_partials follows.
template <class Fold, int V, bool large>
__global__ __launch_bounds__(block_threads, large ? stream_blocks : leaf_blocks) void reduce_tree(
    Fold fold, const sequences all, const int leaves_a_task, const int64_t tasks, typename Fold::partial* partials,
    mailbox* boxes) {
  using P = typename Fold::partial;
  __shared__ P values[most_leaves];
  [[maybe_unused]] __shared__ bool again;
  follow_on();
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

// large: more loads in flight, past the L1.
template <bool large>
struct by_leaves : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    if (const char* why = not_of_one_length(call.reduce); why != nullptr) return why;
    return large && !loads_neighbours(call) ? "needs rows without gaps that begin at multiples of a load" : nullptr;
  }
  // More loads in flight pay where there are many leaves, for small arrays, and in between for rows of whole leaves.
  // Else fewer do as well; for elements of 2 bytes they are better.
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    if (!large) return false;
    const lockstep_reduce_desc& d = call.reduce;
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    const int64_t leaves = d.count * order::leaves(d.length), bytes = element_bytes(d);
    if (bytes == 2) return true;
    if (!streams(queue, bytes_of(d)))
      return d.count == 1 || (bytes_of(d) > static_cast<double>(tuned.stream_small) && d.length % order::leaf != 0);
    if (tasks_of(d).count > 1) return leaves < tuned.stream_leaves;
    return leaves < queue.facts->processors * tuned.stream_leaves_a_processor;
  }
  static size_t partials(const lockstep_call& call) {
    const int64_t tasks = tasks_of(call.reduce).count;
    return tasks > 1 ? static_cast<size_t>(call.reduce.count) * static_cast<size_t>(tasks) * partial_bytes : 0;
  }
  static bool shares(const lockstep_call& call) { return tasks_of(call.reduce).count > 1; }
  template <class Fold>
  static constexpr bool takes = !narrow_extreme<Fold>;

  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    typedef typename Fold::partial P;
    static_assert(sizeof(P) <= partial_bytes);
    const sequences all = sequences_of(call);
    const int64_t leaves = order::leaves(all.length);
    const auto [a_task, tasks] = tasks_of(call.reduce);
    auto* partials = static_cast<P*>(call.workspace);
    // A captured graph may run beside this queue's other calls: it must not share their mailboxes.
    const bool hands_over = tasks > 1 && all.count * tasks * words_of<P> <= mailbox_count && !capturing(queue);
    const bool apart = hands_over && all.count == 1 && may_wait_apart(queue, tasks);
    // As many warps as share the leaves evenly (9 leaves: 5 warps, not 8). Whole leaves by fewer loads in flight are
    // faster with warps that idle.
    int warps = std::min(block_threads / 32, a_task);
    if (tasks == 1 && (large || all.length % order::leaf != 0)) {
      const int64_t rounds = (leaves + warps - 1) / warps;
      warps = static_cast<int>((leaves + rounds - 1) / rounds);
    }
    constexpr int V = neighbours_of<Fold>;
    const auto kernel = large || loads_neighbours(call) ? reduce_tree<Fold, V, large> : reduce_tree<Fold, 1, false>;
    const lockstep_status status =
        launch_early(queue, "reduce_tree", kernel, blocks_for(all.count * tasks + apart, 1), warps * 32, 0, fold, all,
                     a_task, tasks, partials, hands_over ? queue.mailboxes : nullptr);
    return status != LOCKSTEP_OK || tasks == 1 || hands_over ? status
                                                             : launch_join(queue, fold, all.count, tasks, partials);
  }

 private:
  // Whether a block without a task pays (below, the last task's joins as fast or faster), and is sure that the others
  // run beside it: so many grids may each have such a block, and an SM has two places or more.
  static bool may_wait_apart(const lockstep_queue& queue, int64_t tasks) {
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    return tasks > queue.facts->processors * tuned.apart_tasks && queue.facts->processors * 2 > tuned.apart_grids;
  }
};

}  // namespace lockstep::cuda
