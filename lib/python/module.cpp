// module.cpp - the extension module lockstep._core: its state, its errors, and what it tells of the library.
#include <cstdarg>
#include <cstring>

#include "call.hpp"

namespace lockstep::python {

bool is_raised(lockstep_status status) {
  if (status != LOCKSTEP_INTERRUPTED || !PyErr_Occurred()) return false;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const ref noted(PyObject_CallMethod(
      value, "add_note", "s", "lockstep ended a call early: out, and any other array that it writes, is incomplete"));
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
  return true;
}

PyObject* raise_status(state& s, lockstep_status status) {
  if (is_raised(status)) return nullptr;
  PyErr_SetString(s.errors[status <= LOCKSTEP_INTERNAL ? status : LOCKSTEP_INTERNAL], lockstep_last_error());
  return nullptr;
}

PyObject* raise(state& s, lockstep_status status, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  PyErr_FormatV(s.errors[status], format, arguments);
  va_end(arguments);
  return nullptr;
}

PyObject* raise_dtype(state& s, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  PyErr_FormatV(s.errors[0], format, arguments);
  va_end(arguments);
  return nullptr;
}

PyObject* repr_by_helper(PyObject* object) {
  const ref helpers(PyImport_ImportModule("lockstep._kinds"));
  return helpers ? PyObject_CallMethod(helpers.get(), "describe", "O", object) : nullptr;
}

state* state_of(PyObject* module) { return static_cast<state*>(PyModule_GetState(module)); }

namespace {

PyObject* last_run(PyObject* module, PyObject*) {
  lockstep_run_info info{};
  info.size = sizeof info;
  const lockstep_status status = lockstep_last_run(&info);
  if (status != LOCKSTEP_OK) return raise_status(*state_of(module), status);
  return Py_BuildValue("(sisisKK)", info.backend, static_cast<int>(info.device), info.variant,
                       static_cast<int>(info.order), info.why, static_cast<unsigned long long>(info.workspace_bytes),
                       static_cast<unsigned long long>(info.staged_bytes));
}

PyObject* backends(PyObject* module, PyObject*) {
  int32_t count;
  {
    const without_gil released;
    count = lockstep_backend_count();
  }
  ref list(PyList_New(0));
  for (int32_t i = 0; list && i < count; ++i) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    const lockstep_status status = lockstep_backend_get(i, &info);
    if (status != LOCKSTEP_OK) return raise_status(*state_of(module), status);
    const ref row(Py_BuildValue("(ssssOi)", info.name, info.description, info.path, info.reason,
                                info.usable ? Py_True : Py_False, static_cast<int>(info.devices)));
    if (!row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
  }
  return list.release();
}

PyObject* device(PyObject* module, PyObject* arguments) {
  const char* backend = nullptr;
  int index = 0;
  if (!PyArg_ParseTuple(arguments, "si", &backend, &index)) return nullptr;
  lockstep_device_info info{};
  info.size = sizeof info;
  lockstep_status status;
  {
    const without_gil released;
    status = lockstep_device_get(backend, index, &info);
  }
  if (status != LOCKSTEP_OK) return raise_status(*state_of(module), status);
  return Py_BuildValue("(siNNLLiO)", backend, index, PyUnicode_DecodeUTF8(info.name, strlen(info.name), "replace"),
                       PyUnicode_DecodeUTF8(info.detail, strlen(info.detail), "replace"), info.memory_bytes,
                       info.last_level_cache_bytes, static_cast<int>(info.processors),
                       info.usable ? Py_True : Py_False);
}

PyObject* variants(PyObject* module, PyObject* arguments) {
  const char *backend = nullptr, *name = nullptr;
  if (!PyArg_ParseTuple(arguments, "ss", &backend, &name)) return nullptr;
  state& s = *state_of(module);
  int op = 0;
  while (op < LOCKSTEP_OP_COUNT && strcmp(lockstep_op_name(lockstep_op(op)), name) != 0) ++op;
  if (op == LOCKSTEP_OP_COUNT)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "op is '%s'; give transpose, permute, square_sum, reduce, stencil, shuffle, normalize, scan, sums, "
                 "reduce_axes, convert or map",
                 name);
  ref list(PyList_New(0));
  lockstep_variant_info info{};
  info.size = sizeof info;
  const int32_t count = lockstep_variant_count(backend, lockstep_op(op));
  if (count == 0 && *lockstep_last_error()) {  // a name that is none
    const lockstep_status status = lockstep_variant_get(backend, lockstep_op(op), 0, &info);
    return raise_status(s, status);
  }
  for (int32_t i = 0; list && i < count; ++i) {
    const lockstep_status status = lockstep_variant_get(backend, lockstep_op(op), i, &info);
    if (status != LOCKSTEP_OK) return raise_status(s, status);
    const ref row(Py_BuildValue("(ssI)", info.name, info.idea, info.flags));
    if (!row || PyList_Append(list.get(), row.get()) != 0) return nullptr;
  }
  return list.release();
}

PyObject* set_scope(PyObject* module, PyObject* get) {
  state& s = *state_of(module);
  if (!s.scoped) s.scope_get = Py_NewRef(get);  // (once per process)
  s.scoped = true;
  return Py_NewRef(Py_None);
}

PyObject* set_hook(PyObject* module, PyObject* hook) {
  state& s = *state_of(module);
  PyObject* old;
  {
    const section alone(s.hook_mutex);
    old = take(s.hook, hook == Py_None ? nullptr : Py_NewRef(hook));
  }
  Py_XDECREF(old);
  return Py_NewRef(Py_None);
}

PyObject* get_default(PyObject* module, PyObject*) {
  context_object* const c = default_context(*state_of(module));
  return c ? Py_NewRef(reinterpret_cast<PyObject*>(c)) : nullptr;
}

PyObject* set_default(PyObject* module, PyObject* context) {
  state& s = *state_of(module);
  if (!PyObject_TypeCheck(context, s.context_type))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "context is %R", context);
  // The old one stays: memory that it gave out goes back to it.
  s.default_context = Py_NewRef(context);
  return Py_NewRef(Py_None);
}

