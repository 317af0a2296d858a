// kernels.cuh - sequences of one array or two by groups of threads, by warps, or by blocks that share them.
//
//   sums_of_short    4 or 8 threads per sequence of at most 128 elements, four quads of elements per thread
//   sums_of_warps    one warp per sequence, leaf after leaf: many, or of lengths of their own
//   sums_of_tasks    a block a task of 2^k leaves: few and long; the last task's block joins what mailboxes bring. Of
//                    very few leaves each is four warps', one thread per lane
//   sums_of_columns  one block per leaf of neighbouring sequences (columns.cuh)
//   sums_of_parts    one block per sequence: the tree above its tasks, where there are no mailboxes
//
// A fold has
//   partial          what leaves and blocks exchange; joined(a, b) and a + b join them
//   ordered          the order shows in the bits: leaf gives every thread the leaf's value. If not, a thread's part
//   none, join       as fold.cuh's
//   leaf(d, at, first, n, t, so_far)   elements first to first + n of a sequence, by a warp: a leaf, of an unordered
//                    fold up to most_run leaves. so_far: its part of those before, which the result has too
//   commutes         join(a, b) has the bits of join(b, a)
//   short_rows<Q>(d, at, n, t, threads, value)
//                    if there is one: the values of several short sequences, each of a group with Q quads per thread
//   column<C>(d, at, n, room, means)
//                    if there is one: a leaf of C neighbouring sequences, by a block
//   leaf_by_lanes(d, at, first, n, room)
//                    if there is one: a leaf's value by 128 threads, in each of them; all of a block call it
//   blocks           per SM, which a thread's registers must leave room for; 0: any number
//   store(d, s, value, length), store_empty(d, s)
#pragma once

#include "../normalize/rows.cuh"
#include "../reduce/results.cuh"
#include "../reduce/subtree.cuh"
#include "columns.cuh"

namespace lockstep::cuda {

constexpr int most_run = 8;

constexpr int short_quads = 4, short_quad_threads = 8;  // of a thread; of a sequence with several quads per thread
template <class Fold>
constexpr bool takes_short_rows = requires(const term_sums& d, const pair_places (&at)[short_quads],
                                           typename Fold::partial (&value)[short_quads]) {
  Fold::template short_rows<1>(d, at, 1, 0, 4, value);
};

// The sums of short sequences, in every thread of their groups, of which each has quads t, t + threads, ... of its
// sequence: the first joins are a thread's own. entered(b, q, j): a lane with element j of quad q of sequence b.
template <int Q, int S, class Entered>
__device__ __forceinline__ void sum_short_rows(int t, int threads, double (&sum)[S], const Entered& entered) {
  static_assert(Q == 1 || Q == 4);
  double lane[S][4];
#pragma unroll
  for (int b = 0; b < S; ++b)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (Q == 1)
        lane[b][j] = entered(b, 0, j);
      else
        lane[b][j] =
            __dadd_rn(__dadd_rn(entered(b, 0, j), entered(b, 2, j)), __dadd_rn(entered(b, 1, j), entered(b, 3, j)));
    }
  join_rows<4>(sum_fold{}, lane, sum, t, threads);
}

template <class Fold, int Q>
__global__ __launch_bounds__(sum_threads) void sums_of_short(const term_sums d, const int threads) {
  constexpr int S = short_quads / Q;
  const int lane = threadIdx.x % 32, t = lane % threads, groups = 32 / threads;
  const int64_t turn = int64_t{blockIdx.x} * (sum_threads / 32) + threadIdx.x / 32;
  const int64_t first = turn * groups * S + lane / threads;
  pair_places at[S];
#pragma unroll
  for (int b = 0; b < S; ++b) {
    const int64_t s = min(first + b * groups, d.count - 1);
    at[b] = {s * d.sequence_stride, s * d.other_sequence_stride};
  }
  typename Fold::partial value[S];
  follow_on();
  Fold::template short_rows<Q>(d, at, static_cast<int>(d.length), t, threads, value);
  auto mine = value[0];  // thread b of a group has its sequence b's roots and quotients
#pragma unroll
  for (int b = 1; b < S; ++b)
    if (t == b) mine = value[b];
  const int64_t s = first + t * groups;
  if (t < S && s < d.count) Fold::store(d, s, mine, d.length);
}

