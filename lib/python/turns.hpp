// turns.hpp - one thread at a time, as C wants a plan executed.
// Watch   a child of fork has none of the other threads: the lock that one of them held there is never given back.
#pragma once

#include <pthread.h>

#include <atomic>

#include "gil.hpp"
#include "shared.hpp"

namespace lockstep::python {

inline std::atomic<int> forks{0};
inline const int fork_handler = pthread_atfork(nullptr, nullptr, [] { ++forks; });

class turns {
 public:
  ~turns() {
    if (lock_) PyThread_free_lock(lock_);
  }
  // False where there is no memory for a lock.
  bool make() { return (lock_ = PyThread_allocate_lock()) != nullptr; }

  // Runs a C call alone and, but for a brief one that need not wait, without the GIL.
  template <class Call>
  lockstep_status run(bool brief, Call&& call) {
    {
      const section alone(mutex_);
      if (forks_ != forks && make()) forks_ = forks, runs_on_ = 0;
    }
    const unsigned long self = PyThread_get_thread_ident();
    if (runs_on_ == self) {
      lockstep_set_error("the plan runs already: a signal's handler called it while it computes; make another plan");
      return LOCKSTEP_INVALID_ARGUMENT;
    }
    brief = brief && PyThread_acquire_lock(lock_, NOWAIT_LOCK);
    const without_gil released(!brief);
    if (!brief) PyThread_acquire_lock(lock_, WAIT_LOCK);
    runs_on_ = self;
    const lockstep_status status = call();
    runs_on_ = 0;
    PyThread_release_lock(lock_);
    return status;
  }

 private:
  PyThread_type_lock lock_ = nullptr;
  std::atomic<unsigned long> runs_on_{0};  // a thread
  int forks_ = forks;                      // before the lock was made
  section_mutex mutex_{};
};

}  // namespace lockstep::python
