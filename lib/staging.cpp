// staging.cpp - gives a backend reachable copies of pointers that it cannot use as
// they are, and carries results back. The backend's copy() knows how to move
// bytes well (pinned rings, several threads); this file only decides what moves.
#include <cstring>
#include <exception>

#include "mutant.hpp"
#include "run.hpp"
#include "slabs.hpp"

namespace lockstep::lib {

// The CPU backend cannot tell device memory from its own; the owner can.
bool can_reach(const choice& chosen, const void* pointer) {
  if (!chosen.entry->is_cpu()) return chosen.backend->reachable(chosen.queue.get(), pointer) != 0;
  for (backend_entry* entry : backends()) {
    const lockstep_backend* other = entry == chosen.entry ? nullptr : entry->owner();
    if (other == nullptr) continue;
    lockstep_memory kind = LOCKSTEP_HOST;
    int32_t device = -1;
    other->locate(pointer, &kind, &device);
    if (kind == LOCKSTEP_DEVICE) return false;
  }
  return true;
}

namespace {

// A buffer in the chosen backend's reach, or nothing when the pointer already is.
class staged {
 public:
  staged(const choice& chosen, const void* pointer, size_t bytes) : chosen_(chosen), bytes_(bytes) {
    if (bytes == 0 || can_reach(chosen, pointer)) return;
    const lockstep_memory kind = chosen.entry->is_cpu() ? LOCKSTEP_HOST : LOCKSTEP_DEVICE;
    const lockstep_status status = chosen.backend->allocate(chosen.queue.get(), kind, bytes, &copy_);
    if (status != LOCKSTEP_OK) fail_backend(status, *chosen.entry);
  }
  ~staged() {
    if (copy_ == nullptr) return;
    const lockstep_memory kind = chosen_.entry->is_cpu() ? LOCKSTEP_HOST : LOCKSTEP_DEVICE;
    chosen_.backend->release(chosen_.queue.get(), kind, bytes_, copy_);
  }
  staged(const staged&) = delete;
  staged& operator=(const staged&) = delete;

  bool used() const { return copy_ != nullptr; }
  void* copy() const { return copy_; }
  size_t bytes() const { return used() ? bytes_ : 0; }

 private:
  const choice& chosen_;
  size_t bytes_;
  void* copy_ = nullptr;
};

// The CPU backend cannot read device memory; the backend that owns it can.
struct mover {
  const lockstep_backend* backend;
  queue_lease own;
  lockstep_queue* queue;
  backend_entry* entry;

