// scan.cpp - running sums, minima and maxima of sequences: validation.
#include <bit>
#include <cstddef>

#include "../bits/order.hpp"
#include "../bits/reductions.hpp"
#include "ops.hpp"
#include "sequences.hpp"

namespace lockstep::lib {
namespace {

static_assert(has_sequences<lockstep_scan_desc> &&
              offsetof(lockstep_scan_desc, reduction) == offsetof(lockstep_reduce_desc, reduction));

void require_types(const lockstep_scan_desc& d) {
  const bool known = is_reduction(d.reduction) && kind_of(d.reduction).of == term::plain &&
                     kind_of(d.reduction).by != join::product && kind_of(d.reduction).to == finish::value;
  if (!known)
    fail(LOCKSTEP_INVALID_ARGUMENT, "reduction is {}; lockstep_scan does SUM, MIN and MAX",
         reduction_text(d.reduction));
  if (d.dtype < LOCKSTEP_F16 || d.dtype > LOCKSTEP_I64)
    fail(LOCKSTEP_INVALID_ARGUMENT, "dtype is {}; lockstep_scan takes F16, BF16, F32, F64, I32 and I64",
         dtype_text(d.dtype));
  const bool integer = d.dtype == LOCKSTEP_I32 || d.dtype == LOCKSTEP_I64, sum = kind_of(d.reduction).by == join::sum;
  const lockstep_dtype natural = sum && integer ? LOCKSTEP_I64 : d.dtype;
  const bool wider = sum && !integer && (d.result == LOCKSTEP_F32 || d.result == LOCKSTEP_F64);
  if (d.result != natural && !wider)
    fail(LOCKSTEP_INVALID_ARGUMENT, "result is {}, but a scan by {} of {} gives {}{}", dtype_text(d.result),
         reduction_text(d.reduction), dtype_text(d.dtype), dtype_text(natural),
         !sum || integer           ? ""
         : natural == LOCKSTEP_F64 ? " or F32"
         : natural == LOCKSTEP_F32 ? " or F64"
                                   : ", F32 or F64");
  if (d.exclusive != 0 && d.exclusive != 1)
    fail(LOCKSTEP_INVALID_ARGUMENT, "exclusive is {}; give 0 or 1", d.exclusive);
}

// The array `before`, which describes what precedes the sequences.
void prepare_before(prepared_call& prepared) {
  const lockstep_scan_desc& d = prepared.call.scan;
  const bool ordered = kind_of(d.reduction).ordered(d.dtype);
  if (d.before == nullptr && d.first != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "first is {} but before is NULL; give both, or set first to 0", d.first);
  if (d.before == nullptr) return;
  require_nonnegative("first", d.first);
  if (d.offsets != nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "before is {}, but segments are whole sequences; set it to NULL", d.before);
  if (ordered && d.first % order::leaf != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "first is {}; sums of floats begin at a leaf, give a multiple of {}", d.first,
         order::leaf);
  prepared.reads = 7, prepared.needs = "scan's before";
  if (prepared.empty) return;
  const int64_t subtrees = std::popcount(static_cast<uint64_t>(d.first / order::leaf));
  const bool extreme = kind_of(d.reduction).extreme();
  const int64_t counts[] = {d.count, ordered ? 1 + subtrees : extreme ? 1 : 2}, strides[] = {counts[1], 1};
  const size_t bytes = extreme ? prepared.element_bytes : sizeof(double);
  prepared.sides[0] = {"before", d.before, span_bytes("before", 2, counts, strides, bytes), bytes,
                       offsetof(lockstep_call, scan) + offsetof(lockstep_scan_desc, before)};
  prepared.side_count = 1;
}

}  // namespace

void prepare_scan(prepared_call& prepared) {
  lockstep_scan_desc& d = prepared.call.scan;
  require_types(d);
  count_sequences(prepared, d);
  if (d.offsets != nullptr) prepare_before(prepared);
  if (d.offsets == nullptr) {
    prepared.empty = prepared.empty || d.length == 0;
    // The stride of an axis with at most one element is never read: any number will do.
    if (d.length <= 1) d.element_stride = d.dst_element_stride = 1;
    if (d.count <= 1) d.sequence_stride = d.dst_sequence_stride = d.length;
    prepare_before(prepared);
  }
  if (prepared.empty) return;
  require_positive("element_stride", d.element_stride);
  require_positive("dst_element_stride", d.dst_element_stride);
  const bool same_elements = d.result == d.dtype && d.element_stride == d.dst_element_stride;
  prepared.dst_dense = false;
  if (d.offsets != nullptr) {
    take_offsets(prepared, d);
    d.dst_sequence_stride = 0;
    prepared.dst_step = d.dst_element_stride;
    prepared.may_alias = same_elements;
    return;
  }
  require_nonnegative("sequence_stride", d.sequence_stride);
  require_nonnegative("dst_sequence_stride", d.dst_sequence_stride);
  const int64_t counts[] = {d.count, d.length};
  const int64_t src_strides[] = {d.sequence_stride, d.element_stride};
  const int64_t dst_strides[] = {d.dst_sequence_stride, d.dst_element_stride};
  const int64_t total = product("count * length", 2, counts);
  prepared.src_span = span_bytes("src", 2, counts, src_strides, prepared.element_bytes);
  prepared.dst_span = span_bytes("dst", 2, counts, dst_strides, prepared.dst_element_bytes);
  // span_bytes has shown that neither product wraps.
  const int64_t of_sequence = (d.length - 1) * d.dst_element_stride + 1;
  const int64_t across = (d.count - 1) * d.dst_sequence_stride + 1;
  const bool apart =
      d.dst_sequence_stride >= of_sequence || (d.dst_sequence_stride > 0 && d.dst_element_stride >= across);
  if (d.count > 1 && !apart)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "dst_sequence_stride is {}, but the results of a sequence span {} elements; give that or more, or a "
         "dst_element_stride of {} or more",
         d.dst_sequence_stride, of_sequence, across);
  prepared.may_alias = same_elements && d.sequence_stride == d.dst_sequence_stride;
  prepared.dst_dense = prepared.dst_span == static_cast<size_t>(total) * prepared.dst_element_bytes;
  prepared.moved_bytes =
      static_cast<size_t>(total) * prepared.element_bytes + static_cast<size_t>(total) * prepared.dst_element_bytes;
}

}  // namespace lockstep::lib
