// square_sum.cpp - sums of squares and L2 norms of sequences: validation.
#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {

void prepare_square_sum(prepared_call& prepared) {
  lockstep_reduce_desc& d = prepared.call.reduce;
  if (d.reduction != LOCKSTEP_SUM_OF_SQUARES && d.reduction != LOCKSTEP_NORM2)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "reduction is {}; lockstep_square_sum does SUM_OF_SQUARES and NORM2 (others: lockstep_reduce)",
         reduction_text(d.reduction));
  require_dtype(d.dtype);
  prepare_sequences(prepared);
}

}  // namespace lockstep::lib
