// plan.cpp - the type _core.Plan: a call that is described once and executed often.
#include <cstddef>
#include <cstring>

#include "call.hpp"
#include "layout.hpp"
#include "turns.hpp"
// after Python.h
#include <structmember.h>

namespace lockstep::python {
namespace {

struct plan_data {
  call description;
  layout from;
  size_t workspace_bytes = 0;
  bool placed = false;  // arrays of its layout are memory of the device that computes
  turns threads;
};

struct plan_object {
  PyObject_HEAD PyObject* (*call)(PyObject*, PyObject* const*, size_t, PyObject*);
  lockstep_plan* handle;
  PyObject* context;
  PyObject* kept;  // the arrays that its calls read besides x
  PyObject* module;
  plan_data* data;
};

plan_object* as_plan(PyObject* object) { return reinterpret_cast<plan_object*>(object); }

int plan_traverse(PyObject* self, visitproc visit, void* arg) {
  const plan_object* p = as_plan(self);
  Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  Py_VISIT(p->context);
  Py_VISIT(p->kept);
  Py_VISIT(p->module);
  return 0;
}

void plan_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* const type = Py_TYPE(self);
  plan_object* p = as_plan(self);
  if (p->handle) {
    const without_gil released;
    lockstep_plan_destroy(p->handle);
  }
  delete p->data;
  if (p->context) release_user(reinterpret_cast<context_object*>(p->context));
  Py_XDECREF(p->kept);
  Py_XDECREF(p->module);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

bool take_arrays(state& s, plan_object* p, PyObject* x, PyObject* out, settings& set, array& from, result& to) {
  if (!import_array(s, x, "x", false, set.stream, from) || !require_device(s, set, from)) return false;
  if (!p->data->from.is_of(from))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "x is not like the array that the plan was made for (dtype, shape, strides or device); make a plan "
                 "for it"),
           false;
  call& c = p->data->description;
  if (!make_result(s, c, from, out == Py_None ? nullptr : out, set.stream, to)) return false;
  return require_packed_out(s, to.dst);
}

// Memory of the caller's for what an execution needs besides its arrays. C checks its size and that it lies apart.
bool take_workspace(state& s, PyObject* object, const array& x, settings& set, array& to) {
  if (!import_array(s, object, "workspace", true, x.on_device() ? x.stream : set.stream, to, &x)) return false;
  if (!same_device(s, x, to, "workspace")) return false;
  if (!is_packed(to))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "workspace is not packed; give an array in C order"), false;
  set.wait |= to.elsewhere;
  set.options.workspace = to.data;
  set.options.workspace_bytes = static_cast<size_t>(to.size * to.type.bytes);
  return true;
}

PyObject* plan_call(PyObject* self, PyObject* const* arguments, size_t given, PyObject* keywords) {
  static constexpr keyword names[] = {kw_x, kw_out, kw_stream, kw_check, kw_workspace};
  plan_object* p = as_plan(self);
  state& s = *state_of(p->module);
  values v;
  settings set;
  array from;
  result to;
  // The count's highest bit is the caller's.
  if (!parse(s, "Plan", names, 1, 5, 1, arguments, static_cast<Py_ssize_t>(given << 1 >> 1), keywords, v) ||
      !read_flag(v[kw_check], &set.check) || !import_stream(s, v[kw_stream], &set.stream) ||
      !take_arrays(s, p, v[kw_x], v[kw_out], set, from, to))
    return nullptr;
  array workspace;
  if (v[kw_workspace] && !take_workspace(s, v[kw_workspace], from, set, workspace)) return nullptr;
  queue_on(set, from, to.dst, true);
  if (p->data->placed && from.device.type == dlpack::cuda && to.dst.device.type == dlpack::cuda && from.device_known &&
      to.dst.device_known)
    set.options.flags |= LOCKSTEP_PLACED;
  if (to.adopt) set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};
  const call& c = p->data->description;
  auto& context = *reinterpret_cast<context_object*>(p->context);
  const lockstep_status status = p->data->threads.run(is_brief(c, set, context, from, to.dst), [&] {
    return lockstep_plan_execute(p->handle, from.data, to.dst.data, &set.options);
  });
  if (status == LOCKSTEP_OK) context.warm = true;
  return conclude(s, c, from, to, status);
}

