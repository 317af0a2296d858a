// library.hpp - the library rows of square_sum's and reduce's tables (library.cu).
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda {
lockstep_status launch_cub(lockstep_queue*, const lockstep_call*);
lockstep_status launch_thrust(lockstep_queue*, const lockstep_call*);
const char* refuses_library(const lockstep_queue*, const lockstep_call*);
size_t workspace_library(const lockstep_queue*, const lockstep_call*);
}  // namespace lockstep::cuda
