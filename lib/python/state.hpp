// state.hpp - what one import of the module keeps, and small helpers of every file.
#pragma once

#include <Python.h>

#include <cstdint>
#include <utility>

#include "dlpack.hpp"
#include "gil.hpp"
#include "lockstep/lockstep.h"
#include "shared.hpp"

namespace lockstep::python {

// An owned reference.
class ref {
 public:
  ref() = default;
  explicit ref(PyObject* owned) : object_(owned) {}
  ref(ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ref& operator=(ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ref() { Py_XDECREF(object_); }
  static ref borrowed(PyObject* object) {
    Py_XINCREF(object);
    return ref(object);
  }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Libraries whose arrays come in, and whose kind of array goes out. lockstep/_kinds.py has the same numbers.
enum library : int { numpy = 0, torch = 1, cupy = 2, numba = 3, jax = 4, array_api = 5, buffer = 6, own = 7 };

// What is known of one Python type.
struct kind {
  PyTypeObject* type;
  python::library library;
  bool exact;    // the library's own type, no subclass with behaviour of its own
  bool ndarray;  // NumPy's array, of a layout that is known
  const dlpack::exchange* table;
};

enum keyword : int {
  kw_x,
  kw_axis,
  kw_axes,
  kw_dtype,
  kw_keepdims,
  kw_offsets,
  kw_weights,
  kw_radius,
  kw_mode,
  kw_cval,
  kw_sweeps,
  kw_form,
  kw_kind,
  kw_operand,
  kw_width,
  kw_out,
  kw_stream,
  kw_context,
  kw_backend,
  kw_variant,
  kw_check,
  kw_weight,
  kw_bias,
  kw_eps,
  kw_residual,
  kw_residual_out,
  kw_exclusive,
  kw_tune,
  kw_y,
  kw_correction,
  kw_copy,
  kw_scale,
  kw_stack,
  kw_workspace,
  kw_ddof,
  kw_ord,
  kw_where,
  kw_initial,
  kw_labels,
  kw_times,
  kw_gradient,
  kw_weight_gradient,
  kw_bias_gradient,
  kw_count
};
extern const char* const keyword_names[kw_count];

struct context_object;
struct kept_calls;

struct state {
  PyObject* module;
  PyObject* names[kw_count];  // interned
  PyObject* errors[LOCKSTEP_INTERNAL + 1];
  PyObject* helpers;  // the module lockstep._kinds
  PyObject* kinds;    // type -> capsule of a kind
  section_mutex kinds_mutex;
  shared<const kind*> last_kind;  // of the type that came last
  PyObject* scope_get;            // the current scope of ls.backend, ls.variants: a bound ContextVar.get
  shared<PyObject*> hook;         // called after each call while somebody records, else NULL
  section_mutex hook_mutex;
  PyObject* module_logging;      // its name
  PyObject* level_debug;         // the number
  shared<PyObject*> log_levels;  // what the logger "lockstep" remembers of levels, once the program uses logging
  shared<bool> scoped;           // a scope was entered once
  shared<bool> cuda_usable;      // has been found so, for device data
  shared<PyObject*> default_context;
  kept_calls* kept;  // small calls that came often, and their plans; kept.cpp
  PyTypeObject* context_type;
  PyTypeObject* plan_type;
  PyTypeObject* group_plan_type;
  PyTypeObject* buffer_type;
  shared<void**> numpy;  // its table of functions, once an array of a NumPy of a known binary interface has been seen
  PyObject* attribute_requires_grad;  // interned, as those below
  PyObject* attribute_is_neg;
  PyObject* attribute_is_conj;
  PyObject* attribute_current_level;
  shared<PyObject*> tensor_methods[2];  // is_neg and is_conj of PyTorch's own tensors, once one has been seen
  shared<PyObject*> forward_mode;       // the names of PyTorch's module that knows whether tensors may carry tangents
};

state* state_of(PyObject* module);

// Whether a call ended early because the handler of a signal has raised an exception, which then also says that the
// results are incomplete.
bool is_raised(lockstep_status status);
// Sets the exception of a status with lockstep_last_error's text. Returns NULL.
PyObject* raise_status(state& s, lockstep_status status);
// Sets an exception of lockstep's; format as PyErr_Format. Returns NULL.
PyObject* raise(state& s, lockstep_status status, const char* format, ...);
// A dtype that no call takes; UnsupportedDtype.
PyObject* raise_dtype(state& s, const char* format, ...);

// What lockstep/_kinds.py says of a plan, a context or a Buffer.
PyObject* repr_by_helper(PyObject* object);

// Calls a function of lockstep._kinds.
template <class... Objects>
ref call_helper(state& s, const char* name, Objects... arguments) {
  const ref function(PyObject_GetAttrString(s.helpers, name));
  if (!function) return ref();
  return ref(PyObject_CallFunctionObjArgs(function.get(), arguments..., nullptr));
}

}  // namespace lockstep::python