// The same from a tuple and a dict, by which older ways of Python call.
PyObject* plan_call_packed(PyObject* self, PyObject* arguments, PyObject* named) {
  const Py_ssize_t given = PyTuple_Size(arguments), count = named ? PyDict_Size(named) : 0;
  const ref keywords(PyTuple_New(count));
  PyObject* all[8];
  if (!keywords) return nullptr;
  if (given + count > 8) return PyErr_Format(PyExc_TypeError, "Plan() was given %zd arguments", given + count);
  for (Py_ssize_t i = 0; i < given; ++i) all[i] = PyTuple_GetItem(arguments, i);
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0, i = 0; named && PyDict_Next(named, &at, &name, &value); ++i) {
    all[given + i] = value;
    if (PyTuple_SetItem(keywords.get(), i, Py_NewRef(name)) != 0) return nullptr;
  }
  return plan_call(self, all, static_cast<size_t>(given), keywords.get());
}

PyObject* plan_measure(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"x", "out", "samples", "cold", nullptr};
  PyObject *x = nullptr, *out = nullptr;
  int samples = 15, cold = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "OO|ip:measure", const_cast<char**>(names), &x, &out, &samples,
                                   &cold))
    return nullptr;
  plan_object* p = as_plan(self);
  state& s = *state_of(p->module);
  settings set;
  array from;
  result to;
  if (!take_arrays(s, p, x, out, set, from, to)) return nullptr;
  if (samples < 1 || samples > 1'000'000)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "samples is %d; give 1 to 1000000", samples);
  auto* const ms = static_cast<double*>(PyMem_Malloc(static_cast<size_t>(samples) * sizeof(double)));
  if (!ms) return PyErr_NoMemory();
  const lockstep_status status = p->data->threads.run(false, [&] {
    return lockstep_plan_measure(p->handle, from.data, to.dst.data, cold ? unsigned{LOCKSTEP_COLD} : 0u, samples, ms);
  });
  PyObject* const list = status == LOCKSTEP_OK ? list_of(ms, samples) : raise_status(s, status);
  PyMem_Free(ms);
  return list;
}

PyObject* get_workspace(PyObject* self, void*) { return PyLong_FromSize_t(as_plan(self)->data->workspace_bytes); }
PyObject* get_op(PyObject* self, void*) {
  return PyUnicode_FromString(lockstep_op_name(as_plan(self)->data->description.op));
}

PyObject* get_choice(PyObject* self, void* place) {
  const plan_object* p = as_plan(self);
  return text_of_choice(*state_of(p->module), p->handle, place);
}

PyMethodDef methods[] = {
    {"measure", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(plan_measure)), METH_VARARGS | METH_KEYWORDS,
     "measure($self, x, out, samples=15, cold=False)\n--\n\n"
     "Time the plan on two arrays and return milliseconds, one a sample. Overwrites out. With cold=True the caches "
     "are\n"
     "emptied before each sample."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"workspace_bytes", get_workspace, nullptr, "Bytes of workspace that an execution needs at most.", nullptr},
    {"op", get_op, nullptr, "The C library's name of the operation.", nullptr},
    {"backend", get_choice, nullptr, "The backend that was chosen.", place_of(offsetof(lockstep_run_info, backend))},
    {"variant", get_choice, nullptr, "The kernel that was chosen.", place_of(offsetof(lockstep_run_info, variant))},
    {"why", get_choice, nullptr, "Why not the others, or how it was measured.",
     place_of(offsetof(lockstep_run_info, why))},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef members[] = {{"__vectorcalloffset__", T_PYSSIZET, offsetof(plan_object, call), READONLY, nullptr},
                         {nullptr, 0, 0, 0, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(plan_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* self) -> PyObject* { return repr_by_helper(self); })},
    {Py_tp_traverse, reinterpret_cast<void*>(plan_traverse)},
    {Py_tp_call, reinterpret_cast<void*>(plan_call_packed)},
    {Py_tp_members, members},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc,
     const_cast<char*>("A call with backend, variant and workspace chosen beforehand. "
                       "plan(x, *, out=None, stream=None, check=False, workspace=None) runs it on an array like the "
                       "one it was made for. Made by the functions of lockstep.plan.")},
    {0, nullptr}};
