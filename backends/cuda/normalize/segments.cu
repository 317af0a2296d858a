// segments.cu - rows of exponentials between offsets, whose lengths only the device knows.
//
//   exponentials_segments   a warp four segments: 8 threads each where all four have at most 32 elements, else the
//                           warp one after another; long ones go onto a list. Of few segments a warp takes one, of
//                           very many 32: if all are short, elements are its threads' by turns, and a thread has the
//                           extreme and the sum of one segment
//   listed_extremes         every block takes tasks of every listed segment: their extremes; a segment's last block
//                           joins them
//   listed_sums             the same for sums of exponentials, and what results take, or the one result
//   listed_results          the same for results
//
// Idea    Who works is decided where the offsets are known, as in reduce/segments.cuh. Thread t has lanes t, t + 32 ...
//         of a row of lanes, so that neighbours load neighbours, wherever a segment begins
// Moves   up to 512 elements: once in and once out; more: three times in, of a warp's segment from the L1 or L2
// Limit   operations of doubles; of segments of more than 512 elements every exponential is computed twice
// Watch   a full list costs time only: the warp then does the segment alone
// Source  lib/bits/functions.hpp, lib/bits/order.hpp
#include "../reduce/segments.cuh"
#include "bits/normalizations.hpp"
#include "exponentials.cuh"
#include "exponentials.hpp"
#include "launch.cuh"

namespace lockstep::cuda {
namespace {

constexpr int chunk_rows = 4;                     // of lanes, whose loads are in flight at once
constexpr int chunk = chunk_rows * order::lanes;  // elements
constexpr int block_warps = block_threads / 32;

struct exponential_fold : sum_fold {  // what warp_counter asks for
  using partial = double;
  __device__ static double none() { return -0.0; }
};

// Element (4 r + j) * threads + t of n as element j of h[r]; infinities that no extreme is beyond the end. No load is
// under a condition, for which the compiler would wait before it starts the next: x may be read even if n is 0.
template <class E, int R>
__device__ __forceinline__ void load_lanes(const E* x, int64_t n, int t, int threads, E missing, quad<E> (&h)[R]) {
  const int last = static_cast<int>(min(n, int64_t{R * 4 * threads})) - 1;
  E found[R][4];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) found[r][j] = x[max(min((4 * r + j) * threads + t, last), 0)];
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) set_element(h[r], j, (4 * r + j) * threads + t <= last ? found[r][j] : missing);
}

// Results y of elements first, first + threads ... of dst, those below past.
__device__ __forceinline__ void store_lanes(const exponential_rows& d, int64_t first, int threads, int64_t past,
                                            const double (&y)[4]) {
  const auto store = [&](auto* dst) {
    using T = std::remove_cvref_t<decltype(*dst)>;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (first + j * threads < past) dst[first + j * threads] = rounded_to<T>::of(y[j]);
  };
  switch (d.result) {
    case LOCKSTEP_F16: return store(static_cast<half16*>(d.dst));
    case LOCKSTEP_BF16: return store(static_cast<bfloat16*>(d.dst));
    case LOCKSTEP_F32: return store(static_cast<float*>(d.dst));
    default: return store(static_cast<double*>(d.dst));
  }
}

// A segment as one warp, or a group of its threads, sees it.
template <class E>
struct segment {
  const exponential_rows& d;
  const E* x;
  int64_t n, s;
  bool negated = d.scale < 0;
  E missing = infinity_below<E>(negated);

