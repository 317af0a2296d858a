// groups.cpp - group(function, arrays, ...): many calls of one operation by one call of C.
// Idea    each array is taken in and described as for a call of its own; C gets the descriptions together, by op.
// Watch   numbers that C writes lie in a vector that no longer grows; an argument in a list is each array's own.
#include "groups.hpp"

#include <cstdlib>
#include <cstring>

#include "lockstep/group.h"

namespace lockstep::python {
namespace {

// Arguments of which every array may have its own.
constexpr keyword own_arguments[] = {kw_out,          kw_y,      kw_offsets, kw_weight, kw_bias, kw_residual,
                                     kw_residual_out, kw_labels, kw_times};

bool is_list(PyObject* object) { return PyList_Check(object) || PyTuple_Check(object); }

// A list that is an array itself: its first element is a number, of Python's or of NumPy's.
bool is_list_of_numbers(state& s, PyObject* list) {
  const ref first(PySequence_GetItem(list, 0));
  if (!first) return PyErr_Clear(), false;
  if (PyLong_Check(first.get()) || PyFloat_Check(first.get())) return true;
  const kind* const known = kind_of(s, first.get());
  if (known && (known->library != numpy || known->ndarray)) return false;
  const bool number = known && PyObject_Size(first.get()) < 0;
  PyErr_Clear();
  return number;
}

bool holds(const array& a) { return a.has_view || a.versioned || a.managed || a.keeper; }
bool holds(const source& x) { return x.copy || holds(x.direct) || holds(x.packed); }
bool holds(const group_item& it) {
  const prepared& p = it.call;
  return holds(p.x) || holds(p.offsets) || p.temporary.object || p.more || p.other || holds(it.to.dst) ||
         p.description.op == LOCKSTEP_STENCIL;  // whose description points to its coefficients
}

touched bytes_of(const array& a, bool written, Py_ssize_t index) {
  int64_t last = 0;
  for (int k = 0; k < a.rank; ++k) last += (a.shape[k] - 1) * a.strides[k];
  return {a.data, a.data + (last + 1) * a.type.bytes, written, index};
}

}  // namespace

void name_the_array(Py_ssize_t i) {
  if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const ref text(PyUnicode_FromFormat("arrays[%zd]: %S", i, value));
  const ref named(text ? PyObject_CallFunctionObjArgs(type, text.get(), nullptr) : nullptr);
  PyErr_Clear();
  if (!named) return PyErr_Restore(type, value, trace);
  PyErr_SetObject(type, named.get());
  Py_XDECREF(type), Py_XDECREF(value), Py_XDECREF(trace);
}

void raise_of_calls(state& s, lockstep_status status, const std::function<std::string(size_t)>& name) {
  if (is_raised(status)) return;
  std::string text = lockstep_last_error();
  constexpr const char* word = "descs[";
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at) {
    const size_t begin = at + std::strlen(word), end = text.find(']', begin);
    const std::string named = name(std::strtoul(text.c_str() + begin, nullptr, 10));
    if (end == std::string::npos || named.empty()) break;
    text.replace(at, end + 1 - at, named);
  }
  PyErr_SetString(s.errors[status], text.c_str());
}

void raise_of_group(state& s, lockstep_status status, const calls_of_op& of) {
  raise_of_calls(s, status, [&](size_t k) {
    if (k >= of.index.size()) return std::string();
    const size_t i = static_cast<size_t>(of.index[k]);
    return "arrays[" + std::to_string(i) + "]";
  });
}

