// sequences.hpp - what the checks of reductions, scans and sums share: count sequences of `length` elements, or
// segments between offsets.
#pragma once

#include <cstddef>

#include "checked.hpp"

namespace lockstep::lib {
// "NORM2", "F16"; the number if it is not one.
std::string reduction_text(lockstep_reduction reduction);
// Refuses a reduction that op does not do, by a text that lists those it does.
void require_reduction(lockstep_reduction reduction, lockstep_op op);
// Refuses what is not a dtype, by a text that lists them.
void require_dtype(lockstep_dtype dtype);
// Fills spans and flags of a call whose reduction, dtype and result are sound.
void prepare_sequences(prepared_call& prepared);

// Whether a description has its sequences where lockstep_reduce_desc has them, so that the same code can read them.
template <class Desc>
constexpr bool has_sequences = offsetof(Desc, dtype) == offsetof(lockstep_reduce_desc, dtype) &&
                               offsetof(Desc, result) == offsetof(lockstep_reduce_desc, result) &&
                               offsetof(Desc, count) == offsetof(lockstep_reduce_desc, count) &&
                               offsetof(Desc, length) == offsetof(lockstep_reduce_desc, length) &&
                               offsetof(Desc, element_stride) == offsetof(lockstep_reduce_desc, element_stride) &&
                               offsetof(Desc, sequence_stride) == offsetof(lockstep_reduce_desc, sequence_stride) &&
                               offsetof(Desc, offsets) == offsetof(lockstep_reduce_desc, offsets);

// Checks count and length, fills what they alone decide.
template <class Desc>
void count_sequences(prepared_call& prepared, const Desc& d) {
  require_nonnegative("count", d.count);
  prepared.element_bytes = lockstep_dtype_bytes(d.dtype);
  prepared.dst_element_bytes = lockstep_dtype_bytes(d.result);
  prepared.empty = d.count == 0;
  if (d.offsets == nullptr) require_nonnegative("length", d.length);
}
// Segments: the elements that offsets reach are known once they have been read (call/offsets.cpp).
template <class Desc>
void take_offsets(prepared_call& prepared, Desc& d) {
  d.length = d.sequence_stride = 0;
  const int64_t counts[] = {d.count == INT64_MAX ? d.count : d.count + 1}, packed[] = {1};
  prepared.offsets_bytes = span_bytes("offsets", 1, counts, packed, sizeof(int64_t));
  prepared.src_step = d.element_stride;
}
}  // namespace lockstep::lib
