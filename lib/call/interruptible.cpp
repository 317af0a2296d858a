// interruptible.cpp - see interruptible.hpp.
#include "interruptible.hpp"

#include "interruption.hpp"

// Of the CPU backend (backend.cpp).
extern "C" void lockstep_cpu_set_interruption(lockstep_queue* queue, lockstep::interruption* of_call);

namespace lockstep::lib {
namespace {

thread_local int (*asked)(void*) = nullptr;
thread_local void* asked_with = nullptr;

// Fewer bytes take the slowest row less than the time between two questions.
constexpr size_t long_bytes = size_t{32} << 20;

class interruptible_queue {
 public:
  interruptible_queue(lockstep_queue* queue, interruption* of_call) : queue_(queue) {
    lockstep_cpu_set_interruption(queue_, of_call);
  }
  ~interruptible_queue() { lockstep_cpu_set_interruption(queue_, nullptr); }
  interruptible_queue(const interruptible_queue&) = delete;
  interruptible_queue& operator=(const interruptible_queue&) = delete;

 private:
  lockstep_queue* queue_;
};

}  // namespace

lockstep_status run_interruptible(const backend_entry& entry, lockstep_queue* queue, size_t bytes, size_t times,
                                  lockstep_status (*launch)(const void*), const void* data) {
  if (asked == nullptr || bytes < long_bytes / times || !entry.is_cpu()) return launch(data);
  interruption of_call(asked, asked_with, bytes);
  lockstep_status status = LOCKSTEP_OK;
  try {
    const interruptible_queue during(queue, &of_call);
    status = launch(data);
  } catch (const call_interrupted&) {
  }
  if (of_call.ended())
    fail(LOCKSTEP_INTERRUPTED,
         "the program interrupted the call; dst, and any other array that the call writes, is incomplete");
  return status;
}

}  // namespace lockstep::lib

extern "C" void lockstep_set_interrupt(int (*ask)(void* user), void* user) {
  lockstep::lib::asked = ask;
  lockstep::lib::asked_with = user;
}