bool group_of_calls::read(state& s, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  if (which.what == task::moments || which.own[1] == kw_gradient)
    return raise(s, LOCKSTEP_UNSUPPORTED, "there is no group of %s; call the function on each array", which.name),
           false;
  prepared p(which, set);
  if (!p.read(s, a, n, keywords, {kw_stack}) || !read_flag(p.v[kw_stack], &stack)) return false;
  std::copy(p.v, p.v + kw_count, v);
  if (!is_list(v[kw_x]) && PyObject_HasAttrString(v[kw_x], "shape"))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "arrays is a single array; give a list of them"), false;
  variant = set.options.variant;
  arrays = ref(PySequence_Tuple(v[kw_x]));
  if (!arrays) return false;
  for (const keyword k : own_arguments) {
    const bool written = k == kw_out || k == kw_residual_out;
    if (!v[k] || (k == kw_out && stack)) continue;
    if (!is_list(v[k]) || (!written && is_list_of_numbers(s, v[k]))) {
      if (!written) continue;
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; give a list with an array for each", keyword_names[k],
                   v[k]),
             false;
    }
    each[k] = ref(PySequence_Tuple(v[k]));
    if (!each[k]) return false;
    if (PyTuple_Size(each[k].get()) != count())
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s has %zd elements, arrays %zd; give one for each", keyword_names[k],
                   PyTuple_Size(each[k].get()), count()),
             false;
  }
  if (count() == 0 && stack)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "arrays is empty, so the type of the result is unknown; give one array or more"),
           false;
  return true;
}

bool group_of_calls::one_place(state& s, const array& x) {
  if (results.empty()) {
    on_device = x.on_device(), device = x.device.id, from = x.producer->library;
    return true;
  }
  if (x.on_device() != on_device || (on_device && x.device.id != device))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "it lives on %s, arrays[0] on %s; a group is of arrays of one device",
                 x.on_device() ? (on_device ? "another CUDA device" : "a CUDA device") : "the host",
                 on_device ? "a CUDA device" : "the host"),
           false;
  if (for_plan && on_device && x.producer->library != from)
    return raise(s, LOCKSTEP_UNSUPPORTED,
                 "it belongs to another library than arrays[0]; a plan runs on the stream of one library"),
           false;
  return true;
}

bool group_of_calls::place_stacked(state& s, Py_ssize_t i, const call& c, const array& x, array& dst) {
  array& all = stacked.dst;
  if (i == 0) {
    int64_t shape[max_rank];
    if (c.rank == max_rank) return raise(s, LOCKSTEP_UNSUPPORTED, "there is no room for one more axis"), false;
    shape[0] = count();
    std::copy(c.shape, c.shape + c.rank, shape + 1);
    if (v[kw_out] ? !take_out(s, c.type, c.rank + 1, shape, x, v[kw_out], set.stream, stacked)
                  : !allocate(s, x, c.same_dtype ? nullptr : &c.type, c.rank + 1, shape, set.stream, stacked))
      return false;
  }
  char have[64], want[64];
  if (c.type != all.type)
    return raise_dtype(s,
                       "its result is %s, that of arrays[0] %s; omit stack, or give dtype=", element_name(c.type, have),
                       element_name(all.type, want)),
           false;
  if (c.rank != all.rank - 1 || !std::equal(c.shape, c.shape + c.rank, all.shape + 1))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "its result has another shape than that of arrays[0]; omit stack"),
           false;
  dst.data = all.data + i * all.strides[0] * all.type.bytes;
  dst.type = all.type;
  dst.device = all.device;
  dst.device_known = all.device_known;
  dst.producer = all.producer;
  dst.stream = all.stream;
  dst.elsewhere = all.elsewhere;
  dst.rank = c.rank;
  for (int k = 0; k < c.rank; ++k) {
    dst.size *= dst.shape[k] = c.shape[k];
    dst.strides[k] = all.strides[k + 1];
  }
  return true;
}

bool memory_place::is_of(const array& a) const {
  return a.data == data && static_cast<size_t>(2 * a.rank) == layout.size() &&
         std::equal(a.shape, a.shape + a.rank, layout.begin()) &&
         std::equal(a.strides, a.strides + a.rank, layout.begin() + a.rank);
}

