// run.hpp - the steps of every call: an op validates (lib/ops); then all ops share
// select, stage, launch and commit.
#pragma once

#include <algorithm>
#include <vector>

#include "../context.hpp"
#include "../options.hpp"

namespace lockstep::lib {

// An array of a call besides src, dst and offsets. It is copied like them when a backend cannot reach it.
struct side_array {
  const char* name = nullptr;
  const void* pointer = nullptr;
  size_t bytes = 0, alignment = 1;
  size_t member = 0;  // offset of its address in the lockstep_call
  bool written = false;
  bool may_be_src = false;  // a written array that may be the same as src
  int may_be_side = -1;     // a written array that may be the same as this side
  int64_t step = 0;         // as prepared_call::src_step
  size_t lead = 0;          // as prepared_call::src_lead
};

// A validated call. Spans count bytes from src and dst to the last element
// touched; offsets_bytes is 0 unless the call has offsets.
struct prepared_call {
  lockstep_call call{};
  std::vector<double> coefficients;  // what call.stencil.coefficients points to
  size_t element_bytes = 0;          // alignment that src and dst need
  size_t dst_element_bytes = 0;
  size_t src_span = 0, dst_span = 0, offsets_bytes = 0;
  int64_t src_step = 0, dst_step = 0;  // elements between neighbours that offsets place; 0: none of this array are
  int64_t src_elements = 0;            // what length says beside offsets
  bool bounded = false;                // offsets must not exceed src_elements
  size_t src_lead = 0, dst_lead = 0;   // of the spans, bytes before the first element that host offsets name
  size_t moved_bytes = 0;              // bytes read plus bytes written, for the cost model
  bool src_span_known = true;          // false: offsets are device memory
  bool dst_dense = true;               // dst has no gaps that a staged copy must preserve
  bool may_alias = false;              // src == dst is allowed
  side_array sides[5];
  int side_count = 0;
  bool empty = false;
  // Whether it may write to what it reads: once it has started it cannot be repeated.
  bool in_place() const {
    return call.src == call.dst ||
           std::any_of(sides, sides + side_count, [](const side_array& side) { return side.written; });
  }
  uint32_t reads = 1;  // the LOCKSTEP_BACKEND_READS that a backend must have (backend.h)
  std::string needs;   // if more than 1, the reason as text
};

// Where a call that has offsets keeps them: but for normalize, descriptions with offsets begin alike.
inline const int64_t*& offsets_of(lockstep_call& call) {
  return call.op == LOCKSTEP_NORMALIZE ? call.normalize.offsets : call.reduce.offsets;
}
inline const int64_t* offsets_of(const lockstep_call& call) { return offsets_of(const_cast<lockstep_call&>(call)); }

// Checks and runs a call and records it for lockstep_last_run. A status, as public functions give it.
lockstep_status run(lockstep_context* context, lockstep_op op, const void* desc, const void* src, void* dst,
                    const lockstep_options* options) noexcept;

// The times that auto expected on the CPU and on a device. They become text only on demand, because for a short call
// formatting would cost more than the choice itself.
struct comparison {
  const backend_entry* device = nullptr;  // nullptr: nothing was compared
  const calibration* figures = nullptr;
  double there_us = 0, here_us = 0;  // on the device and on the CPU, with the copies over the link
  bool device_data = false;          // the data is in memory of the device
  bool pays() const { return there_us < here_us; }
};

// The choice a call or plan made.
struct choice {
  backend_entry* entry = nullptr;
  const lockstep_backend* backend = nullptr;
  int32_t device = 0;
  const lockstep_variant* variant = nullptr;
  queue_lease queue;
  std::string why;  // why other backends were passed over, without what compared says
  comparison compared;
  bool forced = false;  // the variant was named
  uint64_t plan = 0;    // number of the plan, 0 for none: its executions can share one run record
};
// The kind and the owner of an array's memory.
struct array_place {
  lockstep_memory kind = LOCKSTEP_HOST;
  backend_entry* owner = nullptr;  // of device or managed memory
  int32_t device = 0;
};
// Where the arrays of a call are. Found once per call, because asking the driver is slow.
struct array_places {
  array_place src, dst, offsets;
  array_place sides[5];  // as in prepared_call
  bool pinned = false;   // the large arrays are page-locked host memory
  // The first array in device or managed memory; its owner is NULL if there is none.
  const array_place& on_device() const {
    for (const array_place* place : {&src, &dst, &offsets, &sides[0], &sides[1], &sides[2], &sides[3]})
      if (place->owner != nullptr) return *place;
    return sides[4];
  }
};
array_places locate(const prepared_call& prepared, const void* src, const void* dst);
// Throws when a named backend or variant cannot run the call. skip: a backend that has
// just failed, or nullptr.
choice select(lockstep_context* context, const settings& now, const prepared_call& prepared,
              const lockstep_options& options, const array_places& data, const backend_entry* skip);

std::string why_not_others(const choice& chosen);
// The row for a plan: one that was chosen by measuring, earlier or, if options ask for it, now (tune.cpp). Otherwise
// best, auto's choice. chosen.why says which. call.src == call.dst means a plan for in place.
const lockstep_variant* tuned_variant(lockstep_context& context, const settings& now, choice& chosen,
                                      const prepared_call& prepared, const lockstep_options& options,
                                      const lockstep_variant* best);

// Whether a row runs only when it is forced by name.
bool only_by_name(const lockstep_variant& row);

// The chosen backend's row for another call of the same op (in place, say): the same variant
// if it was forced, nullptr when no row takes the call.
const lockstep_variant* pick_variant(const choice& chosen, const lockstep_call& call);

// Whether a call gave no results: OVERFLOW and EMPTY are about some of them.
inline bool is_bad(lockstep_status status) {
  return status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY;
}
// Whether auto may run the call on another backend after this failure.
inline bool recoverable(lockstep_status status) {
  return status == LOCKSTEP_OUT_OF_MEMORY || status == LOCKSTEP_BACKEND_FAILED || status == LOCKSTEP_BACKEND_LOST;
}

// Launches on a chosen queue: stages unreachable pointers, runs, copies back.
struct launch_result {
  size_t staged_bytes = 0;
  bool started = false;  // dst may have been written to
};
array_place place_of(const void* pointer);
// Whether the chosen backend can use an address directly.
bool can_reach(const choice& chosen, const array_place& place, const void* pointer);
lockstep_status launch_staged(lockstep_context* context, const choice& chosen, const prepared_call& prepared,
                              const lockstep_options& options, const array_places& data, launch_result& result);

// read_offsets checks host offsets and completes src_span; resolve_offsets handles device offsets too and checks the
// pointers.
void read_offsets(prepared_call& prepared);
// Takes LOCKSTEP_BOUNDED of the options: before a backend is chosen, which must know it where offsets are its memory.
void bound_offsets(prepared_call& prepared, const lockstep_options& options);
// The call on arrays that begin less than 256 elements before the first that host offsets name, so that a copy of them
// holds little else; the offsets that go with them are kept in `kept`.
prepared_call without_lead(prepared_call prepared, std::vector<int64_t>& kept);
void resolve_offsets(lockstep_context* context, prepared_call& prepared);
// Whether the caller's workspace is aligned and the chosen backend can reach it, and whether it is apart from a call's
// arrays; `of` follows an array's name in the text (" of descs[3]").
void require_workspace_usable(const choice& chosen, const lockstep_options& options);
void require_workspace_aligned(const lockstep_options& options);
void require_workspace_apart(const prepared_call& prepared, const lockstep_options& options, const std::string& of);
// The caller's workspace, if given, else the queue's scratch.
lockstep_status give_workspace(prepared_call& prepared, const choice& chosen, const lockstep_options& options);
void check_pointers(const prepared_call& prepared, const void* src, const void* dst);
int32_t order_of(const lockstep_variant& row);  // 0 for an order of its own
void remember_run(const choice* chosen, size_t workspace_bytes, size_t staged_bytes);

}  // namespace lockstep::lib
