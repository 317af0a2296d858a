// ops.hpp - the table of ops: everything that the code that all ops share asks of one.
#pragma once

#include <span>

#include "../call/run.hpp"
#include "../choose/cost.hpp"

namespace lockstep::lib {

struct call_class {
  std::string text;      // "b4 2^10x2^8 packed lines lines batch 2^0"
  lockstep_dtype dtype;  // of src's elements; 0 where bits are moved
};

// A new op is a row of the table in ops.cpp, beside the two lines of its typed calls.
struct op_row {
  const char* name;
  const char* description;        // the type's name, for texts
  std::span<const size_t> sizes;  // that the description has had, today's last
  // Checks the description that the call holds, completes it and fills what a prepared_call says of it, or throws an
  // error that names the field. One file an op beside this.
  void (*prepare)(prepared_call&);
  // Cuts a call on host memory into slabs of about so many bytes (slabs.cpp). nullptr: it is staged whole.
  std::vector<lockstep_slab> (*cut)(const prepared_call&, size_t slab_bytes);
  // The class of calls that share a choice made by measuring (classes.cpp).
  call_class (*classify)(const prepared_call&);
  // What the cost model is told besides the bytes. nullptr: nothing, it is work on whole rows.
  void (*weigh)(const prepared_call&, cost::call&) = nullptr;
  // "in place needs ...; dst_ld is 7": why this call may not have src == dst. nullptr: no text is needed.
  std::string (*why_not_in_place)(const prepared_call&) = nullptr;
};

const op_row& row_of(lockstep_op op);  // INVALID_ARGUMENT where there is none

// A caller's description, which may be older (shorter) than ours: what it lacks is 0.
prepared_call prepare(lockstep_op op, const void* desc);

void prepare_transpose(prepared_call& prepared);
void prepare_permute(prepared_call& prepared);
void prepare_reduce(prepared_call& prepared);  // square_sum too
void prepare_stencil(prepared_call& prepared);
void prepare_shuffle(prepared_call& prepared);
void prepare_normalize(prepared_call& prepared);
void prepare_scan(prepared_call& prepared);
void prepare_sums(prepared_call& prepared);
void prepare_reduce_axes(prepared_call& prepared);
void prepare_convert(prepared_call& prepared);
void prepare_map(prepared_call& prepared);

call_class classify_transpose(const prepared_call& prepared);
call_class classify_permute(const prepared_call& prepared);
call_class classify_reduce(const prepared_call& prepared);  // square_sum too
call_class classify_stencil(const prepared_call& prepared);
call_class classify_shuffle(const prepared_call& prepared);
call_class classify_normalize(const prepared_call& prepared);
call_class classify_scan(const prepared_call& prepared);
call_class classify_sums(const prepared_call& prepared);
call_class classify_reduce_axes(const prepared_call& prepared);
call_class classify_convert(const prepared_call& prepared);
call_class classify_map(const prepared_call& prepared);

void weigh_transpose(const prepared_call& prepared, cost::call& seen);
void weigh_permute(const prepared_call& prepared, cost::call& seen);
void weigh_reduce(const prepared_call& prepared, cost::call& seen);  // square_sum too
void weigh_stencil(const prepared_call& prepared, cost::call& seen);
void weigh_shuffle(const prepared_call& prepared, cost::call& seen);
std::string why_not_in_place(const prepared_call& transpose);

void make_plan(lockstep_context* context, prepared_call prepared, const lockstep_options* options,
               lockstep_plan** plan);
}  // namespace lockstep::lib
