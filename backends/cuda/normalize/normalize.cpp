// normalize.cpp - rows divided by their norm, root mean square or spread: the table.
// Idea    A row that fits is held on the chip between its sums and its results (staged.cuh; held.cuh short rows;
//         pairs.cuh few rows); a longer one is read twice (long.cuh).
//         gradients.cuh has the gradients of RMS and LAYER,
//         exponentials_held.cuh and exponentials_long.cuh have softmax and its kin, whose long rows are read three
//         times, segments.cu those of rows between offsets; given.cuh rows whose statistics are given.
//         Rows along an axis that is not the last: permuted.cpp, columns.cuh
// Moves   held: every element once in and once out; two_reads: twice in, of softmax three times
// Limit   instructions, see there
// Watch   held rows need no memory between their sums and results, so that they are faster for few rows too
// Source  lib/bits/order_rows.hpp
#include "normalize.hpp"

#include <cmath>

#include "../dtypes.hpp"
#include "../ops.hpp"
#include "bits/normalizations.hpp"
#include "columns.hpp"
#include "exponentials.hpp"
#include "gradients.hpp"

namespace lockstep::cuda {
namespace {

template <bool held>
lockstep_status launch_exponentials(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return exponentials_f16(queue, call, held);
    case LOCKSTEP_BF16: return exponentials_bf16(queue, call, held);
    case LOCKSTEP_F32: return exponentials_f32(queue, call, held);
    default: return exponentials_f64(queue, call, held);
  }
}

template <bool held>
lockstep_status launch_backward(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return gradients_f16(queue, call, held);
    case LOCKSTEP_BF16: return gradients_bf16(queue, call, held);
    case LOCKSTEP_F32: return gradients_f32(queue, call, held);
    default: return gradients_f64(queue, call, held);
  }
}

template <bool held>
lockstep_status launch_any(lockstep_queue& queue, const lockstep_call& call) {
  if (lib::kind_of(call.normalize.kind).exponential) return launch_exponentials<held>(queue, call);
  if (lib::kind_of(call.normalize.kind).backward) return launch_backward<held>(queue, call);
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return normalize_f16(queue, call, held);
    case LOCKSTEP_BF16: return normalize_bf16(queue, call, held);
    case LOCKSTEP_F32: return normalize_f32(queue, call, held);
    default: return normalize_f64(queue, call, held);
  }
}

template <bool held>
lockstep_status launch_side_by_side(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return columns_f16(queue, call, held);
    case LOCKSTEP_BF16: return columns_bf16(queue, call, held);
    case LOCKSTEP_F32: return columns_f32(queue, call, held);
    default: return columns_f64(queue, call, held);
  }
}

lockstep_status launch_with_given(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return given_f16(queue, call);
    case LOCKSTEP_BF16: return given_bf16(queue, call);
    case LOCKSTEP_F32: return given_f32(queue, call);
    default: return given_f64(queue, call);
  }
}

const char* refuses_contiguous(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  if (d.inner <= 1) return "needs rows side by side, along an axis that is not the last";
  const auto blocks = static_cast<double>(column_groups(d)) * static_cast<double>((d.length - 1) / 128 + 1);
  return blocks < 0x1p31 ? nullptr : "needs fewer than 2^31 blocks of 16 rows and 128 elements";
}
const char* refuses_held_columns(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  if (const char* why = refuses_contiguous(queue, call); why != nullptr) return why;
  if (d.given != nullptr) return "computes the rows' own statistics, but others are given";
  // 4 KiB for what threads exchange, twice: launch_held_columns asks for them on top.
  if (order::leaves(d.length) > held_column_leaves ||
      held_columns_bytes(d.length, static_cast<size_t>(dtype_bytes(d.dtype))) + 8192 >
          static_cast<size_t>(queue->facts->shared_bytes))
    return "16 rows do not fit a block's shared memory";
  return nullptr;
}
size_t room_of_columns(const lockstep_queue*, const lockstep_call* call) {
  return column_values(call->normalize, nullptr).bytes;
}

