// reduce_axes.cpp - dst[s] = reduction over the axes that go, for each element s of the axes that stay.
// Idea    axes that lie as one are one. Where one is left that goes, the call is a few of reduce or square_sum.
//         Neighbours along the last axis that stays are columns. Else elements are copied into the cache.
// Moves   every element once, 4 or 8 bytes a result
// Limit   as reduce where nothing is copied; copies of short runs in L1 else
// Watch   two axes lie as one only where the outer's stride is what the inner spans
// Source  lib/order.hpp
#include <algorithm>
#include <atomic>
#include <cstring>

#include "ops.hpp"
#include "parallel.hpp"
#include "reduction_rows.hpp"

namespace lockstep::cpu {
namespace {

axes_call along_axes(const lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_axes_desc& d = call.reduce_axes;
  axes_call c;
  static_cast<lockstep_call&>(c) = call;
  const split_axes split(d);
  c.kept = split.kept, c.reduced = split.reduced;
  c.moves = &transpose_kernels_of(queue.kernels);
  if (c.reduced.count == 0) c.reduced = {1, {1}, {1}};
  c.reduce = {sizeof(lockstep_reduce_desc), d.reduction, d.dtype, d.result, split.count, split.length, 1, 0, nullptr};
  return c;
}

const lockstep_table& table_of(const lockstep_call& call) {
  return kind_of(call.reduce).op == LOCKSTEP_SQUARE_SUM ? square_sum_table : reduce_table;
}

// The row of reduce or square_sum of that name, one that takes sequences along axes.
const lockstep_variant& row_named(const lockstep_call& call, const char* name) {
  const lockstep_variant* row = table_of(call).rows;
  while (std::strcmp(row->name, name) != 0) ++row;
  return *row;
}
constexpr char lanes[] = "lanes", columns[] = "columns";
template <const char* name>
size_t workspace_of(const lockstep_queue* queue, const lockstep_call* call) {
  const axes_call c = along_axes(*queue, *call);
  return row_named(c, name).workspace(queue, &c);
}
template <const char* name>
lockstep_status launch_by(lockstep_queue* queue, const lockstep_call* call) {
  const axes_call c = along_axes(*queue, *call);
  return row_named(c, name).launch(queue, &c);
}

const char* not_columns(const lockstep_queue* queue, const lockstep_call* call) {
  const axes_call c = along_axes(*queue, *call);
  const bool beside = sequences(c).run_beside() > 1 && c.reduce.length > 0;
  return beside ? nullptr : "needs elements, and neighbours along the last axis that stays";
}
// Columns of one array are a call of reduce.
int few_columns(const lockstep_queue* queue, const lockstep_call* call) {
  const axes_call c = along_axes(*queue, *call);
  const sequences q(c);
  return (c.reduced.count == 1 && q.run_beside() == q.d.count) || too_few_columns(*queue, q);
}
// The calls that one axis that goes makes: `outer` of them, the innermost axis that stays each one's sequences.
struct batches {
  lockstep_call inner;
  int64_t outer = 1;
  axis_list places;  // of the outer ones

