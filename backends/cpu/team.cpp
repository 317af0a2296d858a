// team.cpp - see team.hpp. OpenMP's runtime ends the process where a thread cannot be made, waits for threads that do
// not run on a busy machine, and does not survive fork; a library may do none of that.
#include "team.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

#include "float_environment.hpp"
#include "mutant.hpp"

namespace lockstep::cpu {
namespace {

constexpr int most_parts = 4096;
constexpr size_t stack_bytes = size_t{2} << 20;
// Rounds of looking for work before a thread sleeps: a few hundred microseconds, so that calls that follow one another
// find their threads awake, and no more, so that a machine that others use loses little.
constexpr int rounds = 10000;

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
  uint8_t begun[most_parts];  // whoever sets it first runs the part

  job(void (*one)(void*, int, int), void* its, int count) : part(one), data(its), parts(count) {
    std::memset(begun, 0, static_cast<size_t>(count));
  }
  void run_if_free(int p) {
    std::atomic_ref<uint8_t> mark(begun[p]);
    if (mark.load(std::memory_order_relaxed) == 0 && mark.exchange(1, std::memory_order_relaxed) == 0)
      part(data, p, parts);
  }
  // The part of one's own first: in calls that follow one another it finds its data in this core's caches.
  void run_from(int own) {
    for (int k = 0; k < parts; ++k) run_if_free(own + k < parts ? own + k : own + k - parts);
  }
};

enum : uint32_t {
  idle,      // looks for work
  sleeping,  // waits for it in the kernel
  offered,   // work is there; the caller may still take it back
  taken,     // the worker is at it
  awaited    // and the caller sleeps until it is done
};

struct worker {
  alignas(64) std::atomic<uint32_t> state{idle};
  job* work = nullptr;
  int part = 0;
  worker* next = nullptr;  // in the list of those without work
};

void* work_for_ever(void* self) {
  worker& w = *static_cast<worker*>(self);
  const default_float_environment environment;
  for (;;) {
    for (int i = 0; i < rounds && w.state.load(std::memory_order_relaxed) == idle; ++i) pause_a_little();
    uint32_t now = idle;
    if (w.state.compare_exchange_strong(now, sleeping)) {
      while (w.state.load(std::memory_order_relaxed) == sleeping) sleep_while(w.state, sleeping);
      continue;
    }
    now = offered;
    if (!w.state.compare_exchange_strong(now, taken, std::memory_order_acquire)) continue;  // taken back
    w.work->run_from(w.part);
    if (w.state.exchange(idle, std::memory_order_release) == awaited) wake_sleeper(w.state);
  }
  return nullptr;
}

// The workers that have nothing to do. They are made when first needed, and last as long as the process.
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
    // The program's signals are the program's threads' to handle.
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
  worker* take(bool may_make) {
    {
      const std::lock_guard lock(mutex);
      if (worker* found = first; found != nullptr) {
        first = found->next;
        return found;
      }
    }
    return may_make ? make() : nullptr;
  }
  void give_back(worker* list) {  // in the order in which they were taken
    const std::lock_guard lock(mutex);
    while (list != nullptr) {
      worker* next = list->next;
      list->next = first;
      first = list;
      list = next;
    }
  }
};

// Never destroyed: threads may call while the process ends.
alignas(pool) unsigned char place[sizeof(pool)];
pool& the_pool() {
  static pool* const one = [] {
    auto* made = new (place) pool;
    // A child has none of the threads, and the list may be half changed.
    pthread_atfork(nullptr, nullptr, [] {
      if (!LOCKSTEP_MUTANT("pool_kept_after_fork")) new (place) pool;
    });
    return made;
  }();
  return *one;
}

void await(worker& w) {
  uint32_t now = offered;
  if (w.state.compare_exchange_strong(now, idle)) return;  // it has not begun, and need not
  for (int i = 0; i < rounds; ++i) {
    if (w.state.load(std::memory_order_acquire) != taken) return;
    pause_a_little();
  }
  now = taken;
  if (!w.state.compare_exchange_strong(now, awaited, std::memory_order_acquire)) return;
  while (w.state.load(std::memory_order_acquire) == awaited) sleep_while(w.state, awaited);
}

}  // namespace

int refused_threads() { return the_pool().refused.load(std::memory_order_relaxed); }

void run_on_team(int parts, void (*part)(void*, int, int), void* data) {
  parts = parts < most_parts ? parts : most_parts;
  pool& all = the_pool();
  job work(part, data, parts);
  worker* recruited = nullptr;  // the last one first
  bool made_all = true;
  // Where threads are not to be had, asking for one in every call would cost more than the call.
  const bool may_make = refused_threads() == 0 || all.tries.fetch_add(1, std::memory_order_relaxed) % 256 == 0;
  for (int p = 1; p < parts; ++p) {
    worker* w = all.take(may_make);
    if (w == nullptr) {
      if (may_make) all.refused.store(parts - p, std::memory_order_relaxed);
      made_all = false;
      break;
    }
    w->work = &work;
    w->part = p;
    w->next = recruited;
    recruited = w;
    if (w->state.exchange(offered) == sleeping) wake_sleeper(w->state);
  }
  work.run_from(0);
  for (worker* w = recruited; w != nullptr; w = w->next) await(*w);
  all.give_back(recruited);
  if (may_make && made_all) all.refused.store(0, std::memory_order_relaxed);
}

}  // namespace lockstep::cpu