template <class Fold>
__global__ __launch_bounds__(sum_threads, Fold::blocks) void sums_of_warps(const term_sums d) {
  using P = typename Fold::partial;
  const int t = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (sum_threads / 32);
  follow_on();
  for (int64_t s = (int64_t{blockIdx.x} * sum_threads + threadIdx.x) / 32; s < d.count; s += step) {
    int64_t length = d.length;
    pair_places at{s * d.sequence_stride, s * d.other_sequence_stride};
    if (d.offsets != nullptr) {
      const int64_t begin = d.offsets[s], end = d.offsets[s + 1];
      length = end - begin;
      if (!are_offsets(begin, end, d.length)) {
        if (t == 0) report(d.faults, fault::invalid, s);
        continue;
      }
      at = {begin * d.element_stride, begin * d.other_element_stride};
    }
    if (length == 0) {
      if (t == 0) Fold::store_empty(d, s);
      continue;
    }
    const auto leaf = [&](int64_t first) {
      return Fold::leaf(d, at, first, static_cast<int>(min(length - first, order::leaf)), t, Fold::none());
    };
    P total;
    if constexpr (!Fold::ordered) {
      total = Fold::none();
      constexpr int64_t run = most_run * order::leaf;
      for (int64_t first = 0; first < length; first += run)
        total = Fold::leaf(d, at, first, static_cast<int>(min(length - first, run)), t, total);
      total = join_warp(Fold{}, total);
    } else if (length <= order::leaf) {
      total = leaf(0);
    } else {
      warp_counter<Fold> tree;
      for (int64_t first = 0; first < length; first += order::leaf) tree.push(Fold{}, leaf(first), t);
      total = tree.total(Fold{});
    }
    if (t == 0) Fold::store(d, s, total, length);
  }
}

// The elements of thread l's lane of a leaf of n elements at x, all on their way at once; the leaf's last one in place
// of those that are not there. Gives the place of the last after the lane's first.
template <class E>
__device__ __forceinline__ int load_lane(const E* x, int n, E (&a)[order::rows]) {
  const int l = threadIdx.x % order::lanes, last = n - 1 - l;
#pragma unroll
  for (int row = 0; row < order::rows; ++row) a[row] = x[l + min(row * static_cast<int>(order::lanes), last)];
  return last;
}
// The sum of a leaf's lanes, one a thread, in each of them.
__device__ __forceinline__ double sum_of_lanes(double lane, double (&room)[order::lanes]) {
  const int t = threadIdx.x % 32;
  room[threadIdx.x % order::lanes] = lane;
  __syncthreads();  // each warp reads all lanes of its leaf
  double sum = __dadd_rn(__dadd_rn(room[t], room[t + 64]), __dadd_rn(room[t + 32], room[t + 96]));
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) sum = __dadd_rn(sum, from_xor(sum, mask));
  __syncthreads();  // the next lanes come after these have been read
  return sum;
}
template <class Fold>
constexpr bool takes_lanes = requires(const term_sums& d, const pair_places& at, double (&room)[order::lanes]) {
  Fold::leaf_by_lanes(d, at, 0, 1, room);
};

// lanes: a leaf is four warps'.
template <class Fold, bool lanes>
__global__ __launch_bounds__(sum_threads, Fold::blocks) void sums_of_tasks(const term_sums d, const task_shares shares,
                                                                           typename Fold::partial* partials,
                                                                           mailbox* boxes) {
  using P = typename Fold::partial;
  constexpr int warps = sum_threads / 32;
  __shared__ P values[sum_threads];
  __shared__ P subtrees[sum_threads];
  constexpr int groups = sum_threads / order::lanes;  // leaves at a time, if they are by lanes
  __shared__ double room[lanes ? groups : 1][order::lanes];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t leaves = order::leaves(d.length);
  // Leaves that a warp takes at a time.
  const int run = Fold::ordered ? 1 : max(1, min(most_run, shares.leaves_a_task / warps));
  follow_on();
  for (int64_t work = blockIdx.x; work < d.count * shares.tasks; work += gridDim.x) {
    const int64_t s = work / shares.tasks, begin = first_leaf(work - s * shares.tasks, shares.leaves_a_task);
    const int here = leaves_here(leaves, begin, shares.leaves_a_task);
    const pair_places at{s * d.sequence_stride, s * d.other_sequence_stride};
    P mine = Fold::none();
    if constexpr (lanes) {
      const int group = threadIdx.x / order::lanes;
      for (int k = group; k - group < here; k = next_turn(k, groups)) {
        const int64_t first = (begin + min(k, here - 1)) * order::leaf;  // again the last one, where one is missing
        const int n = static_cast<int>(min(d.length - first, order::leaf));
        const P value = Fold::leaf_by_lanes(d, at, first, n, room[group]);
        if (k < here && threadIdx.x % order::lanes == 0) values[k] = value;
      }
    } else {
      for (int k = warp * run; k < here; k = next_turn(k, warps * run)) {
        const int64_t first = (begin + k) * order::leaf, last = min(d.length, first + min(run, here - k) * order::leaf);
        const P value = Fold::leaf(d, at, first, static_cast<int>(last - first), t, mine);
        if constexpr (!Fold::ordered)
          mine = value;
        else if (t == 0)
          values[k] = value;
      }
    }
    if constexpr (!Fold::ordered) {
      mine = join_warp(Fold{}, mine);
      if (t == 0) values[warp] = mine;
    }
    __syncthreads();  // the tree reads every warp's values
    const P total = tree_of_block<sum_threads>(values, Fold::ordered ? here : warps, subtrees);
    if (threadIdx.x == 0) {
      if (shares.tasks == 1)
        Fold::store(d, s, total, d.length);
      else if (boxes != nullptr)
        hand_over(&boxes[work * words_of<P>], total);
      else
        partials[work] = total;
    }
    __syncthreads();  // the next task's values come after the tree has read these
    if (boxes == nullptr || work != (s + 1) * shares.tasks - 1) continue;
    const P all = join_handed_over(Fold{}, boxes + s * shares.tasks * words_of<P>, shares.tasks, values);
    if (threadIdx.x == 0) Fold::store(d, s, all, d.length);
    __syncthreads();  // and after thread 0 has the whole
  }
}

