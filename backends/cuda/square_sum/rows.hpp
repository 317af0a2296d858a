// rows.hpp - what square_sum's table names and square_sum/*.cu define.
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda {

using launcher = lockstep_status(lockstep_queue*, const lockstep_call*);
launcher launch_serial, launch_one_block_slices, launch_one_block_interleaved, launch_grid_stride,
    launch_grid_stride_full, launch_shared_serial, launch_shared_serial_full, launch_shared_tree_masked,
    launch_shared_tree_masked_full, launch_shared_tree_unrolled, launch_shared_tree_unrolled_full, launch_conflicting,
    launch_conflict_free, launch_compiler_fma, launch_ptx_fma, launch_thrust;
const char* refuses_lesson(const lockstep_queue*, const lockstep_call*);
const char* refuses_thrust(const lockstep_queue*, const lockstep_call*);
size_t workspace_thrust(const lockstep_queue*, const lockstep_call*);
size_t workspace_classic(const lockstep_queue*, const lockstep_call*);  // 32 blocks of 256 threads
size_t workspace_full(const lockstep_queue*, const lockstep_call*);     // as many as the chip holds

}  // namespace lockstep::cuda
