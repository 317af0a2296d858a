// sums.hpp - sums of terms: what a launch is told. reduce's any_type takes its sums from here too.
#pragma once

#include <algorithm>

#include "../../../lib/bits/order_rows.hpp"
#include "../../../lib/bits/reductions.hpp"
#include "../device/queue.hpp"
#include "../dtypes.hpp"

namespace lockstep::cuda {

// The first ones are numbered as in lockstep_sums_kind; the others are reduce's and square_sum's.
enum class term {
  product,
  squared_difference,
  absolute_difference,
  absolute,
  moments,
  plain,
  square,
  truth,
  number,  // a NaN counts as +0.0
  factor,
  extreme
};

constexpr int sum_threads = 256;

// The first element of a sequence in src and in other.
struct pair_places {
  int64_t src, other;
};

struct term_sums {
  const void *src, *other;
  void* dst;
  int64_t count, length, element_stride, sequence_stride;
  const int64_t* offsets;
  int64_t other_element_stride, other_sequence_stride;
  term kind;
  lib::reduction_kind reduction;  // what is made of the whole; of extremes, which
  lockstep_dtype dtype, result;
  int64_t correction;
  report_word faults;
};

// Sequences of several leaves that are too few for a warp each: blocks take tasks of 2^k leaves.
struct task_shares {
  int leaves_a_task = 0;
  int64_t tasks = 0;  // of a sequence; 0: a warp each
};
// Whether a leaf is four warps', a thread a lane: elements without gaps, so few that a warp a leaf leaves SMs idle.
// A block takes two leaves at a time, so a sequence of one leaf keeps half of it idle. For one leaf of 2-byte elements,
// one warp is as fast as four. For moments, the warps of a leaf wait for each other twice.
inline bool suit_lanes(const lockstep_queue& queue, const term_sums& d) {
  const bool moments = d.kind == term::moments;
  const int64_t leaves = order::leaves(d.length), most = queue.facts->processors * (moments ? 4 : 8), least = 4;
  return d.offsets == nullptr && d.element_stride == 1 && (d.other == nullptr || d.other_element_stride == 1) &&
         d.length > order::lanes && (leaves > 1 || dtype_bytes(d.dtype) > 2 || moments) &&
         d.count <= queue.facts->processors * 2 && d.count * std::max(leaves, least) <= most;
}
inline task_shares shares_of(const lockstep_queue& queue, const term_sums& d, bool lanes = false) {
  constexpr int64_t warps_a_processor = 16;
  // A warp with several small leaves reads one while others add theirs.
  const bool small =
      is_float(d.dtype) && (d.kind == term::moments || (d.kind < term::moments && dtype_bytes(d.dtype) == 2));
  const int64_t enough_tasks = small ? 512 : 2048;
  const int64_t count = d.count, leaves = order::leaves(d.length);
  if (lanes) {
    int64_t task = 2;
    while (leaves * count > task * queue.facts->processors * 2) task *= 2;
    return {static_cast<int>(task), (leaves + task - 1) / task};
  }
  if (d.offsets != nullptr || leaves <= 1 || count >= queue.facts->processors * warps_a_processor) return {};
  // A leaf for each warp of a block, unless that leaves SMs without a block.
  int64_t task = leaves * count >= queue.facts->processors * 16 ? sum_threads / 32 : 4;
  while (task < 256 && leaves * count > task * enough_tasks) task *= 2;
  return {static_cast<int>(task), (leaves + task - 1) / task};
}
// Floats that lie side by side: blocks take tasks of 2^k leaves of several neighbouring sequences.
inline bool lie_side_by_side(const term_sums& d) {
  return is_float(d.dtype) && d.offsets == nullptr && d.sequence_stride == 1 && d.element_stride >= 4 && d.count >= 4 &&
         d.length > 0;
}
inline int columns_a_block(const lockstep_queue& queue, const term_sums& d) {
  const int64_t blocks = (d.count + 31) / 32 * order::leaves(d.length);
  return d.count > 16 && blocks >= queue.facts->processors ? 32 : 8;
}
inline task_shares column_shares(const lockstep_queue& queue, const term_sums& d) {
  constexpr int64_t enough_tasks = 4096;
  const int64_t leaves = order::leaves(d.length), groups = d.count / columns_a_block(queue, d) + 1;
  int64_t task = 1;
  while (task < leaves && leaves * groups > task * enough_tasks) task *= 2;
  return {static_cast<int>(std::min<int64_t>(task, 1 << 30)), (leaves + task - 1) / task};
}
// Bytes of the tasks' partial results.
inline size_t workspace_of_terms(const lockstep_queue& queue, const term_sums& d) {
  const int64_t tasks =
      std::max(lie_side_by_side(d) ? column_shares(queue, d).tasks : 0,  // extremes are not so read
               std::max(shares_of(queue, d).tasks, suit_lanes(queue, d) ? shares_of(queue, d, true).tasks : 0));
  return tasks > 1 ? static_cast<size_t>(d.count * tasks) * sizeof(order::moments) : 0;
}

// Leaves of a chunk of a long sequence of moments. A block joins those of each, another block the chunks.
constexpr int moments_chunk = 1024;
inline int64_t chunks_of_moments(int64_t leaves) {
  return leaves > 4 * moments_chunk ? (leaves + moments_chunk - 1) / moments_chunk : 0;
}
lockstep_status sum_floats(lockstep_queue& queue, const term_sums& d, void* workspace);
lockstep_status sum_moments(lockstep_queue& queue, const term_sums& d, void* workspace);
lockstep_status sum_exactly(lockstep_queue& queue, const term_sums& d, void* workspace);
lockstep_status multiply(lockstep_queue& queue, const term_sums& d, void* workspace);

}  // namespace lockstep::cuda
