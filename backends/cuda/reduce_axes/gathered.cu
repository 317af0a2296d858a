// gathered.cu - reductions over axes that do not lie as one, each element read where it lies.
// Idea    A warp a leaf, as lanes.cuh: an element's place comes of its index by a multiplication and a shift an axis.
//         V neighbours by one load where the innermost runs allow it. Sequences of one leaf are a warp each, longer
//         ones a block's or several blocks'
// Moves   every element once, where a run fills its sectors
// Limit   memory reads; of 2-byte elements the indices
// Watch   the index of an element in its sequence has 31 bits, its place 64
// Source  lib/bits/order.hpp
#include "../dtypes.hpp"
#include "../reduce/columns.cuh"
#include "../reduce/extreme.cuh"
#include "../reduce/results.cuh"
#include "../reduce/subtree.cuh"
#include "../reduce/way.cuh"
#include "gathered.hpp"

namespace lockstep::cuda {

// 16-bit elements have the keys of the floats that they are.
template <>
struct key_of<half16> {
  using type = int32_t;
  __device__ static type key(half16 x, type turn) {
    return key_of<float>::key(__half2float(__ushort_as_half(x.bits)), turn);
  }
  __device__ static half16 value(type key, type turn) {
    return {key == INT32_MAX ? order::nan_f16 : __half_as_ushort(__float2half_rn(key_of<float>::value(key, turn)))};
  }
};
template <>
struct key_of<bfloat16> {
  using type = int32_t;
  __device__ static type key(bfloat16 x, type turn) {
    return key_of<float>::key(__uint_as_float(static_cast<uint32_t>(x.bits) << 16), turn);
  }
  __device__ static bfloat16 value(type key, type turn) {
    const uint32_t bits = __float_as_uint(key_of<float>::value(key, turn));
    return {key == INT32_MAX ? order::nan_bf16 : static_cast<uint16_t>(bits >> 16)};
  }
};

namespace {

// Sums and sums of squares by one kernel: x * 1 + sum rounds as x + sum does.
template <class T>
struct gathered_sum : float_sum<T, false> {
  bool squares;
  lockstep_dtype result;

  __device__ void take_if(double& acc, T x, int, bool wanted) const {
    const double wide = widened(wanted ? x : negative_zero<T>());
    acc = __fma_rn(wide, squares ? wide : 1.0, acc);
  }
  __device__ void take(double& acc, T x, int i) const { take_if(acc, x, i, true); }
  __device__ void store(double value, int64_t s) const {
    store_float(this->dst, result, s, this->root ? __dsqrt_rn(value) : value);
  }
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

// go(fold) for what the call asks for.
template <class T, class Go>
lockstep_status by_fold_of_floats(lockstep_queue& queue, const lockstep_call& call, const Go& go) {
  const lockstep_reduce_axes_desc& r = call.reduce_axes;
  const lib::reduction_kind& kind = lib::kind_of(r.reduction);
  if (kind.extreme()) {
    const typename key_of<T>::type turn = kind.by == lib::join::smallest ? -1 : 0;
    return go(extreme<T>{static_cast<T*>(call.dst), turn, queue.report});
  }
  gathered_sum<T> sum{};
  sum.dst = call.dst, sum.root = kind.to == lib::finish::root, sum.squares = kind.of == lib::term::square;
  sum.result = r.result;
  return go(sum);
}
template <class Go>
lockstep_status by_fold(lockstep_queue& queue, const lockstep_call& call, const Go& go) {
  switch (call.reduce_axes.dtype) {
    case LOCKSTEP_F16: return by_fold_of_floats<half16>(queue, call, go);
    case LOCKSTEP_BF16: return by_fold_of_floats<bfloat16>(queue, call, go);
    case LOCKSTEP_F32: return by_fold_of_floats<float>(queue, call, go);
    case LOCKSTEP_F64: return by_fold_of_floats<double>(queue, call, go);
    case LOCKSTEP_I32: return go(integer_sum<int32_t>{static_cast<int64_t*>(call.dst), queue.report});
    default: return go(integer_sum<int64_t>{static_cast<int64_t*>(call.dst), queue.report});
  }
}

}  // namespace

lockstep_status launch_gathered(lockstep_queue& queue, const lockstep_call& call, const gathered_axes& d,
                                bool neighbours) {
  return by_fold(queue, call, [&](const auto& fold) { return launch_fold(queue, call, d, neighbours, fold); });
}

lockstep_status launch_axis_columns(lockstep_queue& queue, const lockstep_call& call, const column_runs& d) {
  sequences all{call.src, d.count, d.length, d.element_stride, 1, nullptr};
  all.run = d.run, all.run_stride = d.run_stride;
  return by_fold(queue, call, [&](const auto& fold) {
    using Fold = std::remove_cvref_t<decltype(fold)>;
    if (d.length <= order::lanes) return launch_short_columns(queue, fold, all);
    if constexpr (sizeof(typename Fold::element) == 2)
      if (d.pairs) return launch_columns<2>(queue, fold, all, call.workspace);
    if constexpr (Fold::ordered && sizeof(typename Fold::element) == 4)
      if (d.quads && !few_tasks(queue, d.count, d.length)) return launch_columns<4>(queue, fold, all, call.workspace);
    return launch_columns<1>(queue, fold, all, call.workspace);
  });
}

}  // namespace lockstep::cuda
