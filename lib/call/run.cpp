// run.cpp - see run.hpp.
#include "run.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "../bits/order.hpp"
#include "../choose/estimate.hpp"
#include "../ops/ops.hpp"
#include "enough_stack.hpp"
#include "trace.hpp"

namespace lockstep::lib {
namespace {

// A text of fixed capacity, cut when it is too long, and fit to be shown. Recording a call must not allocate. So it
// needs no destructor either: registering the destructor of a thread_local allocates.
template <size_t size>
class short_text {
 public:
  void clear() { length_ = 0, text_[0] = '\0'; }
  void add(std::string_view more) { length_ += copy_shown(text_ + length_, size - length_, more); }
  bool empty() const { return length_ == 0; }
  std::string_view view() const { return {text_, length_}; }
  const char* c_str() const { return text_; }

 private:
  size_t length_ = 0;
  char text_[size] = {};
};

struct run_record {
  const char *backend = "", *variant = "";  // texts of the backend, which live as long as the process
  short_text<2048> why;
  comparison compared;  // made into text on demand; its figures may be gone by then, so basis is copied
  short_text<256> basis;
  uint64_t plan = 0;
  int32_t device = 0, order = 0;
  size_t workspace_bytes = 0, staged_bytes = 0;
  void clear() {
    backend = variant = "";
    why.clear(), basis.clear();
    compared = {};
    plan = 0;
    device = order = 0;
    workspace_bytes = staged_bytes = 0;
  }
};
static_assert(std::is_trivially_destructible_v<run_record>);
thread_local run_record last;

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
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {} and {} bytes are needed there, beyond the address space", name, pointer,
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

}  // namespace

namespace {
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
    check_one("offsets", prepared.call.reduce.offsets, prepared.offsets_bytes, sizeof(int64_t));
    if (overlap({"offsets", prepared.call.reduce.offsets, prepared.offsets_bytes},
                touched("dst", dst, prepared.dst_span, prepared.dst_lead)))
      fail(LOCKSTEP_INVALID_ARGUMENT, "offsets ({}) and dst ({}) overlap; give dst memory of its own",
           static_cast<const void*>(prepared.call.reduce.offsets), dst);
  }
}

namespace {
bool host_readable(const void* pointer) { return place_of(pointer).kind != LOCKSTEP_DEVICE; }

// Device offsets with a NULL src are allowed if every segment is empty. Only reading the
// offsets can show that.
void require_empty_segments(lockstep_context* context, const prepared_call& prepared) {
  const array_place at = place_of(prepared.call.reduce.offsets);
  backend_entry* owner = at.owner;
  const queue_lease lease = context->acquire(owner, at.device, nullptr, false);
  std::vector<int64_t> offsets(prepared.offsets_bytes / sizeof(int64_t));
  lockstep_status status =
      lease->backend->copy(lease.get(), prepared.call.reduce.offsets, offsets.data(), prepared.offsets_bytes);
  if (status == LOCKSTEP_OK) status = lease->backend->finish(lease.get());
  if (status != LOCKSTEP_OK) fail_backend(status, *owner);
  for (const int64_t offset : offsets)
    if (offset != offsets.front())
      fail(LOCKSTEP_INVALID_ARGUMENT, "src is NULL but offsets name elements of it, up to {}; pass src", offset);
}
}  // namespace

