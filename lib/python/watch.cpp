// watch.cpp - who is told of each call: ls.record's lists, and the logger "lockstep" at the level DEBUG.
#include "call.hpp"

namespace lockstep::python {

namespace {
// Loggers remember whether a level is on, and forget it where any level changes: looking there costs no call of Python.
bool is_logged(state& s) {
  if (!s.log_levels) {
    if (!PyDict_GetItemWithError(PyImport_GetModuleDict(), s.module_logging)) return false;
    PyObject* const found = call_helper(s, "log_levels").release();
    if (!found) return PyErr_Clear(), false;
    if (!set_once(s.log_levels, found)) Py_DECREF(found);
  }
  return PyDict_GetItemWithError(s.log_levels, s.level_debug) != Py_False;
}
}  // namespace

bool is_watched(state& s) { return s.hook || is_logged(s); }

bool after_call(state& s, lockstep_op op) {
  if (is_logged(s)) {
    const ref name(PyUnicode_FromString(lockstep_op_name(op)));
    const ref function(
        PyUnicode_FromString(called_function::current ? called_function::current : lockstep_op_name(op)));
    if (!name || !function || !call_helper(s, "log_run", name.get(), function.get())) return false;
  }
  if (!s.hook) return true;
  ref hook;
  {
    const section alone(s.hook_mutex);
    hook = ref::borrowed(s.hook);
  }
  if (!hook) return true;
  const ref done(PyObject_CallFunction(hook.get(), "ss", lockstep_op_name(op),
                                       called_function::current ? called_function::current : ""));
  return static_cast<bool>(done);
}

}  // namespace lockstep::python
