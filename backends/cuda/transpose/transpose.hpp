// transpose.hpp - the launches of transpose.cu.
#pragma once

#include "../device/queue.hpp"
#include "../index/transpose.hpp"

namespace lockstep::cuda {
lockstep_status launch_swap_tiles(lockstep_queue& queue, const lockstep_call& call);  // squares in place
// Lessons.
lockstep_status launch_naive_read(lockstep_queue& queue, const lockstep_call& call);
lockstep_status launch_naive_write(lockstep_queue& queue, const lockstep_call& call);
template <layout how>
lockstep_status launch_tiled(lockstep_queue& queue, const lockstep_call& call);
}  // namespace lockstep::cuda
