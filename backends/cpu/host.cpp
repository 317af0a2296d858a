// host.cpp - the threads and instruction set that this process may use; detects forks.
#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "environment.hpp"
#include "parallel.hpp"
#include "quota.hpp"

namespace lockstep::cpu {
namespace {

std::atomic<bool> is_child{false};
const int fork_handler = pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); });

int affinity_count() {
  // Masks beyond 1,024 CPUs need a larger set: grow it until the kernel accepts it.
  for (int cpus = 1024; cpus <= 1 << 20; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(static_cast<size_t>(cpus));
    if (set == nullptr) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(static_cast<size_t>(cpus));
    const int code = sched_getaffinity(0, bytes, set);
    const int count = code != 0 ? 0 : CPU_COUNT_S(bytes, set);
    CPU_FREE(set);
    if (code == 0) return count > 0 ? count : 1;
  }
  return 1;
}

}  // namespace

bool forked() {
  (void)fork_handler;
  return is_child.load(std::memory_order_relaxed);
}

int default_threads() {
  const int threads = within_quota(affinity_count(), cgroup_quota(""));
  // Programs that start workers of their own (joblib, dask, data loaders) set this: "1", or "4,2" by nesting level.
  const char* openmp = lib::environment("OMP_NUM_THREADS");
  const int limit = openmp != nullptr ? std::atoi(openmp) : 0;
  return limit > 0 && limit < threads ? limit : threads;
}

#if defined(__x86_64__)
// Asks cpuid for F16C, because clang 14's __builtin_cpu_supports does not know the name.
static bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
// AMD's family 19h with AVX-512: Zen 4.
static bool is_zen4() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __builtin_cpu_is("amd") && __get_cpuid(1, &a, &b, &c, &d) != 0 && (a >> 8 & 0xF) + (a >> 20 & 0xFF) == 0x19;
}
#endif

static isa best_isa() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
    return isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c()) return isa::avx2;
#endif
  return isa::baseline;
}

// The row of this chip. Rows were measured only with the chip's best level, so lower levels get the default.
static const tuning* chip_tuning(isa level) {
#if defined(__x86_64__)
  if (level == isa::avx512 && is_zen4()) return find_tuning("zen4");
#endif
  return (void)level, find_tuning("default");
}

cpu_choice best_choice() { return {best_isa(), chip_tuning(best_isa())}; }

const char* isa_name(isa level) {
  constexpr const char* names[] = {"baseline", "avx2", "avx512"};
  return names[static_cast<int>(level)];
}

bool parse_isa(const char* text, cpu_choice& chosen, const char*& why) {
  const size_t length = std::strcspn(text, ":");
  for (const isa level : {isa::baseline, isa::avx2, isa::avx512}) {
    if (std::strncmp(text, isa_name(level), length) != 0 || isa_name(level)[length] != '\0') continue;
    why = "this processor lacks it";
    if (level > best_isa()) return false;
    why = "known tunings are default, zen4";
    chosen = {level, text[length] == ':' ? find_tuning(text + length + 1) : chip_tuning(level)};
    return chosen.tuned != nullptr;
  }
  why = std::strcmp(text, "avx512_zen4") == 0 ? "Zen 4 now gets it from avx512, other chips from avx512:zen4"
                                              : "known are baseline, avx2, avx512";
  return false;
}

}  // namespace lockstep::cpu