  __device__ __forceinline__ compared<E> chunk_extreme(int64_t first, int t) const {
    quad<E> h[chunk_rows];
    load_lanes(x + first, n - first, t, 32, missing, h);
    return largest_of(h, negated);
  }
  // Of elements [first, first + 2048), in every thread.
  __device__ __forceinline__ double leaf_sum(int64_t first, double m, int t) const {
    double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
    const int here = static_cast<int>(min(n - first, order::leaf));
#pragma unroll 1
    for (int c = 0; c < here; c += chunk) {
      quad<E> h[chunk_rows];
      load_lanes(x + first + c, here - c, t, 32, missing, h);
#pragma unroll
      for (int r = 0; r < chunk_rows; ++r) {
        if (c + r * order::lanes >= here) break;
        double e[4];
        exponentials_of(h[r], m, d.scale, false, e);
#pragma unroll
        for (int j = 0; j < 4; ++j) lane[0][j] = __dadd_rn(lane[0][j], e[j]);
      }
    }
    join_rows<1>(sum_fold{}, lane, sum, t);
    return sum[0];
  }
  // Results of a row of lanes; e: its exponentials.
  __device__ __forceinline__ void store_row(const quad<E>& q, const double (&e)[4], int64_t first, double m,
                                            double part, int t, int threads) const {
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      y[j] = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX ? __dmul_rn(e[j], part) : __dsub_rn(below(q, j, m, d.scale), part);
    const int64_t begin = x - static_cast<const E*>(d.src);
    store_lanes(d, begin + first + t, threads, begin + n, y);
  }
  __device__ __forceinline__ void store_chunk(int64_t first, double m, double part, int t) const {
    quad<E> h[chunk_rows];
    load_lanes(x + first, n - first, t, 32, missing, h);
#pragma unroll
    for (int r = 0; r < chunk_rows; ++r) {
      if (first + r * order::lanes >= n) break;
      double e[4];
      if (d.kind == LOCKSTEP_NORMALIZE_SOFTMAX) exponentials_of(h[r], m, d.scale, false, e);
      store_row(h[r], e, first + r * order::lanes, m, part, t, 32);
    }
  }
  __device__ __forceinline__ bool one_result() const {
    return d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || d.kind == LOCKSTEP_NORMALIZE_PICKED;
  }
  __device__ __forceinline__ void store_the_one(double m, double part) const {
    store_one(
        d, s, n, [&](int64_t i) { return widened(x[i]); }, n == 0 ? (negated ? HUGE_VAL : -HUGE_VAL) : m, part);
  }

  // All of R rows of lanes by a group of threads: elements and exponentials wait in registers.
  template <int R>
  __device__ __forceinline__ void run_held(int t, int threads) const {
    quad<E> h[R];
    load_lanes(x, n, t, threads, missing, h);
    const compared<E> most = largest_of_group(largest_of(h, negated), threads);
    const double m = negated ? -most : most;
    double e[R][4], lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (R > 1 && r * order::lanes >= n) break;
      exponentials_of(h[r], m, d.scale, false, e[r]);
#pragma unroll
      for (int j = 0; j < 4; ++j) lane[0][j] = __dadd_rn(lane[0][j], e[r][j]);
    }
    join_rows<1>(sum_fold{}, lane, sum, static_cast<int>(threadIdx.x % 32), threads);
    const double part = part_of(d, m, sum[0]);
    if (n < 0) return;
    if (one_result()) {
      if (t == 0) store_the_one(m, part);
      return;
    }
#pragma unroll
    for (int r = 0; r < R; ++r) {
      if (R > 1 && r * order::lanes >= n) break;
      store_row(h[r], e[r], r * 4 * threads, m, part, t, threads);
    }
  }
  // Of any length, by a warp.
  __device__ __forceinline__ void run_by_parts(int t) const {
    compared<E> most = chunk_extreme(0, t);
#pragma unroll 1
    for (int64_t first = chunk; first < n; first += chunk) most = larger(most, chunk_extreme(first, t));
    most = largest_of_group(most, 32);
    const double m = negated ? -most : most;
    warp_counter<exponential_fold> tree;
#pragma unroll 1
    for (int64_t first = 0; first < n; first += order::leaf) tree.push({}, leaf_sum(first, m, t), t);
    const double part = part_of(d, m, tree.total({}));
    if (one_result()) {
      if (t == 0) store_the_one(m, part);
      return;
    }
#pragma unroll 1
    for (int64_t first = 0; first < n; first += chunk) store_chunk(first, m, part, t);
  }
};

template <class E>
__device__ __forceinline__ segment<E> segment_at(const exponential_rows& d, const sequences& all, int64_t s) {
  one_sequence<E> found{nullptr, -1};  // -1: nothing to do
  if (s < all.count) found = sequence_at<E>(all, s, d.faults);
  if (found.length <= 0) found.at = reinterpret_cast<const E*>(all.offsets);  // which may be read
  return {d, found.at, found.length, s};
}

// ---- 32 short segments of a warp -----------------------------------------------------
constexpr int staged = 4 * chunk_rows * 32;  // elements of a warp
struct staged_room {
  double e[staged];  // elements to compare, then exponentials
  double centre[32], part[32];
  unsigned char of[staged];  // the segment of each element
};

// Lanes l, l + d, l + 2 d ... of S, depth first.
template <int S, int d>
__device__ __forceinline__ double sum_of_lanes(const double* e, int n, int l) {
  if constexpr (d == S)
    return l < n ? e[l] : -0.0;
  else
    return __dadd_rn(sum_of_lanes<S, 2 * d>(e, n, l), sum_of_lanes<S, 2 * d>(e, n, l + d));
}

