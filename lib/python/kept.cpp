// kept.cpp - plans of small calls that come again and again.
//
// Idea    Choosing a kernel takes as long as adding eight numbers, and a plan has chosen: so a call that is like one
//         before it takes half the time. Like it is a call of the same function, whose other arguments are the very
//         same unchangeable objects, on arrays of the same layout.
// Watch   The interpreter's lock is held all the time, so that one thread runs a plan; without that lock nothing is
//         kept. Only the CPU's plans: a device's would not run in a child of fork, and making one could end a capture.
#include <cstdlib>
#include <cstring>

#include "layout.hpp"
#include "operations.hpp"

namespace lockstep::python {

#ifdef Py_GIL_DISABLED
PyObject* run_kept(state&, const operation&, PyObject* const*, Py_ssize_t, PyObject*, kept_stack*) { return nullptr; }
void keep(state&, const prepared&, const result&, PyObject* const*, Py_ssize_t, PyObject*) {}
void forget_kept(state&) {}
#else
namespace {
constexpr int often = 8, plans = 48, candidates = 48, most_arguments = 5;

struct kept_call {
  const operation* what = nullptr;
  Py_ssize_t given = 0;  // arguments after x
  // Names, NULL where they went by position, and the objects.
  PyObject *names[most_arguments] = {}, *values[most_arguments] = {};
  Py_ssize_t out_at = -1, y_at = -1;  // which of them are arrays: one that is written, and the second that is read
  layout from, to, second;
  lockstep_sums_desc sums{};  // with a second array, which a plan would keep, there is no plan
  bool scalar = false, same_dtype = false;
  int times = 0;
  PyObject* context = nullptr;  // borrowed: the default context, which lives as long as the module
  PyObject* plan = nullptr;

