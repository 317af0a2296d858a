// in_place.hpp - transposes whose src is their dst.
#pragma once

#include "queue.hpp"

namespace lockstep::cpu {
size_t in_place_workspace(const lockstep_queue* queue, const lockstep_call* call);
void transpose_in_place(const lockstep_queue& queue, const lockstep_call& call);
}  // namespace lockstep::cpu
