// interruptible.hpp - runs what a thread's program may interrupt (interruption.hpp).
#pragma once

#include "../load/registry.hpp"
#include "../status.hpp"

namespace lockstep::lib {

// launch() on the queue's backend. Where the CPU reads and writes many bytes, so many times, and this thread's program
// wants to be asked, the call may end early, as INTERRUPTED.
lockstep_status run_interruptible(const backend_entry& entry, lockstep_queue* queue, size_t bytes, size_t times,
                                  lockstep_status (*launch)(const void*), const void* data);

template <class Launch>
lockstep_status interruptible(const backend_entry& entry, lockstep_queue* queue, size_t bytes, size_t times,
                              const Launch& launch) {
  return run_interruptible(
      entry, queue, bytes, times, [](const void* data) { return (*static_cast<const Launch*>(data))(); }, &launch);
}

}  // namespace lockstep::lib