// False: not all are short.
template <class E>
__device__ __forceinline__ bool run_staged(const exponential_rows& d, const sequences& all, int64_t first, int64_t past,
                                           staged_room& room) {
  const int t = threadIdx.x % 32;
  const int64_t s = first + t;
  const int64_t begin = all.offsets[min(s, past)], end = all.offsets[min(s + 1, past)];
  const int64_t left = __shfl_sync(all_lanes, begin, 0), here = __shfl_sync(all_lanes, end, 31) - left;
  const bool fits = left >= 0 && begin >= left && end >= begin && end - begin <= short_segment && here <= staged;
  if (!__all_sync(all_lanes, fits)) return false;
  const int n = static_cast<int>(end - begin), total = static_cast<int>(here),
            at = n > 0 ? static_cast<int>(begin - left) : 0;
  const bool negated = d.scale < 0;
  const E missing = infinity_below<E>(negated);
  const E* const x = total > 0 ? static_cast<const E*>(d.src) + left : reinterpret_cast<const E*>(all.offsets);
  quad<E> h[chunk_rows];
  load_lanes(x, total, t, 32, missing, h);
  auto* const values = reinterpret_cast<compared<E>*>(room.e);
#pragma unroll
  for (int r = 0; r < chunk_rows; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j) values[(4 * r + j) * 32 + t] = narrow_value(h[r], j);
  __syncwarp();  // a thread compares what all have loaded
  compared<E> most = negated ? -narrow_value(h[0], 0) : narrow_value(h[0], 0);
  if (n > 0) most = negated ? -values[at] : values[at];
  for (int i = 0; i < n; ++i) {
    most = larger(most, negated ? -values[at + i] : values[at + i]);
    room.of[at + i] = static_cast<unsigned char>(t);
  }
  const double m = negated ? -most : most;
  room.centre[t] = m;
  __syncwarp();  // exponentials replace what has been compared
  double e[chunk_rows][4];
#pragma unroll
  for (int r = 0; r < chunk_rows; ++r) {
    if (r * order::lanes >= total) break;
    double off[4];
#pragma unroll
    for (int j = 0; j < 4; ++j)
      off[j] = below(h[r], j, room.centre[room.of[min((4 * r + j) * 32 + t, total - 1)]], d.scale);
    exponentials_of(off, e[r]);
#pragma unroll
    for (int j = 0; j < 4; ++j) room.e[(4 * r + j) * 32 + t] = e[r][j];
  }
  __syncwarp();  // a thread adds up what all have computed
  const bool longer = __any_sync(all_lanes, n > 16), middle = __any_sync(all_lanes, n > 8);
  const double* const mine = room.e + at;
  const double sum = longer   ? sum_of_lanes<32, 1>(mine, n, 0)
                     : middle ? sum_of_lanes<16, 1>(mine, n, 0)
                              : sum_of_lanes<8, 1>(mine, n, 0);
  const double part = part_of(d, m, sum);
  if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || d.kind == LOCKSTEP_NORMALIZE_PICKED) {
    const segment<E> one{d, x + at, n, s};
    if (s < past) one.store_the_one(m, part);
    return true;
  }
  room.part[t] = part;
  __syncwarp();  // every thread's results take what others have found
#pragma unroll
  for (int r = 0; r < chunk_rows; ++r) {
    if (r * order::lanes >= total) break;
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int k = room.of[min((4 * r + j) * 32 + t, total - 1)];
      y[j] = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX ? __dmul_rn(e[r][j], room.part[k])
                                                  : __dsub_rn(below(h[r], j, room.centre[k], d.scale), room.part[k]);
    }
    store_lanes(d, left + r * order::lanes + t, 32, left + total, y);
  }
  return true;
}

// each: segments of a warp, 32 (many), 4 or 1. alone: leaves that a warp takes without asking for others.
template <class E, bool many>
__global__ __launch_bounds__(block_threads, 2) void exponentials_segments(const exponential_rows d, const sequences all,
                                                                          int each, int alone, segment_list* list) {
  constexpr int group = 8;
  const int t = threadIdx.x % 32;
  const int64_t first = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32 * each;
  follow_on();
  if (first >= all.count) return;
  const int64_t past = min(first + each, all.count);
  if constexpr (many) {
    __shared__ staged_room rooms[block_warps];
    if (run_staged<E>(d, all, first, past, rooms[threadIdx.x / 32])) return;
  }
#pragma unroll 1
  for (int64_t s = first; s < past; ++s) {
    if (each > 1 && (s - first) % 4 == 0) {
      const int64_t other = s + t / group;
      const segment<E> mine = segment_at<E>(d, all, other < past ? other : all.count);
      if (__all_sync(all_lanes, mine.n <= short_segment)) {
        mine.template run_held<1>(t % group, group);
        s += 3;
        continue;
      }
    }
    const segment<E> mine = segment_at<E>(d, all, s);
    if (mine.n < 0) continue;
    if (mine.n <= order::lanes) {
      mine.template run_held<1>(t, 32);
      continue;
    }
    if (mine.n <= chunk) {
      mine.template run_held<chunk_rows>(t, 32);
      continue;
    }
    const int64_t leaves = order::leaves(mine.n);
    bool listed = false;
    if (leaves > alone) {
      if (t == 0) listed = enlist(list, s, leaves);
      listed = __shfl_sync(all_lanes, listed, 0);
    }
    if (!listed) mine.run_by_parts(t);
  }
}

