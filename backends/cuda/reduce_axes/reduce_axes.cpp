// reduce_axes.cpp - dst[s] = reduction over the reduced axes, for each element s of the kept axes.
// Idea    axes that can be merged are merged. If one reduced axis is left, with one or a few batches, the call is one
//         or a few calls of reduce or square_sum. If the innermost axis is reduced, elements are read where they lie
//         (gathered.cu). Otherwise a permutation brings the reduced axes together, and rows are reduced
// Moves   every element once; permuted: three times, by way of a copy in the workspace
// Limit   memory; of many small batches the launches
// Watch   a row is chosen at the launch, by the pointers, so the workspace must do for all of them. A fault names a
//         sequence of its own launch
// Source  lib/bits/order.hpp
#include <algorithm>

#include "../../../lib/bits/order.hpp"
#include "../../../lib/bits/reductions.hpp"
#include "../dtypes.hpp"
#include "../reduce/any_type.hpp"
#include "../reduce/runs.hpp"
#include "../row_for.hpp"
#include "axis_list.hpp"
#include "gathered.hpp"

namespace lockstep::cuda {
namespace {

const lib::reduction_kind& kind_of(const lockstep_reduce_axes_desc& d) { return lib::kind_of(d.reduction); }
const lockstep_table& table_of(const lockstep_reduce_axes_desc& d) {
  return kind_of(d).op == LOCKSTEP_SQUARE_SUM ? square_sum_table : reduce_table;
}

// A call of reduce or square_sum on part of this one.
lockstep_call inner_call(const lockstep_call& call, int64_t count, int64_t length, int64_t element_stride,
                         int64_t sequence_stride) {
  const lockstep_reduce_axes_desc d = call.reduce_axes;
  lockstep_call inner = call;
  inner.op = kind_of(d).op;
  inner.reduce = {sizeof(lockstep_reduce_desc),
                  d.reduction,
                  d.dtype,
                  d.result,
                  count,
                  length,
                  element_stride,
                  sequence_stride,
                  nullptr};
  return inner;
}

// Without elements the rows that refuse are not asked: how they share leaves out is not defined for none.
size_t workspace_of_any(const lockstep_queue* queue, const lockstep_table& table, const lockstep_call& call) {
  size_t most = 0;
  for (const lockstep_variant* row = table.rows; row != table.rows + table.count; ++row) {
    if (row->flags != 0 || row->workspace == nullptr) continue;
    if (call.reduce.length == 0 && row->refuses != nullptr && row->refuses(queue, &call) != nullptr) continue;
    most = std::max(most, row->workspace(queue, &call));
  }
  return most;
}

// ---- batches -----------------------------------------------------------------------------
// `outer` calls; the innermost kept axis gives each one's sequences.
struct batches {
  lockstep_call inner;
  int64_t outer = 1;
  axis_list places;  // of the outer ones

  batches(const lockstep_call& call, const split_axes& split) {
    const axis_list &kept = split.kept, &reduced = split.reduced;
    const int last = kept.count - 1;
    const bool no_elements = split.length == 0;  // then all sequences are alike
    const int64_t count = no_elements ? split.count : last >= 0 ? kept.shape[last] : 1;
    inner = inner_call(call, count, split.length, reduced.count > 0 && !no_elements ? reduced.stride[0] : 1,
                       last >= 0 && !no_elements ? kept.stride[last] : 0);
    places = kept;
    places.count = no_elements ? 0 : std::max(last, 0);
    for (int k = 0; k < places.count; ++k) outer = saturated_product(outer, places.shape[k]);
  }
};

const char* not_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_axes_desc& d = call->reduce_axes;
  const split_axes split(d);
  if (const char* why = no_row_for(queue, table_of(d), batches(*call, split).inner); why != nullptr) return why;
  if (split.length == 0) return nullptr;
  if (split.reduced.count > 1) return "needs axes that lie as one";
  if (split.reduced.count == 1 && split.reduced.stride[0] == 0) return "needs elements of their own";
  const bool exact = !is_float(d.result) && !kind_of(d).extreme() && kind_of(d).of != lib::term::truth;
  return exact && batches(*call, split).outer > 1 ? "needs one batch where a sum may not fit its type" : nullptr;
}

// A launch costs as much as reading this much twice more.
constexpr int64_t least_batch = int64_t{6} << 20;  // bytes
int small_batches(const lockstep_queue*, const lockstep_call* call) {
  const batches b(*call, split_axes(call->reduce_axes));
  const lockstep_reduce_desc& d = b.inner.reduce;
  const int64_t bytes = dtype_bytes(d.dtype);
  return b.outer > 1 && saturated_product(d.count, d.length) < least_batch / bytes;
}

size_t workspace_of_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const batches b(*call, split_axes(call->reduce_axes));
  return workspace_of_any(queue, table_of(call->reduce_axes), b.inner);
}

