// group_plan.cpp - the type _core.GroupPlan: many calls of one operation, of which C keeps descriptions and addresses.
#include <cstddef>

#include "groups.hpp"
#include "lockstep/group.h"
#include "turns.hpp"

namespace lockstep::python {
namespace {

struct group_plan_data {
  explicit group_plan_data(const operation& o) : group(o) {}
  ~group_plan_data() {
    const without_gil released;
    for (lockstep_plan* plan : plans) lockstep_plan_destroy(plan);
  }
  group_plan_data(const group_plan_data&) = delete;
  group_plan_data& operator=(const group_plan_data&) = delete;

  group_of_calls group;
  ref shared;                         // arguments that all calls read
  std::vector<lockstep_plan*> plans;  // of the calls of each op
  turns threads;
};

struct group_plan_object {
  PyObject_HEAD PyObject* module;
  group_plan_data* data;
};

group_plan_object* as_plan(PyObject* object) { return reinterpret_cast<group_plan_object*>(object); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(reinterpret_cast<PyObject*>(Py_TYPE(self)));
  Py_VISIT(as_plan(self)->module);
  const group_plan_data* p = as_plan(self)->data;
  if (!p) return 0;
  const group_of_calls& g = p->group;
  Py_VISIT(reinterpret_cast<PyObject*>(g.set.context));
  Py_VISIT(g.arrays.get());
  for (const ref& arguments : g.each) Py_VISIT(arguments.get());
  for (const group_result& to : g.results) Py_VISIT(to.object.get());
  Py_VISIT(g.stacked.object.get());
  Py_VISIT(p->shared.get());
  return 0;
}

void dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  PyTypeObject* const type = Py_TYPE(self);
  delete as_plan(self)->data;
  Py_XDECREF(as_plan(self)->module);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* execute(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"stream", "check", nullptr};
  PyObject* stream = nullptr;
  int check = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$Op:GroupPlan", const_cast<char**>(names), &stream, &check))
    return nullptr;
  state& s = *state_of(as_plan(self)->module);
  group_plan_data& p = *as_plan(self)->data;
  group_of_calls& g = p.group;
  // The stream that the arrays' library works on now, or the caller's after that.
  settings now;
  array first;
  if (!import_stream(s, stream, &now.stream)) return nullptr;
  if (g.on_device && !import_array(s, PyTuple_GetItem(g.arrays.get(), 0), "arrays[0]", false, now.stream, first))
    return nullptr;
  if (!g.in_place(s)) return nullptr;
  lockstep_options options = lockstep_options_defaults();
  if (g.on_device) {
    options.stream = first.stream;
    options.flags = LOCKSTEP_NO_FALLBACK;
    if (g.async && !now.stream && !check && !first.elsewhere) options.flags |= LOCKSTEP_ASYNC;
  }
  const bool done = run_each_op(s, g, [&](size_t k) {
    return p.threads.run(false, [&] { return lockstep_plan_execute(p.plans[k], nullptr, nullptr, &options); });
  });
  return done ? g.give(s) : nullptr;
}

PyObject* measure(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"samples", "cold", nullptr};
  int samples = 15, cold = 0;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|ip:measure", const_cast<char**>(names), &samples, &cold))
    return nullptr;
  state& s = *state_of(as_plan(self)->module);
  group_plan_data& p = *as_plan(self)->data;
  if (!p.group.in_place(s)) return nullptr;
  if (samples < 1 || samples > 1'000'000)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "samples is %d; give 1 to 1000000", samples);
  std::vector<double> all(static_cast<size_t>(samples)), ms(all);
  for (lockstep_plan* plan : p.plans) {
    const lockstep_status status = p.threads.run(false, [&] {
      return lockstep_plan_measure(plan, nullptr, nullptr, cold ? unsigned{LOCKSTEP_COLD} : 0u, samples, ms.data());
    });
    if (status != LOCKSTEP_OK) return raise_status(s, status);
    for (size_t i = 0; i < all.size(); ++i) all[i] += ms[i];
  }
  return list_of(all.data(), samples);
}

