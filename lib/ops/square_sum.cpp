// square_sum.cpp - sums of squares and L2 norms of sequences: validation and the
// public calls.
#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {

prepared_call prepare_square_sum(const lockstep_reduce_desc* desc) {
  prepared_call prepared;
  lockstep_reduce_desc& d = prepared.call.reduce;
  prepared.call.op = LOCKSTEP_SQUARE_SUM;
  d = require_desc(desc);
  if (d.reduction != LOCKSTEP_SUM_OF_SQUARES && d.reduction != LOCKSTEP_NORM2)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "reduction is {}; lockstep_square_sum does SUM_OF_SQUARES and NORM2 (others: lockstep_reduce)",
         reduction_text(d.reduction));
  if (lockstep_dtype_bytes(d.dtype) == 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dtype is {}; use F16, BF16, F32, F64, I32 or I64", dtype_text(d.dtype));
  prepare_sequences(prepared);
  return prepared;
}

}  // namespace lockstep::lib

using namespace lockstep::lib;
extern "C" {
lockstep_status lockstep_square_sum(lockstep_context* context, const lockstep_reduce_desc* desc, const void* src,
                                    void* dst, const lockstep_options* options) {
  return guarded([&] {
    prepared_call prepared = prepare_square_sum(desc);
    run(context, prepared, src, dst, options);
  });
}
lockstep_status lockstep_plan_square_sum(lockstep_context* context, const lockstep_reduce_desc* desc,
                                         const lockstep_options* options, lockstep_plan** plan) {
  return guarded([&] { make_plan(context, prepare_square_sum(desc), options, plan); });
}
}
