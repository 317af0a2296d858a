// ops.hpp - the CPU backend's tables, one for each op's file. The row "ref" of each is
// the op's definition in code (ref/<op>.cpp).
#pragma once

#include "queue.hpp"

namespace lockstep::cpu {
extern const lockstep_table transpose_table, permute_table, square_sum_table, reduce_table, stencil_table,
    shuffle_table, normalize_table, scan_table, sums_table, reduce_axes_table, convert_table;

// The definitions: plain loops that share no helper with any other row.
lockstep_status ref_transpose(lockstep_queue*, const lockstep_call*);
lockstep_status ref_permute(lockstep_queue*, const lockstep_call*);
lockstep_status ref_square_sum(lockstep_queue*, const lockstep_call*);
lockstep_status ref_reduce(lockstep_queue*, const lockstep_call*);
lockstep_status ref_stencil(lockstep_queue*, const lockstep_call*);
lockstep_status ref_shuffle(lockstep_queue*, const lockstep_call*);
lockstep_status ref_normalize(lockstep_queue*, const lockstep_call*);
lockstep_status ref_scan(lockstep_queue*, const lockstep_call*);
lockstep_status ref_sums(lockstep_queue*, const lockstep_call*);
lockstep_status ref_reduce_axes(lockstep_queue*, const lockstep_call*);
lockstep_status ref_convert(lockstep_queue*, const lockstep_call*);
// Whether each label of PICKED is within its row; else an error that names the first that is not.
lockstep_status require_labels(const lockstep_normalize_desc& d);
size_t ref_stencil_workspace(const lockstep_queue*, const lockstep_call*);
}  // namespace lockstep::cpu