// Of arrays that give no view that would hold their memory.
void group_of_calls::note_place(Py_ssize_t i, const array& a) {
  if (!a.object || !a.producer || !(a.producer->table || a.producer->ndarray) || holds(a)) return;
  memory_place& at = places.emplace_back(memory_place{i, a.object, a.producer, a.data, {}});
  at.layout.insert(at.layout.end(), a.shape, a.shape + a.rank);
  at.layout.insert(at.layout.end(), a.strides, a.strides + a.rank);
}

bool group_of_calls::in_place(state& s) const {
  for (const memory_place& at : places) {
    array now;
    dlpack::tensor t{};
    if (!at.producer->table || !at.producer->table->import_borrowed) {
      if (!import_array(s, at.object, "x", false, nullptr, now)) return name_the_array(at.index), false;
    } else {
      if (at.producer->table->import_borrowed(at.object, &t) != 0 || !import_tensor(s, t, "x", now))
        return name_the_array(at.index), false;
    }
    if (at.is_of(now)) continue;
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "arrays[%zd], or what belongs to it, has other memory or another shape than when the plan was made; "
                 "make a new plan",
                 at.index),
           false;
  }
  return true;
}

bool group_of_calls::take(state& s, Py_ssize_t i) {
  auto made = std::make_unique<group_item>(which, set);
  prepared& p = made->call;
  std::copy(v, v + kw_count, p.v);
  p.v[kw_x] = PyTuple_GetItem(arrays.get(), i);
  for (const keyword k : own_arguments) {
    if (!each[k]) continue;
    p.v[k] = PyTuple_GetItem(each[k].get(), i);
    if (p.v[k] == Py_None) p.v[k] = nullptr;
  }
  set.options.variant = variant;
  if (!p.describe(s, !for_plan)) return false;
  if (!one_place(s, *p.x.use)) return false;
  group_result& to = results.emplace_back();
  const bool columns = p.description.op == LOCKSTEP_NORMALIZE && p.description.normalize.inner > 1;
  if (p.wide || p.root || p.elsewhere || p.of_rows || columns) return take_alone(s, i, p.v);
  const array& x = *p.x.use;
  call& c = p.description;
  array& dst = made->to.dst;
  if (stack ? !place_stacked(s, i, c, x, dst) : !make_result(s, c, x, p.v[kw_out], set.stream, made->to)) return false;
  if (made->to.scalar) dst.data = to.value;
  to.scalar = made->to.scalar;
  to.type = c.type;
  if (!place(s, x, dst, c)) return false;
  const bool adopt = made->to.adopt || stacked.adopt;
  if (adopt && for_plan)
    return raise(s, LOCKSTEP_UNSUPPORTED,
                 "a plan writes into the same results each time, which this library does not allow"),
           false;
  queue_on(set, x, dst);
  async = async && !adopt && (set.options.flags & LOCKSTEP_ASYNC) != 0;

  const char* const named = set.options.variant;
  auto same = std::find_if(calls.begin(), calls.end(), [&](const calls_of_op& of) {
    return of.op == c.op && (of.variant == named || (of.variant && named && std::strcmp(of.variant, named) == 0));
  });
  if (same == calls.end()) {
    same = calls.insert(calls.end(), calls_of_op{c.op, named});
    same->descs.reserve(static_cast<size_t>(count() - i) * call::description_bytes);
  }
  const auto* const bytes = static_cast<const unsigned char*>(c.description());
  size_t size = 0;
  std::memcpy(&size, bytes, sizeof size);  // the first member of each
  same->descs.insert(same->descs.end(), bytes, bytes + size);
  same->srcs.push_back(x.data);
  same->dsts.push_back(dst.data);
  same->index.push_back(i);
  if (p.v[kw_out] && x.size > 0 && dst.size > 0) note_memory(i, x, dst);

  if (for_plan && (p.x.use != &p.x.direct || p.offsets.copy)) return no_copy(s, "this array needs one");
  if (for_plan) {
    const array* const read[] = {&x,
                                 &p.offsets.direct,
                                 &dst,
                                 p.other ? &p.other->y.direct : nullptr,
                                 p.more ? &p.more->weight.direct : nullptr,
                                 p.more ? &p.more->bias.direct : nullptr,
                                 p.more ? &p.more->residual.direct : nullptr,
                                 p.more ? &p.more->labels.direct : nullptr,
                                 p.more ? &p.more->sum : nullptr};
    for (const array* a : read)
      if (a) note_place(i, *a);
  }
  to.adopt = made->to.adopt;
  if (!stack && !to.scalar) to.object = std::move(made->to.object);
  if (holds(*made)) held.push_back(std::move(made));
  return true;
}

