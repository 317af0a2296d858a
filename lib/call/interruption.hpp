// interruption.hpp - a long call of the CPU that its program may end early; see lockstep_set_interrupt.
// Idea    Between tasks, the thread that made the call asks its program ten times a second. The other threads only look
//         at the answer.
// Watch   What comes behind tasks may read what they wrote. So a region that ends early does not return: it throws on
//         the calling thread, once the other threads are back.
#pragma once

#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace lockstep {

// Thrown through the backend's host code, never out of the library.
struct call_interrupted {};

class interruption {
 public:
  interruption(int (*ask)(void*), void* user, size_t bytes) : bytes_(bytes), ask_(ask), user_(user) {}

  // Whether the call is to end. Cheap enough to be asked before each task, on any thread.
  bool over() {
    if (ended_.load(std::memory_order_relaxed)) return true;
    if (thread_ != this_thread()) return false;
    const int64_t now = milliseconds();
    if (now < next_) return false;
    const bool ends = ask_(user_) != 0;
    next_ = milliseconds() + between;
    if (ends) ended_.store(true, std::memory_order_relaxed);
    return ends;
  }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }
  size_t bytes() const { return bytes_; }

  // A region within another one runs to its end: only the outermost may throw.
  bool enter() { return !inside_ && (inside_ = true); }
  void leave() { inside_ = false; }

 private:
  static constexpr int64_t between = 100;  // milliseconds

  static const void* this_thread() {
    static thread_local const char here = 0;
    return &here;
  }
  static int64_t milliseconds() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);  // a tenth of the time of the exact clock
    return int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1000000;
  }

  std::atomic<bool> ended_{false};
  bool inside_ = false;  // written by the calling thread while it is alone
  const size_t bytes_;   // that the call reads and writes
  int (*const ask_)(void*);
  void* const user_;
  const void* const thread_ = this_thread();
  int64_t next_ = milliseconds() + between;
};

}  // namespace lockstep
