// scan.cpp - running sums, minima and maxima: the table.
// Idea    a warp a leaf of 2,048 elements, which stay in shared memory between what they give the leaves behind them
//         and their results; what stands before a leaf is found in mailboxes (look_back.cuh). Sequences whose elements
//         lie apart are copied to rows and back (permuted.cpp)
// Moves   every element once in and once out; permuted: three times, by way of the workspace
// Limit   instructions and waits (look_back.cuh)
// Watch   the mailboxes are cleared before each launch; a call may be captured in a graph
// Source  lib/order_rows.hpp
#include "scan.hpp"

#include "../ops.hpp"

namespace lockstep::cuda {

lockstep_status scan_leaf_by_leaf(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_scan_desc& d = call.scan;
  if (d.reduction != LOCKSTEP_SUM) return scan_extremes(queue, call);
  return d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64 ? scan_float_sums(queue, call)
                                                            : scan_exact_sums(queue, call);
}

namespace {

size_t workspace(const lockstep_queue*, const lockstep_call* call) { return scan_boxes(call->scan); }

const lockstep_variant rows[] = {
    {"permuted", "elements that lie apart: a permutation brings rows into the workspace, another takes results back", 0,
     not_permuted, permuted_yields, workspace_of_permuted, launch_permuted},
    {"look_back", "one pass, a warp a leaf: the tree before a leaf from mailboxes; short rows several a warp", 0,
     nullptr, nullptr, workspace, on_device<scan_leaf_by_leaf>},
};

}  // namespace

const lockstep_table scan_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
