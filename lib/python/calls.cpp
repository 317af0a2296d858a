// calls.cpp - the operations as Python sees them: parse, take the arrays in, describe, run, hand the result out.
#include <cstring>

#include "call.hpp"
#include "docs.hpp"

namespace lockstep::python {

lockstep_status run(call& c, settings& set, const array& x, const array& dst) {
  lockstep_context* const context = set.context->handle;
  const without_gil released;
  switch (c.op) {
    case LOCKSTEP_TRANSPOSE: return lockstep_transpose(context, &c.transpose, x.data, dst.data, &set.options);
    case LOCKSTEP_PERMUTE: return lockstep_permute(context, &c.permute, x.data, dst.data, &set.options);
    case LOCKSTEP_SQUARE_SUM: return lockstep_square_sum(context, &c.reduce, x.data, dst.data, &set.options);
    case LOCKSTEP_REDUCE: return lockstep_reduce(context, &c.reduce, x.data, dst.data, &set.options);
    case LOCKSTEP_STENCIL: return lockstep_stencil(context, &c.stencil, x.data, dst.data, &set.options);
    default: return lockstep_shuffle(context, &c.shuffle, x.data, dst.data, &set.options);
  }
}

void queue_on(settings& set, const array& x, const array& dst) {
  set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};
  set.options.stream = nullptr;
  if (!x.on_device()) return;
  set.options.stream = x.stream;
  // On a stream of the caller's choice the call waits: memory of a library's pool may go back before that stream is
  // done.
  if (dst.on_device() && !set.stream && !set.check) set.options.flags |= LOCKSTEP_ASYNC;
}

bool after_call(state& s, lockstep_op op) {
  if (!s.hook) return true;
  const ref done(PyObject_CallFunction(s.hook, "s", lockstep_op_name(op)));
  return static_cast<bool>(done);
}

PyObject* execute(state& s, call& c, settings& set, array& x, result& r) {
  queue_on(set, x, r.dst);
  if (r.adopt) set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};  // its library knows nothing of this stream
  const lockstep_status status = run(c, set, x, r.dst);
  if (status == LOCKSTEP_OK) return after_call(s, c.op) ? finish_result(s, c, x, r) : nullptr;
  raise_status(s, status);
  if (status == LOCKSTEP_OVERFLOW) {  // the others' results stand
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    const ref out(finish_result(s, c, x, r));
    if (out) PyObject_SetAttrString(value, "out", out.get());
    PyErr_Clear();
    PyErr_Restore(type, value, trace);
  }
  return nullptr;
}

namespace {

constexpr keyword common[] = {kw_out, kw_stream, kw_context, kw_backend, kw_variant, kw_check};

// Names of an operation's arguments: its own, then the common ones.
template <keyword... Own>
constexpr auto signature() {
  struct {
    keyword names[sizeof...(Own) + sizeof common / sizeof *common];
    int count = sizeof...(Own) + sizeof common / sizeof *common;
  } all{{Own...}};
  int i = sizeof...(Own);
  for (const keyword k : common) all.names[i++] = k;
  return all;
}

PyObject* finish(state& s, call& c, settings& set, source& x) {
  result r;
  if (!make_result(s, c, *x.use, set.out, set.stream, r) || !place(s, *x.use, r.dst, c)) return nullptr;
  return execute(s, c, set, *x.use, r);
}

PyObject* move_axes(state& s, lockstep_op op, values& v, settings& set) {
  source x;
  if (!read_source(s, v[kw_x], "x", set, x)) return nullptr;
  call c(op);
  const int rank = x.use->rank;
  for (int k = 0; k < rank; ++k) c.axes[k] = k;
  if (op == LOCKSTEP_TRANSPOSE) {
    if (rank < 2)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                   "x has %d axes; transpose exchanges the last two: give an array with two or more", rank);
    std::swap(c.axes[rank - 2], c.axes[rank - 1]);
  } else {
    int count = 0;
    if (!read_axes(s, v[kw_axes], "axes", rank, c.axes, &count)) return nullptr;
    if (count != rank)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "axes is %R; name each of the array's %d axes", v[kw_axes], rank);
  }
  if (!describe_permute(s, *x.use, c)) return nullptr;
  return finish(s, c, set, x);
}

