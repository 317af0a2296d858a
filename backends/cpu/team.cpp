// team.cpp - see team.hpp. Threads of the library's own, because OpenMP's runtime ends the process when a thread cannot
// be made, waits for threads that a busy machine does not run, and does not survive fork.
#include "team.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <utility>

#include "call/float_environment.hpp"
#include "tuning.hpp"

namespace lockstep::cpu {
namespace {

constexpr int most_parts = 4096;
constexpr size_t stack_bytes = size_t{2} << 20;

void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}
void wake_sleeper(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

struct job {
  void (*part)(void*, int, int);
  void* data;
  int parts;
  uint8_t begun[most_parts];  // the thread that sets it first runs the part

  job(void (*one)(void*, int, int), void* its, int count) : part(one), data(its), parts(count) {
    std::memset(begun, 0, static_cast<size_t>(count));
  }
  void run_if_free(int p) {
    std::atomic_ref<uint8_t> mark(begun[p]);
    if (mark.load(std::memory_order_relaxed) == 0 && mark.exchange(1, std::memory_order_relaxed) == 0)
      part(data, p, parts);
  }
  // First the part with this thread's number: repeated calls then find its data in this core's caches.
  void run_from(int own) {
    for (int k = 0; k < parts; ++k) run_if_free(own + k < parts ? own + k : own + k - parts);
  }
};

enum : uint32_t {
  idle,     // looks for work, or sleeps until there is some
  offered,  // has work that the caller may still take back
  taken,    // works
  awaited   // works, and the caller sleeps until it is done
};

struct worker {
  alignas(64) std::atomic<uint32_t> state{idle};
  std::atomic<bool> asleep{false};
  job* work = nullptr;
  int part = 0;
  worker* next = nullptr;  // in the list of idle workers, or of a call's workers
  worker* wakes[2] = {};   // of the same call

  // A worker sets asleep and then looks for work; who wakes it knows that its work is offered and then looks at asleep.
  // So at least one of them sees the other.
  void wake() {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (asleep.load(std::memory_order_relaxed)) wake_sleeper(state);
  }
};

void* work_for_ever(void* self) {
  worker& w = *static_cast<worker*>(self);
  const default_float_environment environment;
  for (;;) {
    for (int i = 0; i < team_rounds && w.state.load(std::memory_order_relaxed) == idle; ++i) pause_a_little();
    if (w.state.load(std::memory_order_relaxed) == idle) {
      w.asleep.store(true);  // must come before reading state: see wake
      while (w.state.load() == idle) sleep_while(w.state, idle);
      w.asleep.store(false, std::memory_order_relaxed);
    }
    uint32_t now = offered;
    if (!w.state.compare_exchange_strong(now, taken, std::memory_order_acquire)) continue;  // taken back
    // Waking takes a thread some microseconds: of many each wakes two.
    for (worker* other : w.wakes)
      if (other != nullptr) other->wake();
    w.work->run_from(w.part);
    if (w.state.exchange(idle, std::memory_order_release) == awaited) wake_sleeper(w.state);
  }
  return nullptr;
}

// The idle workers. Workers are made when first needed and live as long as the process.
struct pool {
  std::mutex mutex;
  worker* first = nullptr;
  std::atomic<int> refused{0};
  std::atomic<unsigned> tries{0};  // since a thread could not be made

  worker* make() {
    auto* fresh = new (std::nothrow) worker;
    if (fresh == nullptr) return nullptr;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_bytes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    // Signals are blocked here, so that the program's own threads handle them.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_t thread;
    const bool made = pthread_create(&thread, &attributes, work_for_ever, fresh) == 0;
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    pthread_attr_destroy(&attributes);
    if (made) return fresh;
    delete fresh;
    return nullptr;
  }
  // Up to count workers, the most recently used first; fewer if no more can be made.
  worker* take(int count, bool may_make, int& missing) {
    worker *list = nullptr, **end = &list;
    {
      const std::lock_guard lock(mutex);
      for (; count > 0 && first != nullptr; --count) {
        *end = first;
        first = first->next;
        end = &(*end)->next;
      }
    }
    for (; count > 0 && may_make; --count) {
      *end = make();
      if (*end == nullptr) break;
      end = &(*end)->next;
    }
    *end = nullptr;
    missing = count;
    return list;
  }
  void give_back(worker* list, worker* last) {
    if (list == nullptr) return;
    const std::lock_guard lock(mutex);
    last->next = first;
    first = list;
  }
};

// Never destroyed: threads may call while the process ends.
alignas(pool) unsigned char place[sizeof(pool)];
pool& the_pool() {
  static pool* const one = [] {
    auto* made = new (place) pool;
    // A child has none of the threads, and the list may be half changed.
    pthread_atfork(nullptr, nullptr, [] { new (place) pool; });
    return made;
  }();
  return *one;
}

// The caller runs what a worker has not started, unless it cannot.
void await(worker& w, bool may_take_back) {
  uint32_t now = w.state.load(std::memory_order_acquire);
  if (now == idle) return;
  if (may_take_back && now == offered && w.state.compare_exchange_strong(now, idle)) return;
  while (w.state.load(std::memory_order_acquire) == offered) sched_yield();
  for (int i = 0; i < team_rounds; ++i) {
    if (w.state.load(std::memory_order_acquire) != taken) return;
    pause_a_little();
  }
  now = taken;
  if (!w.state.compare_exchange_strong(now, awaited, std::memory_order_acquire)) return;
  while (w.state.load(std::memory_order_acquire) == awaited) sleep_while(w.state, awaited);
}

}  // namespace

#if !defined(LOCKSTEP_CPU_PLUGIN)
namespace {
bool run_elsewhere(void (*body)(void*), void* data) {
  struct one_part {
    void (*body)(void*);
    void* data;
  } one{body, data};
  job work([](void* of, int, int) { static_cast<one_part*>(of)->body(static_cast<one_part*>(of)->data); }, &one, 1);
  int missing = 0;
  worker* const w = the_pool().take(1, true, missing);
  if (w == nullptr) return false;
  w->work = &work;
  w->part = 0;
  w->wakes[0] = w->wakes[1] = nullptr;
  w->state.store(offered, std::memory_order_release);
  w->wake();
  await(*w, false);
  the_pool().give_back(w, w);
  return true;
}
}  // namespace
#endif

int refused_threads() { return the_pool().refused.load(std::memory_order_relaxed); }

void run_on_team(int parts, void (*part)(void*, int, int), void* data) {
  parts = parts < most_parts ? parts : most_parts;
  pool& all = the_pool();
  job work(part, data, parts);
  // After threads could not be made, trying again in every call would cost more than the call.
  const bool may_make = refused_threads() == 0 || all.tries.fetch_add(1, std::memory_order_relaxed) % 256 == 0;
  int missing = 0, p = 1;
  worker* recruited = all.take(parts - 1, may_make, missing);
  if (may_make && (missing != 0 || refused_threads() != 0)) all.refused.store(missing, std::memory_order_relaxed);
  // Who is to be woken is offered work before who wakes them; the caller wakes the last one or two.
  const int first_to_wake_others = (parts - 1 - missing + 2) / 2;
  worker* unwoken = recruited;
  const auto next_unwoken = [&] { return std::exchange(unwoken, unwoken->next); };
  for (worker* w = recruited; w != nullptr; w = w->next, ++p) {
    w->work = &work;
    w->part = p;
    for (worker*& other : w->wakes) other = p > first_to_wake_others ? next_unwoken() : nullptr;
    w->state.store(offered, std::memory_order_release);
  }
  while (unwoken != nullptr) next_unwoken()->wake();
  work.run_from(0);
  worker* last = nullptr;
  for (worker* w = recruited; w != nullptr; last = w, w = w->next) await(*w, true);
  all.give_back(recruited, last);
}

}  // namespace lockstep::cpu

#if !defined(LOCKSTEP_CPU_PLUGIN)
// For the library (lib/call/enough_stack.cpp).
extern "C" bool lockstep_cpu_run_elsewhere(void (*body)(void*), void* data) {
  return lockstep::cpu::run_elsewhere(body, data);
}
#endif