PyObject* empty(PyObject* module, PyObject* arguments) {
  PyObject* shape = nullptr;
  int code = 0, kind = 0, device = 0, with_memory = 1;
  long long bytes = 0;
  const char* backend = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!iLisip", &PyTuple_Type, &shape, &code, &bytes, &kind, &backend, &device,
                        &with_memory))
    return nullptr;
  state& s = *state_of(module);
  int64_t numbers[max_rank];
  const Py_ssize_t rank = PyTuple_Size(shape);
  if (rank > max_rank)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "shape has %zd axes; give at most %d", rank, max_rank);
  for (Py_ssize_t k = 0; k < rank; ++k) numbers[k] = PyLong_AsLongLong(PyTuple_GetItem(shape, k));
  if (PyErr_Occurred()) return nullptr;
  return make_buffer(s, {static_cast<uint8_t>(code), false, bytes}, static_cast<int>(rank), numbers,
                     lockstep_memory(kind), backend, device, with_memory != 0);
}

PyObject* numpy_functions(PyObject* module, PyObject* capsule) {
  const bool known = use_numpy(*state_of(module), capsule);
  return PyErr_Occurred() ? nullptr : Py_NewRef(known ? Py_True : Py_False);
}

PyMethodDef inquiries[] = {{"last_run", last_run, METH_NOARGS, nullptr},
                           {"backends", backends, METH_NOARGS, nullptr},
                           {"device", device, METH_VARARGS, nullptr},
                           {"variants", variants, METH_VARARGS, nullptr},
                           {"set_scope", set_scope, METH_O, nullptr},
                           {"set_hook", set_hook, METH_O, nullptr},
                           {"get_default", get_default, METH_NOARGS, nullptr},
                           {"set_default", set_default, METH_O, nullptr},
                           {"empty", empty, METH_VARARGS, nullptr},
                           {"numpy_functions", numpy_functions, METH_O, nullptr},
                           {nullptr, nullptr, 0, nullptr}};

int execute_module(PyObject* module) {
  state& s = *state_of(module);
  new (&s) state{};
  s.module = module;
  for (int k = 0; k < kw_count; ++k)
    if (!(s.names[k] = PyUnicode_InternFromString(keyword_names[k]))) return -1;
  const ref errors(PyImport_ImportModule("lockstep._errors"));
  const ref table(errors ? PyObject_GetAttrString(errors.get(), "BY_STATUS") : nullptr);
  for (int k = 0; k <= LOCKSTEP_INTERNAL; ++k)
    if (!table || !(s.errors[k] = PySequence_GetItem(table.get(), k))) return -1;
  s.helpers = PyImport_ImportModule("lockstep._kinds");
  s.kinds = PyDict_New();
  s.attribute_requires_grad = PyUnicode_InternFromString("requires_grad");
  s.attribute_is_neg = PyUnicode_InternFromString("is_neg");
  s.attribute_is_conj = PyUnicode_InternFromString("is_conj");
  s.attribute_current_level = PyUnicode_InternFromString("_current_level");
  s.module_logging = PyUnicode_InternFromString("logging");
  s.level_debug = PyLong_FromLong(10);
  if (!s.module_logging || !s.level_debug || !s.helpers || !s.kinds || !s.attribute_requires_grad ||
      !s.attribute_is_neg || !s.attribute_is_conj || !s.attribute_current_level || !add_context(s) || !add_plan(s) ||
      !add_group_plan(s) || !add_buffer(s))
    return -1;
  return PyModule_AddStringConstant(module, "version", lockstep_version()) != 0 || add_operations(module) != 0 ||
                 PyModule_AddFunctions(module, inquiries) != 0
             ? -1
             : 0;
}

int traverse(PyObject* module, visitproc visit, void* arg) {
  const state* s = state_of(module);
  if (!s) return 0;
  Py_VISIT(s->helpers);
  Py_VISIT(s->kinds);
  Py_VISIT(s->scope_get);
  Py_VISIT(s->hook);
  Py_VISIT(s->log_levels);
  Py_VISIT(reinterpret_cast<PyObject*>(s->context_type));
  Py_VISIT(reinterpret_cast<PyObject*>(s->plan_type));
  Py_VISIT(reinterpret_cast<PyObject*>(s->group_plan_type));
  Py_VISIT(reinterpret_cast<PyObject*>(s->buffer_type));
  return 0;
}

}  // namespace
}  // namespace lockstep::python

using namespace lockstep::python;

PyMODINIT_FUNC PyInit__core() {
  // Slots that newer interpreters know, by number, since one binary serves all: several interpreters with a lock each.
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute_module)},
#ifdef Py_GIL_DISABLED
                                     {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
                                     {0, nullptr},
                                     {0, nullptr}};
  constexpr int free_slot = sizeof slots / sizeof *slots - 2;
  constexpr int multiple_interpreters = 3;
  if (Py_Version >= 0x030C0000) slots[free_slot] = {multiple_interpreters, reinterpret_cast<void*>(2)};
  static PyModuleDef definition = {
      PyModuleDef_HEAD_INIT, "lockstep._core", nullptr, sizeof(state), nullptr, slots, traverse, nullptr, nullptr};
  return PyModuleDef_Init(&definition);
}
