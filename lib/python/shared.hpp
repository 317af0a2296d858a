// shared.hpp - what several threads change. Under the interpreter's lock these are ordinary variables; in builds of
// CPython without it ("free threading") they are atomic, and sections that touch Python objects take a mutex, which
// lets the interpreter's other threads run while it waits.
#pragma once

#include <Python.h>

#include <atomic>
#include <utility>

namespace lockstep::python {

#ifdef Py_GIL_DISABLED
template <class T>
using shared = std::atomic<T>;

template <class T>
T take(shared<T>& from, T to) {
  return from.exchange(to);
}
// Sets what is not set yet; false where another thread was first.
template <class T>
bool set_once(shared<T>& to, T value) {
  T nothing{};
  return to.compare_exchange_strong(nothing, value);
}

using section_mutex = PyMutex;
class section {
 public:
  explicit section(section_mutex& mutex) : mutex_(mutex) { PyMutex_Lock(&mutex_); }
  ~section() { PyMutex_Unlock(&mutex_); }
  section(const section&) = delete;
  section& operator=(const section&) = delete;

 private:
  section_mutex& mutex_;
};
#else
template <class T>
using shared = T;

template <class T>
T take(T& from, T to) {
  return std::exchange(from, to);
}
template <class T>
bool set_once(T& to, T value) {
  if (to) return false;
  to = value;
  return true;
}

struct section_mutex {};
struct section {
  explicit section(section_mutex&) {}
};
#endif

}  // namespace lockstep::python
