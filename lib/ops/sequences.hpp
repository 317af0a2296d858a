// sequences.hpp - what square_sum and reduce share: the sequences of a
// lockstep_reduce_desc, checked.
#pragma once

#include "checked.hpp"

namespace lockstep::lib {
const char* reduction_name(lockstep_reduction reduction);
// Fills spans and flags of a call whose reduction, dtype and result are sound.
void prepare_sequences(prepared_call& prepared);
}  // namespace lockstep::lib