PyObject* transpose(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  static constexpr auto names = signature<kw_x>();
  state& s = *state_of(module);
  values v;
  settings set;
  if (!parse(s, "transpose", names.names, 1, names.count, 1, a, n, keywords, v) ||
      !read_settings(s, LOCKSTEP_TRANSPOSE, v, set))
    return nullptr;
  return move_axes(s, LOCKSTEP_TRANSPOSE, v, set);
}

PyObject* permute(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  static constexpr auto names = signature<kw_x, kw_axes>();
  state& s = *state_of(module);
  values v;
  settings set;
  if (!parse(s, "permute", names.names, 2, names.count, 2, a, n, keywords, v) ||
      !read_settings(s, LOCKSTEP_PERMUTE, v, set))
    return nullptr;
  return move_axes(s, LOCKSTEP_PERMUTE, v, set);
}

// Types that C does not reduce go through an exact copy in a wider one, in Python.
PyObject* widen(state& s, PyObject* module, const char* function, PyObject* x, const element& type, PyObject* const* a,
                Py_ssize_t n, PyObject* keywords) {
  char text[64];
  const ref self(PyObject_GetAttrString(module, function)), name(PyUnicode_FromString(element_name(type, text)));
  const ref rest(PyTuple_New(n > 0 ? n - 1 : 0)), named(PyDict_New());
  if (!self || !name || !rest || !named) return nullptr;
  for (Py_ssize_t i = 1; i < n; ++i)
    if (PyTuple_SetItem(rest.get(), i - 1, Py_NewRef(a[i])) != 0) return nullptr;
  const Py_ssize_t count = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < count; ++i)
    if (PyDict_SetItem(named.get(), PyTuple_GetItem(keywords, i), a[n + i]) != 0) return nullptr;
  return call_helper(s, "reduce_widened", self.get(), x, name.get(), rest.get(), named.get()).release();
}

template <lockstep_reduction reduction>
PyObject* reduce(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords, const char* function) {
  static constexpr bool sums =
      reduction == LOCKSTEP_SUM || reduction == LOCKSTEP_SUM_OF_SQUARES || reduction == LOCKSTEP_NORM2;
  static constexpr auto names = [] {
    if constexpr (sums)
      return signature<kw_x, kw_axis, kw_keepdims, kw_dtype>();
    else
      return signature<kw_x, kw_axis, kw_keepdims>();
  }();
  constexpr lockstep_op op =
      reduction == LOCKSTEP_SUM_OF_SQUARES || reduction == LOCKSTEP_NORM2 ? LOCKSTEP_SQUARE_SUM : LOCKSTEP_REDUCE;
  state& s = *state_of(module);
  values v;
  settings set;
  if (!parse(s, function, names.names, 2, names.count, 1, a, n, keywords, v) || !read_settings(s, op, v, set))
    return nullptr;
  source x;
  if (!read_source(s, v[kw_x], "x", set, x)) return nullptr;
  if (!reduces(reduction, dtype_of(x.use->type)))
    return widen(s, module, function, v[kw_x], x.use->type, a, n, keywords);
  call c(op);
  result temporary;
  if (!describe_reduce(s, x, set, v, reduction, c, true, temporary)) return nullptr;
  return finish(s, c, set, x);
}

template <lockstep_reduction reduction>
PyObject* segments(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords, const char* function) {
  static constexpr bool sums =
      reduction == LOCKSTEP_SUM || reduction == LOCKSTEP_SUM_OF_SQUARES || reduction == LOCKSTEP_NORM2;
  static constexpr auto names = [] {
    if constexpr (sums)
      return signature<kw_x, kw_offsets, kw_dtype>();
    else
      return signature<kw_x, kw_offsets>();
  }();
  constexpr lockstep_op op =
      reduction == LOCKSTEP_SUM_OF_SQUARES || reduction == LOCKSTEP_NORM2 ? LOCKSTEP_SQUARE_SUM : LOCKSTEP_REDUCE;
  state& s = *state_of(module);
  values v;
  settings set;
  if (!parse(s, function, names.names, 2, names.count, 2, a, n, keywords, v) || !read_settings(s, op, v, set))
    return nullptr;
  source x, offsets;
  if (!read_source(s, v[kw_x], "x", set, x) || !read_source(s, v[kw_offsets], "offsets", set, offsets)) return nullptr;
  if (!reduces(reduction, dtype_of(x.use->type)))
    return widen(s, module, function, v[kw_x], x.use->type, a, n, keywords);
  call c(op);
  if (!describe_segments(s, x, *offsets.use, v, reduction, c)) return nullptr;
  return finish(s, c, set, x);
}

