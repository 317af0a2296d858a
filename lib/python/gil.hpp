// gil.hpp - lets other Python threads run while C computes.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

#include "../mutant.hpp"

namespace lockstep::python {

// The interpreter's lock is given back while it lives; no Python object may be touched then.
class without_gil {
 public:
  without_gil() : saved_(LOCKSTEP_MUTANT("python_lock_held") ? nullptr : PyEval_SaveThread()) {}
  // While the interpreter ends, releases before 3.14 end a daemon thread here, by unwinding it: through destructors
  // that would touch Python objects without the lock. It waits for the process's end instead, as newer releases let it.
  ~without_gil() {
    if (saved_ == nullptr) return;  // planted
    try {
      PyEval_RestoreThread(saved_);
    } catch (abi::__forced_unwind&) {
      for (;;) pause();
    }
  }
  without_gil(const without_gil&) = delete;
  without_gil& operator=(const without_gil&) = delete;

 private:
  PyThreadState* saved_;
};

}  // namespace lockstep::python
