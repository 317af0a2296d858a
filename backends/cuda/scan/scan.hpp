// scan.hpp - scan's launches by the kind of reduction, one file each.
#pragma once

#include "../../../lib/order.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

// Bytes of the mailboxes of a call's leaves: none where each sequence is one leaf, or the device knows which there are.
inline size_t scan_boxes(const lockstep_scan_desc& d) {
  if (d.offsets != nullptr || d.length <= order::leaf) return 0;
  const bool floats = d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64, sum = d.reduction == LOCKSTEP_SUM;
  const size_t words = sum && (!floats || d.exclusive != 0) ? 2 : 1;  // a 128-bit sum; a last result
  return static_cast<size_t>(d.count) * static_cast<size_t>(order::leaves(d.length)) * words * sizeof(mailbox);
}

lockstep_status scan_float_sums(lockstep_queue& queue, const lockstep_call& call);
lockstep_status scan_exact_sums(lockstep_queue& queue, const lockstep_call& call);
lockstep_status scan_extremes(lockstep_queue& queue, const lockstep_call& call);

}  // namespace lockstep::cuda