#define LOCKSTEP_REDUCTION(name, shape, which)                                             \
  PyObject* name(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) { \
    return shape<which>(module, a, n, keywords, #name);                                    \
  }
LOCKSTEP_REDUCTION(sum, reduce, LOCKSTEP_SUM)
LOCKSTEP_REDUCTION(square_sum, reduce, LOCKSTEP_SUM_OF_SQUARES)
LOCKSTEP_REDUCTION(norm, reduce, LOCKSTEP_NORM2)
LOCKSTEP_REDUCTION(max, reduce, LOCKSTEP_MAX)
LOCKSTEP_REDUCTION(min, reduce, LOCKSTEP_MIN)
LOCKSTEP_REDUCTION(argmax, reduce, LOCKSTEP_ARGMAX)
LOCKSTEP_REDUCTION(argmin, reduce, LOCKSTEP_ARGMIN)
LOCKSTEP_REDUCTION(segment_sum, segments, LOCKSTEP_SUM)
LOCKSTEP_REDUCTION(segment_square_sum, segments, LOCKSTEP_SUM_OF_SQUARES)
LOCKSTEP_REDUCTION(segment_norm, segments, LOCKSTEP_NORM2)
LOCKSTEP_REDUCTION(segment_max, segments, LOCKSTEP_MAX)
LOCKSTEP_REDUCTION(segment_min, segments, LOCKSTEP_MIN)
LOCKSTEP_REDUCTION(segment_argmax, segments, LOCKSTEP_ARGMAX)
LOCKSTEP_REDUCTION(segment_argmin, segments, LOCKSTEP_ARGMIN)
#undef LOCKSTEP_REDUCTION

PyObject* stencil(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  static constexpr auto names = signature<kw_x, kw_weights, kw_radius, kw_mode, kw_cval, kw_sweeps, kw_form, kw_axes>();
  state& s = *state_of(module);
  values v;
  settings set;
  if (!parse(s, "stencil", names.names, 2, names.count, 2, a, n, keywords, v) ||
      !read_settings(s, LOCKSTEP_STENCIL, v, set))
    return nullptr;
  source x;
  call c(LOCKSTEP_STENCIL);
  result temporary;
  if (!read_source(s, v[kw_x], "x", set, x) || !describe_stencil(s, x, set, v, c, true, temporary)) return nullptr;
  return finish(s, c, set, x);
}

PyObject* shuffle(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  static constexpr auto names = signature<kw_x, kw_kind, kw_operand, kw_width>();
  state& s = *state_of(module);
  values v;
  settings set;
  if (!parse(s, "shuffle", names.names, 3, names.count, 3, a, n, keywords, v) ||
      !read_settings(s, LOCKSTEP_SHUFFLE, v, set))
    return nullptr;
  source x;
  call c(LOCKSTEP_SHUFFLE);
  result temporary;
  if (!read_source(s, v[kw_x], "x", set, x) || !packed_source(s, x, set, temporary) ||
      !describe_shuffle(s, *x.use, v, c))
    return nullptr;
  return finish(s, c, set, x);
}

template <class Function>
PyCFunction method(Function* f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace

#define LOCKSTEP_METHOD(name) \
  { #name, method(name), METH_FASTCALL | METH_KEYWORDS, docs::name }
PyMethodDef operations[] = {LOCKSTEP_METHOD(transpose),
                            LOCKSTEP_METHOD(permute),
                            LOCKSTEP_METHOD(sum),
                            LOCKSTEP_METHOD(square_sum),
                            LOCKSTEP_METHOD(norm),
                            LOCKSTEP_METHOD(max),
                            LOCKSTEP_METHOD(min),
                            LOCKSTEP_METHOD(argmax),
                            LOCKSTEP_METHOD(argmin),
                            LOCKSTEP_METHOD(segment_sum),
                            LOCKSTEP_METHOD(segment_square_sum),
                            LOCKSTEP_METHOD(segment_norm),
                            LOCKSTEP_METHOD(segment_max),
                            LOCKSTEP_METHOD(segment_min),
                            LOCKSTEP_METHOD(segment_argmax),
                            LOCKSTEP_METHOD(segment_argmin),
                            LOCKSTEP_METHOD(stencil),
                            LOCKSTEP_METHOD(shuffle),
                            {nullptr, nullptr, 0, nullptr}};

}  // namespace lockstep::python