  explicit batches(const axes_call& c) : inner(c) {
    inner.op = kind_of(c.reduce).op;
    const int last = c.kept.count - 1;
    inner.reduce.element_stride = c.reduced.stride[0] > 0 ? c.reduced.stride[0] : 1;
    inner.reduce.count = last >= 0 ? c.kept.shape[last] : 1;
    inner.reduce.sequence_stride = last >= 0 ? c.kept.stride[last] : 0;
    places = c.kept;
    places.count = last > 0 ? last : 0;
    for (int k = 0; k < places.count; ++k) outer = saturated_product(outer, places.shape[k]);
  }
  int64_t bytes() const {
    return saturated_product(saturated_product(inner.reduce.count, inner.reduce.length),
                             static_cast<int64_t>(lockstep_dtype_bytes(inner.reduce.dtype)));
  }
  // Whether each batch is one thread's, and threads share the batches.
  bool shared_out(const lockstep_queue* queue) const {
    return queue->threads > 1 && outer > 1 && bytes() < queue->tuned->reductions.axes_batch;
  }
  // The row that auto would take.
  const lockstep_variant& row(const lockstep_queue* queue) const {
    const lockstep_table& table = table_of(inner);
    for (const lockstep_variant* row = table.rows; row != table.rows + table.count; ++row) {
      if (row->flags != 0 || (row->refuses != nullptr && row->refuses(queue, &inner) != nullptr)) continue;
      if (row->yields == nullptr || row->yields(queue, &inner) == 0) return *row;
    }
    return table.rows[table.count - 1];  // ref takes every call
  }
};

const char* not_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const axes_call c = along_axes(*queue, *call);
  if (c.reduced.count > 1) return "needs axes that lie as one";
  return c.reduced.stride[0] == 0 && c.reduced.shape[0] > 1 ? "needs elements of their own" : nullptr;
}
int small_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const batches b(along_axes(*queue, *call));
  const reduction_tuning& tuned = queue->tuned->reductions;
  return b.outer > 1 && b.inner.reduce.count < tuned.axes_few && b.bytes() < tuned.axes_small_batch;
}

lockstep_queue alone(const lockstep_queue& queue) {
  lockstep_queue one = queue;
  one.threads = 1;
  return one;
}
// Of a thread that has whole batches.
size_t workspace_alone(const lockstep_queue* one, const batches& b) {
  const lockstep_variant& row = b.row(one);
  return row.workspace != nullptr ? (row.workspace(one, &b.inner) + 255) / 256 * 256 : 0;
}
size_t workspace_of_batches(const lockstep_queue* queue, const lockstep_call* call) {
  const batches b(along_axes(*queue, *call));
  const size_t most = workspace_of<lanes>(queue, call);
  if (b.shared_out(queue)) {
    const lockstep_queue one = alone(*queue);
    return std::max(workspace_alone(&one, b) * static_cast<size_t>(queue->threads), most);
  }
  const lockstep_variant& row = b.row(queue);
  return row.workspace != nullptr ? std::max(row.workspace(queue, &b.inner), most) : most;
}

lockstep_status launch_batches(lockstep_queue* queue, const lockstep_call* call) {
  const batches b(along_axes(*queue, *call));
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
    const lockstep_queue one = alone(*queue);
    const lockstep_variant& row = b.row(&one);
    const size_t room = workspace_alone(&one, b);
    over_shares(*queue, b.outer, [&](int64_t i, int thread) {
      lockstep_queue mine = one;
      if (launch(&mine, row, i, room * static_cast<size_t>(thread)) != LOCKSTEP_OK) failed = true;
    });
  } else {
    const lockstep_variant& row = b.row(queue);
    for (int64_t i = 0; i < b.outer; ++i) {
      const lockstep_status status = launch(queue, row, i, 0);
      if (status != LOCKSTEP_OK && b.outer == 1) return status;
      failed = failed || status != LOCKSTEP_OK;
    }
  }
  // A text names a sequence of its part: once more as a whole.
  return failed ? launch_by<lanes>(queue, call) : LOCKSTEP_OK;
}

const lockstep_variant rows[] = {
    {"columns", "neighbours along an axis that stays: each vector holds one element of several sequences", 0,
     not_columns, few_columns, workspace_of<columns>, launch_by<columns>},
    {"batches", "axes that lie as one: calls of reduce or square_sum, by the best of their rows", 0, not_batches,
     small_batches, workspace_of_batches, launch_batches},
    {"copies", "elements copied chunk by chunk into the cache, then as reduce's lanes", 0, nullptr, nullptr,
     workspace_of<lanes>, launch_by<lanes>},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_reduce_axes},
};
}  // namespace

const lockstep_table reduce_axes_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
