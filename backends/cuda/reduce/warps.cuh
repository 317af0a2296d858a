// warps.cuh - a warp or one thread per sequence, whatever its stride and length.
//
//   reduce_warp   one warp per sequence, leaf after leaf: strided ones of one leaf, empty ones
//   reduce_alone  one thread per sequence: the naive rung
//
// Idea    Nobody waits for anybody but the threads of a warp.
// Moves   n elements read once; strided ones a sector each
// Limit   latencies: one leaf's loads are in flight
// Watch   indices of elements are 64 bits wide
// Source  lib/bits/order.hpp
#pragma once

#include "lane_rows.cuh"
#include "way.cuh"

namespace lockstep::cuda {

template <class Fold>
__global__ __launch_bounds__(block_threads, 3) void reduce_warp(Fold fold, const sequences all, report_word word) {
  using T = typename Fold::element;
  const int t = threadIdx.x % 32;
  const int64_t step = int64_t{gridDim.x} * (block_threads / 32);
  follow_on();
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

// ---- one thread per sequence -------------------------------------------------------------
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

struct by_warps : way {
  // Of rows that 16-byte loads do not fit a few leaves may be faster so than a warp each: the warps wait for no other.
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    if (d.offsets != nullptr) return true;
    if (d.length <= order::leaf) return by_lane_rows::suits(queue, d);
    const bool gains = lib::kind_of(d.reduction).to == lib::finish::index || element_bytes(d) == 8;
    return !gains || d.element_stride != 1 || loads_neighbours(call) || order::leaves(d.length) > tuned.warp_leaves ||
           d.count < tuned.warp_rows * queue.facts->processors;
  }
  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    return launch_soon(queue, "reduce_warp", reduce_warp<Fold>, blocks_for(call.reduce.count, block_threads / 32),
                       block_threads, 0, fold, sequences_of(call), queue.report);
  }
};

struct by_threads : way {
  static bool shares(const lockstep_call&) { return true; }  // a thread does not rescale a norm on the spot
  template <class Fold>
  static constexpr bool takes = true;

  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    return launch(queue, "reduce_alone", reduce_alone<Fold>, blocks_for(call.reduce.count, block_threads),
                  block_threads, 0, fold, sequences_of(call), queue.report);
  }
};

}  // namespace lockstep::cuda
