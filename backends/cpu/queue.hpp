// queue.hpp - the CPU backend's queue: the number of threads, the kernels and tuning for its calls, scratch.
#pragma once

#include "call/interruption.hpp"
#include "isa.hpp"
#include "lockstep/backend.h"
#include "text.hpp"
#include "tuning.hpp"

struct lockstep_queue {
  int threads = 1;
  lockstep::cpu::kernel_set kernels = lockstep::cpu::kernel_set::baseline;
  const lockstep::cpu::tuning* tuned = lockstep::cpu::find_tuning("default");
  const lockstep_allocator* allocator = nullptr;
  void* scratch = nullptr;
  size_t scratch_bytes = 0;
  lockstep::interruption* interrupt = nullptr;  // of a long call whose program may end it early
};

namespace lockstep::cpu {

// Whether a task may leave the rest of its work, because the whole call ends early.
inline bool interrupted(const lockstep_queue& queue) { return queue.interrupt != nullptr && queue.interrupt->over(); }

extern const lockstep_host* host;  // set by lockstep_cpu_backend

template <class... Args>
lockstep_status failed(lockstep_status status, fmt::format_string<Args...> format, Args&&... args) {
  char text[512];
  vformat_to(text, sizeof text, format, fmt::make_format_args(args...));
  host->set_error(text);
  return status;
}

int default_threads();  // affinity mask and cgroup quota
const char* isa_name(isa level);
// "avx512" is a level with the tuning of this chip; "avx512:zen4" names a row of tuning.hpp, for tests and experiments.
struct cpu_choice {
  isa level;
  const tuning* tuned;
  kernel_set kernels() const { return kernels_for(level, tuned->halves); }
};
cpu_choice best_choice();
bool parse_isa(const char* text, cpu_choice& chosen, const char*& why);

}  // namespace lockstep::cpu
