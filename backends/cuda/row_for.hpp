// row_for.hpp - the rows of a table by which a row carries out part of its own call.
#pragma once

#include <cstring>

#include "ops.hpp"

namespace lockstep::cuda {

// The row that auto would take.
inline const lockstep_variant& row_for(const lockstep_queue* queue, const lockstep_table& table,
                                       const lockstep_call& call) {
  const lockstep_variant* possible = nullptr;
  for (const lockstep_variant* row = table.rows; row != table.rows + table.count; ++row) {
    if (row->flags != 0 || (row->refuses != nullptr && row->refuses(queue, &call) != nullptr)) continue;
    if (row->yields == nullptr || row->yields(queue, &call) == 0) return *row;
    possible = row;
  }
  return possible != nullptr ? *possible : table.rows[table.count - 1];
}

// Why no row takes the call; nullptr: one does.
inline const char* no_row_for(const lockstep_queue* queue, const lockstep_table& table, const lockstep_call& call) {
  const char* why = nullptr;
  for (const lockstep_variant* row = table.rows; row != table.rows + table.count; ++row) {
    if (row->flags != 0) continue;
    why = row->refuses != nullptr ? row->refuses(queue, &call) : nullptr;
    if (why == nullptr) return nullptr;
  }
  return why;
}

inline const lockstep_variant& named(const lockstep_table& table, const char* name) {
  const lockstep_variant* row = table.rows;
  while (std::strcmp(row->name, name) != 0) ++row;
  return *row;
}

// Permutes on behalf of another op. Elements that places of src share, which lockstep_permute does not have: only a
// gather takes them.
inline lockstep_status run_permute(lockstep_queue* queue, const lockstep_call& permute) {
  const lockstep_permute_desc& p = permute.permute;
  bool shared = false;
  for (int k = 0; k < p.rank; ++k) shared = shared || (p.shape[k] > 1 && p.src_strides[k] == 0);
  const lockstep_variant& by = shared ? named(permute_table, "gather") : row_for(queue, permute_table, permute);
  return by.launch(queue, &permute);
}

}  // namespace lockstep::cuda