lockstep_status launch_batches(lockstep_queue* queue, const lockstep_call* call) {
  batches b(*call, split_axes(call->reduce_axes));
  const lockstep_reduce_desc& d = b.inner.reduce;
  const int64_t bytes = dtype_bytes(d.dtype);
  const int64_t step = d.count * dtype_bytes(d.result);
  for (int64_t i = 0; i < b.outer; ++i) {
    b.inner.src = static_cast<const char*>(call->src) + b.places.place(i) * bytes;
    b.inner.dst = static_cast<char*>(call->dst) + i * step;
    const lockstep_variant& row = row_for(queue, table_of(call->reduce_axes), b.inner);
    if (const lockstep_status status = row.launch(queue, &b.inner); status != LOCKSTEP_OK) return status;
  }
  return LOCKSTEP_OK;
}

// ---- gathered ----------------------------------------------------------------------------
bool gathers_type(const lockstep_reduce_axes_desc& d) {
  const lib::reduction_kind& kind = kind_of(d);
  if (kind.of == lib::term::truth || kind.of == lib::term::number || kind.by == lib::join::product) return false;
  if (is_float(d.dtype)) return kind.to != lib::finish::index;
  return (d.dtype == LOCKSTEP_I32 || d.dtype == LOCKSTEP_I64) && kind.of == lib::term::plain && !kind.extreme();
}

const char* not_gathered(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_axes_desc& d = call->reduce_axes;
  if (!gathers_type(d)) return "is for sums, norms, minima and maxima of floats, and sums of I32 and I64";
  if (kind_of(d).to == lib::finish::root && d.dtype == LOCKSTEP_F64) return "does not scale norms of F64";
  const split_axes split(d);
  constexpr int64_t most = int64_t{1} << 31;
  if (split.length == 0 || split.length >= most || split.count == 0 || split.count >= most)
    return "needs fewer than 2^31 sequences, of 1 to 2^31 - 1 elements";
  if (split.reduced.count > most_gathered_axes) return "needs at most three reduced axes that cannot be merged";
  for (int k = 0; k < split.reduced.count; ++k)
    if (split.reduced.stride[k] >= most || split.reduced.stride[k] < -most) return "needs strides that fit 32 bits";
  return nullptr;
}

// Elements of other sequences lie between those of one: a sector is read for each of them, which costs more than a
// second launch unless there are few; and a warp is busy with each sequence, however short.
int gathers_single_elements(const lockstep_queue*, const lockstep_call* call) {
  const split_axes split(call->reduce_axes);
  const axis_list& reduced = split.reduced;
  const int64_t bytes = dtype_bytes(call->reduce_axes.dtype);
  constexpr int64_t sector = 32, few = int64_t{1} << 20;
  if (reduced.count == 0) return 1;
  const int inner = reduced.count - 1;
  if (reduced.stride[inner] == 1 && reduced.shape[inner] * bytes >= sector) return 0;
  return split.length < order::lanes || saturated_product(split.count, split.length) > few / bytes;
}

