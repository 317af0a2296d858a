// reduce_axes.cpp - reductions over any axes of an array: validation.
#include <algorithm>

#include "../bits/reductions.hpp"
#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {
namespace {

// Sorts the reduced axes; mask: a bit each.
unsigned require_axes(lockstep_reduce_axes_desc& d) {
  if (d.rank < 1 || d.rank > LOCKSTEP_MAX_RANK)
    fail(LOCKSTEP_INVALID_ARGUMENT, "rank is {}; use 1 to {}", d.rank, LOCKSTEP_MAX_RANK);
  if (d.axis_count < 1 || d.axis_count > d.rank)
    fail(LOCKSTEP_INVALID_ARGUMENT, "axis_count is {}; reduce 1 to {} axes, the rank", d.axis_count, d.rank);
  unsigned mask = 0;
  for (int k = 0; k < d.axis_count; ++k) {
    if (d.axes[k] < 0 || d.axes[k] >= d.rank)
      fail(LOCKSTEP_INVALID_ARGUMENT, "axes[{}] is {}; the axes are 0 to {}", k, d.axes[k], d.rank - 1);
    if ((mask >> d.axes[k] & 1) != 0)
      fail(LOCKSTEP_INVALID_ARGUMENT, "axes[{}] is {} again; name each axis once", k, d.axes[k]);
    mask |= 1u << d.axes[k];
  }
  std::sort(d.axes, d.axes + d.axis_count);
  std::fill(d.axes + d.axis_count, d.axes + LOCKSTEP_MAX_RANK, 0);
  return mask;
}

}  // namespace

void prepare_reduce_axes(prepared_call& prepared) {
  lockstep_reduce_axes_desc& d = prepared.call.reduce_axes;
  require_reduction(d.reduction, LOCKSTEP_REDUCE_AXES);
  require_dtype(d.dtype);
  const unsigned mask = require_axes(d);
  int64_t kept[LOCKSTEP_MAX_RANK], gone[LOCKSTEP_MAX_RANK];
  int stay = 0, go = 0;
  for (int k = 0; k < d.rank; ++k) {
    if (d.shape[k] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "shape[{}] is {}; give 0 or more", k, d.shape[k]);
    if ((mask >> k & 1) != 0)
      gone[go++] = d.shape[k];
    else
      kept[stay++] = d.shape[k];
  }
  // In an empty array the product of the other sizes may overflow, and does not matter.
  const auto has_zero = [](const int64_t* sizes, int count) {
    return std::find(sizes, sizes + count, 0) != sizes + count;
  };
  if (!has_zero(d.shape, d.rank)) (void)product("the product of shape", d.rank, d.shape);
  const int64_t count = has_zero(kept, stay) ? 0 : product("the product of shape over the kept axes", stay, kept);
  const int64_t length = has_zero(gone, go) ? 0 : product("the product of shape over the reduced axes", go, gone);
  // Types and results are those of the rows of a packed array.
  prepared_call rows;
  rows.call.op = kind_of(d.reduction).op;
  rows.call.reduce = {sizeof(lockstep_reduce_desc), d.reduction, d.dtype, d.result, count, length, 1, length, nullptr};
  prepare_sequences(rows);
  d.reduction = rows.call.reduce.reduction;
  prepared.element_bytes = rows.element_bytes;
  prepared.dst_element_bytes = rows.dst_element_bytes;
  prepared.empty = rows.empty;
  prepared.dst_span = rows.dst_span;
  prepared.dst_dense = rows.dst_dense;
  prepared.moved_bytes = rows.moved_bytes;
  // The others are as old as the operation.
  if (rows.reads > 2) prepared.reads = rows.reads, prepared.needs = rows.needs;
  if (prepared.empty) return;
  for (int k = 0; k < d.rank; ++k) {
    // The stride of an axis with at most one element is never read: any number will do.
    if (d.shape[k] <= 1 || length == 0) d.src_strides[k] = 0;
    if (d.src_strides[k] < 0)
      fail(LOCKSTEP_INVALID_ARGUMENT, "src_strides[{}] is {}; give 0 or more", k, d.src_strides[k]);
  }
  if (length != 0) prepared.src_span = span_bytes("src", d.rank, d.shape, d.src_strides, prepared.element_bytes);
}

}  // namespace lockstep::lib
