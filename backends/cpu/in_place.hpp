// in_place.hpp - transposes whose src is their dst.
#pragma once

#include "queue.hpp"

namespace lockstep::cpu {
size_t in_place_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_in_place(const lockstep_queue& queue, const lockstep_call& call);

// Rectangles alone, with scratch for some rows or columns in place of a copy.
bool in_place_rectangle(const lockstep_call& call);
size_t permuted_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_permuted(const lockstep_queue& queue, const lockstep_call& call);
}  // namespace lockstep::cpu
