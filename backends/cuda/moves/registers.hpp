// registers.hpp - see registers.cu.
#pragma once

#include "../device/queue.hpp"
#include "axes.hpp"

namespace lockstep::cuda {
bool registers_fit(const axes& a);  // but for addresses, multiples of 16 bytes
bool registers_pay(const axes& a);  // where they fit: whether a block finds the rows beside its own
lockstep_status launch_registers(lockstep_queue& queue, const axes& a);
}  // namespace lockstep::cuda
