// memory.cpp - lockstep_alloc, lockstep_free, lockstep_copy, lockstep_pin, lockstep_measure_limit:
// a backend's memory and its speed, for callers who do not link CUDA themselves.
#include <cstddef>
#include <cstdint>

#include "call/enough_stack.hpp"
#include "context.hpp"
#include "options.hpp"

namespace lockstep::lib {
namespace {
queue_lease lease_of(lockstep_context* context, const char* backend) {
  require_context(context);
  if (backend == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "backend is NULL; write \"cpu\" or \"cuda\"");
  const backend_name named = parse_backend(backend, "backend");
  if (named.is_auto()) fail(LOCKSTEP_INVALID_ARGUMENT, "backend is \"auto\"; memory belongs to one backend, name it");
  return context->acquire(named.entry, named.device, nullptr, false);
}
void require_kind(lockstep_memory kind) {
  if (kind < LOCKSTEP_HOST || kind > LOCKSTEP_DEVICE)
    fail(LOCKSTEP_INVALID_ARGUMENT, "kind is {}; use HOST, PINNED, MANAGED or DEVICE", static_cast<int>(kind));
}
// A backend that has these two; older modules end before them.
void require_pins(const lockstep_backend& of, const char* backend) {
  constexpr size_t needed = offsetof(lockstep_backend, unpin) + sizeof of.unpin;
  if (of.size < needed || of.pin == nullptr || of.unpin == nullptr)
    fail(LOCKSTEP_UNSUPPORTED, "{} page-locks no memory; name a backend whose devices are behind a link", backend);
}
}  // namespace
}  // namespace lockstep::lib

using namespace lockstep::lib;
extern "C" {
lockstep_status lockstep_alloc(lockstep_context* context, const char* backend, lockstep_memory kind, size_t bytes,
                               void** pointer) {
  return guarded([&] {
    if (pointer == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "pointer is NULL; pass the address of a void*");
    *pointer = nullptr;
    require_kind(kind);
    const queue_lease lease = lease_of(context, backend);
    if (bytes == 0) return;
    const lockstep_status s = lease->backend->allocate(lease.get(), kind, bytes, pointer);
    if (s != LOCKSTEP_OK) fail_backend(s, *lease->entry);
  });
}
lockstep_status lockstep_free(lockstep_context* context, const char* backend, lockstep_memory kind, size_t bytes,
                              void* pointer) {
  return guarded([&] {
    require_kind(kind);
    const queue_lease lease = lease_of(context, backend);
    if (pointer != nullptr) lease->backend->release(lease.get(), kind, bytes, pointer);
  });
}
lockstep_status lockstep_copy(lockstep_context* context, const char* backend, const void* src, void* dst,
                              size_t bytes) {
  return guarded([&] {
    const queue_lease lease = lease_of(context, backend);
    if (bytes == 0) return;
    if (src == nullptr || dst == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} is NULL but {} bytes are to be copied; pass memory of that size",
           src == nullptr ? "src" : "dst", bytes);
    context->settle(lease);
    if (const lockstep_status s = lease->backend->copy(lease.get(), src, dst, bytes); s != LOCKSTEP_OK)
      fail_backend(s, *lease->entry);
    if (const lockstep_status s = lease->backend->finish(lease.get()); s != LOCKSTEP_OK) fail_backend(s, *lease->entry);
  });
}
lockstep_status lockstep_pin(lockstep_context* context, const char* backend, void* pointer, size_t bytes) {
  return guarded([&] {
    const queue_lease lease = lease_of(context, backend);
    require_pins(*lease->backend, backend);
    if (bytes == 0) return;
    if (pointer == nullptr)
      fail(LOCKSTEP_INVALID_ARGUMENT, "pointer is NULL but {} bytes are to be page-locked; pass memory of that size",
           bytes);
    if (reinterpret_cast<uintptr_t>(pointer) > UINTPTR_MAX - bytes)
      fail(LOCKSTEP_INVALID_ARGUMENT, "pointer is {} and bytes {}, beyond the address space; pass the memory's size",
           pointer, bytes);
    if (const lockstep_status s = lease->backend->pin(lease.get(), pointer, bytes); s != LOCKSTEP_OK)
      fail_backend(s, *lease->entry);
  });
}
lockstep_status lockstep_unpin(lockstep_context* context, const char* backend, void* pointer) {
  return guarded([&] {
    const queue_lease lease = lease_of(context, backend);
    require_pins(*lease->backend, backend);
    if (pointer == nullptr) return;
    if (const lockstep_status s = lease->backend->unpin(lease.get(), pointer); s != LOCKSTEP_OK)
      fail_backend(s, *lease->entry);
  });
}
lockstep_status lockstep_measure_limit(lockstep_context* context, const char* backend, lockstep_limit limit,
                                       size_t bytes, uint32_t flags, int32_t samples, double* ms) {
  return guarded([&] {
    if (limit < LOCKSTEP_LIMIT_COPY || limit > LOCKSTEP_LIMIT_FMA_F64)
      fail(LOCKSTEP_INVALID_ARGUMENT, "limit is {}; use one of LOCKSTEP_LIMIT_*", static_cast<int>(limit));
    require_measure_flags(flags);
    if (samples < 1) fail(LOCKSTEP_INVALID_ARGUMENT, "samples is {}; give 1 or more", samples);
    if (ms == nullptr) fail(LOCKSTEP_INVALID_ARGUMENT, "ms is NULL; give room for {} doubles", samples);
    if (limit != LOCKSTEP_LIMIT_LAUNCH && bytes < 2)
      fail(LOCKSTEP_INVALID_ARGUMENT, "bytes is {}; give 2 or more", bytes);
    const queue_lease lease = lease_of(context, backend);
    if (lease->backend->limit == nullptr) fail(LOCKSTEP_UNSUPPORTED, "{} measures no limits", backend);
    const lockstep_status s = on_enough_stack(
        *lease->entry, [&] { return lease->backend->limit(lease.get(), limit, bytes, flags, samples, ms); });
    if (s != LOCKSTEP_OK) fail_backend(s, *lease->entry);
  });
}
}
