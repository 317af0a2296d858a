// stack_left.hpp - whether this thread has stack enough for the CPU's kernels, whose buffers take up to 500 KiB.
#pragma once

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace lockstep {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr size_t enough_stack_bytes = size_t{1536} << 10;  // sanitizers keep frames apart
#else
inline constexpr size_t enough_stack_bytes = size_t{768} << 10;
#endif

struct stack_range {
  uintptr_t low = 0, high = 0;  // high 0: not known
};

// Of the process's first thread it is what the kernel lets grow; asking pthread would read /proc and take memory.
inline stack_range first_threads_stack() {
  const auto top = static_cast<uintptr_t>(getauxval(AT_RANDOM));  // lies above the first frame
  rlimit limit{};
  if (top == 0 || getrlimit(RLIMIT_STACK, &limit) != 0) return {};
  return {limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur > top ? 0 : top - limit.rlim_cur, top};
}
inline stack_range this_threads_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {};
  void* low = nullptr;
  size_t bytes = 0;
  stack_range range;
  if (pthread_attr_getstack(&attributes, &low, &bytes) == 0)
    range = {reinterpret_cast<uintptr_t>(low), reinterpret_cast<uintptr_t>(low) + bytes};
  pthread_attr_destroy(&attributes);
  return range;
}

// False also for a stack that the thread did not begin with (a coroutine's), of which nothing is known.
inline bool has_enough_stack() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  static thread_local stack_range known;
  if (known.high == 0) {
    known = first_threads_stack();
    if (here < known.low || here >= known.high) known = this_threads_stack();
  }
  return here >= known.low + enough_stack_bytes && here < known.high;
}

}  // namespace lockstep
