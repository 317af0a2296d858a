// columns.hpp - launches of normalize along an axis that is not the last, and of contiguous rows whose statistics are
// given: one file a type of elements.
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "../device/queue.hpp"

namespace lockstep::cuda {

// Threads of a block, and its columns: of 16-bit elements they are a sector of memory.
constexpr int column_block = 256, column_width = 16;
// Elements of a thread of the kernel that applies statistics.
constexpr int apply_elements = 8;
// The leaves of a column that a block holds.
constexpr int64_t held_column_leaves = 15;

inline size_t held_columns_bytes(int64_t length, size_t element_bytes) {
  return static_cast<size_t>(length) * column_width * element_bytes;
}
// Groups of columns that blocks take.
inline int64_t column_groups(const lockstep_normalize_desc& d) {
  return d.count / d.inner * ((d.inner - 1) / column_width + 1);
}

// The workspace of columns that no block holds: 32 bytes per leaf, 16 per column.
struct column_values {
  void* values;
  void* found;
  size_t bytes;
  column_values(const lockstep_normalize_desc& d, void* workspace) {
    const auto columns = static_cast<size_t>(d.count);
    const size_t leaves =
        d.given != nullptr ? 0 : columns * static_cast<size_t>(order::leaves(d.length)) * sizeof(order::moments);
    values = workspace;
    found = static_cast<char*>(workspace) + leaves;
    bytes = leaves + columns * 2 * sizeof(double);
  }
};

lockstep_status columns_f16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status columns_bf16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status columns_f32(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status columns_f64(lockstep_queue& queue, const lockstep_call& call, bool held);

// The row `permuted` (permuted.cpp).
const char* not_permuted_rows(const lockstep_queue* queue, const lockstep_call* call);
size_t workspace_of_permuted_rows(const lockstep_queue* queue, const lockstep_call* call);
lockstep_status launch_permuted_rows(lockstep_queue* queue, const lockstep_call* call);

lockstep_status given_f16(lockstep_queue& queue, const lockstep_call& call);
lockstep_status given_bf16(lockstep_queue& queue, const lockstep_call& call);
lockstep_status given_f32(lockstep_queue& queue, const lockstep_call& call);
lockstep_status given_f64(lockstep_queue& queue, const lockstep_call& call);

}  // namespace lockstep::cuda