void resolve_offsets(lockstep_context* context, prepared_call& prepared) {
  const lockstep_reduce_desc& d = prepared.call.reduce;  // lockstep_scan_desc and lockstep_sums_desc start alike
  if (prepared.offsets_bytes == 0) return;
  // The backend checks device offsets. How much of src they cover stays unknown here.
  prepared.src_span_known = host_readable(d.offsets);
  if (!prepared.src_span_known) {
    if (prepared.call.src == nullptr) {
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
  const lockstep_reduce_desc& d = prepared.call.reduce;
  if (d.offsets[0] < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[0] is {}; give 0 or more", d.offsets[0]);
  for (int64_t s = 0; s < d.count; ++s)
    if (d.offsets[s + 1] < d.offsets[s])
      fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[{}] is {}, less than offsets[{}], {}; segments must not decrease", s + 1,
           d.offsets[s + 1], s, d.offsets[s]);
  const int64_t elements = d.offsets[d.count];
  // Bytes of an array up to the last element that the offsets name, and before the first.
  const auto span_of = [&](const char* name, int64_t stride, size_t element_bytes, size_t& lead) {
    int64_t bytes = 0;
    lead = 0;
    if (elements == d.offsets[0]) return size_t{0};
    if (__builtin_mul_overflow(elements - 1, stride, &bytes) || __builtin_add_overflow(bytes, int64_t{1}, &bytes) ||
        __builtin_mul_overflow(bytes, static_cast<int64_t>(element_bytes), &bytes))
      fail(LOCKSTEP_INVALID_ARGUMENT, "offsets[{}] is {}: {} would span more than 2^63-1 bytes; use smaller offsets",
           d.count, elements, name);
    lead = static_cast<size_t>(d.offsets[0] * stride) * element_bytes;
    return static_cast<size_t>(bytes);
  };
  const auto named = static_cast<size_t>(elements - d.offsets[0]);
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
  const int64_t* const given = call.reduce.offsets;
  const int64_t first = given[0] / 256 * 256;  // keeps every array's alignment
  kept.assign(given, given + prepared.offsets_bytes / sizeof(int64_t));
  for (int64_t& offset : kept) offset -= first;
  call.reduce.offsets = kept.data();
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
  if (prepared.offsets_bytes != 0) require_apart({"offsets", prepared.call.reduce.offsets, prepared.offsets_bytes});
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

namespace {
const char* remark_on(const choice* chosen) {
  if (chosen == nullptr || !chosen->queue || chosen->backend->size <= offsetof(lockstep_backend, remark))
    return nullptr;
  return chosen->backend->remark != nullptr ? chosen->backend->remark(chosen->queue.get()) : nullptr;
}
}  // namespace

int32_t order_of(const lockstep_variant& row) { return (row.flags & LOCKSTEP_OWN_ORDER) != 0 ? 0 : order::id; }

void remember_run(const choice* chosen, size_t workspace_bytes, size_t staged_bytes) {
  const char* remark = remark_on(chosen);
  const bool told = remark == nullptr && chosen != nullptr && chosen->plan != 0 && last.plan == chosen->plan &&
                    last.variant == chosen->variant->name && last.staged_bytes == staged_bytes &&
                    last.workspace_bytes == workspace_bytes;
  if (told) return;
  last.clear();
  if (chosen == nullptr) return;
  last.plan = chosen->plan;
  last.backend = chosen->entry->name().c_str();
  last.variant = chosen->variant->name;
  last.why.add(chosen->why);
  if (remark != nullptr) {
    if (!last.why.empty()) last.why.add("; ");
    last.why.add(remark);
    last.plan = 0;  // the next execution may have no remark
  }
  last.compared = chosen->compared;
  if (const char* trouble = trace_trouble(); *trouble != '\0') {
    if (!last.why.empty()) last.why.add("; ");
    last.why.add(trouble);
    last.plan = 0;
  }
  if (last.compared.device != nullptr) last.basis.add(last.compared.figures->basis);
  last.device = chosen->device;
  last.order = order_of(*chosen->variant);
  last.workspace_bytes = workspace_bytes;
  last.staged_bytes = staged_bytes;
}

std::string why_not_others(const choice& chosen) {
  if (chosen.compared.device == nullptr) return chosen.why;
  const std::string words = in_words(chosen.compared, chosen.compared.figures->basis);
  return chosen.why.empty() ? words : chosen.why + "; " + words;
}

void run(lockstep_context* context, prepared_call& prepared, const void* src, void* dst,
         const lockstep_options* given) {
  require_context(context);
  lockstep_options options = call_options(given);
  check_pointers(prepared, src, dst);
  remember_run(nullptr, 0, 0);
  if (prepared.empty) return;
  prepared.call.src = src;
  prepared.call.dst = dst;
  resolve_offsets(context, prepared);

  const array_places data = locate(prepared, src, dst);
  const auto now = context->current();
  const bool named = options.backend != nullptr ? std::string(options.backend) != "auto" : !now->backend.is_auto();
  const backend_entry* skip = nullptr;
  std::string failure;
  for (;;) {
    choice chosen = select(context, *now, prepared, options, data, skip);
    if (!failure.empty()) chosen.why = chosen.why.empty() ? failure : failure + "; " + chosen.why;
    const bool may_fall_back =
        !named && !chosen.entry->is_cpu() && ((options.flags | now->flags) & LOCKSTEP_NO_FALLBACK) == 0;
    launch_result launched;
    lockstep_status status = LOCKSTEP_OK;
    try {
      prepared.call.workspace_bytes = 0;
      if (chosen.variant->workspace != nullptr)
        with_enough_stack(*chosen.entry, [&] {
          prepared.call.workspace_bytes = chosen.variant->workspace(chosen.queue.get(), &prepared.call);
        });
      status = give_workspace(prepared, chosen, options);
      if (status == LOCKSTEP_OK) status = launch_staged(context, chosen, prepared, options, data, launched);
      if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY)
        fail_backend(status, *chosen.entry);
    } catch (const error& e) {
      // No other backend can repeat the call if src or residual may be overwritten, or lost with the device.
      const auto written = [](const side_array& side) { return side.written; };
      const bool in_place = src == dst || std::any_of(prepared.sides, prepared.sides + prepared.side_count, written);
      const bool src_gone =
          (in_place && launched.started) || (e.status == LOCKSTEP_BACKEND_LOST && data.on_device().owner != nullptr);
      if (!may_fall_back || !recoverable(e.status) || src_gone) throw;
      failure = e.text;
      skip = chosen.entry;
      options.workspace = nullptr;  // it was for the backend that failed
      continue;
    }
    remember_run(&chosen, prepared.call.workspace_bytes, launched.staged_bytes);
    trace(prepared, chosen, launched.staged_bytes, status);
    if (status != LOCKSTEP_OK) throw error{status, last_error()};
    return;
  }
}

}  // namespace lockstep::lib

extern "C" lockstep_status lockstep_last_run(lockstep_run_info* info) {
  using namespace lockstep::lib;
  return guarded([&] {
    if (last.compared.device != nullptr) {
      const std::string words = in_words(last.compared, last.basis.view());
      if (!last.why.empty()) last.why.add("; ");
      last.why.add(words);
      last.compared = {};
    }
    give(lockstep_run_info{sizeof(lockstep_run_info), last.backend, last.variant, last.why.c_str(), last.device,
                           last.order, last.workspace_bytes, last.staged_bytes},
         info, "info");
  });
}
