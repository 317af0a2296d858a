// sums.cpp - dst[s] = sum of x * y, (x - y)^2, |x - y| or |x| of a sequence; its mean and variance; its digest: the
//            table.
// Idea    one warp per leaf of both arrays; one warp per sequence where they are many or short, else blocks share them.
//         Columns, and means and variances of large rows, by the kernels of ahead.cuh
// Moves   every element of both arrays once; 32 bytes per task
// Limit   memory reads; see floats.cu, moments.cu, exact.cu and digests.cu
// Watch   segments are a warp each, however long
// Source  lib/bits/order.hpp, lib/bits/order_rows.hpp
#include "sums.hpp"

#include "../ops.hpp"
#include "ahead.hpp"
#include "digests.hpp"

namespace lockstep::cuda {
namespace {

term_sums sums_of(const lockstep_call& call, const report_word& faults) {
  const lockstep_sums_desc& d = call.sums;
  return {call.src,
          d.other,
          call.dst,
          d.count,
          d.length,
          d.element_stride,
          d.sequence_stride,
          d.offsets,
          d.other_element_stride,
          d.other_sequence_stride,
          d.kind == LOCKSTEP_SUMS_DIGEST ? term::plain : static_cast<term>(d.kind),
          lib::reduction_kind{},
          d.dtype,
          d.result,
          d.correction,
          faults};
}

lockstep_status run_sums(lockstep_queue& queue, const lockstep_call& call) {
  const term_sums sums = sums_of(call, queue.report);
  if (call.sums.kind == LOCKSTEP_SUMS_DIGEST) return digest_words(queue, sums, call.workspace);
  if (sums.kind == term::moments) return sum_moments(queue, sums, call.workspace);
  return is_float(sums.dtype) ? sum_floats(queue, sums, call.workspace) : sum_exactly(queue, sums, call.workspace);
}

size_t workspace(const lockstep_queue* queue, const lockstep_call* call) {
  return workspace_of_terms(*queue, sums_of(*call, queue->report));
}

const char* refuses_ahead(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->sums.kind == LOCKSTEP_SUMS_DIGEST) return "makes no digests";
  return why_not_ahead(*queue, sums_of(*call, queue->report));
}
int yields_ahead(const lockstep_queue* queue, const lockstep_call* call) {
  return int{ahead_yields(*queue, sums_of(*call, queue->report))};
}
size_t workspace_of_ahead(const lockstep_queue* queue, const lockstep_call* call) {
  return workspace_ahead(sums_of(*call, queue->report));
}
lockstep_status run_ahead(lockstep_queue& queue, const lockstep_call& call) {
  const term_sums sums = sums_of(call, queue.report);
  return sums.kind == term::moments ? sum_moments_ahead(queue, sums, call.workspace)
                                    : sum_floats_ahead(queue, sums, call.workspace);
}

const lockstep_variant rows[] = {
    {"ahead", "16 bytes of each row of lanes in a thread's registers, while shared memory takes its next ones", 0,
     refuses_ahead, yields_ahead, workspace_of_ahead, on_device<run_ahead>},
    {"leaves", "a warp a leaf of both arrays; many sequences a warp each, few are shared by blocks", 0, nullptr,
     nullptr, workspace, on_device<run_sums>},
};

}  // namespace

const lockstep_table sums_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
