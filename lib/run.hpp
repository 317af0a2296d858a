// run.hpp - the way of every call: an op validates (lib/ops), then select, stage,
// launch, commit happen here, once for all ops.
#pragma once

#include <vector>

#include "context.hpp"
#include "options.hpp"

namespace lockstep::lib {

// An array of a call besides src, dst and offsets. All backends use it where it lies.
struct side_array {
  const char* name = nullptr;
  const void* pointer = nullptr;
  size_t bytes = 0, alignment = 1;
  bool written = false;
  bool may_be_src = false, may_be_residual = false;  // of one that is written: it may be that array itself
};

// A validated call. Spans count bytes from src and dst to the last element
// touched; offsets_bytes is 0 unless the call has offsets.
struct prepared_call {
  lockstep_call call{};
  std::vector<double> coefficients;  // what call.stencil.coefficients points to
  size_t element_bytes = 0;          // alignment that src and dst need
  size_t dst_element_bytes = 0;
  size_t src_span = 0, dst_span = 0, offsets_bytes = 0;
  size_t moved_bytes = 0;      // read + written once: what auto's cost model sees
  bool src_span_known = true;  // false: offsets are device memory
  bool dst_dense = true;       // dst has no gaps that a staged copy must preserve
  bool may_alias = false;      // src == dst is meaningful
  bool may_stage = true;       // out of a backend's reach, src and dst are copied; else the call is refused
  side_array sides[4];
  int side_count = 0;
  bool empty = false;
  uint32_t reads = 1;  // what a backend must be able to read (backend.h, LOCKSTEP_BACKEND_READS)
  std::string needs;   // and what of the call asks for more than 1, in words
};

// Runs a call and leaves its story for lockstep_last_run.
void run(lockstep_context* context, prepared_call& prepared, const void* src, void* dst,
         const lockstep_options* options);

// What auto expected of a call on the CPU and on a device, put into words only when somebody asks:
// words would cost a short call more than the choice itself.
struct comparison {
  const backend_entry* device = nullptr;  // nullptr: nothing was compared
  const calibration* figures = nullptr;
  double there_us = 0, here_us = 0;  // trips over the link counted
  bool device_data = false;          // the data is memory of the device
  bool pays() const { return there_us < here_us; }
};

// The choice a call or plan made.
struct choice {
  backend_entry* entry = nullptr;
  const lockstep_backend* backend = nullptr;
  int32_t device = 0;
  const lockstep_variant* variant = nullptr;
  queue_lease queue;
  std::string why;  // why not the others, but for what compared says
  comparison compared;
  bool forced = false;  // the variant was named
  uint64_t plan = 0;    // of which plan it is: what is remembered of its last execution holds for the next
};
// Whose memory an array is.
struct array_place {
  lockstep_memory kind = LOCKSTEP_HOST;
  backend_entry* owner = nullptr;  // of device or managed memory
  int32_t device = 0;
};
// Where the arrays of a call lie: asked once a call, for a driver takes its time to answer.
struct whereabouts {
  array_place src, dst, offsets;
  bool pinned = false;  // page-locked host memory, as far as it matters for the trips over the link
  // The first of them that is device or managed memory; its owner is NULL where none is.
  const array_place& on_device() const { return src.owner != nullptr ? src : dst.owner != nullptr ? dst : offsets; }
};
whereabouts locate(const prepared_call& prepared, const void* src, const void* dst);
// Throws when a named backend or variant cannot run the call. skip: a backend
// that just failed (fallback), or nullptr.
choice select(lockstep_context* context, const settings& now, const prepared_call& prepared,
              const lockstep_options& options, const whereabouts& data, const backend_entry* skip);

std::string why_not_others(const choice& chosen);
// The row of a plan's call: the one that measuring chose, before or, where options ask for it, now (tune.cpp); else
// best, which auto takes. chosen.why tells. call.src == call.dst where the call is to be in place.
const lockstep_variant* tuned_row(lockstep_context& context, const settings& now, choice& chosen,
                                  const prepared_call& prepared, const lockstep_options& options,
                                  const lockstep_variant* best);

// Rows that only a name brings on.
bool never_by_itself(const lockstep_variant& row);

// The row that the chosen backend would take for a call like the one chosen for (in
// place, say): its variant again where that was forced; nullptr when it has none.
const lockstep_variant* pick_variant(const choice& chosen, const lockstep_call& call);

// A failure after which auto may let another backend end the call.
inline bool recoverable(lockstep_status status) {
  return status == LOCKSTEP_OUT_OF_MEMORY || status == LOCKSTEP_BACKEND_FAILED || status == LOCKSTEP_BACKEND_LOST;
}

// Throws where the chosen backend cannot use an array that is not copied to where it could.
void require_reach(const choice& chosen, const prepared_call& prepared, const whereabouts& data);

// Launches on a chosen queue: stages unreachable pointers, runs, copies back.
struct launch_story {
  size_t staged_bytes = 0;
  bool started = false;  // dst may have been written to
};
array_place place_of(const void* pointer);
// Whether the chosen backend can use an address as it is.
bool can_reach(const choice& chosen, const array_place& place, const void* pointer);
lockstep_status launch_staged(lockstep_context* context, const choice& chosen, const prepared_call& prepared,
                              const lockstep_options& options, const whereabouts& data, launch_story& story);

// Reads and checks host offsets and completes src_span; resolve_offsets looks at device offsets too, and at the
// pointers.
void read_offsets(prepared_call& prepared);
void resolve_offsets(lockstep_context* context, prepared_call& prepared);
// The caller's workspace when it serves, else the queue's scratch.
lockstep_status give_workspace(prepared_call& prepared, const choice& chosen, const lockstep_options& options);
void check_pointers(const prepared_call& prepared, const void* src, const void* dst);
int32_t order_of(const lockstep_variant& row);  // 0 for an order of its own
void remember_run(const choice* chosen, size_t workspace_bytes, size_t staged_bytes);

}  // namespace lockstep::lib
