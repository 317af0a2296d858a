// gil.hpp - lets other Python threads run while C computes.
#pragma once

#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace lockstep::python {

// The interpreter's lock is given back while it lives, unless `release` is false; no Python object may be touched then.
class without_gil {
 public:
  explicit without_gil(bool release = true) : saved_(release ? PyEval_SaveThread() : nullptr) {}
  // While the interpreter ends, releases before 3.14 end a daemon thread here, by unwinding it: through destructors
  // that would touch Python objects without the lock. It waits for the process's end instead, as newer releases let it.
  ~without_gil() {
    if (saved_ == nullptr) return;
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
