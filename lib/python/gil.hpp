// gil.hpp - lets other Python threads run while C computes.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lockstep/lockstep.h"

namespace lockstep::python {

// The interpreter's lock is given back while it lives, unless `release` is false; no Python object may be touched then.
// Long calls come back for it to run handlers of signals: where one raises, as Ctrl-C does, the call ends early.
class without_gil {
 public:
  explicit without_gil(bool release = true) : saved_(release ? PyEval_SaveThread() : nullptr) {
    if (saved_ != nullptr) lockstep_set_interrupt(handler_raises, this);
  }
  // While the interpreter ends, releases before 3.14 end a daemon thread here, by unwinding it: through destructors
  // that would touch Python objects without the lock. It waits for the process's end instead, as newer releases let it.
  ~without_gil() {
    if (saved_ == nullptr) return;
    lockstep_set_interrupt(nullptr, nullptr);
    take_back();
  }
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;

 private:
  void take_back() {
    try {
      PyEval_RestoreThread(saved_);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
  }
  static int handler_raises(void* self) {
    if (syscall(SYS_gettid) != getpid()) return 0;  // handlers run on the main thread
    auto& here = *static_cast<without_gil*>(self);
    here.take_back();
    const bool raises = PyErr_CheckSignals() != 0;
    here.saved_ = PyEval_SaveThread();
    // A handler may have called lockstep.
    lockstep_set_interrupt(handler_raises, self);
    return raises;
  }

  PyThreadState* saved_;
};

}  // namespace lockstep::python
