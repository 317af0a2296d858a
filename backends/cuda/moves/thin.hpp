// thin.hpp - the transposing engine for rows of src of 32 bytes without gaps.
#pragma once

#include "wide.hpp"

namespace lockstep::cuda {

bool is_thin(const wide_job& job);
lockstep_status launch_thin(lockstep_queue& queue, const wide_job& job);

}  // namespace lockstep::cuda