// body(k, item, task, mine, begin, end): elements [begin, end) of listed segment k are this block's. Blocks take the
// tasks of all segments in turns, and find a task's segment by halving.
template <class E, class Body>
__device__ __forceinline__ void over_listed(const exponential_rows& d, const sequences& all, segment_list* list,
                                            const Body& body) {
  constexpr int each = most_listed / block_threads;
  static_assert(each * block_threads == most_listed);
  __shared__ int ends[most_listed];  // of the segments' tasks
  __shared__ int of_warps[block_warps];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, first = static_cast<int>(threadIdx.x) * each;
  follow_on();
  const int segments = static_cast<int>(min(list->segments, most_listed));
  if (segments == 0) return;
  int tasks[each], sum = 0;
#pragma unroll
  for (int i = 0; i < each; ++i) tasks[i] = first + i < segments ? list->segment[first + i].tasks : 0;
#pragma unroll
  for (int i = 0; i < each; ++i) sum += tasks[i];
  int before = sum;  // of this thread and those of its warp before it
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const int other = __shfl_up_sync(all_lanes, before, step);
    if (t >= step) before += other;
  }
  if (t == 31) of_warps[warp] = before;
  __syncthreads();  // every thread reads the sums of warps
  before -= sum;
  for (int w = 0; w < warp; ++w) before += of_warps[w];
#pragma unroll
  for (int i = 0; i < each; ++i) ends[first + i] = before += tasks[i];
  __syncthreads();  // every thread reads all ends
  for (int turn = static_cast<int>(blockIdx.x); turn < ends[most_listed - 1]; turn += static_cast<int>(gridDim.x)) {
    int k = 0;  // the first whose tasks end behind this one
    for (int half = most_listed / 2; half >= 1; half /= 2)
      if (ends[k + half - 1] <= turn) k += half;
    listed_segment& item = list->segment[k];
    const int task = turn - (k == 0 ? 0 : ends[k - 1]);
    const segment<E> mine = segment_at<E>(d, all, item.sequence);
    const int64_t here = item.leaves_a_task * order::leaf;
    body(k, item, task, mine, task * here, min(mine.n, (task + 1) * here));
  }
}

template <class E>
__global__ __launch_bounds__(block_threads, 3) void listed_extremes(const exponential_rows d, const sequences all,
                                                                    segment_list* list, double* partials,
                                                                    spread* found) {
  __shared__ compared<E> of_warps[block_warps];
  __shared__ bool last;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Of a value a thread, in thread 0.
  const auto of_block = [&](compared<E> most) {
    most = largest_of_group(most, 32);
    if (t == 0) of_warps[warp] = most;
    __syncthreads();  // thread 0 reads every warp's
    if (threadIdx.x == 0)
      for (const compared<E> other : of_warps) most = larger(most, other);
    return most;
  };
  over_listed<E>(d, all, list,
                 [&](int k, listed_segment& item, int task, const segment<E>& mine, int64_t begin, int64_t end) {
                   compared<E> most = mine.chunk_extreme(begin, t);
                   for (int64_t at = begin + warp * chunk; at < end; at += block_warps * chunk)
                     most = larger(most, mine.chunk_extreme(at, t));
                   most = of_block(most);
                   if (threadIdx.x == 0) {
                     partials[item.slot + task] = most;
                     last = take_ticket(&item.ticket, static_cast<unsigned>(item.tasks));
                   }
                   __syncthreads();  // every warp waits for thread 0's `last`
                   if (!last) return;
                   most = static_cast<compared<E>>(partials[item.slot]);
                   for (int i = static_cast<int>(threadIdx.x); i < item.tasks; i += block_threads)
                     most = larger(most, static_cast<compared<E>>(partials[item.slot + i]));
                   most = of_block(most);
                   if (threadIdx.x == 0) found[k].mean = mine.negated ? -most : most;
                   __syncthreads();  // the next task's come after thread 0 has read these
                 });
}

