// measure.hpp - the device's clock and its limits.
#pragma once

#include "lockstep/backend_group.h"
#include "queue.hpp"

namespace lockstep::cuda {
lockstep_status measure(lockstep_queue*, const lockstep_variant*, const lockstep_call*, uint32_t flags, int32_t samples,
                        double* ms);
lockstep_status measure_group(lockstep_queue*, const lockstep_group_row*, const lockstep_group*, uint32_t flags,
                              int32_t samples, double* ms);
lockstep_status limit(lockstep_queue*, lockstep_limit, size_t bytes, uint32_t flags, int32_t samples, double* ms);
}  // namespace lockstep::cuda
