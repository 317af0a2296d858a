// scan.hpp - scan's launches by the kind of reduction, one file each.
#pragma once

#include "../../../lib/bits/order.hpp"
#include "../../../lib/bits/reductions.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

inline bool scans_floats(const lockstep_scan_desc& d) {  // sums whose order shows
  return d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64 && !lib::kind_of(d.reduction).extreme();
}
// The leaves of floats that stand before the elements.
inline int64_t leaves_before(const lockstep_scan_desc& d) {
  return d.before != nullptr && scans_floats(d) ? d.first / order::leaf : 0;
}

// The mailboxes of a sequence: one a leaf, one for each 32 leaves, one for each 32^2 ... Behind leaves that are not
// here each level begins with those boxes that its next value is joined from.
inline int64_t boxes_a_sequence(const lockstep_scan_desc& d) {
  int64_t all = 0, first = leaves_before(d);
  for (int64_t level = first + order::leaves(d.length); level != 0; level /= 32, first /= 32)
    all += level - first / 32 * 32;
  return all;
}

// Bytes of the mailboxes of a call's leaves: none where each sequence is one leaf, or the device knows which there are.
inline size_t scan_boxes(const lockstep_scan_desc& d) {
  if (d.offsets != nullptr || (d.length <= order::leaf && leaves_before(d) == 0)) return 0;
  const bool floats = d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64, sum = !lib::kind_of(d.reduction).extreme();
  const auto a_sequence = static_cast<size_t>(boxes_a_sequence(d)) * (sum && !floats ? 2 : 1);  // 128-bit sums
  const size_t last_results = sum && floats && d.exclusive != 0 ? static_cast<size_t>(order::leaves(d.length)) : 0;
  return static_cast<size_t>(d.count) * (a_sequence + last_results) * sizeof(mailbox);
}

// Sequences per SM and element of their length, from which on a thread goes along each (spans.cuh).
constexpr int64_t span_rows = 1;

enum class scan_by { leaves, columns, spans };
lockstep_status scan_float_sums(lockstep_queue& queue, const lockstep_call& call, scan_by how);
lockstep_status scan_exact_sums(lockstep_queue& queue, const lockstep_call& call, scan_by how);
lockstep_status scan_extremes(lockstep_queue& queue, const lockstep_call& call, scan_by how);
template <scan_by how>
lockstep_status launch_scan_by(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_scan_desc& d = call.scan;
  if (lib::kind_of(d.reduction).extreme()) return scan_extremes(queue, call, how);
  return d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64 ? scan_float_sums(queue, call, how)
                                                            : scan_exact_sums(queue, call, how);
}

// The row `permuted` (permuted.cpp).
const char* not_permuted(const lockstep_queue* queue, const lockstep_call* call);
int permuted_yields(const lockstep_queue* queue, const lockstep_call* call);
size_t workspace_of_permuted(const lockstep_queue* queue, const lockstep_call* call);
lockstep_status launch_permuted(lockstep_queue* queue, const lockstep_call* call);

}  // namespace lockstep::cuda
