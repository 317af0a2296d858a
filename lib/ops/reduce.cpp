// reduce.cpp - reductions of sequences, square_sum among them: validation.
#include <vector>

#include "../bits/reductions.hpp"
#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {

std::string reduction_text(lockstep_reduction reduction) {
  return is_reduction(reduction) ? kind_of(reduction).name : format_text("{}", static_cast<int>(reduction));
}

std::string dtype_text(lockstep_dtype dtype) {
#define LOCKSTEP_ROW(name, ...) \
  case LOCKSTEP_##name: return #name;
  switch (dtype) { LOCKSTEP_DTYPES(LOCKSTEP_ROW) }
#undef LOCKSTEP_ROW
  return format_text("{}", static_cast<int>(dtype));
}

void require_dtype(lockstep_dtype dtype) {
  if (lockstep_dtype_kind(dtype) != 0) return;
#define LOCKSTEP_ROW(name, ...) #name,
  static constexpr const char* names[] = {LOCKSTEP_DTYPES(LOCKSTEP_ROW)};
#undef LOCKSTEP_ROW
  fail(LOCKSTEP_INVALID_ARGUMENT, "dtype is {}; known are {}", dtype_text(dtype), joined(names, ", "));
}

void require_reduction(lockstep_reduction reduction, lockstep_op op) {
  const auto takes = [op](const reduction_kind& kind) { return op == LOCKSTEP_REDUCE_AXES || kind.op == op; };
  if (is_reduction(reduction) && takes(kind_of(reduction))) return;
  std::vector<const char*> own;
  for (const reduction_kind& kind : reductions)
    if (takes(kind)) own.push_back(kind.name);
  const char* const elsewhere = op == LOCKSTEP_REDUCE       ? " (squares and norms: lockstep_square_sum)"
                                : op == LOCKSTEP_SQUARE_SUM ? " (others: lockstep_reduce)"
                                                            : "";
  fail(LOCKSTEP_INVALID_ARGUMENT, "reduction is {}; lockstep_{} does {}{}", reduction_text(reduction),
       lockstep_op_name(op), joined(own, ", "), elsewhere);
}

namespace {
// The LOCKSTEP_BACKEND_READS that a backend needs for this call.
uint32_t reads_of(const prepared_call& prepared) {
  const lockstep_reduce_desc& d = prepared.call.reduce;
  if (d.reduction > LOCKSTEP_NORM2) return 3;
  const auto old = [](lockstep_dtype dtype) { return dtype <= LOCKSTEP_I64; };
  const bool half = d.dtype == LOCKSTEP_F16 || d.dtype == LOCKSTEP_BF16;
  const bool first = old(d.dtype) && old(d.result) && d.result != LOCKSTEP_F16 && d.result != LOCKSTEP_BF16 &&
                     !(half && prepared.call.op == LOCKSTEP_REDUCE);
  return first ? 1 : 2;
}
}  // namespace

void prepare_sequences(prepared_call& prepared) {
  lockstep_reduce_desc& d = prepared.call.reduce;
  const lockstep_dtype natural = lockstep_default_result(d.reduction, d.dtype);
  const bool may_round = natural == LOCKSTEP_F64 && !kind_of(d.reduction).extreme();  // an element is never rounded
  const bool rounded = may_round && lockstep_dtype_kind(d.result) == 'f';
  if (d.result != natural && !rounded)
    fail(LOCKSTEP_INVALID_ARGUMENT, "result is {}, but {} of {} gives {}; set result to LOCKSTEP_{}{}",
         dtype_text(d.result), reduction_text(d.reduction), dtype_text(d.dtype), dtype_text(natural),
         dtype_text(natural), may_round ? ", or to LOCKSTEP_F32, F16 or BF16 for one final rounding" : "");
  if (lockstep_dtype_kind(d.dtype) != 'f') d.reduction = of_numbers(d.reduction);
  if (const uint32_t reads = reads_of(prepared); reads > 1) {
    prepared.reads = reads;
    prepared.needs =
        format_text("{} of {} to {}", reduction_text(d.reduction), dtype_text(d.dtype), dtype_text(d.result));
  }
  count_sequences(prepared, d);
  if (d.offsets == nullptr) {
    // The stride of an axis with at most one element is never read: any number will do.
    if (d.length <= 1) d.element_stride = 1;
    if (d.count <= 1 || d.length == 0) d.sequence_stride = 0;
  }
  if (prepared.empty) return;
  require_positive("element_stride", d.element_stride);
  const int64_t counts[] = {d.count}, packed[] = {1};
  if (d.offsets != nullptr) {
    prepared.src_elements = d.length;
    take_offsets(prepared, d);
    prepared.dst_span = span_bytes("dst", 1, counts, packed, prepared.dst_element_bytes);
    prepared.dst_dense = false;  // an empty segment's result stays as it was
    return;
  }
  require_nonnegative("sequence_stride", d.sequence_stride);
  prepared.dst_span = span_bytes("dst", 1, counts, packed, prepared.dst_element_bytes);
  if (d.length == 0) {
    prepared.dst_dense = false;
    return;
  }
  const int64_t src_counts[] = {d.count, d.length}, src_strides[] = {d.sequence_stride, d.element_stride};
  const int64_t total = product("count * length", 2, src_counts);
  prepared.src_span = span_bytes("src", 2, src_counts, src_strides, prepared.element_bytes);
  prepared.moved_bytes = static_cast<size_t>(total) * prepared.element_bytes + prepared.dst_span;
}

void prepare_reduce(prepared_call& prepared) {
  lockstep_reduce_desc& d = prepared.call.reduce;
  require_reduction(d.reduction, prepared.call.op);
  require_dtype(d.dtype);
  prepare_sequences(prepared);
}

}  // namespace lockstep::lib
