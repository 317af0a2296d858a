// staging.cpp - copies arrays that a backend cannot reach to its memory, and results back.
// The backend's copy() knows how to copy fast (pinned rings, several threads); this file
// only decides what to copy.
#include <cstring>
#include <exception>
#include <optional>

#include "enough_stack.hpp"
#include "interruptible.hpp"
#include "run.hpp"
#include "slabs.hpp"

namespace lockstep::lib {

namespace {

// A buffer that the chosen backend can reach; nothing when it can already reach the pointer.
class staged {
 public:
  staged(const choice& chosen, const array_place& place, const void* pointer, size_t bytes)
      : chosen_(chosen), bytes_(bytes) {
    if (bytes == 0 || can_reach(chosen, place, pointer)) return;
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

  mover(lockstep_context* context, const choice& chosen, const array_places& data)
      : backend(chosen.backend), queue(chosen.queue.get()), entry(chosen.entry) {
    const array_place& at = data.on_device();
    if (at.owner == nullptr || at.owner == chosen.entry) return;
    entry = at.owner;
    own = context->acquire(entry, at.device, nullptr, false);
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

// A failed call waits for copies that are queued, because they still use the caller's
// memory.
struct copies_end {
  const choice& chosen;
  const bool staged;
  const int throwing = std::uncaught_exceptions();
  ~copies_end() {
    if (!staged || std::uncaught_exceptions() == throwing) return;
    (void)chosen.backend->finish(chosen.queue.get());
  }
};

// Large enough to keep the copy engines busy, small enough that the pipeline starts and
// ends quickly: 4 MiB and 64 MiB lose 5 % on 1 GiB.
constexpr size_t slab_bytes = size_t{16} << 20;

// Whether the call can run slab by slab: src and dst are both out of reach, and the row
// takes every part.
std::vector<lockstep_slab> slabs_of(const choice& chosen, const prepared_call& prepared, const array_places& data) {
  if (chosen.backend->run_slabs == nullptr || data.on_device().owner != nullptr ||
      can_reach(chosen, data.src, prepared.call.src) || can_reach(chosen, data.dst, prepared.call.dst))
    return {};
  std::vector<lockstep_slab> slabs = cut(prepared, slab_bytes);
  for (const lockstep_slab& slab : slabs) {
    lockstep_call asked = slab.call;  // it has no addresses yet, and two NULLs would look like a call in place
    asked.src = prepared.call.src, asked.dst = prepared.call.dst;
    if (chosen.variant->refuses != nullptr && chosen.variant->refuses(chosen.queue.get(), &asked) != nullptr) return {};
  }
  return slabs;
}

}  // namespace

namespace {
size_t sweeps_of(const lockstep_call& call) {
  return call.op == LOCKSTEP_STENCIL ? static_cast<size_t>(call.stencil.sweeps) : 1;
}

lockstep_status launch(const choice& chosen, const prepared_call& prepared, const lockstep_call& call) {
  lockstep_queue* const queue = chosen.queue.get();
  const lockstep_status status = on_enough_stack(*chosen.entry, [&] {
    return interruptible(*chosen.entry, queue, prepared.moved_bytes, sweeps_of(call),
                         [&] { return chosen.variant->launch(queue, &call); });
  });
  if (is_bad(status)) fail_backend(status, *chosen.entry);
  return status;
}

// The short way for the CPU on host memory: nothing to copy, and the call is done when it returns.
bool runs_as_it_stands(const choice& chosen, const array_places& data) {
  if (!chosen.entry->is_cpu()) return false;
  for (const array_place* place : {&data.src, &data.dst, &data.offsets, &data.sides[0], &data.sides[1], &data.sides[2],
                                   &data.sides[3], &data.sides[4]})
    if (place->kind == LOCKSTEP_DEVICE) return false;
  return true;
}

// Whether an array out of reach has so many elements before the first that the offsets name that they can be left out.
bool copies_a_lead(const choice& chosen, const prepared_call& prepared, const array_places& data) {
  const lockstep_call& call = prepared.call;
  if (prepared.offsets_bytes == 0 || !prepared.src_span_known || prepared.src_span == 0 || offsets_of(call)[0] < 256)
    return false;
  return !can_reach(chosen, data.src, call.src) || (prepared.dst_lead != 0 && !can_reach(chosen, data.dst, call.dst)) ||
         (prepared.side_count != 0 && !can_reach(chosen, data.sides[0], prepared.sides[0].pointer));
}

// Copies of the arrays besides src, dst and offsets that the backend cannot reach. A written array that is also src or
// residual has a copy of its own: its elements are read before they are written.
class staged_sides {
 public:
  staged_sides(const choice& chosen, const prepared_call& prepared, const array_places& data) : prepared_(prepared) {
    for (int i = 0; i < prepared.side_count; ++i)
      copies_[i].emplace(chosen, data.sides[i], prepared.sides[i].pointer, prepared.sides[i].bytes);
  }
  size_t bytes() const {
    size_t all = 0;
    for (int i = 0; i < prepared_.side_count; ++i) all += copies_[i]->bytes();
    return all;
  }
  bool written() const {
    for (int i = 0; i < prepared_.side_count; ++i)
      if (prepared_.sides[i].written && copies_[i]->used()) return true;
    return false;
  }
  // Written arrays too: gaps between their rows must stay unchanged.
  void upload(const mover& move, lockstep_call& call) const {
    for (int i = 0; i < prepared_.side_count; ++i) {
      const side_array& side = prepared_.sides[i];
      if (!copies_[i]->used()) continue;
      void* const copy = copies_[i]->copy();
      move.copy(side.pointer, copy, side.bytes);
      std::memcpy(reinterpret_cast<char*>(&call) + side.member, &copy, sizeof copy);
    }
  }
  void download(const mover& move) const {
    for (int i = 0; i < prepared_.side_count; ++i) {
      const side_array& side = prepared_.sides[i];
      if (side.written && copies_[i]->used())
        move.copy(copies_[i]->copy(), const_cast<void*>(side.pointer), side.bytes);
    }
  }

 private:
  const prepared_call& prepared_;
  std::optional<staged> copies_[5];
};
}  // namespace

lockstep_status launch_staged(lockstep_context* context, const choice& chosen, const prepared_call& prepared,
                              const lockstep_options& options, const array_places& data, launch_result& result) {
  if (runs_as_it_stands(chosen, data)) {
    result.started = true;
    return launch(chosen, prepared, prepared.call);
  }
  if (copies_a_lead(chosen, prepared, data)) {
    std::vector<int64_t> offsets;
    array_places places = data;
    places.offsets = {};
    return launch_staged(context, chosen, without_lead(prepared, offsets), options, places, result);
  }
  if (const auto slabs = slabs_of(chosen, prepared, data); !slabs.empty()) {
    result.staged_bytes = prepared.src_span + prepared.dst_span;
    context->settle(chosen.queue);
    result.started = true;
    return chosen.backend->run_slabs(chosen.queue.get(), chosen.variant, slabs.data(), slabs.size(), prepared.call.src,
                                     prepared.call.dst);
  }
  lockstep_call call = prepared.call;
  const bool in_place = call.src == call.dst;
  const bool has_offsets = prepared.offsets_bytes != 0;
  const bool placed = prepared.dst_step != 0;  // the results are placed by the offsets
  if (!prepared.src_span_known &&
      (!can_reach(chosen, data.src, call.src) || (placed && !can_reach(chosen, data.dst, call.dst))))
    fail(LOCKSTEP_UNSUPPORTED,
         "offsets are device memory, so src{} cannot be copied to where {} reaches it; call the backend that owns both",
         placed ? " or dst" : "", chosen.entry->name());
  if (!prepared.src_span_known && prepared.side_count != 0 && prepared.sides[0].step != 0 &&
      !can_reach(chosen, data.sides[0], prepared.sides[0].pointer))
    fail(LOCKSTEP_UNSUPPORTED,
         "offsets are device memory, so {} cannot be copied to where {} reaches it; give it memory of the same kind",
         prepared.sides[0].name, chosen.entry->name());
  const staged dst(chosen, data.dst, call.dst, prepared.dst_span);
  const staged src(chosen, data.src, call.src, in_place ? 0 : prepared.src_span);
  const staged offsets(chosen, data.offsets, has_offsets ? offsets_of(call) : nullptr, prepared.offsets_bytes);
  const staged_sides sides(chosen, prepared, data);
  result.staged_bytes = dst.bytes() + src.bytes() + offsets.bytes() + sides.bytes();
  const bool any = dst.used() || src.used() || offsets.used() || sides.bytes() != 0;
  const bool async = (options.flags & LOCKSTEP_ASYNC) != 0 && !any;

  if (!async) context->settle(chosen.queue);
  const copies_end on_failure{chosen, any};
  if (any) {
    const mover move(context, chosen, data);
    if (src.used()) {
      move.copy(call.src, src.copy(), prepared.src_span);
      call.src = src.copy();
    }
    if (offsets.used()) {
      move.copy(offsets_of(call), offsets.copy(), prepared.offsets_bytes);
      offsets_of(call) = static_cast<const int64_t*>(offsets.copy());
    }
    sides.upload(move, call);
    // Gaps between dst's rows, and results of empty sequences, must stay unchanged.
    if (dst.used() && (in_place || !prepared.dst_dense)) move.copy(call.dst, dst.copy(), prepared.dst_span);
    if (dst.used()) {
      if (in_place) call.src = dst.copy();
      call.dst = dst.copy();
    }
    if (move.own) move.finish();
  }

  result.started = !dst.used();
  const lockstep_status launched = launch(chosen, prepared, call);
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
  if (is_bad(finished)) return finished;
  if (dst.used() || sides.written()) {
    text = last_error();
    const mover move(context, chosen, data);
    result.started = true;
    if (dst.used()) move.copy(dst.copy(), prepared.call.dst, prepared.dst_span);
    sides.download(move);
    move.finish();
    set_error(text.c_str());
  }
  return finished;
}

}  // namespace lockstep::lib