  mover(lockstep_context* context, const choice& chosen, const whereabouts& data)
      : backend(chosen.backend), queue(chosen.queue.get()), entry(chosen.entry) {
    if (!data.on_device || data.backend == chosen.entry->name()) return;
    entry = find_backend(data.backend);
    own = context->acquire(entry, data.device, nullptr, false);
    context->settle(own);
    backend = own->backend;
    queue = own.get();
  }
  void copy(const void* src, void* dst, size_t bytes) const {
    if (const lockstep_status s = backend->copy(queue, src, dst, bytes); s != LOCKSTEP_OK) fail_backend(s, *entry);
  }
  void finish() const {
    if (const lockstep_status s = backend->finish(queue); s != LOCKSTEP_OK) fail_backend(s, *entry);
  }
};

// A call that fails while copies are queued waits for them: they still read or
// write the caller's memory.
struct copies_end {
  const choice& chosen;
  const bool staged;
  const int throwing = std::uncaught_exceptions();
  ~copies_end() {
    if (!staged || std::uncaught_exceptions() == throwing) return;
    (void)chosen.backend->finish(chosen.queue.get());
  }
};

// Slabs of this size keep the copy engines busy (a quarter of a millisecond each)
// and leave the pipeline's ends short: 4 MiB and 64 MiB lose 5 % on 1 GiB.
constexpr size_t slab_bytes = size_t{16} << 20;

// Whether the call can go slab by slab: both sides out of reach, and a row that
// takes every part.
std::vector<lockstep_slab> slabs_of(const choice& chosen, const prepared_call& prepared) {
  if (chosen.backend->run_slabs == nullptr || can_reach(chosen, prepared.call.src) ||
      can_reach(chosen, prepared.call.dst))
    return {};
  std::vector<lockstep_slab> slabs = cut(prepared, slab_bytes);
  for (const lockstep_slab& slab : slabs) {
    lockstep_call asked = slab.call;  // has no addresses yet: NULL and NULL would look like one array in place
    asked.src = prepared.call.src, asked.dst = prepared.call.dst;
    if (chosen.variant->refuses != nullptr && chosen.variant->refuses(chosen.queue.get(), &asked) != nullptr) return {};
  }
  return slabs;
}

}  // namespace

namespace {
lockstep_status launch(const choice& chosen, const lockstep_call& call) {
  const lockstep_status status = chosen.variant->launch(chosen.queue.get(), &call);
  if (status != LOCKSTEP_OK && status != LOCKSTEP_OVERFLOW && status != LOCKSTEP_EMPTY)
    fail_backend(status, *chosen.entry);
  return status;
}

// Nothing to copy, and when the call returns it is done: the CPU on host memory. A short call wants no more than that.
bool runs_as_it_stands(const choice& chosen, const prepared_call& prepared) {
  const lockstep_call& call = prepared.call;
  return chosen.entry->is_cpu() && can_reach(chosen, call.src) && can_reach(chosen, call.dst) &&
         (prepared.offsets_bytes == 0 || can_reach(chosen, call.reduce.offsets));
}
}  // namespace

lockstep_status launch_staged(lockstep_context* context, const choice& chosen, const prepared_call& prepared,
                              const lockstep_options& options, launch_story& story) {
  if (runs_as_it_stands(chosen, prepared)) {
    story.started = true;
    return launch(chosen, prepared.call);
  }
  if (const auto slabs = slabs_of(chosen, prepared);
      !slabs.empty() && !locate(prepared, prepared.call.src, prepared.call.dst).on_device) {
    story.staged_bytes = prepared.src_span + prepared.dst_span;
    context->settle(chosen.queue);
    story.started = true;
    return chosen.backend->run_slabs(chosen.queue.get(), chosen.variant, slabs.data(), slabs.size(), prepared.call.src,
                                     prepared.call.dst);
  }
  lockstep_call call = prepared.call;
  const bool in_place = call.src == call.dst;
  const bool has_offsets = prepared.offsets_bytes != 0;
  if (!prepared.src_span_known && !can_reach(chosen, call.src))
    fail(LOCKSTEP_UNSUPPORTED,
         "offsets are device memory, so src cannot be copied to where {} reaches it; call the backend that owns both",
         chosen.entry->name());
  const staged dst(chosen, call.dst, prepared.dst_span);
  const staged src(chosen, call.src, in_place ? 0 : prepared.src_span);
  const staged offsets(chosen, has_offsets ? call.reduce.offsets : nullptr, prepared.offsets_bytes);
  story.staged_bytes = dst.bytes() + src.bytes() + offsets.bytes();
  const bool any = dst.used() || src.used() || offsets.used();
  const bool async = (options.flags & LOCKSTEP_ASYNC) != 0 && !any;

  if (!async) context->settle(chosen.queue);
  const copies_end on_failure{chosen, any};
  if (any) {
    const mover move(context, chosen, locate(prepared, call.src, call.dst));
    if (src.used()) {
      move.copy(call.src, src.copy(), prepared.src_span);
      call.src = src.copy();
    }
    if (offsets.used()) {
      move.copy(call.reduce.offsets, offsets.copy(), prepared.offsets_bytes);
      call.reduce.offsets = static_cast<const int64_t*>(offsets.copy());
    }
    // Gaps between dst's rows, and results of empty sequences, belong to the caller.
    if (dst.used() && (in_place || !prepared.dst_dense) && !LOCKSTEP_MUTANT("staged_gaps_lost"))
      move.copy(call.dst, dst.copy(), prepared.dst_span);
    if (dst.used()) {
      if (in_place) call.src = dst.copy();
      call.dst = dst.copy();
    }
    if (move.own) move.finish();
  }

  story.started = !dst.used();
  const lockstep_status launched = launch(chosen, call);
  if (async) {
    context->mark_pending(chosen.queue);
    return launched;
  }
  std::string text = last_error();
  lockstep_status finished = chosen.backend->finish(chosen.queue.get());
  if (finished == LOCKSTEP_OK) {
    finished = launched;
    set_error(text.c_str());
  }
  if (finished != LOCKSTEP_OK && finished != LOCKSTEP_OVERFLOW && finished != LOCKSTEP_EMPTY) return finished;
  if (dst.used()) {
    text = last_error();
    const mover move(context, chosen, locate(prepared, prepared.call.src, prepared.call.dst));
    story.started = true;
    move.copy(dst.copy(), prepared.call.dst, prepared.dst_span);
    move.finish();
    set_error(text.c_str());
  }
  return finished;
}

}  // namespace lockstep::lib
