// faults.hpp - faults that the kernels of one op alone report (queue.hpp has the others).
#pragma once

#include "queue.hpp"

namespace lockstep::cuda {

// A label of LOCKSTEP_NORMALIZE_PICKED that is not a place in its row.
constexpr fault fault_of_label{3};
static_assert(static_cast<unsigned>(fault_of_label) < 1u << fault_bits);

}  // namespace lockstep::cuda
