// sequences.hpp - what square_sum and reduce share: the sequences of a
// lockstep_reduce_desc, checked.
#pragma once

#include "checked.hpp"

namespace lockstep::lib {
// "NORM2", "F16"; the number where it is none.
std::string reduction_text(lockstep_reduction reduction);
// Refuses a reduction that op does not do, by a text that lists those it does.
void require_reduction(lockstep_reduction reduction, lockstep_op op);
// Refuses what is no dtype, by a text that lists them.
void require_dtype(lockstep_dtype dtype);
// Fills spans and flags of a call whose reduction, dtype and result are sound.
void prepare_sequences(prepared_call& prepared);
}  // namespace lockstep::lib
