// permuted.cpp - scans of sequences whose elements lie apart: as rows in the workspace.
// Idea    A permutation brings the elements of a sequence together, the rows are scanned as any others, and a
//         permutation takes the results where they belong. Where src or dst has rows already, it stays out
// Moves   every element three times, once per launch
// Limit   a third of the copy's speed; of small calls the launches
// Watch   a row of the permutations is chosen at the launch, by the pointers: none needs workspace. Results take the
//         elements' places where they are as wide
// Source  lib/bits/order_rows.hpp
#include "../dtypes.hpp"
#include "../row_for.hpp"
#include "scan.hpp"

namespace lockstep::cuda {
namespace {

// Mailboxes, the elements as rows, the results as rows.
struct copies {
  bool of_src, of_dst;
  int64_t pitch;             // elements from a row to the next: whole 16 bytes of any type
  size_t src, dst, all = 0;  // where they begin, in bytes

  explicit copies(const lockstep_scan_desc& d) : of_src(d.element_stride != 1), of_dst(d.dst_element_stride != 1) {
    pitch = (d.length + 7) / 8 * 8;
    const auto take = [&](size_t bytes) {
      const size_t begin = all;
      all += (bytes + 255) / 256 * 256;
      return begin;
    };
    const auto rows = [&](lockstep_dtype dtype) {
      return static_cast<size_t>(d.count) * static_cast<size_t>(pitch) * static_cast<size_t>(dtype_bytes(dtype));
    };
    take(scan_boxes(d));
    src = of_src ? take(rows(d.dtype)) : 0;
    const bool one_place = of_src && dtype_bytes(d.dtype) == dtype_bytes(d.result);
    dst = !of_dst ? 0 : one_place ? src : take(rows(d.result));
  }
};

// The same sequences, elements of so many bytes, from one place to another.
lockstep_call moved(const lockstep_call& call, int64_t bytes, const void* src, int64_t src_stride, int64_t src_apart,
                    void* dst, int64_t dst_stride, int64_t dst_apart) {
  const int64_t count = call.scan.count, length = call.scan.length;
  lockstep_call permute = call;
  permute.op = LOCKSTEP_PERMUTE;
  permute.src = src, permute.dst = dst;
  permute.workspace = nullptr, permute.workspace_bytes = 0;
  lockstep_permute_desc& p = permute.permute;
  p = {};
  p.size = sizeof p;
  p.element_bytes = static_cast<size_t>(bytes);
  p.rank = 2;
  p.perm[0] = 0, p.perm[1] = 1;
  p.shape[0] = count, p.shape[1] = length;
  p.src_strides[0] = src_stride, p.src_strides[1] = src_apart;
  p.dst_strides[0] = dst_stride, p.dst_strides[1] = dst_apart;
  return permute;
}

}  // namespace

const char* not_permuted(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  if (d.offsets != nullptr) return "needs sequences of one length";
  return d.element_stride == 1 && d.dst_element_stride == 1 ? "needs elements or results that are not contiguous"
                                                            : nullptr;
}

int permuted_yields(const lockstep_queue* queue, const lockstep_call* call) {
  return call->scan.count * call->scan.length < queue->facts->tuned.scans.permuted_from;
}

size_t workspace_of_permuted(const lockstep_queue*, const lockstep_call* call) { return copies(call->scan).all; }

lockstep_status launch_permuted(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  const copies at(d);
  auto* const room = static_cast<char*>(call->workspace);
  lockstep_call rows = *call;
  if (at.of_src) {
    const lockstep_call in =
        moved(*call, dtype_bytes(d.dtype), call->src, d.sequence_stride, d.element_stride, room + at.src, at.pitch, 1);
    if (const lockstep_status status = run_permute(queue, in); status != LOCKSTEP_OK) return status;
    rows.src = room + at.src;
    rows.scan.element_stride = 1, rows.scan.sequence_stride = at.pitch;
  }
  if (at.of_dst) {
    rows.dst = room + at.dst;
    rows.scan.dst_element_stride = 1, rows.scan.dst_sequence_stride = at.pitch;
  }
  if (const lockstep_status status = on_device<launch_scan_by<scan_by::leaves>>(queue, &rows);
      status != LOCKSTEP_OK || !at.of_dst)
    return status;
  return run_permute(queue, moved(*call, dtype_bytes(d.result), rows.dst, at.pitch, 1, call->dst, d.dst_sequence_stride,
                                  d.dst_element_stride));
}

}  // namespace lockstep::cuda
