// kept.cpp - the plan of a small reduction of a whole array that comes again and again.
//
// Idea    Choosing a kernel takes as long as adding eight numbers, and a plan has chosen: so a call that is like those
//         before it takes half the time.
// Watch   The interpreter's lock is held all the time, so that one thread runs the plan; without that lock nothing is
//         kept.
#include <cstdlib>
#include <cstring>

#include "call.hpp"

namespace lockstep::python {

struct kept_call {
  const void* operation = nullptr;
  layout from;
  int times = 0;
  PyObject* context = nullptr;  // borrowed: the default context, which lives as long as the module
  PyObject* plan = nullptr;
  bool same_dtype = false;  // the result's, as of x
  lockstep_dtype result = lockstep_dtype(0);
};

#ifdef Py_GIL_DISABLED
PyObject* run_kept(state&, const void*, PyObject*) { return nullptr; }
void keep(state&, const void*, const call&, settings&, const array&) {}
void forget_kept(state&) {}
#else
namespace {
constexpr int often = 8;

// Texts of a plan and of single calls differ in a trace; a device's plan would not run in a child of fork.
bool may_be_kept(PyObject* plan) {
  lockstep_run_info info{};
  info.size = sizeof info;
  return !std::getenv("LOCKSTEP_TRACE") && lockstep_plan_get(handle_of_plan(plan), &info) == LOCKSTEP_OK &&
         std::strcmp(info.backend, "cpu") == 0;
}

// NumPy's own arrays, and tensors that PyTorch's table hands out and allocates.
bool may_come(const kind& producer) {
  return producer.ndarray || (producer.library == torch && producer.exact && producer.table);
}
}  // namespace

PyObject* run_kept(state& s, const void* operation, PyObject* object) {
  const kept_call* const kept = s.kept;
  if (!kept || !kept->plan || kept->operation != operation || is_watched(s) || kept->context != s.default_context)
    return nullptr;
  const kind* const producer = kind_of(s, object);
  if (!producer || !may_come(*producer)) return nullptr;
  array x;
  if (!import_array(s, object, "x", false, nullptr, x) || !x.plain) return nullptr;
  if (!kept->from.is_of(x) && !LOCKSTEP_MUTANT("python_kept_plan_for_any_layout")) return nullptr;
  result r;
  char* to = r.value;
  const element type = element_of(kept->result);
  if (producer->library != numpy) {
    if (!allocate(s, x, &type, 0, nullptr, nullptr, r)) return nullptr;
    to = r.dst.data;
  }
  const lockstep_options options = lockstep_options_defaults();
  // What fails is told by the call that is made the other way.
  if (lockstep_plan_execute(handle_of_plan(kept->plan), x.data, to, &options) != LOCKSTEP_OK) return nullptr;
  if (producer->library != numpy) return r.object.release();
  return numpy_scalar(s, kept->same_dtype ? &x : nullptr, kept->result, to);
}

void keep(state& s, const void* operation, const call& c, settings& set, const array& x) {
  if (!may_come(*x.producer) || x.on_device() || !c.scalar || x.size == 0) return;
  if (!s.kept) s.kept = new kept_call;
  kept_call& kept = *s.kept;
  if (kept.operation != operation || !kept.from.is_of(x)) {
    forget_kept(s);
    kept.operation = operation;
    kept.from.take(x);
  }
  if (++kept.times != often) return;
  kept.same_dtype = c.type == x.type;
  kept.result = dtype_of(c.type);
  kept.context = s.default_context;
  set.options = lockstep_options_defaults();
  kept.plan = make_plan(s, c, set, x, Py_None);
  if (kept.plan && !may_be_kept(kept.plan)) Py_CLEAR(kept.plan);
  PyErr_Clear();
}

void forget_kept(state& s) {
  if (!s.kept) return;
  Py_CLEAR(s.kept->plan);
  *s.kept = {};
}
#endif

}  // namespace lockstep::python
