// enough_stack.hpp - runs the CPU's kernels where there is stack enough for them. A caller's thread may have little: 64
// KiB must do for everything else of a call.
#pragma once

#include "../load/registry.hpp"
#include "../status.hpp"
#include "stack_left.hpp"

namespace lockstep::lib {

// Runs body on a thread of the CPU backend's team, with this thread's error text, and waits for it.
lockstep_status run_elsewhere(lockstep_status (*body)(const void*), const void* data);

// body() on this thread, unless it is the CPU's work and this thread has too little stack.
template <class Body>
lockstep_status on_enough_stack(const backend_entry& entry, const Body& body) {
  if (!entry.is_cpu() || has_enough_stack()) return body();
  return run_elsewhere([](const void* data) { return (*static_cast<const Body*>(data))(); }, &body);
}

// The same for what gives no status: asking rows whether they take a call can build a whole program of it.
template <class Body>
void with_enough_stack(const backend_entry& entry, const Body& body) {
  const lockstep_status status = on_enough_stack(entry, [&] { return body(), LOCKSTEP_OK; });
  if (status != LOCKSTEP_OK) throw error{status, last_error()};
}

}  // namespace lockstep::lib
