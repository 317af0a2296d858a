// sums.hpp - sums of terms: what a launch is told. reduce's any_type takes its sums from here too.
#pragma once

#include <algorithm>

#include "../../../lib/order.hpp"
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
  smallest,
  largest,
  first_smallest,
  first_largest
};

struct term_sums {
  const void *src, *other;
  void* dst;
  int64_t count, length, element_stride, sequence_stride;
  const int64_t* offsets;
  int64_t other_element_stride, other_sequence_stride;
  term kind;
  bool root;  // of the sum
  lockstep_dtype dtype, result;
  int64_t correction;
  report_word faults;
};

// Sequences of several leaves that are too few for a warp each: blocks take tasks of 2^k leaves.
struct task_shares {
  int leaves_a_task = 0;
  int64_t tasks = 0;  // of a sequence; 0: a warp each
};
inline task_shares shares_of(const lockstep_queue& queue, int64_t count, int64_t length, bool has_offsets) {
  constexpr int64_t warps_a_processor = 16, enough_tasks = 2048;
  const int64_t leaves = order::leaves(length);
  if (has_offsets || leaves <= 1 || count >= queue.facts->processors * warps_a_processor) return {};
  int64_t task = 8;  // a leaf a warp
  while (task < 256 && leaves * count > task * enough_tasks) task *= 2;
  return {static_cast<int>(task), (leaves + task - 1) / task};
}
// Bytes of the tasks' partial results.
inline size_t workspace_of_terms(const lockstep_queue& queue, int64_t count, int64_t length, bool has_offsets) {
  const int64_t tasks = shares_of(queue, count, length, has_offsets).tasks;
  return tasks > 1 ? static_cast<size_t>(count * tasks) * 24 : 0;
}

lockstep_status sum_floats(lockstep_queue& queue, const term_sums& d, void* workspace);
lockstep_status sum_moments(lockstep_queue& queue, const term_sums& d, void* workspace);
lockstep_status sum_exactly(lockstep_queue& queue, const term_sums& d, void* workspace);

}  // namespace lockstep::cuda