PyObject* get_count(PyObject* self, void*) { return PyLong_FromSsize_t(as_plan(self)->data->group.count()); }
PyObject* get_op(PyObject* self, void*) {
  const group_of_calls& g = as_plan(self)->data->group;
  return PyUnicode_FromString(lockstep_op_name(g.calls.empty() ? g.which.op : g.calls[0].op));
}
PyObject* get_workspace(PyObject* self, void*) {
  size_t most = 0;
  for (lockstep_plan* plan : as_plan(self)->data->plans) {
    size_t bytes = 0;
    if (lockstep_plan_workspace(plan, &bytes) == LOCKSTEP_OK) most = std::max(most, bytes);
  }
  return PyLong_FromSize_t(most);
}

PyObject* get_choice(PyObject* self, void* place) {
  const group_plan_data& p = *as_plan(self)->data;
  if (p.plans.empty()) return PyUnicode_FromString("");
  return text_of_choice(*state_of(as_plan(self)->module), p.plans[0], place);
}

PyMethodDef methods[] = {
    {"measure", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(measure)), METH_VARARGS | METH_KEYWORDS,
     "measure($self, samples=15, cold=False)\n--\n\n"
     "Time the plan on its arrays and return milliseconds, one a sample. Writes the results. With cold=True the\n"
     "caches are emptied before each sample."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {
    {"count", get_count, nullptr, "How many arrays it has.", nullptr},
    {"workspace_bytes", get_workspace, nullptr, "Bytes of workspace that an execution needs at most.", nullptr},
    {"op", get_op, nullptr, "The C library's name of the operation.", nullptr},
    {"backend", get_choice, nullptr, "The backend that was chosen.", place_of(offsetof(lockstep_run_info, backend))},
    {"variant", get_choice, nullptr, "The kernel that was chosen.", place_of(offsetof(lockstep_run_info, variant))},
    {"why", get_choice, nullptr, "Why not the others, and what runs by itself.",
     place_of(offsetof(lockstep_run_info, why))},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* self) -> PyObject* { return repr_by_helper(self); })},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_call, reinterpret_cast<void*>(execute)},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_tp_doc, const_cast<char*>("Many calls of one operation, chosen and described beforehand for arrays that stay "
                                  "where they are. plan(*, stream=None, check=False) runs them on what the arrays "
                                  "hold now. Made by lockstep.group.plan.")},
    {0, nullptr}};
PyType_Spec spec = {"lockstep._core.GroupPlan", sizeof(group_plan_object), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* plan_group(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  state& s = *state_of(module);
  const char* name = nullptr;
  const operation* const found = operation_named(s, a, n, &name);
  if (!found) return nullptr;
  const ref made(reinterpret_cast<allocfunc>(PyType_GetSlot(s.group_plan_type, Py_tp_alloc))(s.group_plan_type, 0));
  if (!made) return nullptr;
  as_plan(made.get())->module = Py_NewRef(module);
  group_plan_data& p = *(as_plan(made.get())->data = new group_plan_data(*found));
  group_of_calls& g = p.group;
  g.for_plan = true;
  if (!p.threads.make()) return PyErr_NoMemory();
  if (!g.read(s, a + 1, n - 1, keywords) || !g.take_all(s)) return nullptr;
  const values& v = g.v;
  p.shared = ref(PyTuple_Pack(6, or_none(v[kw_offsets]), or_none(v[kw_labels]), or_none(v[kw_weight]),
                              or_none(v[kw_bias]), or_none(v[kw_residual]), or_none(v[kw_y] ? v[kw_y] : v[kw_times])));
  if (!p.shared) return nullptr;
  g.set_flags(g.set.options.stream);
  lockstep_context* const context = g.set.context->handle;
  for (const calls_of_op& of : g.calls) {
    g.set.options.variant = of.variant;
    lockstep_plan* plan = nullptr;
    lockstep_status status;
    {
      const without_gil released;
      status = lockstep_plan_group(context, of.op, of.descs.data(), of.desc_bytes(), of.count(), of.srcs.data(),
                                   of.dsts.data(), &g.set.options, &plan);
    }
    if (status != LOCKSTEP_OK) return raise_of_group(s, status, of), nullptr;
    p.plans.push_back(plan);
  }
  return Py_NewRef(made.get());
}

bool add_group_plan(state& s) {
  s.group_plan_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(s.module, &spec, nullptr));
  return s.group_plan_type && PyModule_AddType(s.module, s.group_plan_type) == 0;
}

}  // namespace lockstep::python