size_t workspace_of_gathered(const lockstep_queue*, const lockstep_call* call) {
  const split_axes split(call->reduce_axes);
  const int64_t leaves = order::leaves(split.length), task = leaves_a_task(leaves, split.count, most_leaves);
  return leaves > task ? static_cast<size_t>(split.count * ((leaves + task - 1) / task)) * 16 : 0;
}

lockstep_status launch_by_gathering(lockstep_queue& queue, const lockstep_call& call) {
  const split_axes split(call.reduce_axes);
  const axis_list &gone = split.reduced, &kept = split.kept;
  gathered_axes d{call.src, split.count, split.length, {}, {}, kept.count, {}, {}};
  const int64_t bytes = dtype_bytes(call.reduce_axes.dtype), load = bytes == 2 ? 8 : 16, neighbours = load / bytes;
  bool aligned = reinterpret_cast<uintptr_t>(call.src) % static_cast<uintptr_t>(load) == 0;
  for (divider& by : d.gone) by.d = 0;
  for (int k = 0; k < gone.count; ++k) {
    const int axis = gone.count - 1 - k;
    if (k + 1 < gone.count) d.gone[k] = divider(gone.shape[axis]);
    d.gone_stride[k] = static_cast<int32_t>(gone.stride[axis]);
    aligned = aligned && (k == 0 ? gone.stride[axis] == 1 && gone.shape[axis] % neighbours == 0
                                 : gone.stride[axis] % neighbours == 0);
  }
  for (int k = 0; k < kept.count; ++k) {
    const int axis = kept.count - 1 - k;
    d.kept[k] = divider(kept.shape[axis]);
    d.kept_stride[k] = kept.stride[axis];
    aligned = aligned && kept.stride[axis] % neighbours == 0;
  }
  return launch_gathered(queue, inner_call(call, split.count, split.length, 1, 0), d, aligned && gone.count > 0);
}

// ---- columns ------------------------------------------------------------------------------
const char* not_axis_columns(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_axes_desc& d = call->reduce_axes;
  const lockstep_call inner = inner_call(*call, 1, 1, 1, 1);
  if (is_for_any_type(inner) && !is_narrow_extreme(inner))
    return "is not for small or unsigned integers, products, counts and reductions that skip NaN";
  if (kind_of(d).of == lib::term::square && !is_float(d.dtype)) return "does not square integers";
  if (kind_of(d).to == lib::finish::root && d.dtype == LOCKSTEP_F64) return "does not scale norms of F64";
  const split_axes split(d);
  if (split.length == 0 || split.count == 0) return "needs elements";
  if (split.reduced.count != 1) return "needs axes that go and lie as one";
  const axis_list& kept = split.kept;
  if (kept.count != 2 || kept.stride[1] != 1) return "needs two kept axes, the last of them contiguous";
  return split.reduced.stride[0] < kept.shape[1] ? "needs elements as far apart as a run is long" : nullptr;
}
// Batches that are many and small; long ones have a launch each.
int large_runs(const lockstep_queue* queue, const lockstep_call* call) {
  const split_axes split(call->reduce_axes);
  constexpr int64_t sector = 32;
  if (split.kept.shape[1] * dtype_bytes(call->reduce_axes.dtype) < sector) return 1;
  return small_batches(queue, call) == 0;
}
size_t workspace_of_axis_columns(const lockstep_queue*, const lockstep_call* call) {
  const split_axes split(call->reduce_axes);
  const int64_t leaves = order::leaves(split.length);
  return leaves > 1 ? static_cast<size_t>(split.count * leaves) * 16 : 0;
}
lockstep_status launch_by_axis_columns(lockstep_queue& queue, const lockstep_call& call) {
  const split_axes split(call.reduce_axes);
  const int64_t apart = split.reduced.stride[0], run = split.kept.shape[1], run_stride = split.kept.stride[0];
  const auto whole = [&](int64_t of) { return apart % of == 0 && run % of == 0 && run_stride % of == 0; };
  const auto address = reinterpret_cast<uintptr_t>(call.src);
  const bool sums = is_float(call.reduce_axes.dtype) && !kind_of(call.reduce_axes).extreme();
  const auto reduced = sums ? sum_runs : reduce_runs;
  return reduced(queue, inner_call(call, split.count, split.length, apart, 1),
                 {run, run_stride, whole(2) && address % 4 == 0, whole(4) && address % 16 == 0});
}

