// exponentials.hpp - launches of softmax and its kin, the kinds of normalize from SOFTMAX on: one file a type.
#pragma once

#include "../../../lib/bits/order.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

// Rows that a block holds: half of their exponentials take 64 KiB of shared memory.
constexpr int64_t exponential_length = order::leaf * 8;
// Rows of more leaves are a cluster's of up to 8 blocks; a block has so many leaves, a power of two.
constexpr int most_cluster = 8;
inline int cluster_warps(int64_t leaves) {
  return leaves <= 4 * most_cluster ? 4 : leaves <= 8 * most_cluster ? 8 : 16;
}
inline int exponential_cluster(int64_t leaves) {
  return leaves * order::leaf <= exponential_length ? 1 : static_cast<int>((leaves - 1) / cluster_warps(leaves) + 1);
}
// The longest row of a cluster: F64 elements take the registers of two others.
inline int64_t clustered_length(lockstep_dtype dtype) {
  return order::leaf * most_cluster * (dtype == LOCKSTEP_F64 ? 8 : 16);
}
// A larger scale takes an infinity of 16 bits, which those kernels hold as 2^128, out of the range of exponentials.
constexpr double least_held_scale = 0x1p-100;

lockstep_status exponentials_f16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status exponentials_bf16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status exponentials_f32(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status exponentials_f64(lockstep_queue& queue, const lockstep_call& call, bool held);

// segments.cu: rows between offsets.
size_t exponential_segments_bytes();
lockstep_status exponential_segments(lockstep_queue& queue, const lockstep_call& call);

}  // namespace lockstep::cuda
