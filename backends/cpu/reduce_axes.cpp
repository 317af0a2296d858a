// reduce_axes.cpp - dst[s] = reduction over the reduced axes, for each element s of the kept axes.
// Idea    axes that can be merged are merged. If one reduced axis is left, the call is a few calls of reduce or
//         square_sum. Neighbours along the last kept axis are columns. Otherwise elements are copied into the cache.
// Moves   every element once, 4 or 8 bytes per result
// Limit   as reduce where nothing is copied; copies of short runs in L1 else
// Watch   two axes can be merged only if the outer one's stride is what the inner one spans
// Source  lib/bits/order.hpp
#include <algorithm>
#include <atomic>
#include <cstring>

#include "best_row.hpp"
#include "ops.hpp"
#include "parallel.hpp"
#include "reduction_rows.hpp"

namespace lockstep::cpu {
namespace {

// The axes of a call, and its sequences along them.
struct call_along_axes {
  along_axes axes;
  sequences q;
  call_along_axes(const lockstep_queue* queue, const lockstep_call* call)
      : axes(call->reduce_axes, queue->kernels), q(*call, axes) {}
  call_along_axes(const call_along_axes&) = delete;
};

template <const reduction_way& way>
size_t workspace_by(const lockstep_queue* queue, const lockstep_call* call) {
  return way.workspace(*queue, call_along_axes(queue, call).q);
}
template <const reduction_way& way>
lockstep_status launch_by(lockstep_queue* queue, const lockstep_call* call) {
  return way.run(*queue, call_along_axes(queue, call).q);
}

const char* not_columns(const lockstep_queue* queue, const lockstep_call* call) {
  const call_along_axes c(queue, call);
  const bool beside = c.q.run_beside() > 1 && c.q.d.length > 0;
  return beside ? nullptr : "needs elements, and neighbours along the last axis that stays";
}
// Columns of one array are a call of reduce.
int few_columns(const lockstep_queue* queue, const lockstep_call* call) {
  const call_along_axes c(queue, call);
  return (c.axes.reduced.count == 1 && c.q.run_beside() == c.q.d.count) || too_few_columns(*queue, c.q);
}
// The calls for one reduced axis: `outer` of them; the innermost kept axis gives each one's sequences.
struct batches {
  lockstep_call inner;
  int64_t outer = 1;
  axis_list places;  // of the outer ones

  batches(const lockstep_queue* queue, const lockstep_call* call) : inner(*call) {
    const call_along_axes c(queue, call);
    const axis_list& kept = c.axes.kept;
    const int last = kept.count - 1;
    inner.op = kind_of(c.q.d).op;
    inner.reduce = c.q.d;
    inner.reduce.element_stride = c.axes.reduced.stride[0] > 0 ? c.axes.reduced.stride[0] : 1;
    inner.reduce.count = last >= 0 ? kept.shape[last] : 1;
    inner.reduce.sequence_stride = last >= 0 ? kept.stride[last] : 0;
    places = kept;
    places.count = last > 0 ? last : 0;
    for (int k = 0; k < places.count; ++k) outer = saturated_product(outer, places.shape[k]);
  }
  int64_t bytes() const {
    return saturated_product(saturated_product(inner.reduce.count, inner.reduce.length),
                             static_cast<int64_t>(lockstep_dtype_bytes(inner.reduce.dtype)));
  }
  // Whether threads share the batches, so that each batch is one thread's.
  bool shared_out(const lockstep_queue* queue) const {
    return queue->threads > 1 && outer > 1 && bytes() < queue->tuned->reductions.axes_batch;
  }
};

const char* not_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const axis_list reduced = along_axes(call->reduce_axes, queue->kernels).reduced;
  if (reduced.count > 1) return "needs axes that lie as one";
  return reduced.stride[0] == 0 && reduced.shape[0] > 1 ? "needs elements of their own" : nullptr;
}
int small_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const batches b(queue, call);
  const reduction_tuning& tuned = queue->tuned->reductions;
  return b.outer > 1 && b.inner.reduce.count < tuned.axes_few && b.bytes() < tuned.axes_small_batch;
}

// Of a thread that has whole batches.
size_t workspace_alone(const lockstep_queue& one, const batches& b) {
  const lockstep_variant& row = best_row(one, b.inner);
  return row.workspace != nullptr ? (row.workspace(&one, &b.inner) + 255) / 256 * 256 : 0;
}
size_t workspace_of_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const batches b(queue, call);
  const size_t most = workspace_by<by_lanes_way>(queue, call);
  if (b.shared_out(queue))
    return std::max(workspace_alone(with_threads(*queue, 1), b) * static_cast<size_t>(queue->threads), most);
  const lockstep_variant& row = best_row(*queue, b.inner);
  return row.workspace != nullptr ? std::max(row.workspace(queue, &b.inner), most) : most;
}

lockstep_status launch_batches(lockstep_queue* queue, const lockstep_call* call) {
  const batches b(queue, call);
  const lockstep_reduce_desc& d = b.inner.reduce;
  const int64_t bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  const int64_t step = d.count * static_cast<int64_t>(lockstep_dtype_bytes(d.result));
  const auto launch = [&](lockstep_queue* by, const lockstep_variant& row, int64_t i, size_t room) {
    lockstep_call one = b.inner;
    one.src = static_cast<const char*>(call->src) + b.places.place(i) * bytes;
    one.dst = static_cast<char*>(call->dst) + i * step;
    one.workspace = static_cast<char*>(call->workspace) + room;
    return row.launch(by, &one);
  };
  std::atomic<bool> failed{false};
  if (b.shared_out(queue)) {
    const lockstep_queue one = with_threads(*queue, 1);
    const lockstep_variant& row = best_row(one, b.inner);
    const size_t room = workspace_alone(one, b);
    over_shares(*queue, b.outer, [&](int64_t i, int thread) {
      lockstep_queue mine = one;
      if (launch(&mine, row, i, room * static_cast<size_t>(thread)) != LOCKSTEP_OK) failed = true;
    });
  } else {
    const lockstep_variant& row = best_row(*queue, b.inner);
    for (int64_t i = 0; i < b.outer; ++i) {
      const lockstep_status status = launch(queue, row, i, 0);
      if (status != LOCKSTEP_OK && b.outer == 1) return status;
      failed = failed || status != LOCKSTEP_OK;
    }
  }
  // A text names a sequence of its part: once more as a whole.
  return failed ? launch_by<by_lanes_way>(queue, call) : LOCKSTEP_OK;
}

const lockstep_variant rows[] = {
    {"columns", "neighbours along an axis that stays: each vector holds one element of several sequences", 0,
     not_columns, few_columns, workspace_by<by_columns_way>, launch_by<by_columns_way>},
    {"batches", "axes that lie as one: calls of reduce or square_sum, by the best of their rows", 0, not_batches,
     small_batches, workspace_of_batches, launch_batches},
    {"copies", "elements copied chunk by chunk into the cache, then as reduce's lanes", 0, nullptr, nullptr,
     workspace_by<by_lanes_way>, launch_by<by_lanes_way>},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_reduce_axes},
};
}  // namespace

const lockstep_table reduce_axes_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
