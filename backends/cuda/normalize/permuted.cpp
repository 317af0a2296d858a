// permuted.cpp - normalize along an axis that is not the last: as contiguous rows in the workspace.
// Idea    A permutation brings the elements of a row together, rows are normalized as any others, and a permutation
//         takes the results where they belong
// Moves   every element three times, once per launch
// Limit   a third of the copy's speed; of small calls the launches
// Watch   results take the elements' places where they are of the same type; h of a residual takes the residual's
// Source  lib/bits/order_rows.hpp
#include "../dtypes.hpp"
#include "../row_for.hpp"
#include "bits/normalizations.hpp"
#include "columns.hpp"

namespace lockstep::cuda {
namespace {

struct copies {
  int64_t pitch;  // elements from a row to the next: whole 16 bytes of any type
  size_t residual = 0, dst = 0, work = 0, all = 0;

  copies(const lockstep_queue* queue, const lockstep_call& call) {
    const lockstep_normalize_desc& d = call.normalize;
    pitch = (d.length + 7) / 8 * 8;
    const auto take = [&](size_t bytes) {
      const size_t begin = all;
      all += (bytes + 255) / 256 * 256;
      return begin;
    };
    const auto rows = [&](lockstep_dtype dtype) {
      return static_cast<size_t>(d.count) * static_cast<size_t>(pitch) * static_cast<size_t>(dtype_bytes(dtype));
    };
    take(rows(d.dtype));
    residual = d.residual != nullptr ? take(rows(d.dtype)) : 0;
    dst = d.result == d.dtype || lib::kind_of(d.kind).one_result ? 0 : take(rows(d.result));
    const lockstep_call inner = contiguous(call, nullptr);
    const lockstep_variant& row = row_for(queue, normalize_table, inner);
    work = take(row.workspace != nullptr ? row.workspace(queue, &inner) : 0);
  }

  lockstep_call contiguous(const lockstep_call& call, char* room) const {
    lockstep_call rows = call;
    lockstep_normalize_desc& d = rows.normalize;
    const bool one_result = lib::kind_of(d.kind).one_result;
    d.inner = 1;
    d.src_stride = d.residual_stride = d.sum_stride = pitch;
    rows.src = room;
    if (d.residual != nullptr) d.residual = room + residual;
    if (d.sum != nullptr) d.sum = room + residual;
    if (!one_result) rows.dst = room + dst, d.dst_stride = pitch;
    rows.workspace = room + work;
    return rows;
  }
};

// All rows, elements of so many bytes: from an array of the call's to packed rows, or back.
lockstep_status move_rows(lockstep_queue* queue, const lockstep_call& call, int64_t pitch, int64_t bytes,
                          const void* src, void* dst, int64_t stride, bool back) {
  const lockstep_normalize_desc& d = call.normalize;
  lockstep_call permute = call;
  permute.op = LOCKSTEP_PERMUTE;
  permute.src = src, permute.dst = dst;
  permute.workspace = nullptr, permute.workspace_bytes = 0;
  lockstep_permute_desc& p = permute.permute;
  const int64_t shape[] = {d.count / d.inner, d.inner, d.length}, there[] = {stride, 1, d.inner},
                rows[] = {d.inner * pitch, pitch, 1};
  p = {};
  p.size = sizeof p;
  p.element_bytes = static_cast<size_t>(bytes);
  p.rank = 3;
  for (int k = 0; k < 3; ++k) {
    p.perm[k] = k, p.shape[k] = shape[k];
    p.src_strides[k] = back ? rows[k] : there[k];
    p.dst_strides[k] = back ? there[k] : rows[k];
  }
  return run_permute(queue, permute);
}

}  // namespace

const char* not_permuted_rows(const lockstep_queue*, const lockstep_call* call) {
  return call->normalize.inner > 1 ? nullptr : "needs rows side by side, along an axis that is not the last";
}
size_t workspace_of_permuted_rows(const lockstep_queue* queue, const lockstep_call* call) {
  return copies(queue, *call).all;
}

lockstep_status launch_permuted_rows(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  const copies at(queue, *call);
  auto* const room = static_cast<char*>(call->workspace);
  const int64_t bytes = dtype_bytes(d.dtype);
  lockstep_status status = move_rows(queue, *call, at.pitch, bytes, call->src, room, d.src_stride, false);
  if (status == LOCKSTEP_OK && d.residual != nullptr)
    status = move_rows(queue, *call, at.pitch, bytes, d.residual, room + at.residual, d.residual_stride, false);
  if (status != LOCKSTEP_OK) return status;
  const lockstep_call rows = at.contiguous(*call, room);
  status = row_for(queue, normalize_table, rows).launch(queue, &rows);
  if (status == LOCKSTEP_OK && d.sum != nullptr)
    status = move_rows(queue, *call, at.pitch, bytes, room + at.residual, d.sum, d.sum_stride, true);
  if (status != LOCKSTEP_OK || lib::kind_of(d.kind).one_result) return status;
  return move_rows(queue, *call, at.pitch, dtype_bytes(d.result), room + at.dst, call->dst, d.dst_stride, true);
}

}  // namespace lockstep::cuda
