// in_place.hpp - transposes whose src is their dst.
#pragma once

#include "queue.hpp"

namespace lockstep::cpu {
// Squares: blocks change places.
void transpose_swapped(const lockstep_queue& queue, const lockstep_call& call);

// Rectangles, through a copy of a matrix ...
bool in_place_rectangle(const lockstep_call& call);
size_t copied_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_copied(const lockstep_queue& queue, const lockstep_call& call);
// ... or with scratch for some rows or columns in its place.
size_t permuted_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_permuted(const lockstep_queue& queue, const lockstep_call& call);
}  // namespace lockstep::cpu