// Of one that works in place the whole counts as written.
void group_of_calls::note_memory(Py_ssize_t i, const array& x, const array& dst) {
  touched from = bytes_of(x, false, i), to = bytes_of(dst, true, i);
  if (from.begin < to.end && to.begin < from.end) {
    to.begin = std::min(from.begin, to.begin);
    to.end = std::max(from.end, to.end);
  } else {
    memory.push_back(from);
  }
  memory.push_back(to);
}

// C compares the calls of one op with each other; those of one function may be of two.
bool group_of_calls::lie_apart(state& s) {
  if (calls.size() < 2) return true;
  std::sort(memory.begin(), memory.end(), [](const touched& a, const touched& b) { return a.begin < b.begin; });
  touched any{}, written{};
  for (const touched& now : memory) {
    const touched& before = now.written ? any : written;
    if (now.begin < before.end)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                   "out of arrays[%zd] or arrays[%zd] overlaps memory of the other; give each out memory of its own",
                   std::min(now.index, before.index), std::max(now.index, before.index)),
             false;
    if (now.end > any.end) any = now;
    if (now.written && now.end > written.end) written = now;
  }
  return true;
}

bool group_of_calls::take_all(state& s) {
  results.reserve(static_cast<size_t>(count()));
  for (Py_ssize_t i = 0; i < count(); ++i)
    if (!take(s, i)) return name_the_array(i), false;
  if (!lie_apart(s)) return false;
  if (for_plan && stack) note_place(0, stacked.dst);
  return true;
}

void group_of_calls::set_flags(void* stream) {
  set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};
  set.options.stream = nullptr;
  if (!on_device) return;
  set.options.stream = stream;
  set.options.flags |= LOCKSTEP_NO_FALLBACK;
  if (async && !set.stream && !set.check && !set.wait) set.options.flags |= LOCKSTEP_ASYNC;
}

PyObject* group_of_calls::give(state& s) {
  PyObject* const first = count() > 0 ? PyTuple_GetItem(arrays.get(), 0) : nullptr;
  if (stack && stacked.adopt) return call_helper(s, "adopt", first, stacked.object.get()).release();
  if (stack) return Py_NewRef(stacked.object.get());
  ref list(PyList_New(count()));
  for (Py_ssize_t i = 0; list && i < count(); ++i) {
    group_result& to = results[static_cast<size_t>(i)];
    PyObject* made = nullptr;
    if (to.adopt) {
      made = call_helper(s, "adopt", PyTuple_GetItem(arrays.get(), i), to.object.get()).release();
    } else if (!to.scalar) {
      made = Py_NewRef(to.object.get());
    } else {
      made = number_of(s, nullptr, dtype_of(to.type), to.value);
    }
    if (!made || PyList_SetItem(list.get(), i, made) != 0) return nullptr;
  }
  return list.release();
}