  bool is_of(const operation& o, PyObject* const* a, Py_ssize_t n, PyObject* keywords) const {
    const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
    if (what != &o || n - 1 + named != given) return false;
    for (Py_ssize_t i = 0; i < given; ++i) {
      if (names[i] != (i < n - 1 ? nullptr : PyTuple_GetItem(keywords, i - (n - 1)))) return false;
      const bool same = values[i] == a[1 + i];
      if (i != out_at && i != y_at ? !same : a[1 + i] == Py_None) return false;
    }
    return true;
  }
  void clear() {
    for (Py_ssize_t i = 0; i < given; ++i) Py_XDECREF(names[i]), Py_XDECREF(values[i]);
    Py_XDECREF(plan);
    *this = {};
  }
};
}  // namespace

struct kept_calls {
  kept_call all[plans + candidates];
  int next_plan = 0, next_candidate = 0;
};

namespace {

// Asks the plan or, if it is NULL, the last call. A trace shows plans and single calls differently.
bool may_be_kept(const lockstep_plan* plan) {
  lockstep_run_info info{};
  info.size = sizeof info;
  return !std::getenv("LOCKSTEP_TRACE") &&
         (plan ? lockstep_plan_get(plan, &info) : lockstep_last_run(&info)) == LOCKSTEP_OK &&
         std::strcmp(info.backend, "cpu") == 0;
}

// NumPy's own arrays, and tensors that PyTorch's table hands out and allocates.
bool may_come(const kind& producer) {
  return producer.ndarray || (producer.library == torch && producer.exact && producer.table);
}

bool may_come_again(const operation& o) {
  return o.what == task::reduce || o.what == task::transpose || o.what == task::permute || o.what == task::scan ||
         o.what == task::convert || o.what == task::map || o.what == task::sums;
}

// Whether an argument that is the same object says the same.
bool is_unchangeable(PyObject* value) {
  if (value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) || PyFloat_CheckExact(value) ||
      PyUnicode_CheckExact(value))
    return true;
  if (!PyTuple_CheckExact(value)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_Size(value); ++i)
    if (!PyLong_CheckExact(PyTuple_GetItem(value, i))) return false;
  return true;
}

lockstep_status execute_kept(state& s, const kept_call& kept, PyObject* plan, const array& x, const array& y,
                             void* to) {
  const lockstep_options options = lockstep_options_defaults();
  if (kept.y_at < 0) return lockstep_plan_execute(handle_of_plan(plan), x.data, to, &options);
  lockstep_sums_desc desc = kept.sums;
  desc.other = y.data;
  lockstep_context* const context = reinterpret_cast<context_object*>(s.default_context)->handle;
  return lockstep_execute(context, LOCKSTEP_SUMS, &desc, x.data, to, &options);
}

// Where a kept call's result goes in an array of all; NULL without an exception: it does not fit there.
char* place_in(state& s, kept_stack& stack, const kept_call& kept, const array& x) {
  array& all = stack.all.dst;
  if (!stack.all.object) {
    int64_t shape[max_rank];
    if (kept.to.rank == max_rank) return nullptr;
    shape[0] = stack.count;
    std::copy(kept.to.shape, kept.to.shape + kept.to.rank, shape + 1);
    if (!allocate(s, x, kept.same_dtype ? nullptr : &kept.to.type, kept.to.rank + 1, shape, nullptr, stack.all))
      return nullptr;
  }
  if (all.type != kept.to.type || all.rank != kept.to.rank + 1 || !is_packed(all) || all.on_device() ||
      !std::equal(kept.to.shape, kept.to.shape + kept.to.rank, all.shape + 1))
    return nullptr;
  return all.data + stack.at * (all.size / stack.count) * all.type.bytes;
}

// The result of a kept call on these arrays; NULL without an exception: not this call.
PyObject* run_one(state& s, const kept_call& kept, const array& x, PyObject* out, PyObject* second, kept_stack* stack) {
  result r;
  array& dst = r.dst;
  char* to = r.value;
  const lockstep_dtype dtype = dtype_of(kept.to.type);
  const bool number = kept.scalar && x.producer->library == numpy, same_dtype = kept.same_dtype;
  const ref plan = ref::borrowed(kept.plan);
  array y;
  if (second) {
    const kind* const producer = kind_of(s, second);
    if (!producer || !may_come(*producer) || !import_array(s, second, "y", false, nullptr, y, &x) || !y.plain ||
        y.on_device() || !kept.second.is_of(y))
      return nullptr;
  }
  if (stack) {
    if (!(to = place_in(s, *stack, kept, x))) return nullptr;
  } else if (out) {
    if (!import_array(s, out, "out", true, nullptr, dst, &x) || !dst.plain || !kept.to.is_of(dst)) return nullptr;
    r.object = ref::borrowed(out);
    to = dst.data;
  } else if (x.producer->ndarray && !number) {
    r.object = ref(numpy_empty(s, kept.same_dtype ? &x : nullptr, dtype, kept.to.rank, kept.to.shape));
    if (!r.object || !import_ndarray(s, r.object.get(), "out", dst)) return nullptr;
    to = dst.data;
  } else if (!number) {
    if (!allocate(s, x, &kept.to.type, kept.to.rank, kept.to.shape, nullptr, r)) return nullptr;
    to = dst.data;
  }
  // Memory for a result may run a collector, and that a finalizer that has its own calls kept here.
  if (kept.plan != plan.get()) return nullptr;
  // What fails is told by the call that is made the other way.
  if (execute_kept(s, kept, plan.get(), x, y, to) != LOCKSTEP_OK) return nullptr;
  if (stack) return Py_NewRef(Py_None);
  return number ? numpy_scalar(s, same_dtype ? &x : nullptr, dtype, to) : r.object.release();
}

}  // namespace

PyObject* run_kept(state& s, const operation& o, PyObject* const* a, Py_ssize_t n, PyObject* keywords,
                   kept_stack* stack) {
  if (!s.kept || n < 1 || is_watched(s)) return nullptr;
  array x;
  bool taken = false;
  for (int i = 0; i < plans; ++i) {
    const kept_call& kept = s.kept->all[i];
    if (!kept.is_of(o, a, n, keywords) || kept.context != s.default_context) continue;
    if (!taken) {
      const kind* const producer = kind_of(s, a[0]);
      if (!producer || !may_come(*producer)) return nullptr;
      if (!import_array(s, a[0], "x", false, nullptr, x) || !x.plain || x.on_device()) return nullptr;
      taken = true;
    }
    if (!kept.from.is_of(x)) continue;
    const auto given = [&](Py_ssize_t at) { return at < 0 ? nullptr : a[1 + at]; };
    PyObject* const done = run_one(s, kept, x, given(kept.out_at), given(kept.y_at), stack);
    if (done || PyErr_Occurred() || kept.y_at < 0) return done;  // else another second array
  }
  return nullptr;
}

