// best_row.hpp - for calls that are made of others: the row that auto takes, and a queue of fewer threads (group.cpp).
#pragma once

#include "queue.hpp"

namespace lockstep::cpu {
const lockstep_variant& best_row(const lockstep_queue& queue, const lockstep_call& call);
lockstep_queue with_threads(const lockstep_queue& queue, int threads);
}  // namespace lockstep::cpu
