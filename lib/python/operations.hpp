// operations.hpp - the operations as Python names them, and a call of one before its result.
#pragma once

#include <initializer_list>
#include <memory>

#include "call.hpp"

namespace lockstep::python {

enum class task {
  transpose,
  permute,
  reduce,
  segments,
  stencil,
  shuffle,
  normalize,
  scan,
  sums,
  moments,
  convert,
  map
};

struct operation {
  const char* name;
  task what;
  lockstep_op op;
  int kind;  // a lockstep_reduction, a lockstep_normalization, a lockstep_sums_kind, or parts of moments.cpp
  keyword own[8];
  int own_count, positional, required;
};

// The operation that a[0] names, or NULL with an exception.
const operation* operation_named(state& s, PyObject* const* a, Py_ssize_t n, const char** name);

// All that is known of a call before its result: arguments, settings, sources, description.
struct prepared {
  prepared(const operation& o, settings& of_call) : which(o), set(of_call), description(o.op) {}
  const operation& which;
  settings& set;
  values v;
  source x, offsets;
  call description;
  result temporary;
  std::unique_ptr<sides> more;    // normalize
  std::unique_ptr<second> other;  // sums, map
  bool wide = false;              // the type has to be widened first
  bool elsewhere = false;         // axes have to be moved first
  bool root = false;              // of a device's variance
  bool of_rows = false;           // segments of an array of several axes, along the first

  // Sorts the arguments; more are keywords of plans or groups.
  bool read(state& s, PyObject* const* a, Py_ssize_t n, PyObject* keywords, std::initializer_list<keyword> more = {});
  bool describe(state& s, bool may_copy);
  // Data of a device whose kernels may lack the type.
  bool may_widen() const {
    return x.use->on_device() && (which.what == task::reduce || which.what == task::segments) && !set.options.variant;
  }
};

// Types that a device's kernels may lack.
inline bool is_narrow(lockstep_dtype dtype) { return lockstep_dtype_bytes(dtype) < 4 || dtype == LOCKSTEP_U32; }

// Whether the call is within a scope that names a backend, variants or a context; false with an exception.
bool in_scope(state& s, bool* scoped);
PyObject* operate(state& s, const operation& o, PyObject* const* a, Py_ssize_t n, PyObject* keywords);

// rows.cpp: warns of normalised rows on the host that the range of float64 left without meaning; false where the
// warning is an error.
bool warn_of_rows(const operation& o, const call& c, const array& x, const array& dst);

// segments.cpp: segments along the first of several axes; x and offsets have been read.
PyObject* segments_of_rows(state& s, prepared& p);

// kept.cpp: a small call that comes again and again runs by a plan that is kept. NULL without an exception: not this
// call. With a stack the result goes there, and None is returned.
struct kept_stack {
  Py_ssize_t count, at;
  result all;  // made with the first
};
PyObject* run_kept(state& s, const operation& o, PyObject* const* a, Py_ssize_t n, PyObject* keywords,
                   kept_stack* stack = nullptr);
// Told of each small call that ran without one; makes the plan once the same has come often. No exception is left.
void keep(state& s, const prepared& p, const result& r, PyObject* const* a, Py_ssize_t n, PyObject* keywords);

// digest.cpp: (hexadecimal digits, dtype, shape).
PyObject* digest(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords);

// groups.cpp: group(function, arrays, ...) and plan_group(function, arrays, ...).
PyObject* group(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords);
PyObject* plan_group(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords);

}  // namespace lockstep::python
