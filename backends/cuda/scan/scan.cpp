// scan.cpp - running sums, minima and maxima: the table.
// Idea    a warp a leaf of 2,048 elements, or where leaves are few a block (leaf_of_block.cuh), which stay in shared
//         memory between what they give the leaves behind them and their results; what stands before a leaf is found
//         in mailboxes (look_back.cuh). Many sequences side
//         by side are a thread's each (columns.cuh); others whose elements lie apart are copied to rows and back
//         (permuted.cpp)
// Moves   every element once in and once out; permuted: three times, by way of the workspace
// Limit   instructions and waits (look_back.cuh)
// Watch   the mailboxes are the queue's own, which the last leaf clears; of many leaves, or where a call is captured in
//         a graph, the workspace's, which are cleared before the launch
// Source  lib/bits/order_rows.hpp
#include "scan.hpp"

#include "../dtypes.hpp"
#include "../ops.hpp"

namespace lockstep::cuda {
namespace {

bool side_by_side(int64_t element_stride, int64_t sequence_stride) {
  return element_stride > 1 && sequence_stride < element_stride;
}
const char* not_columns(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  if (d.offsets != nullptr) return "needs sequences of one length";
  return side_by_side(d.element_stride, d.sequence_stride)
             ? nullptr
             : "needs sequences side by side: sequence_stride below element_stride";
}
// A thread goes down its sequence at one pace, however few there are.
int columns_yield(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  const scan_tuning& tuned = queue->facts->tuned.scans;
  if (!side_by_side(d.dst_element_stride, d.dst_sequence_stride)) return 1;
  if (d.length <= (d.count * d.length < tuned.permuted_from ? tuned.columns_at_once : tuned.columns_short)) return 0;
  return d.count * dtype_bytes(d.dtype) < tuned.columns_from;
}

const char* not_spans(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  if (d.offsets != nullptr || d.length > order::lanes) return "needs sequences of one length, at most 128";
  if (d.before != nullptr) return "needs sequences from their first element on";
  const bool dense = d.element_stride == 1 && d.dst_element_stride == 1 &&
                     (d.count <= 1 || (d.sequence_stride == d.length && d.dst_sequence_stride == d.length));
  return dense ? nullptr : "needs sequences that lie one after the other without gaps";
}
// Whole quads are loaded as fast without shared memory, in which sequences of a multiple of 4 elements meet in few
// banks; short ones leave half of the other kernel's threads idle.
int spans_yield(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  const bool few_banks = d.length % 8 == 0 || (d.length % 4 == 0 && d.length > 64);
  return few_banks || d.count < d.length * span_rows * queue->facts->processors;
}

size_t workspace(const lockstep_queue*, const lockstep_call* call) { return scan_boxes(call->scan); }

const lockstep_variant rows[] = {
    {"columns", "sequences side by side: a thread a sequence, lanes of float sums of several leaves in shared memory",
     0, not_columns, columns_yield, nullptr, on_device<launch_scan_by<scan_by::columns>>},
    {"permuted", "elements that lie apart: a permutation brings rows into the workspace, another takes results back", 0,
     not_permuted, permuted_yields, workspace_of_permuted, launch_permuted},
    {"spans", "short sequences without gaps: spans of them through shared memory, a thread a sequence", 0, not_spans,
     spans_yield, nullptr, on_device<launch_scan_by<scan_by::spans>>},
    {"look_back",
     "one pass, a warp or a block a leaf: the tree before a leaf from mailboxes; short rows several a warp", 0, nullptr,
     nullptr, workspace, on_device<launch_scan_by<scan_by::leaves>>},
};

}  // namespace

const lockstep_table scan_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
