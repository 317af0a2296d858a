// runs.hpp - columns of several arrays in one launch, for reduce_axes.
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda {

// Runs of so many sequences that lie side by side, run_stride elements apart.
struct column_runs {
  int64_t run, run_stride;
  bool pairs, quads;  // two neighbours by one load of 4 bytes, four by one of 16
};

// call: reduce's, or square_sum's of floats, whose sequence_stride is 1; its workspace as by_columns has it. By the
// kernels that reduce has for extremes and sums of integers, and others for sums of floats and of their squares.
lockstep_status reduce_runs(lockstep_queue& queue, const lockstep_call& call, const column_runs& runs);
lockstep_status sum_runs(lockstep_queue& queue, const lockstep_call& call, const column_runs& runs);

}  // namespace lockstep::cuda
