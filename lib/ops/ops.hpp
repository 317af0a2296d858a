// ops.hpp - each op's validation: a description becomes a prepared call, or an
// error that names the field. One file an op beside this.
#pragma once

#include "../run.hpp"

namespace lockstep::lib {
prepared_call prepare_transpose(const lockstep_transpose_desc* desc);
prepared_call prepare_permute(const lockstep_permute_desc* desc);
prepared_call prepare_square_sum(const lockstep_reduce_desc* desc);
prepared_call prepare_reduce(const lockstep_reduce_desc* desc);
prepared_call prepare_stencil(const lockstep_stencil_desc* desc);
prepared_call prepare_shuffle(const lockstep_shuffle_desc* desc);
// "in place needs ...; dst_ld is 7": the text of a transpose whose src and dst are the same but may not be.
std::string why_not_in_place(const lockstep_transpose_desc& desc);
void make_plan(lockstep_context* context, prepared_call prepared, const lockstep_options* options,
               lockstep_plan** plan);
}  // namespace lockstep::lib
