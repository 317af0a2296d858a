// sums.cpp - sums of products, differences and magnitudes, means and variances of sequences: validation.
#include <cstddef>

#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {
namespace {

static_assert(has_sequences<lockstep_sums_desc>);

constexpr const char* names[] = {"DOT",      "SQUARED_DIFFERENCES", "ABSOLUTE_DIFFERENCES",
                                 "ABSOLUTE", "MEAN_VARIANCE",       "DIGEST"};

void require_types(const lockstep_sums_desc& d) {
  if (d.kind < LOCKSTEP_SUMS_DOT || d.kind > LOCKSTEP_SUMS_DIGEST)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "kind is {}; use LOCKSTEP_SUMS_DOT, _SQUARED_DIFFERENCES, _ABSOLUTE_DIFFERENCES, _ABSOLUTE, "
         "_MEAN_VARIANCE or _DIGEST",
         static_cast<int>(d.kind));
  require_dtype(d.dtype);
  const bool floats = lockstep_dtype_kind(d.dtype) == 'f', variance = d.kind == LOCKSTEP_SUMS_MEAN_VARIANCE;
  if (variance && !floats)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dtype is {}; MEAN_VARIANCE takes F16, BF16, F32 and F64", dtype_text(d.dtype));
  if (d.kind == LOCKSTEP_SUMS_DIGEST) {
    if (d.result != LOCKSTEP_U64)
      fail(LOCKSTEP_INVALID_ARGUMENT, "result is {}; a digest is two U64, set result to LOCKSTEP_U64",
           dtype_text(d.result));
    if (d.correction < 0 || d.correction % 8 != 0)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "correction is {}; it is the index of the digest's first element, give a multiple of 8", d.correction);
    return;
  }
  const lockstep_dtype natural = lockstep_default_result(LOCKSTEP_SUM, d.dtype);
  if (d.result != natural && !(floats && lockstep_dtype_kind(d.result) == 'f'))
    fail(LOCKSTEP_INVALID_ARGUMENT, "result is {}, but {} of {} gives {}; set result to LOCKSTEP_{}{}",
         dtype_text(d.result), names[d.kind], dtype_text(d.dtype), dtype_text(natural), dtype_text(natural),
         floats ? ", or to LOCKSTEP_F32, F16 or BF16 for one final rounding" : "");
  if (d.correction < 0 || (d.correction != 0 && !variance))
    fail(LOCKSTEP_INVALID_ARGUMENT, "correction is {}; give {}", d.correction,
         variance ? "0 or more" : format_text("0: only MEAN_VARIANCE divides, {} does not", names[d.kind]));
}

bool has_two_results(const lockstep_sums_desc& d) { return d.kind >= LOCKSTEP_SUMS_MEAN_VARIANCE; }
bool has_two_arrays(const lockstep_sums_desc& d) { return d.kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES; }

}  // namespace

void prepare_sums(prepared_call& prepared) {
  lockstep_sums_desc& d = prepared.call.sums;
  require_types(d);
  const bool two = has_two_arrays(d);
  if (!two && d.other != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "other is {}, but {} is of one array; set other to NULL, or use another kind",
         d.other, names[d.kind]);
  if (d.kind == LOCKSTEP_SUMS_DIGEST) prepared.reads = 4, prepared.needs = "digests";
  count_sequences(prepared, d);
  if (d.offsets == nullptr) {
    // The stride of an axis with at most one element is never read: any number will do.
    if (d.length <= 1) d.element_stride = d.other_element_stride = 1;
    if (d.count <= 1 || d.length == 0) d.sequence_stride = d.other_sequence_stride = 0;
  }
  if (!two) d.other_element_stride = 1, d.other_sequence_stride = 0;
  if (prepared.empty) return;
  require_positive("element_stride", d.element_stride);
  require_positive("other_element_stride", d.other_element_stride);
  const int64_t results[] = {d.count, has_two_results(d) ? 2 : 1}, result_strides[] = {results[1], 1};
  (void)product("count * 2", 2, results);
  prepared.dst_span = span_bytes("dst", 2, results, result_strides, prepared.dst_element_bytes);
  if (two) {
    if (d.other == nullptr && d.offsets == nullptr && d.length != 0)
      fail(LOCKSTEP_INVALID_ARGUMENT, "other is NULL, but {} is of two arrays; pass the second one", names[d.kind]);
    prepared.sides[0] = {"other", d.other, 0, prepared.element_bytes,
                         offsetof(lockstep_call, sums) + offsetof(lockstep_sums_desc, other)};
    prepared.side_count = 1;
  }
  if (d.offsets != nullptr) {
    take_offsets(prepared, d);
    d.other_sequence_stride = 0;
    if (two) prepared.sides[0].step = d.other_element_stride;
    return;
  }
  require_nonnegative("sequence_stride", d.sequence_stride);
  require_nonnegative("other_sequence_stride", d.other_sequence_stride);
  if (d.length == 0) {
    prepared.side_count = 0;
    return;
  }
  const int64_t counts[] = {d.count, d.length}, strides[] = {d.sequence_stride, d.element_stride};
  const int64_t other_strides[] = {d.other_sequence_stride, d.other_element_stride};
  const auto total = static_cast<size_t>(product("count * length", 2, counts));
  prepared.src_span = span_bytes("src", 2, counts, strides, prepared.element_bytes);
  if (two) prepared.sides[0].bytes = span_bytes("other", 2, counts, other_strides, prepared.element_bytes);
  prepared.moved_bytes = total * prepared.element_bytes * (two ? 2 : 1) + prepared.dst_span;
}

}  // namespace lockstep::lib
