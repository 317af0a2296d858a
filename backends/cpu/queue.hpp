// queue.hpp - the CPU backend's queue: a thread count, an ISA level, scratch.
#pragma once

#include "isa.hpp"
#include "lockstep/backend.h"
#include "text.hpp"

struct lockstep_queue {
  int threads = 1;
  lockstep::cpu::isa level = lockstep::cpu::isa::baseline;
  const lockstep_allocator* allocator = nullptr;
  void* scratch = nullptr;
  size_t scratch_bytes = 0;
};

namespace lockstep::cpu {

extern const lockstep_host* host;  // set by lockstep_cpu_backend

template <class... Args>
lockstep_status failed(lockstep_status status, fmt::format_string<Args...> format, Args&&... args) {
  char text[512];
  vformat_to(text, sizeof text, format, fmt::make_format_args(args...));
  host->set_error(text);
  return status;
}

int default_threads();  // affinity mask and cgroup quota
isa best_isa();
const char* isa_name(isa level);
bool parse_isa(const char* text, isa& level, const char*& why);

}  // namespace lockstep::cpu
