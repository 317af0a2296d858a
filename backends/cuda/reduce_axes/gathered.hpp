// gathered.hpp - reductions over axes that cannot be merged, without a copy: what a launch is told.
#pragma once

#include "../device/queue.hpp"
#include "../kernel/divide.hpp"

namespace lockstep::cuda {

constexpr int most_gathered_axes = 3;  // that go

// Where the elements of all sequences lie. Axes from the innermost on.
struct gathered_axes {
  const void* src;
  int64_t count, length;
  divider gone[most_gathered_axes - 1];  // by extents; of an axis that is not there the quotient is 0
  int32_t gone_stride[most_gathered_axes];
  int kept_axes;
  divider kept[LOCKSTEP_MAX_RANK];
  int64_t kept_stride[LOCKSTEP_MAX_RANK];
};

// call: as reduce or square_sum has it.
lockstep_status launch_gathered(lockstep_queue& queue, const lockstep_call& call, const gathered_axes& axes,
                                bool neighbours);

}  // namespace lockstep::cuda
