// queues.cpp - a context's queues: one for each call at a time, kept for later calls. Calls with
// asynchronous work share one, in their order.
#include <algorithm>

#include "../context.hpp"
#include "../status.hpp"

using namespace lockstep::lib;
using lockstep::format_text;

// The per-thread default stream is a different stream in every thread.
static bool of_another_thread(const pooled_queue& pooled) {
  return pooled.stream == LOCKSTEP_STREAM_PER_THREAD && pooled.thread != std::this_thread::get_id();
}

// The place of a new queue, leased and without the queue; the caller holds the mutex. Calls that want this queue wait
// for its lease.
std::shared_ptr<pooled_queue> lockstep_context::add(backend_entry* entry, int32_t device, void* stream, bool shared) {
  auto fresh = std::make_shared<pooled_queue>();
  fresh->entry = entry;
  fresh->device = device;
  fresh->stream = stream;
  fresh->thread = std::this_thread::get_id();
  fresh->shared = shared;
  queues_.push_back(fresh);
  (void)fresh->in_use.try_lock();  // nobody else has it, and calls take mutex_ while they hold a queue: no lock() here
  return fresh;
}

// Makes the queue of such a place, or gives the place back.
queue_lease lockstep_context::make(const std::shared_ptr<pooled_queue>& fresh) {
  try {
    fresh->backend = fresh->entry->get();
    if (fresh->backend == nullptr) fail(LOCKSTEP_NO_BACKEND, "{}: {}", fresh->entry->name(), fresh->entry->reason());
    const auto now = current();
    const lockstep_queue_options options = {sizeof options, fresh->device,
                                            now->threads,   now->cpu_isa.empty() ? nullptr : now->cpu_isa.c_str(),
                                            fresh->stream,  &allocator_};
    lockstep_queue* queue = nullptr;
    const lockstep_status status = fresh->backend->queue_create(&options, &queue);
    if (status != LOCKSTEP_OK) fail_backend(status, *fresh->entry);
    fresh->queue = queue;
    return queue_lease(fresh.get());
  } catch (...) {
    const std::lock_guard lock(mutex_);
    std::erase(queues_, fresh);
    fresh->in_use.unlock();
    throw;
  }
}

queue_lease lockstep_context::acquire(backend_entry* entry, int32_t device, void* stream, bool async) {
  for (;;) {
    std::shared_ptr<pooled_queue> fitting, fresh;
    {
      const std::lock_guard lock(mutex_);
      for (auto& pooled : queues_) {
        if (pooled->reserved || pooled->entry != entry || pooled->device != device || pooled->stream != stream)
          continue;
        if (of_another_thread(*pooled)) continue;
        const bool take_turns = stream != nullptr || pooled->pending || (async && pooled->shared);
        if (!take_turns && !async && !pooled->shared && pooled->in_use.try_lock()) return queue_lease(pooled.get());
        if (!take_turns) continue;
        fitting = pooled;
        break;
      }
      if (fitting == nullptr) fresh = add(entry, device, stream, async);
    }
    if (fresh != nullptr) return make(fresh);
    fitting->in_use.lock();
    // Another thread may have released the stream while this call waited for the queue.
    if (fitting->queue != nullptr) return queue_lease(fitting.get());
    fitting->in_use.unlock();
  }
}

pooled_queue* lockstep_context::reserve(queue_lease lease) {
  std::shared_ptr<pooled_queue> fresh;
  {
    const std::lock_guard lock(mutex_);
    // Calls that wait for the asynchronous queue must not lose it.
    const bool taken = lease->shared || lease->pending;
    if (taken) fresh = add(lease->entry, lease->device, nullptr, false);
    (taken ? fresh.get() : lease.pooled())->reserved = true;
  }
  if (fresh != nullptr) lease = make(fresh);
  return lease.pooled();
}
queue_lease lockstep_context::lock(pooled_queue* reserved) {
  reserved->in_use.lock();
  return queue_lease(reserved);
}
void lockstep_context::unreserve(pooled_queue* reserved) {
  settle(lock(reserved));
  const std::lock_guard guard(mutex_);
  reserved->reserved = false;
}

void lockstep_context::mark_pending(const queue_lease& lease) {
  const std::lock_guard lock(mutex_);
  lease->pending = true;
}

void lockstep_context::settle(const queue_lease& lease) {
  if (!lease->pending) return;
  const lockstep_status status = lease->backend->finish(lease.get());
  std::string text = status != LOCKSTEP_OK ? last_error() : "";
  if (status == LOCKSTEP_BACKEND_LOST) lease->entry->mark_lost(text);
  clear_error();  // a failure of earlier work is not an error of the call that waits here
  const std::lock_guard lock(mutex_);
  lease->pending = false;
  if (status == LOCKSTEP_OK || lease->failed != LOCKSTEP_OK) return;
  lease->failed = status;
  lease->failed_text = std::move(text);
}

void lockstep_context::release_stream(backend_entry* entry, void* stream) {
  for (;;) {
    std::shared_ptr<pooled_queue> found;
    {
      const std::lock_guard lock(mutex_);
      for (auto& pooled : queues_)
        if (!pooled->reserved && pooled->entry == entry && pooled->stream == stream && !of_another_thread(*pooled))
          found = pooled;
    }
    if (found == nullptr) return;
    found->in_use.lock();
    const queue_lease lease(found.get());
    if (found->queue == nullptr) continue;  // another thread has released it meanwhile
    settle(lease);
    {
      const std::lock_guard lock(mutex_);
      if (found->failed != LOCKSTEP_OK && failed_ == LOCKSTEP_OK) {
        failed_ = found->failed;
        failed_text_ = format_text("{}: {}", entry->name(), found->failed_text);
      }
      std::erase(queues_, found);
    }
    found->backend->queue_destroy(std::exchange(found->queue, nullptr));
  }
}

lockstep_status lockstep_context::synchronize(std::string& text) {
  lockstep_status first = LOCKSTEP_OK;
  std::vector<std::shared_ptr<pooled_queue>> pending;
  {
    const std::lock_guard lock(mutex_);
    for (auto& pooled : queues_)
      if ((pooled->pending || pooled->failed != LOCKSTEP_OK) && !of_another_thread(*pooled)) pending.push_back(pooled);
    first = std::exchange(failed_, LOCKSTEP_OK);
    text = std::move(failed_text_);
  }
  for (const auto& pooled : pending) {
    pooled->in_use.lock();
    const queue_lease lease(pooled.get());
    if (pooled->queue == nullptr) continue;  // released meanwhile, with its failure reported
    settle(lease);
    const std::lock_guard lock(mutex_);
    const lockstep_status status = std::exchange(pooled->failed, LOCKSTEP_OK);
    if (status != LOCKSTEP_OK && first == LOCKSTEP_OK) {
      first = status;
      text = format_text("{}: {}", pooled->entry->name(), pooled->failed_text);
    }
  }
  return first;
}