// ---- permuted ------------------------------------------------------------------------------
lockstep_call rows_of_copy(const lockstep_call& call) {
  const split_axes split(call.reduce_axes);
  return inner_call(call, split.count, split.length, 1, split.length);
}

// The copy: the kept axes, then the reduced ones.
lockstep_call permutation_of(const lockstep_call& call, void* copy) {
  const lockstep_reduce_axes_desc d = call.reduce_axes;
  lockstep_call permute = call;
  permute.op = LOCKSTEP_PERMUTE;
  permute.dst = copy;
  lockstep_permute_desc& p = permute.permute;
  p = {};
  p.size = sizeof p;
  p.element_bytes = static_cast<size_t>(dtype_bytes(d.dtype));
  p.rank = d.rank;
  const auto goes = [&](int k) { return std::find(d.axes, d.axes + d.axis_count, k) != d.axes + d.axis_count; };
  int at = 0;
  for (const bool wanted : {false, true})
    for (int k = 0; k < d.rank; ++k)
      if (goes(k) == wanted) p.perm[at++] = k;
  std::copy(d.shape, d.shape + d.rank, p.shape);
  std::copy(d.src_strides, d.src_strides + d.rank, p.src_strides);
  int64_t apart = 1;
  for (int k = d.rank - 1; k >= 0; --k) {
    p.dst_strides[k] = apart;
    apart *= d.shape[p.perm[k]];
  }
  return permute;
}

const char* not_permuted(const lockstep_queue* queue, const lockstep_call* call) {
  return no_row_for(queue, table_of(call->reduce_axes), rows_of_copy(*call));
}

size_t bytes_before_copy(const lockstep_queue* queue, const lockstep_call& call) {
  const size_t rows = workspace_of_any(queue, table_of(call.reduce_axes), rows_of_copy(call));
  return (rows + 255) / 256 * 256;
}
size_t workspace_of_permuted(const lockstep_queue* queue, const lockstep_call* call) {
  const split_axes split(call->reduce_axes);
  return bytes_before_copy(queue, *call) +
         static_cast<size_t>(split.count * split.length * dtype_bytes(call->reduce_axes.dtype));
}

lockstep_status launch_permuted(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_axes_desc& d = call->reduce_axes;
  lockstep_call rows = rows_of_copy(*call);
  if (rows.reduce.length != 0) {
    rows.workspace_bytes = bytes_before_copy(queue, *call);  // a norm keeps its sums at the end
    void* const copy = static_cast<char*>(call->workspace) + rows.workspace_bytes;
    if (const lockstep_status status = run_permute(queue, permutation_of(*call, copy)); status != LOCKSTEP_OK)
      return status;
    rows.src = copy;
  }
  return row_for(queue, table_of(d), rows).launch(queue, &rows);
}

const lockstep_variant rows[] = {
    {"columns", "runs of sequences that lie side by side, one launch for all", 0, not_axis_columns, large_runs,
     workspace_of_axis_columns, on_device<launch_by_axis_columns>},
    {"batches", "axes that lie as one: calls of reduce or square_sum, by the best of their rows", 0, not_batches,
     small_batches, workspace_of_batches, launch_batches},
    {"gathered", "a warp a leaf whose elements are read where they lie, one launch", 0, not_gathered,
     gathers_single_elements, workspace_of_gathered, on_device<launch_by_gathering>},
    {"permuted", "a permutation into the workspace brings the axes that go together, then rows are reduced", 0,
     not_permuted, nullptr, workspace_of_permuted, launch_permuted},
};

}  // namespace

const lockstep_table reduce_axes_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