template <class Fold>
__global__ __launch_bounds__(sum_threads) void sums_of_parts(const term_sums d, const int64_t tasks,
                                                             const typename Fold::partial* partials) {
  __shared__ typename Fold::partial subtrees[sum_threads];
  follow_on();
  for (int64_t s = blockIdx.x; s < d.count; s += gridDim.x) {
    const auto total = tree_of_block<sum_threads>(partials + s * tasks, tasks, subtrees);
    if (threadIdx.x == 0) Fold::store(d, s, total, d.length);
    __syncthreads();  // the next sequence's subtrees come after thread 0 has read these
  }
}

template <class Fold>
constexpr bool takes_columns = requires(const term_sums& d, const pair_places& at, double (&room)[sum_threads],
                                        double (&means)[8]) {
  Fold::template column<8>(d, at, 1, room, means);
};

// Join: a fold that joins and stores as Fold does; all of one kind of partial may share it.
template <class Fold, class Join>
lockstep_status launch_sums(lockstep_queue& queue, const term_sums& d, void* workspace) {
  using P = typename Fold::partial;
  const auto grid = [](int64_t blocks) { return dim3(static_cast<unsigned>(std::min<int64_t>(blocks, INT32_MAX))); };
  const auto join_parts = [&](int64_t tasks) {
    return launch_soon(queue, "sums_of_parts", sums_of_parts<Join>, grid(d.count), sum_threads, 0, d, tasks,
                       static_cast<const P*>(workspace));
  };
  constexpr int64_t warps = sum_threads / 32;
  if constexpr (takes_columns<Fold>) {
    if (lie_side_by_side(d)) {
      const task_shares shares = column_shares(queue, d);
      const int columns = columns_a_block(queue, d);
      const auto kernel = columns == 32 ? sums_of_columns<Fold, 32> : sums_of_columns<Fold, 8>;
      const lockstep_status status =
          launch_soon(queue, "sums_of_columns", kernel, grid((d.count + columns - 1) / columns * shares.tasks),
                      sum_threads, 0, d, shares, static_cast<P*>(workspace));
      return status != LOCKSTEP_OK || shares.tasks == 1 ? status : join_parts(shares.tasks);
    }
  }
  const bool lanes = takes_lanes<Fold> && suit_lanes(queue, d);
  const task_shares shares = shares_of(queue, d, lanes);
  if constexpr (takes_short_rows<Fold>) {
    if (d.offsets == nullptr && d.length >= 1 && d.length <= order::lanes) {
      const int threads = d.length <= 16 ? 4 : short_quad_threads;
      const bool one_quad = d.length <= threads * 4;
      const int64_t a_block = warps * (32 / threads) * (one_quad ? short_quads : 1);
      const int64_t blocks = (d.count + a_block - 1) / a_block;
      const auto kernel = one_quad ? sums_of_short<Fold, 1> : sums_of_short<Fold, short_quads>;
      if (blocks <= INT32_MAX)
        return launch_soon(queue, "sums_of_short", kernel, grid(blocks), sum_threads, 0, d, threads);
    }
  }
  if (shares.tasks == 0)
    return launch_soon(queue, "sums_of_warps", sums_of_warps<Fold>, grid((d.count + warps - 1) / warps), sum_threads, 0,
                       d);
  auto* partials = static_cast<P*>(workspace);
  // In a chunk of more than 32 tasks some joins are turned round. A captured graph must not share the mailboxes.
  const bool in_order = Fold::commutes || shares.tasks <= 32 * warps;
  const bool hands_over =
      shares.tasks > 1 && in_order && !capturing(queue) && d.count * shares.tasks * words_of<P> <= mailbox_count;
  auto kernel = sums_of_tasks<Fold, false>;
  if constexpr (takes_lanes<Fold>)
    if (lanes) kernel = sums_of_tasks<Fold, true>;
  const lockstep_status status = launch_soon(queue, "sums_of_tasks", kernel, grid(d.count * shares.tasks), sum_threads,
                                             0, d, shares, partials, hands_over ? queue.mailboxes : nullptr);
  return status != LOCKSTEP_OK || shares.tasks == 1 || hands_over ? status : join_parts(shares.tasks);
}

// Whether n elements from here on, `unit` bytes at a time, are whole and aligned.
template <class E>
__device__ __forceinline__ bool whole_units(const E* at, int64_t stride, int unit) {
  return stride == 1 && reinterpret_cast<uintptr_t>(at) % static_cast<unsigned>(unit) == 0;
}

}  // namespace lockstep::cuda
