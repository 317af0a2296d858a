// in_place.hpp - transposes in place (src == dst).
#pragma once

#include "queue.hpp"

namespace lockstep::cpu {
// Squares: blocks are swapped.
void transpose_swapped(const lockstep_queue& queue, const lockstep_call& call);

// Rectangles, through a copy of the matrix.
bool in_place_rectangle(const lockstep_call& call);
size_t copied_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_copied(const lockstep_queue& queue, const lockstep_call& call);
// Rectangles, with scratch for only a few rows or columns.
size_t permuted_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_permuted(const lockstep_queue& queue, const lockstep_call& call);
}  // namespace lockstep::cpu
