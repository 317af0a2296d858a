// offsets.cpp - calls whose sequences lie between offsets: what of each array the offsets name.
#include <cstring>
#include <span>

#include "run.hpp"

namespace lockstep::lib {
namespace {
bool host_readable(const void* pointer) { return place_of(pointer).kind != LOCKSTEP_DEVICE; }

// Device offsets with a NULL src are allowed if every segment is empty. Only reading the
// offsets can show that.
void require_empty_segments(lockstep_context* context, const prepared_call& prepared) {
  const array_place at = place_of(offsets_of(prepared.call));
  backend_entry* owner = at.owner;
  const queue_lease lease = context->acquire(owner, at.device, nullptr, false);
  std::vector<int64_t> offsets(prepared.offsets_bytes / sizeof(int64_t));
  lockstep_status status =
      lease->backend->copy(lease.get(), offsets_of(prepared.call), offsets.data(), prepared.offsets_bytes);
  if (status == LOCKSTEP_OK) status = lease->backend->finish(lease.get());
  if (status != LOCKSTEP_OK) fail_backend(status, *owner);
  for (const int64_t offset : offsets)
    if (offset != offsets.front())
      fail(LOCKSTEP_INVALID_ARGUMENT, "src is NULL or has no elements, but offsets name some, up to {}; pass src",
           offset);
}
}  // namespace

void bound_offsets(prepared_call& prepared, const lockstep_options& options) {
  if ((options.flags & LOCKSTEP_BOUNDED) == 0) return;
  lockstep_call& call = prepared.call;
  if (call.op != LOCKSTEP_REDUCE && call.op != LOCKSTEP_SQUARE_SUM)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "options.flags has LOCKSTEP_BOUNDED (128), which lockstep_{} does not take; only reduce and square_sum do",
         lockstep_op_name(call.op));
  if (prepared.offsets_bytes == 0) return;
  if (prepared.src_elements < 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "length is {}; with LOCKSTEP_BOUNDED give the number of src's elements",
         prepared.src_elements);
  prepared.bounded = true;
  if (host_readable(offsets_of(call))) return;  // read_offsets compares them
  call.reduce.length = prepared.src_elements;
  if (prepared.reads >= 9) return;
  prepared.reads = 9;
  prepared.needs = "offsets with LOCKSTEP_BOUNDED";
}

void resolve_offsets(lockstep_context* context, prepared_call& prepared) {
  if (prepared.offsets_bytes == 0) return;
  // The backend checks device offsets. How much of src they cover stays unknown here.
  prepared.src_span_known = host_readable(offsets_of(prepared.call));
  if (!prepared.src_span_known) {
    if (prepared.call.src == nullptr || (prepared.bounded && prepared.src_elements == 0)) {
      require_empty_segments(context, prepared);
      prepared.src_span_known = true;  // nothing of src is touched
      return;
    }
    if (host_readable(prepared.call.src))
      fail(LOCKSTEP_UNSUPPORTED, "offsets is device memory but src is host memory; put both on the same side");
    return;
  }
  read_offsets(prepared);
  check_pointers(prepared, prepared.call.src, prepared.call.dst);
}

void read_offsets(prepared_call& prepared) {
  const int64_t* const offsets = offsets_of(prepared.call);
  const auto count = static_cast<int64_t>(prepared.offsets_bytes / sizeof *offsets) - 1;
  if (offsets[0] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[0] is {}; give 0 or more", offsets[0]);
  for (int64_t s = 0; s < count; ++s)
    if (offsets[s + 1] < offsets[s])
      fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[{}] is {}, less than offsets[{}], {}; offsets must not decrease", s + 1,
           offsets[s + 1], s, offsets[s]);
  const int64_t elements = offsets[count];
  if (prepared.bounded && elements > prepared.src_elements)
    fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[{}] is {}, but src has {} elements", count, elements,
         prepared.src_elements);
  // Bytes of an array up to the last element that the offsets name, and before the first.
  const auto span_of = [&](const char* name, int64_t stride, size_t element_bytes, size_t& lead) {
    int64_t bytes = 0;
    lead = 0;
    if (elements == offsets[0]) return size_t{0};
    if (__builtin_mul_overflow(elements - 1, stride, &bytes) || __builtin_add_overflow(bytes, int64_t{1}, &bytes) ||
        __builtin_mul_overflow(bytes, static_cast<int64_t>(element_bytes), &bytes))
      fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[{}] is {}: {} would span more than 2^63-1 bytes; use smaller offsets",
           count, elements, name);
    lead = static_cast<size_t>(offsets[0] * stride) * element_bytes;
    return static_cast<size_t>(bytes);
  };
  const auto named = static_cast<size_t>(elements - offsets[0]);
  prepared.moved_bytes = prepared.offsets_bytes + named * prepared.element_bytes;
  prepared.src_span = span_of("src", prepared.src_step, prepared.element_bytes, prepared.src_lead);
  if (prepared.dst_step != 0)
    prepared.dst_span = span_of("dst", prepared.dst_step, prepared.dst_element_bytes, prepared.dst_lead);
  prepared.moved_bytes += prepared.dst_step != 0 ? named * prepared.dst_element_bytes : prepared.dst_span;
  for (side_array& side : std::span(prepared.sides, static_cast<size_t>(prepared.side_count)))
    if (side.step != 0) {
      side.bytes = span_of(side.name, side.step, side.alignment, side.lead);
      prepared.moved_bytes += named * side.alignment;
    }
}

prepared_call without_lead(prepared_call prepared, std::vector<int64_t>& kept) {
  lockstep_call& call = prepared.call;
  const int64_t* const given = offsets_of(call);
  const int64_t first = given[0] / 256 * 256;  // keeps every array's alignment
  kept.assign(given, given + prepared.offsets_bytes / sizeof(int64_t));
  for (int64_t& offset : kept) offset -= first;
  offsets_of(call) = kept.data();
  const auto cut = [first](const void* pointer, size_t& bytes, size_t& lead, int64_t stride, size_t element_bytes) {
    if (bytes == 0) return pointer;
    const size_t less = static_cast<size_t>(first * stride) * element_bytes;
    bytes -= less, lead -= less;
    return pointer == nullptr ? pointer : static_cast<const char*>(pointer) + less;  // a plan has none yet
  };
  call.src = cut(call.src, prepared.src_span, prepared.src_lead, prepared.src_step, prepared.element_bytes);
  if (prepared.dst_step != 0)
    call.dst = const_cast<void*>(
        cut(call.dst, prepared.dst_span, prepared.dst_lead, prepared.dst_step, prepared.dst_element_bytes));
  for (side_array& side : std::span(prepared.sides, static_cast<size_t>(prepared.side_count)))
    if (side.step != 0) {
      side.pointer = cut(side.pointer, side.bytes, side.lead, side.step, side.alignment);
      std::memcpy(reinterpret_cast<char*>(&call) + side.member, &side.pointer, sizeof side.pointer);
    }
  return prepared;
}

}  // namespace lockstep::lib
