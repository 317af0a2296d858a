// normalize.hpp - normalize's launches, one file a type of elements, and what lies in their workspace.
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

// Rows that a block holds: the call's elements decide how long they may be.
inline int64_t held_length(lockstep_dtype dtype) { return order::leaf * (dtype == LOCKSTEP_F64 ? 8 : 16); }

// Shared memory of the warps that hold leaves, each so many rows of 128 lanes.
inline size_t held_bytes(int warps, int rows_a_leaf, size_t element_bytes) {
  return static_cast<size_t>(warps * rows_a_leaf) * order::lanes * element_bytes;
}

// The workspace of rows that no block holds: a leaf's moments, 24 bytes per row.
struct long_room {
  void *values, *found;
  double* plain;
  size_t bytes;
  long_room(int64_t count, int64_t length, void* workspace) {
    const auto rows = static_cast<size_t>(count);
    const size_t leaves = rows * static_cast<size_t>(order::leaves(length)) * sizeof(order::moments);
    auto* at = static_cast<char*>(workspace);
    values = at;
    found = at + leaves;
    plain = reinterpret_cast<double*>(at + leaves + rows * 16);
    bytes = leaves + rows * 24;
  }
};

lockstep_status normalize_f16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status normalize_bf16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status normalize_f32(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status normalize_f64(lockstep_queue& queue, const lockstep_call& call, bool held);

}  // namespace lockstep::cuda