void keep(state& s, const prepared& p, const result& r, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  const array &x = p.x.direct, &dst = r.dst;
  const call& c = p.description;
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0, given = n - 1 + named;
  if (n < 1 || !may_come_again(p.which) || p.x.use != &x || !x.plain || p.temporary.object || !may_come(*x.producer) ||
      x.on_device() || x.size == 0 || given > most_arguments ||
      reinterpret_cast<PyObject*>(p.set.context) != s.default_context || (!r.scalar && !is_packed(dst)) ||
      (p.set.out && !may_come(*dst.producer)))
    return;
  const array* const y = p.v[kw_y] ? &p.other->y.direct : nullptr;
  if (y && (p.other->y.use != y || p.other->temporary.object || !may_come(*y->producer) || y->on_device() ||
            c.op != LOCKSTEP_SUMS || p.v[kw_y] == p.set.out))
    return;
  for (const keyword k : {kw_stream, kw_context, kw_backend, kw_variant, kw_check, kw_copy})
    if (p.v[k]) return;
  for (Py_ssize_t i = 0; i < given; ++i)
    if (a[1 + i] != p.set.out && a[1 + i] != p.v[kw_y] && !is_unchangeable(a[1 + i])) return;
  if (!s.kept) s.kept = new kept_calls;
  kept_call* found = nullptr;
  for (kept_call& one : s.kept->all) {
    if (one.plan && one.context != s.default_context) one.clear();  // of a context that set_num_threads replaced
    if (one.is_of(p.which, a, n, keywords) && one.from.is_of(x) && (r.scalar || one.to.is_of(dst)) &&
        (!y || one.second.is_of(*y)))
      found = &one;
  }
  if (!found) {
    found = &s.kept->all[plans + s.kept->next_candidate];
    s.kept->next_candidate = (s.kept->next_candidate + 1) % candidates;
    found->clear();
    found->what = &p.which;
    found->given = given;
    for (Py_ssize_t i = 0; i < given; ++i) {
      if (i >= n - 1) found->names[i] = Py_NewRef(PyTuple_GetItem(keywords, i - (n - 1)));
      if (a[1 + i] == p.set.out)
        found->out_at = i;
      else if (y && a[1 + i] == p.v[kw_y])
        found->y_at = i;
      else
        found->values[i] = Py_NewRef(a[1 + i]);
    }
    found->from.take(x);
    found->to.take(dst);
    if (y) found->second.take(*y), found->sums = c.sums;
    // A tensor's total is a tensor, but the next array may be NumPy's, whose total is a number.
    found->scalar = c.scalar && !p.set.out;
    found->same_dtype = c.type == x.type;
  }
  if (found->plan || ++found->times != often) return;
  // The description was completed for this call's arrays; a plan's is for a packed result.
  settings of_plan;
  if (!use_context(s, p.set.context)) return PyErr_Clear();
  of_plan.context = p.set.context;
  PyObject* const plan = y ? PyList_New(0) : make_plan(s, c, of_plan, x, Py_None);
  if (plan && may_be_kept(y ? nullptr : handle_of_plan(plan))) {
    kept_call& place = s.kept->all[s.kept->next_plan];
    s.kept->next_plan = (s.kept->next_plan + 1) % plans;
    place.clear();
    std::swap(place, *found);
    place.plan = plan;
    place.context = s.default_context;
  } else {
    Py_XDECREF(plan);
  }
  PyErr_Clear();
}

void forget_kept(state& s) {
  if (!s.kept) return;
  for (kept_call& one : s.kept->all) one.clear();
}
#endif

}  // namespace lockstep::python
