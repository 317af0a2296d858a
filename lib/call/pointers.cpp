// pointers.cpp - whether the addresses of a call are usable: not NULL, aligned, and apart where one of them is written.
#include <cstdint>

#include "../ops/ops.hpp"
#include "run.hpp"

namespace lockstep::lib {
namespace {

// Compares differences, because the sizes are not checked and the end of an array could wrap.
bool overlap(const void* a, size_t a_bytes, const void* b, size_t b_bytes) {
  const auto x = reinterpret_cast<uintptr_t>(a), y = reinterpret_cast<uintptr_t>(b);
  return x <= y ? y - x < a_bytes : x - y < b_bytes;
}

void check_one(const char* name, const void* pointer, size_t span, size_t alignment) {
  if (span == 0) return;
  if (pointer == nullptr)
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL but {} bytes are needed there; pass memory of that size", name, span);
  if (reinterpret_cast<uintptr_t>(pointer) % alignment != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "{} is {}, which is not aligned to its {}-byte elements; shift it to a multiple of {}", name, pointer,
         alignment, alignment);
  if (reinterpret_cast<uintptr_t>(pointer) > UINTPTR_MAX - span)
    fail(LOCKSTEP_INVALID_ARGUMENT,
         "{} is {} and {} bytes are needed there, beyond the address space; pass memory of that size", name, pointer,
         span);
}

// Nothing of an array is touched before the first element that the offsets name.
const void* past(size_t lead, const void* pointer) { return static_cast<const char*>(pointer) + lead; }
side_array touched(const char* name, const void* pointer, size_t bytes, size_t lead) {
  return {name, past(lead, pointer), bytes - lead};
}
bool overlap(const side_array& a, const side_array& b) {
  return a.bytes != 0 && b.bytes != 0 && overlap(a.pointer, a.bytes, b.pointer, b.bytes);
}

// dst and every other array that is written must not overlap any array of the call.
void check_sides(const prepared_call& prepared, const void* src, const void* dst) {
  const side_array from = touched("src", src, prepared.src_span, prepared.src_lead),
                   to = touched("dst", dst, prepared.dst_span, prepared.dst_lead);
  const auto require_apart = [](const side_array& written, const side_array& other) {
    if (!overlap(written, other)) return;
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} ({}, {} bytes) and {} ({}, {} bytes) overlap; give {} memory of its own",
         other.name, other.pointer, other.bytes, written.name, written.pointer, written.bytes, written.name);
  };
  for (int i = 0; i < prepared.side_count; ++i) {
    const side_array& side = prepared.sides[i];
    check_one(side.name, side.pointer, side.bytes, side.alignment);
    require_apart(to, touched(side.name, side.pointer, side.bytes, side.lead));
    if (!side.written) continue;
    if (side.pointer != src || !side.may_be_src) require_apart(side, from);
    for (int k = 0; k < prepared.side_count; ++k) {
      const side_array& other = prepared.sides[k];
      if (k != i && !(k == side.may_be_side && side.pointer == other.pointer)) require_apart(side, other);
    }
  }
}

// What the text of an overlap adds for an op that runs in place under conditions.
std::string why_apart(const prepared_call& prepared, bool same) {
  const op_row& row = row_of(prepared.call.op);
  if (row.why_not_in_place == nullptr) return "";
  return same ? " (" + row.why_not_in_place(prepared) + ")" : " (or src == dst: in place)";
}

}  // namespace

void check_pointers(const prepared_call& prepared, const void* src, const void* dst) {
  check_one("src", src, prepared.src_span, prepared.element_bytes);
  check_one("dst", dst, prepared.dst_span, prepared.dst_element_bytes);
  if (src != dst || !prepared.may_alias) {
    if (prepared.src_span != 0 && prepared.dst_span != 0 &&
        overlap(past(prepared.src_lead, src), prepared.src_span - prepared.src_lead, past(prepared.dst_lead, dst),
                prepared.dst_span - prepared.dst_lead))
      fail(LOCKSTEP_INVALID_ARGUMENT, "src ({}, {} bytes) and dst ({}, {} bytes) overlap; give dst memory of its own{}",
           src, prepared.src_span, dst, prepared.dst_span, why_apart(prepared, src == dst));
  }
  if (prepared.side_count != 0) check_sides(prepared, src, dst);
  if (prepared.offsets_bytes != 0) {
    check_one("offsets", offsets_of(prepared.call), prepared.offsets_bytes, sizeof(int64_t));
    if (overlap({"offsets", offsets_of(prepared.call), prepared.offsets_bytes},
                touched("dst", dst, prepared.dst_span, prepared.dst_lead)))
      fail(LOCKSTEP_INVALID_ARGUMENT, "offsets ({}) and dst ({}) overlap; give dst memory of its own",
           static_cast<const void*>(offsets_of(prepared.call)), dst);
  }
}

void require_workspace_aligned(const lockstep_options& options) {
  if (reinterpret_cast<uintptr_t>(options.workspace) % 256 != 0)
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.workspace is {}; align it to 256 bytes", options.workspace);
}

void require_workspace_usable(const choice& chosen, const lockstep_options& options) {
  require_workspace_aligned(options);
  if (!can_reach(chosen, place_of(options.workspace), options.workspace))
    fail(LOCKSTEP_INVALID_ARGUMENT, "options.workspace is {}, which {} cannot reach; give memory of its kind, or NULL",
         options.workspace, chosen.entry->name());
}

void require_workspace_apart(const prepared_call& prepared, const lockstep_options& options, const std::string& of) {
  const void* workspace = options.workspace;
  const auto require_apart = [&](const side_array& array) {
    if (overlap({"workspace", workspace, options.workspace_bytes}, array))
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "options.workspace ({}, {} bytes) overlaps {}{} ({}, {} bytes); give it memory of its own", workspace,
           options.workspace_bytes, array.name, of, array.pointer, array.bytes);
  };
  require_apart(touched("src", prepared.call.src, prepared.src_span, prepared.src_lead));
  require_apart(touched("dst", prepared.call.dst, prepared.dst_span, prepared.dst_lead));
  if (prepared.offsets_bytes != 0) require_apart({"offsets", offsets_of(prepared.call), prepared.offsets_bytes});
  for (const side_array* side = prepared.sides; side != prepared.sides + prepared.side_count; ++side)
    require_apart(touched(side->name, side->pointer, side->bytes, side->lead));
}

lockstep_status give_workspace(prepared_call& prepared, const choice& chosen, const lockstep_options& options) {
  lockstep_call& call = prepared.call;
  call.workspace = nullptr;
  if (options.workspace != nullptr) {
    require_workspace_usable(chosen, options);
    require_workspace_apart(prepared, options, "");
    if (options.workspace_bytes < call.workspace_bytes)
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "options.workspace_bytes is {}, but variant {} of {} needs {}; give that many or NULL",
           options.workspace_bytes, chosen.variant->name, chosen.entry->name(), call.workspace_bytes);
    call.workspace = options.workspace;
    return LOCKSTEP_OK;
  }
  return call.workspace_bytes != 0 ? chosen.backend->scratch(chosen.queue.get(), call.workspace_bytes, &call.workspace)
                                   : LOCKSTEP_OK;
}

}  // namespace lockstep::lib