template <class E>
__global__ __launch_bounds__(block_threads, 3) void listed_sums(const exponential_rows d, const sequences all,
                                                                segment_list* list, double* partials, spread* found) {
  __shared__ double values[most_leaves], subtrees[block_threads];
  __shared__ bool last;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  over_listed<E>(d, all, list,
                 [&](int k, listed_segment& item, int task, const segment<E>& mine, int64_t begin, int64_t end) {
                   const double m = found[k].mean;
                   const auto leaves = static_cast<int>(order::leaves(end - begin));
                   for (int leaf = warp; leaf < leaves; leaf += block_warps) {
                     const double sum = mine.leaf_sum(begin + leaf * order::leaf, m, t);
                     if (t == 0) values[leaf] = sum;
                   }
                   __syncthreads();  // threads join what all warps have left
                   double total = tree_of_block<block_threads>(values, leaves, subtrees);
                   if (threadIdx.x == 0) {
                     partials[item.slot + task] = total;
                     last = take_ticket(&item.ticket, static_cast<unsigned>(item.tasks));
                   }
                   __syncthreads();  // every warp waits for thread 0's `last`, and for it to have read subtrees
                   if (!last) return;
                   total = tree_of_block<block_threads>(partials + item.slot, item.tasks, subtrees);
                   if (threadIdx.x == 0) {
                     const double part = part_of(d, m, total);
                     found[k].divisor = part;
                     if (mine.one_result()) mine.store_the_one(m, part);
                   }
                   __syncthreads();  // the next task's subtrees come after thread 0 has read these
                 });
}

template <class E>
__global__ __launch_bounds__(block_threads, 3) void listed_results(const exponential_rows d, const sequences all,
                                                                   segment_list* list, const spread* found) {
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  over_listed<E>(d, all, list, [&](int k, listed_segment&, int, const segment<E>& mine, int64_t begin, int64_t end) {
    const spread s = found[k];
    for (int64_t at = begin + warp * chunk; at < end; at += block_warps * chunk)
      mine.store_chunk(at, s.mean, s.divisor, t);
  });
}

template <class E>
lockstep_status launch_segments(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_normalize_desc& n = call.normalize;
  const exponential_rows d{rows_of<E>(call), n.scale, n.labels, queue.report};
  const sequences all{call.src, n.count, 0, 1, 0, n.offsets};
  auto* const list = static_cast<segment_list*>(call.workspace);
  auto* const partials = reinterpret_cast<double*>(list + 1);
  auto* const found = reinterpret_cast<spread*>(partials + most_slots);
  const bool few = n.count <= queue.facts->processors * few_segments;
  const bool many = n.count >= queue.facts->processors * queue.facts->tuned.reductions.staged_segments;
  const int each = few ? 1 : many ? 32 : 4;
  // Few segments of some leaves are all blocks' together; of more each has a warp.
  const int alone = n.count <= queue.facts->processors * 8 ? 1 : few ? 4 : short_leaves;
  LOCKSTEP_CUDA(cudaMemsetAsync(list, 0, 2 * sizeof(unsigned), queue.stream));
  lockstep_status status = launch_soon(
      queue, "exponentials_segments", many ? exponentials_segments<E, true> : exponentials_segments<E, false>,
      blocks_for(n.count, block_warps * each), block_threads, 0, d, all, each, alone, list);
  const auto blocks = static_cast<unsigned>(queue.facts->processors * queue.facts->tuned.reductions.listed_blocks);
  if (status == LOCKSTEP_OK)
    status = launch_early(queue, "listed_extremes", listed_extremes<E>, blocks, block_threads, 0, d, all, list,
                          partials, found);
  if (status == LOCKSTEP_OK)
    status =
        launch_early(queue, "listed_sums", listed_sums<E>, blocks, block_threads, 0, d, all, list, partials, found);
  if (status != LOCKSTEP_OK || lib::kind_of(n.kind).one_result) return status;
  return launch_early(queue, "listed_results", listed_results<E>, blocks, block_threads, 0, d, all, list,
                      static_cast<const spread*>(found));
}

}  // namespace

size_t exponential_segments_bytes() {
  return sizeof(segment_list) + most_slots * sizeof(double) + most_listed * sizeof(spread);
}

lockstep_status exponential_segments(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return launch_segments<half16>(queue, call);
    case LOCKSTEP_BF16: return launch_segments<bfloat16>(queue, call);
    case LOCKSTEP_F32: return launch_segments<float>(queue, call);
    default: return launch_segments<double>(queue, call);
  }
}

}  // namespace lockstep::cuda
