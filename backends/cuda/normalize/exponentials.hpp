// exponentials.hpp - launches of softmax and its kin, the kinds of normalize from SOFTMAX on: one file a type.
#pragma once

#include "../../../lib/bits/order.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

// Rows that a block holds: half of their exponentials take 64 KiB of shared memory.
constexpr int64_t exponential_length = order::leaf * 8;
// A larger scale takes an infinity of 16 bits, which those kernels hold as 2^128, out of the range of exponentials.
constexpr double least_held_scale = 0x1p-100;

lockstep_status exponentials_f16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status exponentials_bf16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status exponentials_f32(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status exponentials_f64(lockstep_queue& queue, const lockstep_call& call, bool held);

}  // namespace lockstep::cuda