// The stable interface names this flag and the type of its function from CPython 3.12 on; 3.11 knows both.
constexpr unsigned have_vectorcall = 1u << 11;
PyType_Spec spec = {"lockstep._core.Plan", sizeof(plan_object), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION | have_vectorcall,
                    slots};

}  // namespace

PyObject* list_of(const double* numbers, int count) {
  ref list(PyList_New(count));
  for (int i = 0; list && i < count; ++i)
    if (PyList_SetItem(list.get(), i, PyFloat_FromDouble(numbers[i])) != 0) return nullptr;
  return list.release();
}

lockstep_plan* handle_of_plan(PyObject* plan) { return as_plan(plan)->handle; }

PyObject* text_of_choice(state& s, const lockstep_plan* plan, void* place) {
  lockstep_run_info info{};
  info.size = sizeof info;
  const lockstep_status status = lockstep_plan_get(plan, &info);
  if (status != LOCKSTEP_OK) return raise_status(s, status);
  return PyUnicode_FromString(
      *reinterpret_cast<const char**>(reinterpret_cast<char*>(&info) + reinterpret_cast<uintptr_t>(place)));
}

PyObject* make_plan(state& s, const call& described, settings& set, const array& x, PyObject* kept) {
  const ref made(reinterpret_cast<allocfunc>(PyType_GetSlot(s.plan_type, Py_tp_alloc))(s.plan_type, 0));
  if (!made) return nullptr;
  plan_object* p = as_plan(made.get());
  p->call = plan_call;
  p->data = new plan_data{described, {}, 0, false, {}};
  p->data->from.take(x);
  p->module = Py_NewRef(s.module);
  p->kept = Py_NewRef(kept);
  if (!p->data->threads.make()) return PyErr_NoMemory();
  call& c = p->data->description;
  array dst;  // a packed result, without memory
  dst.type = c.type;
  pack(dst, c.rank, c.shape);
  if (!place(s, x, dst, c)) return nullptr;
  if (x.on_device()) set.options.flags |= LOCKSTEP_DEVICE_DATA;
  stay_on_device(set, x);
  lockstep_context* const context = set.context->handle;
  lockstep_status status;
  {
    const without_gil released;
    status = lockstep_plan_create(context, c.op, c.description(), &set.options, &p->handle);
    if (status == LOCKSTEP_OK) status = lockstep_plan_workspace(p->handle, &p->data->workspace_bytes);
  }
  if (status != LOCKSTEP_OK) return raise_status(s, status);
  lockstep_run_info info{};
  info.size = sizeof info;
  p->data->placed = x.on_device() && x.device_known && lockstep_plan_get(p->handle, &info) == LOCKSTEP_OK &&
                    std::strcmp(info.backend, "cuda") == 0 && info.device == x.device.id;
  p->context = reinterpret_cast<PyObject*>(std::exchange(set.context, nullptr));  // in use until the plan goes
  return Py_NewRef(made.get());
}

bool add_plan(state& s) {
  s.plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(s.module, &spec, nullptr));
  return s.plan_type && PyModule_AddType(s.module, s.plan_type) == 0;
}

}  // namespace lockstep::python
