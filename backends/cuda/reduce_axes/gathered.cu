// gathered.cu - reductions over axes that cannot be merged, each element read where it lies.
// Idea    A warp a leaf, as lanes.cuh: an element's place comes of its index by a multiplication and a shift an axis.
//         V neighbours by one load where the innermost runs allow it. Sequences of one leaf are a warp each, longer
//         ones a block's or several blocks'
// Moves   every element once, where a run fills its sectors
// Limit   memory reads; of 2-byte elements the indices
// Watch   the index of an element in its sequence has 31 bits, its place 64
// Source  lib/bits/order.hpp
#include "../reduce/by_fold.cuh"
#include "../reduce/columns.cuh"
#include "../reduce/subtree.cuh"
#include "gathered.hpp"

namespace lockstep::cuda {

namespace {

// Sums and sums of squares by one kernel: x * 1 + sum rounds as x + sum does.
template <class T>
struct gathered_sum : rounded_sum<T> {
  bool squares;

  __device__ void take_if(double& acc, T x, int, bool wanted) const {
    const double wide = widened(wanted ? x : negative_zero<T>());
    acc = __fma_rn(wide, squares ? wide : 1.0, acc);
  }
  __device__ void take(double& acc, T x, int i) const { take_if(acc, x, i, true); }
};

__device__ __forceinline__ int64_t place_of_element(const gathered_axes& d, uint32_t i) {
  const uint32_t first = d.gone[0].split(i);
  uint32_t second = first;
  const uint32_t third = d.gone[1].split(second);
  return int64_t{static_cast<int32_t>(i)} * d.gone_stride[0] +
         int64_t{static_cast<int32_t>(second)} * d.gone_stride[1] +
         int64_t{static_cast<int32_t>(third)} * d.gone_stride[2];
}
__device__ __forceinline__ int64_t place_of_sequence(const gathered_axes& d, int64_t s) {
  auto left = static_cast<uint32_t>(s);
  int64_t at = 0;
  for (int k = 0; k < d.kept_axes; ++k) {
    const uint32_t above = d.kept[k].split(left);
    at += int64_t{static_cast<int32_t>(left)} * d.kept_stride[k];
    left = above;
  }
  return at;
}

// The leaf that begins at element `first`: as fold_leaf gives it.
template <int V, class Fold>
__device__ __forceinline__ typename Fold::partial gather_leaf(const Fold& fold, const gathered_axes& d,
                                                              const typename Fold::element* at, int64_t first, int t) {
  using T = typename Fold::element;
  const int n = static_cast<int>(min(d.length - first, order::leaf));
  typename Fold::lane lane[1][Fold::slots];
  for (auto& l : lane[0]) l = fold.empty_lane();
  const auto take = [&]<int rows>(std::integral_constant<int, rows>, int row) {
    T x[rows][4];
    // In place of missing elements the last ones again: a load under a condition waits for the one before.
    walk_rows<V>(rows, row, t, [&](int r, int slot, int i) {
      load_neighbours<V>(at + place_of_element(d, static_cast<uint32_t>(first) + min(i, n - V)), &x[r][slot]);
    });
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        const int i = (row + r) * order::lanes + lane_of<V>(t, slot);
        fold.take_if(lane[0][slot % Fold::slots], x[r][slot], i, i < n);
      }
  };
  constexpr int ahead = 32 / static_cast<int>(sizeof(T));
  int row = 0;
#pragma unroll 1
  for (; (row + ahead - 2) * order::lanes < n; row += ahead) take(std::integral_constant<int, ahead>{}, row);
#pragma unroll 1
  for (; row * order::lanes < n; row += 2) take(std::integral_constant<int, 2>{}, row);
  if constexpr (Fold::ordered) {
    typename Fold::partial value[1];
    join_rows<V>(fold, lane, value, t);
    return value[0];
  } else {
    return fold.close(lane[0][0], first);
  }
}

// boxes, where several blocks share a sequence: as reduce_tree's.
template <class Fold, int V>
__global__ __launch_bounds__(block_threads, 3) void reduce_gathered(const Fold fold, const gathered_axes d,
                                                                    const int leaves_a_task, const int64_t tasks,
                                                                    typename Fold::partial* partials, mailbox* boxes) {
  using P = typename Fold::partial;
  __shared__ P values[most_leaves];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
  const int64_t leaves = order::leaves(d.length);
  const auto sequence = [&](int64_t s) {
    return static_cast<const typename Fold::element*>(d.src) + place_of_sequence(d, s);
  };
  follow_on();
  if (leaves == 1) {
    for (int64_t s = int64_t{blockIdx.x} * warps + warp; s < d.count; s += int64_t{gridDim.x} * warps) {
      P value = gather_leaf<V>(fold, d, sequence(s), 0, t);
      if constexpr (!Fold::ordered) value = join_warp(fold, value);
      if (t == 0) fold.store(value, s);
    }
    return;
  }
  for (int64_t work = blockIdx.x; work < d.count * tasks; work += gridDim.x) {
    const int64_t s = work / tasks, begin = first_leaf(work - s * tasks, leaves_a_task);
    const int here = leaves_here(leaves, begin, leaves_a_task);
    const auto* const at = sequence(s);
    P mine = fold.none();
    for (int leaf = warp; leaf < here; leaf = next_turn(leaf, warps)) {
      const P value = gather_leaf<V>(fold, d, at, (begin + leaf) * order::leaf, t);
      if constexpr (!Fold::ordered)
        mine = fold.join(mine, value);
      else if (t == 0)
        values[leaf] = value;
    }
    if constexpr (!Fold::ordered) {
      mine = join_warp(fold, mine);
      if (t == 0) values[warp] = mine;
    }
    __syncthreads();  // warp 0 reads the values that every warp has written
    if (warp == 0) {
      const P value = join_values(fold, Fold::ordered ? here : warps, t, [&](int i) { return values[i]; });
      if (t == 0) {
        if (tasks == 1)
          fold.store(value, s);
        else if (boxes != nullptr)
          hand_over(&boxes[work * words_of<P>], value);
        else
          partials[work] = value;
      }
    }
    __syncthreads();  // the next task's values come after warp 0 has read these
    if (boxes == nullptr || work != (s + 1) * tasks - 1) continue;
    const P value = join_handed_over(fold, boxes + s * tasks * words_of<P>, tasks, values);
    if (threadIdx.x == 0) fold.store(value, s);
    __syncthreads();  // and after thread 0 has the whole
  }
}

template <class Fold>
lockstep_status launch_fold(lockstep_queue& queue, const lockstep_call& call, const gathered_axes& d, bool neighbours,
                            const Fold& fold) {
  using P = typename Fold::partial;
  constexpr int V = sizeof(typename Fold::element) == 8 ? 2 : 4;
  const auto kernel = neighbours ? reduce_gathered<Fold, V> : reduce_gathered<Fold, 1>;
  const auto leaves = order::leaves(d.length);
  auto* partials = static_cast<P*>(call.workspace);
  if (leaves == 1) {
    const auto warps = static_cast<int>(std::clamp<int64_t>(d.count / queue.facts->processors, 1, block_threads / 32));
    return launch_soon(queue, "reduce_gathered", kernel, blocks_for(d.count, warps), warps * 32, 0, fold, d, 1,
                       int64_t{1}, partials, nullptr);
  }
  const int64_t a_task = leaves_a_task(leaves, d.count, most_leaves), tasks = (leaves + a_task - 1) / a_task;
  const bool hands_over = tasks > 1 && d.count * tasks * words_of<P> <= mailbox_count && !capturing(queue);
  const auto warps = static_cast<int>(std::min({int64_t{block_threads / 32}, a_task, leaves}));
  const lockstep_status status =
      launch_early(queue, "reduce_gathered", kernel, blocks_for(d.count * tasks, 1), warps * 32, 0, fold, d,
                   static_cast<int>(a_task), tasks, partials, hands_over ? queue.mailboxes : nullptr);
  return status != LOCKSTEP_OK || tasks == 1 || hands_over ? status
                                                           : launch_join(queue, fold, d.count, tasks, partials);
}

template <class Go>
lockstep_status by_gathered_sum(const lockstep_call& call, const Go& go) {
  const lib::reduction_kind& kind = lib::kind_of(call.reduce.reduction);
  return by_float(call.reduce.dtype, [&]<class T>(T) {
    return go(gathered_sum<T>{{{call.dst, false, kind.to == lib::finish::root}, call.reduce.result},
                              kind.of == lib::term::square});
  });
}

}  // namespace

lockstep_status launch_gathered(lockstep_queue& queue, const lockstep_call& call, const gathered_axes& d,
                                bool neighbours) {
  const auto go = [&](const auto& fold) -> lockstep_status {
    if constexpr (finds_index<std::remove_cvref_t<decltype(fold)>>)
      return failed(LOCKSTEP_INTERNAL, "gathered was asked for an index");
    else
      return launch_fold(queue, call, d, neighbours, fold);
  };
  return sums_floats(call.reduce) ? by_gathered_sum(call, go) : by_exact_fold(queue, call, go);
}

lockstep_status sum_runs(lockstep_queue& queue, const lockstep_call& call, const column_runs& runs) {
  return by_gathered_sum(call, [&](const auto& fold) { return launch_runs(queue, fold, call, runs); });
}

}  // namespace lockstep::cuda
