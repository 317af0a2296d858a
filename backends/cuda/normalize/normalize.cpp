// normalize.cpp - rows divided by their norm, root mean square or spread: the table.
// Idea    A row that fits is held in registers between its sums and its results (held.cuh); a longer one is read twice
//         (long.cuh)
// Moves   held: every element once in and once out; two_reads: twice in
// Limit   instructions, see there
// Watch   held rows need no memory between their sums and results, so that they are faster for few rows too
// Source  lib/order_rows.hpp
#include "normalize.hpp"

#include "../ops.hpp"

namespace lockstep::cuda {
namespace {

template <bool held>
lockstep_status launch_any(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.normalize.dtype) {
    case LOCKSTEP_F16: return normalize_f16(queue, call, held);
    case LOCKSTEP_BF16: return normalize_bf16(queue, call, held);
    case LOCKSTEP_F32: return normalize_f32(queue, call, held);
    default: return normalize_f64(queue, call, held);
  }
}

const char* refuses_held(const lockstep_queue*, const lockstep_call* call) {
  return call->normalize.length > held_length(call->normalize.dtype)
             ? "rows of more than 32,768 elements (F64: 16,384) do not fit a block's registers"
             : nullptr;
}

size_t workspace(const lockstep_queue*, const lockstep_call* call) {
  return long_room(call->normalize.count, call->normalize.length, nullptr).bytes;
}

const lockstep_variant rows[] = {
    {"held", "a row in the registers of a block, a warp a leaf; short rows several a warp: one read, one write", 0,
     refuses_held, nullptr, nullptr, on_device<launch_any<true>>},
    {"two_reads", "rows of any length: leaves' sums by a warp each, a block joins a row's, leaves are read again", 0,
     nullptr, nullptr, workspace, on_device<launch_any<false>>},
};

}  // namespace

const lockstep_table normalize_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
