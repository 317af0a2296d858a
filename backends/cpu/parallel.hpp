// parallel.hpp - running tasks on the queue's threads, under the arithmetic
// environment that the order demands, whatever the caller has set.
#pragma once

#include <omp.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include <atomic>
#include <cfenv>
#include <cstdint>

#include "mutant.hpp"
#include "queue.hpp"

namespace lockstep::cpu {

// Round to nearest even, denormals kept, no traps; the caller's state comes back
// with the destructor, its exception flags too. fesetenv(FE_DFL_ENV) covers MXCSR
// (FTZ and DAZ too) on x86 and FPCR on aarch64. It also loads and stores the whole
// x87 environment, three times a call: 0.1-0.2 us a thread. Where x87 is in its
// default state already, MXCSR alone decides.
class default_float_environment {
 public:
  default_float_environment() {
#if defined(__x86_64__)
    uint16_t x87;
    asm volatile("fnstcw %0" : "=m"(x87));
    whole_ = (x87 & 0x0F3F) != 0x033F;  // to nearest, 64 bits, no traps
    mxcsr_ = _mm_getcsr();
    if (!whole_) {
      if (!LOCKSTEP_MUTANT("float_environment_of_the_caller")) _mm_setcsr(0x1F80);
      return;
    }
#endif
    std::fegetenv(&saved_);
    if (!LOCKSTEP_MUTANT("float_environment_of_the_caller")) std::fesetenv(FE_DFL_ENV);
  }
  ~default_float_environment() {
    if (LOCKSTEP_MUTANT("float_environment_not_restored")) return;
#if defined(__x86_64__)
    if (!whole_) {
      _mm_setcsr(mxcsr_);
      return;
    }
#endif
    std::fesetenv(&saved_);
  }
  default_float_environment(const default_float_environment&) = delete;
  default_float_environment& operator=(const default_float_environment&) = delete;

 private:
  std::fenv_t saved_;
#if defined(__x86_64__)
  bool whole_;
  unsigned mxcsr_;
#endif
};

// libgomp's pool does not survive fork: a child that enters a parallel region of
// more than one thread hangs. Children therefore run on their own thread.
bool forked();

inline int usable_threads(const lockstep_queue& queue, int64_t tasks) {
  if (tasks <= 1 || queue.threads <= 1 || (forked() && !LOCKSTEP_MUTANT("threads_after_fork"))) return 1;
  return tasks < queue.threads && !queue.whole_team ? static_cast<int>(tasks) : queue.threads;
}

// body(thread, threads) once on each of threads threads.
template <class Body>
void on_threads(int threads, const Body& body) {
  if (threads <= 1) {
    const default_float_environment environment;
    body(0, 1);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const default_float_environment environment;
    body(omp_get_thread_num(), omp_get_num_threads());
  }
}

// Where part `part` of `parts` of n begins.
inline int64_t part_begin(int64_t n, int64_t part, int64_t parts) {
  return n / parts * part + n % parts * part / parts;
}

// body(first, last): one contiguous range of [0, tasks) a thread, cut at
// multiples of grain.
template <class Body>
void over_ranges(const lockstep_queue& queue, int64_t tasks, int64_t grain, const Body& body) {
  const int64_t grains = tasks / grain + (tasks % grain != 0 && !LOCKSTEP_MUTANT("range_without_its_last_grain"));
  on_threads(usable_threads(queue, grains), [&](int thread, int threads) {
    const auto cut = [&](int t) {
      const int64_t at = part_begin(grains, t, threads);
      return at < grains || LOCKSTEP_MUTANT("range_without_its_last_grain") ? at * grain : tasks;
    };
    const int64_t first = cut(thread), last = cut(thread + 1);
    if (first < last) body(first, last);
  });
}

// body(task) for each task: a thread takes those of a contiguous share of its own, one after the other, and what others
// have left after it.
template <class Body>
void over_shares(const lockstep_queue& queue, int64_t tasks, const Body& body) {
  struct alignas(64) share {
    std::atomic<int64_t> next;
    int64_t end;
  };
  constexpr int most = 64;
  share shares[most];
  const int threads = usable_threads(queue, tasks), count = threads < most ? threads : most;
  for (int s = 0; s < count; ++s) {
    shares[s].next = part_begin(tasks, s, count);
    shares[s].end = part_begin(tasks, s + 1, count) - LOCKSTEP_MUTANT("share_without_its_last_task");
  }
  on_threads(threads, [&](int thread, int) {
    for (int k = 0; k < count; ++k) {
      share& s = shares[(thread + k) % count];
      for (int64_t task; (task = s.next.fetch_add(1, std::memory_order_relaxed)) < s.end;) body(task);
    }
  });
}

// body(task) for each task, handed out one at a time (uneven tasks).
template <class Body>
void over_tasks(const lockstep_queue& queue, int64_t tasks, const Body& body) {
  const int threads = usable_threads(queue, tasks);
  if (threads == 1) {
    const default_float_environment environment;
    for (int64_t task = 0; task < tasks; ++task) body(task);
    return;
  }
#pragma omp parallel num_threads(threads)
  {
    const default_float_environment environment;
#pragma omp for schedule(dynamic, 1)
    for (int64_t task = 0; task < tasks; ++task) body(task);
  }
}

}  // namespace lockstep::cpu