namespace {

// Arrays of NumPy of which a call takes no longer than putting them into a group.
bool are_small(state& s, const group_of_calls& g) {
  for (Py_ssize_t i = 0; i < g.count(); ++i) {
    PyObject* const object = PyTuple_GetItem(g.arrays.get(), i);
    const kind* const producer = kind_of(s, object);
    if (!producer || !producer->ndarray || ndarray_size(object) > 4096) return false;
  }
  return true;
}

// Lets other threads and the handlers of signals run.
bool pause_between(Py_ssize_t i) {
  if (i % 256 != 255) return true;
  { const without_gil released; }
  return PyErr_CheckSignals() == 0;
}

// Small arrays one after the other by plans that are kept (kept.cpp): into a group each would take longer than such a
// call. NULL without an exception: as a group, whatever has been computed.
PyObject* one_by_one(state& s, const group_of_calls& g, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  constexpr Py_ssize_t most_arguments = 8;
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  bool scoped = false;
  if (!in_scope(s, &scoped)) return nullptr;
  if (scoped || g.v[kw_out] || g.v[kw_y] || g.v[kw_times] || g.v[kw_residual_out] || g.v[kw_offsets] ||
      g.v[kw_context] || g.count() == 0 || is_watched(s) || n + named > most_arguments || !are_small(s, g))
    return nullptr;
  PyObject* given[most_arguments];
  std::copy(a, a + n, given);
  ref names(PyList_New(0));
  Py_ssize_t count = n;
  for (Py_ssize_t i = 0; names && i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(keywords, i);
    if (PyUnicode_CompareWithASCIIString(name, keyword_names[kw_stack]) == 0) continue;
    if (PyList_Append(names.get(), name) != 0) return nullptr;
    given[count++] = a[n + i];
  }
  if (names) names = ref(PyList_AsTuple(names.get()));
  ref list(PyList_New(g.stack ? 0 : g.count()));
  if (!list || !names) return nullptr;
  kept_stack stack{g.count(), 0, {}};
  // The first calls of a kind are made the usual way, which then keeps them.
  Py_ssize_t others = std::clamp<Py_ssize_t>(g.count() / 8, 1, 16);
  for (Py_ssize_t i = 0; i < g.count(); ++i) {
    given[0] = PyTuple_GetItem(g.arrays.get(), i);
    if (!pause_between(i)) return nullptr;
    stack.at = i;
    ref made;
    for (bool again = true; again && !made;) {
      made = ref(run_kept(s, g.which, given, n, names.get(), g.stack ? &stack : nullptr));
      again = !made && !PyErr_Occurred() && --others >= 0 && ref(operate(s, g.which, given, n, names.get()));
    }
    if (!made) {  // the group tells what fails, of which array
      if (PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_Exception)) PyErr_Clear();
      return nullptr;
    }
    if (!g.stack && PyList_SetItem(list.get(), i, made.release()) != 0) return nullptr;
  }
  return g.stack ? stack.all.object.release() : list.release();
}

}  // namespace

PyObject* group(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  state& s = *state_of(module);
  const char* name = nullptr;
  const operation* const found = operation_named(s, a, n, &name);
  if (!found) return nullptr;
  const called_function named(found->name);
  group_of_calls g(*found);
  if (!g.read(s, a + 1, n - 1, keywords)) return nullptr;
  PyObject* const done_apart = one_by_one(s, g, a + 1, n - 1, keywords);
  if (done_apart || PyErr_Occurred()) return done_apart;
  if (!g.take_all(s)) return nullptr;
  g.set_flags(g.set.options.stream);
  if (!g.check_each_op(s) || !g.run_alone(s)) return nullptr;
  lockstep_context* const context = g.set.context->handle;
  const bool done = run_each_op(s, g, [&](size_t k) {
    const calls_of_op& of = g.calls[k];
    g.set.options.variant = of.variant;
    const without_gil released;
    return lockstep_execute_group(context, of.op, of.descs.data(), of.desc_bytes(), of.count(), of.srcs.data(),
                                  of.dsts.data(), &g.set.options);
  });
  return done ? g.give(s) : nullptr;
}

}  // namespace lockstep::python
