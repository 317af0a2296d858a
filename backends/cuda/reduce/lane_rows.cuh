// lane_rows.cuh - rows of up to 8 leaves of f32, one thread per lane.
//
// Idea    The order gives a leaf 128 accumulators: here each is a thread's, so that a leaf is four warps', a row one
//         block's, and all of a row is on its way before the first element is added. No thread needs another before
//         its own lane is done; then one join through shared memory and the tree, one warp per leaf.
// Moves   n elements read once, by loads of 4 bytes (a warp 128), which lie side by side at any alignment
// Limit   memory reads. Rows at any alignment gain the most over one warp per leaf (lanes.cuh); where the last leaf
//         is short its threads idle, and one warp per leaf is faster.
// Watch   32 registers, or an SM has one block of 1,024 threads
// Source  lib/bits/order.hpp; figures in tests/results/tries.md.
#pragma once

#include "../kernel/resident.cuh"
#include "subtree.cuh"
#include "way.cuh"

namespace lockstep::cuda {

// streams: the array is too large for the L2 (cache.cuh).
template <class Fold, bool streams>
__global__ __launch_bounds__(order::lanes* most_lane_leaves,
                             resident_threads /
                                 (order::lanes * most_lane_leaves)) void reduce_lane_rows(Fold fold,
                                                                                          const sequences all) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  __shared__ P lanes[most_lane_leaves][order::lanes];
  __shared__ P values[most_lane_leaves];
  const int leaf = threadIdx.x / order::lanes, lane = threadIdx.x % order::lanes;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, leaves = blockDim.x / order::lanes;
  const T* const at =
      static_cast<const T*>(all.src) + int64_t{blockIdx.x} * all.sequence_stride + leaf * order::leaf + lane;
  const int left = static_cast<int>(all.length) - leaf * order::leaf;  // from this leaf's first element on
  const auto load = [&](int i) { return streams ? load_of_stream(at + i) : __ldg(at + i); };
  auto acc = fold.empty_lane();
  follow_on();
  T x[order::rows];
  if (left >= order::leaf) {
#pragma unroll
    for (int row = 0; row < order::rows; ++row) x[row] = load(row * order::lanes);
#pragma unroll
    for (int row = 0; row < order::rows; ++row) fold.take(acc, x[row], 0);
  } else {  // the row's last element stands in: a load under a condition would wait for the one before
    const int last = left - 1 - lane;
#pragma unroll
    for (int row = 0; row < order::rows; ++row) x[row] = load(min(row * order::lanes, last));
#pragma unroll
    for (int row = 0; row < order::rows; ++row) fold.take_if(acc, x[row], 0, row * order::lanes <= last);
  }
  lanes[leaf][lane] = acc;
  __syncthreads();  // all lanes are there before a warp joins those of a leaf
  if (warp < leaves) {
    const P(&of)[order::lanes] = lanes[warp];
    P value = fold.join(fold.join(of[t], of[t + 64]), fold.join(of[t + 32], of[t + 96]));
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) value = fold.join(value, from_xor(value, mask));
    if (t == 0) values[warp] = value;
  }
  __syncthreads();  // all leaves are there
  if (warp > 0) return;
  const P sum = join_values(fold, leaves, t, [&](int i) { return values[i]; });
  if (t == 0) fold.store(sum, blockIdx.x);
}

struct by_lane_rows : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    if (d.dtype != LOCKSTEP_F32 || !sums_floats(d)) return "needs a sum of f32";
    if (const char* why = not_rows(d); why != nullptr) return why;
    if (order::leaves(d.length) > most_lane_leaves) return "needs rows of at most 16384 elements, eight leaves";
    return d.count > INT32_MAX ? "needs fewer than 2^31 rows" : nullptr;
  }
  // Rows so few that all their lanes are at work at once, and those nearly a leaf long, which two warps would share.
  static bool suits(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    const int64_t leaves = order::leaves(d.length);
    if (d.dtype != LOCKSTEP_F32 || !sums_floats(d) || d.offsets != nullptr || d.element_stride != 1 ||
        d.count > INT32_MAX || leaves > most_lane_leaves)
      return false;
    if (d.length > tuned.lane_row && d.length < order::leaf) return true;
    return d.count > 1 && d.length >= tuned.lane_row_of_few &&
           d.count * leaves * order::lanes <= int64_t{queue.facts->processors} * resident_threads;
  }
  // For rows that 16-byte loads do not fit, and for long arrays of others where few of its threads idle. Of short
  // arrays one warp per leaf is faster.
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    if (suits(queue, d)) return false;
    if (tasks_of(d).count > 1) return true;
    if (!loads_neighbours(call)) return false;
    const bool full = order::leaves(d.length) == 2 || d.length % order::leaf == 0;
    return !full || bytes_of(d) <= static_cast<double>(queue.facts->tuned.reductions.lane_rows_from);
  }
  template <class Fold>
  static constexpr bool takes = Fold::ordered && sizeof(typename Fold::element) == 4;

  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    return launch_soon(
        queue, "reduce_lane_rows",
        streams(queue, bytes_of(call.reduce)) ? reduce_lane_rows<Fold, true> : reduce_lane_rows<Fold, false>,
        blocks_for(call.reduce.count, 1), static_cast<unsigned>(order::leaves(call.reduce.length)) * order::lanes, 0,
        fold, sequences_of(call));
  }
};

}  // namespace lockstep::cuda