const char* refuses_rows(const lockstep_queue*, const lockstep_call* call) {
  return call->normalize.offsets == nullptr ? "needs segments, rows of lengths of their own" : nullptr;
}
const char* refuses_segments(const lockstep_queue*, const lockstep_call* call) {
  if (call->normalize.given != nullptr) return "computes the rows' own statistics, but others are given";
  if (call->normalize.inner > 1) return "needs contiguous rows";
  return call->normalize.offsets != nullptr ? "needs rows of one length" : nullptr;
}
const char* refuses_own(const lockstep_queue*, const lockstep_call* call) {
  if (call->normalize.inner > 1) return "needs contiguous rows";
  return call->normalize.given == nullptr ? "needs statistics that are given" : nullptr;
}
const char* refuses_held(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  if (const char* why = refuses_segments(queue, call); why != nullptr) return why;
  if (lib::kind_of(d.kind).exponential) {
    const bool clusters = queue->facts->early;
    if (d.length > (clusters ? clustered_length(d.dtype) : exponential_length))
      return clusters ? "takes rows of exponentials of at most 262,144 elements (F64: 131,072)"
                      : "rows of exponentials of more than 16,384 elements are too many warps' without clusters";
    return dtype_bytes(d.dtype) == 2 && std::fabs(d.scale) <= least_held_scale
               ? "a scale of at most 2^-100 leaves the range of the kernel for 16-bit elements"
               : nullptr;
  }
  if (lib::kind_of(d.kind).backward) {
    if (d.length > held_gradients(d.dtype))
      return "takes rows of at most 8,192 elements (F64: 4,096) with their gradients";
    if (held_gradient_bytes(d.length, static_cast<size_t>(dtype_bytes(d.dtype)), 1) >
        static_cast<size_t>(queue->facts->shared_bytes))
      return "a row and its gradient do not fit a block's shared memory";
    return d.kind == LOCKSTEP_NORMALIZE_RMS_BACKWARD && d.bias_gradient != nullptr && d.length > 512
               ? "a bias's gradient of RMS, which has none, has no registers"
               : nullptr;
  }
  if (d.length > held_length(d.dtype)) return "takes rows of at most 32,768 elements (F64: 16,384)";
  const auto warps = static_cast<int>(order::leaves(d.length));
  // 1 KiB for what the warps exchange.
  return held_bytes(warps, order::rows, static_cast<size_t>(dtype_bytes(d.dtype))) + 1024 >
                 static_cast<size_t>(queue->facts->shared_bytes)
             ? "a row does not fit a block's shared memory"
             : nullptr;
}

size_t room_of_held(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  return lib::kind_of(d.kind).backward ? gradient_room(d, true, nullptr).bytes : 0;
}
size_t workspace(const lockstep_queue*, const lockstep_call* call) {
  if (lib::kind_of(call->normalize.kind).backward) return gradient_room(call->normalize, false, nullptr).bytes;
  return long_room(call->normalize.count, call->normalize.length, nullptr).bytes;
}

size_t segments_workspace(const lockstep_queue*, const lockstep_call*) { return exponential_segments_bytes(); }

const lockstep_variant rows[] = {
    {"segments", "exponentials of segments: groups of threads, warps, or all blocks together by each one's length", 0,
     refuses_rows, nullptr, segments_workspace, on_device<exponential_segments>},
    {"permuted",
     "rows side by side: a permutation brings contiguous ones into the workspace, another takes results back", 0,
     not_permuted_rows, nullptr, workspace_of_permuted_rows, launch_permuted_rows},
    {"columns", "rows side by side: 16 in the shared memory of a block, one read, one write", 0, refuses_held_columns,
     nullptr, nullptr, on_device<launch_side_by_side<true>>},
    {"columns_again", "long rows side by side: a block a leaf of 16, a thread joins a row's, then all are read again",
     0, refuses_contiguous, nullptr, room_of_columns, on_device<launch_side_by_side<false>>},
    {"given", "statistics of the rows that are given: a warp a leaf, one read, one write", 0, refuses_own, nullptr,
     nullptr, on_device<launch_with_given>},
    {"held", "a row in the shared memory or the registers of a block: one read, one write", 0, refuses_held, nullptr,
     room_of_held, on_device<launch_any<true>>},
    {"two_reads",
     "rows of any length: leaves' sums by a warp each, a block joins a row's, leaves are read again; softmax first "
     "finds extremes",
     0, refuses_segments, nullptr, workspace, on_device<launch_any<false>>},
};

}  // namespace

const lockstep_table normalize_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
