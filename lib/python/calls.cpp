// calls.cpp - the operations as Python sees them: parse, take the arrays in, describe, run, hand the result out.
#include <cstring>

#include "docs.hpp"
#include "docs_functions.hpp"
#include "docs_rows.hpp"
#include "docs_sums.hpp"
#include "operations.hpp"

namespace lockstep::python {

bool is_brief(const call& c, const settings& set, const context_object& context, const array& x, const array& dst) {
  // Elements that take no more than a few microseconds, by any variant; functions and scans take longer for each.
  const bool quick = c.op != LOCKSTEP_MAP && c.op != LOCKSTEP_SCAN && c.op != LOCKSTEP_NORMALIZE;
  const int64_t few = quick ? 4096 : 512;
  return x.size <= few && dst.size <= few && !x.on_device() && !dst.on_device() && c.op != LOCKSTEP_STENCIL &&
         context.warm && !set.options.backend;
}

lockstep_status run(call& c, settings& set, const array& x, const array& dst) {
  lockstep_context* const context = set.context->handle;
  const without_gil released(!is_brief(c, set, *set.context, x, dst));
  return lockstep_execute(context, c.op, c.description(), x.data, dst.data, &set.options);
}

void stay_on_device(settings& set, const array& x) {
  static constexpr const char* names[] = {"cuda:0", "cuda:1", "cuda:2", "cuda:3",
                                          "cuda:4", "cuda:5", "cuda:6", "cuda:7"};
  const char* const named = set.options.backend;
  if (!x.on_device() || !x.device_known || (named && std::strcmp(named, "auto") != 0)) return;
  if (x.device.id >= 0 && static_cast<size_t>(x.device.id) < sizeof names / sizeof *names) {
    set.options.backend = names[x.device.id];
    return;
  }
  PyOS_snprintf(set.device, sizeof set.device, "cuda:%d", static_cast<int>(x.device.id));
  set.options.backend = set.device;
}

void queue_on(settings& set, const array& x, const array& dst, bool planned) {
  set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};
  set.options.stream = nullptr;
  if (!x.on_device()) return;
  set.options.stream = x.stream;
  if (!planned) stay_on_device(set, x);
  set.options.flags |= LOCKSTEP_NO_FALLBACK;  // to the CPU, that is
  // On a stream of the caller's choice the call waits: memory of a library's pool may go back before that stream is
  // done.
  // So it does where a library's later work could not see what is queued here: a Buffer has no stream at all.
  const bool seen = !set.wait && !dst.elsewhere;
  const bool has_stream = !dst.producer || dst.producer->library != own;
  if (dst.on_device() && !set.stream && !set.check && seen && has_stream) set.options.flags |= LOCKSTEP_ASYNC;
}

PyObject* execute(state& s, call& c, settings& set, array& x, result& r) {
  queue_on(set, x, r.dst);
  if (r.adopt) set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};  // its library knows nothing of this stream
  const lockstep_status status = run(c, set, x, r.dst);
  if (status == LOCKSTEP_OK) set.context->warm = true;
  return conclude(s, c, x, r, status);
}

PyObject* conclude(state& s, const call& c, const array& x, result& r, lockstep_status status) {
  if (status == LOCKSTEP_OK) return after_call(s, c.op) ? finish_result(s, c, x, r) : nullptr;
  raise_status(s, status);
  if (status == LOCKSTEP_OVERFLOW) attach_out(s, c, x, r);
  return nullptr;
}

void attach_out(state& s, const call& c, const array& x, result& r) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const ref out(finish_result(s, c, x, r));
  if (out) PyObject_SetAttrString(value, "out", out.get());
  PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

namespace {

template <size_t N>
constexpr operation row(const char* name, task what, lockstep_op op, const keyword (&own)[N], int positional,
                        int required, int kind = LOCKSTEP_SUM) {
  operation o{name, what, op, kind, {}, N, positional, required};
  for (size_t i = 0; i < N; ++i) o.own[i] = own[i];
  return o;
}
constexpr keyword reduced[] = {kw_x, kw_axis, kw_keepdims}, chosen[] = {kw_x, kw_axis, kw_keepdims, kw_where};
constexpr keyword extreme[] = {kw_x, kw_axis, kw_keepdims, kw_where, kw_initial};
constexpr keyword summed[] = {kw_x, kw_axis, kw_dtype, kw_keepdims, kw_where};
constexpr keyword joined[] = {kw_x, kw_axis, kw_dtype, kw_keepdims, kw_where, kw_initial};
constexpr keyword cut[] = {kw_x, kw_offsets}, cut_sum[] = {kw_x, kw_offsets, kw_dtype};
constexpr keyword rows[] = {kw_x, kw_axis, kw_weight, kw_bias, kw_eps, kw_residual, kw_residual_out, kw_dtype};
constexpr keyword backward[] = {kw_x,        kw_gradient,        kw_axis,         kw_weight, kw_eps,
                                kw_residual, kw_weight_gradient, kw_bias_gradient};
constexpr keyword exponentials[] = {kw_x, kw_axis, kw_scale, kw_residual, kw_residual_out, kw_dtype};
constexpr keyword one_a_row[] = {kw_x, kw_axis, kw_keepdims, kw_scale, kw_residual, kw_residual_out, kw_dtype};
constexpr keyword labelled[] = {kw_x,     kw_labels,   kw_axis,         kw_keepdims,
                                kw_scale, kw_residual, kw_residual_out, kw_dtype};
constexpr keyword cut_rows[] = {kw_x, kw_offsets, kw_scale, kw_dtype};
constexpr keyword cut_labelled[] = {kw_x, kw_labels, kw_offsets, kw_scale, kw_dtype};
constexpr keyword added_up[] = {kw_x, kw_axis, kw_exclusive, kw_dtype}, running[] = {kw_x, kw_axis, kw_exclusive};
constexpr keyword of_two[] = {kw_x, kw_y, kw_axis, kw_keepdims, kw_dtype};
constexpr keyword spread[] = {kw_x, kw_axis, kw_dtype, kw_keepdims, kw_correction, kw_ddof, kw_where};
constexpr keyword rooted_sum[] = {kw_x, kw_axis, kw_keepdims, kw_dtype, kw_ord, kw_where};
constexpr keyword of_each[] = {kw_x, kw_dtype, kw_scale, kw_times};
constexpr lockstep_op SQUARES = LOCKSTEP_SQUARE_SUM, REDUCE = LOCKSTEP_REDUCE;

constexpr operation table[] = {
    row("transpose", task::transpose, LOCKSTEP_TRANSPOSE, {kw_x, kw_axes}, 2, 1),
    row("permute", task::permute, LOCKSTEP_PERMUTE, {kw_x, kw_axes}, 2, 2),
    row("sum", task::reduce, REDUCE, joined, 3, 1, LOCKSTEP_SUM),
    row("square_sum", task::reduce, SQUARES, summed, 3, 1, LOCKSTEP_SUM_OF_SQUARES),
    row("norm", task::reduce, SQUARES, rooted_sum, 2, 1, LOCKSTEP_NORM2),
    row("max", task::reduce, REDUCE, extreme, 2, 1, LOCKSTEP_MAX),
    row("min", task::reduce, REDUCE, extreme, 2, 1, LOCKSTEP_MIN),
    row("argmax", task::reduce, REDUCE, reduced, 2, 1, LOCKSTEP_ARGMAX),
    row("argmin", task::reduce, REDUCE, reduced, 2, 1, LOCKSTEP_ARGMIN),
    row("count_nonzero", task::reduce, REDUCE, chosen, 2, 1, LOCKSTEP_COUNT_NONZERO),
    row("any", task::reduce, REDUCE, chosen, 2, 1, LOCKSTEP_ANY),
    row("all", task::reduce, REDUCE, chosen, 2, 1, LOCKSTEP_ALL),
    row("prod", task::reduce, REDUCE, joined, 3, 1, LOCKSTEP_PROD),
    row("nansum", task::reduce, REDUCE, joined, 3, 1, LOCKSTEP_NAN_SUM),
    row("nanmax", task::reduce, REDUCE, extreme, 2, 1, LOCKSTEP_NAN_MAX),
    row("nanmin", task::reduce, REDUCE, extreme, 2, 1, LOCKSTEP_NAN_MIN),
    row("segment_sum", task::segments, REDUCE, cut_sum, 2, 2, LOCKSTEP_SUM),
    row("segment_square_sum", task::segments, SQUARES, cut_sum, 2, 2, LOCKSTEP_SUM_OF_SQUARES),
    row("segment_norm", task::segments, SQUARES, cut_sum, 2, 2, LOCKSTEP_NORM2),
    row("segment_max", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_MAX),
    row("segment_min", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_MIN),
    row("segment_argmax", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_ARGMAX),
    row("segment_argmin", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_ARGMIN),
    row("segment_count_nonzero", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_COUNT_NONZERO),
    row("segment_any", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_ANY),
    row("segment_all", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_ALL),
    row("segment_prod", task::segments, REDUCE, cut_sum, 2, 2, LOCKSTEP_PROD),
    row("segment_nansum", task::segments, REDUCE, cut_sum, 2, 2, LOCKSTEP_NAN_SUM),
    row("segment_nanmax", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_NAN_MAX),
    row("segment_nanmin", task::segments, REDUCE, cut, 2, 2, LOCKSTEP_NAN_MIN),
    row("stencil", task::stencil, LOCKSTEP_STENCIL,
        {kw_x, kw_weights, kw_radius, kw_mode, kw_cval, kw_sweeps, kw_form, kw_axes}, 2, 2),
    row("shuffle", task::shuffle, LOCKSTEP_SHUFFLE, {kw_x, kw_kind, kw_operand, kw_width}, 3, 3),
    row("normalize", task::normalize, LOCKSTEP_NORMALIZE, rows, 2, 1, LOCKSTEP_NORMALIZE_L2),
    row("rms_norm", task::normalize, LOCKSTEP_NORMALIZE, rows, 2, 1, LOCKSTEP_NORMALIZE_RMS),
    row("layer_norm", task::normalize, LOCKSTEP_NORMALIZE, rows, 2, 1, LOCKSTEP_NORMALIZE_LAYER),
    row("rms_norm_backward", task::normalize, LOCKSTEP_NORMALIZE, backward, 3, 2, LOCKSTEP_NORMALIZE_RMS_BACKWARD),
    row("layer_norm_backward", task::normalize, LOCKSTEP_NORMALIZE, backward, 3, 2, LOCKSTEP_NORMALIZE_LAYER_BACKWARD),
    row("softmax", task::normalize, LOCKSTEP_NORMALIZE, exponentials, 2, 1, LOCKSTEP_NORMALIZE_SOFTMAX),
    row("log_softmax", task::normalize, LOCKSTEP_NORMALIZE, exponentials, 2, 1, LOCKSTEP_NORMALIZE_LOG_SOFTMAX),
    row("logsumexp", task::normalize, LOCKSTEP_NORMALIZE, one_a_row, 2, 1, LOCKSTEP_NORMALIZE_LOGSUMEXP),
    row("picked", task::normalize, LOCKSTEP_NORMALIZE, labelled, 3, 2, LOCKSTEP_NORMALIZE_PICKED),
    row("segment_softmax", task::normalize, LOCKSTEP_NORMALIZE, cut_rows, 2, 2, LOCKSTEP_NORMALIZE_SOFTMAX),
    row("segment_log_softmax", task::normalize, LOCKSTEP_NORMALIZE, cut_rows, 2, 2, LOCKSTEP_NORMALIZE_LOG_SOFTMAX),
    row("segment_logsumexp", task::normalize, LOCKSTEP_NORMALIZE, cut_rows, 2, 2, LOCKSTEP_NORMALIZE_LOGSUMEXP),
    row("segment_picked", task::normalize, LOCKSTEP_NORMALIZE, cut_labelled, 3, 3, LOCKSTEP_NORMALIZE_PICKED),
    row("cumsum", task::scan, LOCKSTEP_SCAN, added_up, 2, 1, LOCKSTEP_SUM),
    row("cummax", task::scan, LOCKSTEP_SCAN, running, 2, 1, LOCKSTEP_MAX),
    row("cummin", task::scan, LOCKSTEP_SCAN, running, 2, 1, LOCKSTEP_MIN),
    row("dot", task::sums, LOCKSTEP_SUMS, of_two, 3, 2, LOCKSTEP_SUMS_DOT),
    row("squared_distance", task::sums, LOCKSTEP_SUMS, of_two, 3, 2, LOCKSTEP_SUMS_SQUARED_DIFFERENCES),
    row("l1_distance", task::sums, LOCKSTEP_SUMS, of_two, 3, 2, LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES),
    row("l1_norm", task::sums, LOCKSTEP_SUMS, summed, 3, 1, LOCKSTEP_SUMS_ABSOLUTE),
    row("mean", task::moments, LOCKSTEP_SUMS, summed, 3, 1, part_mean),
    row("var", task::moments, LOCKSTEP_SUMS, spread, 3, 1, part_variance),
    row("std", task::moments, LOCKSTEP_SUMS, spread, 3, 1, part_root),
    row("convert", task::convert, LOCKSTEP_CONVERT, {kw_x, kw_dtype, kw_axes, kw_scale}, 2, 2),
    row("mean_var", task::moments, LOCKSTEP_SUMS, spread, 3, 1, part_mean | part_variance),
    row("exp", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_EXP),
    row("expm1", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_EXPM1),
    row("log", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_LOG),
    row("log1p", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_LOG1P),
    row("sqrt", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_SQRT),
    row("rsqrt", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_RSQRT),
    row("reciprocal", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_RECIPROCAL),
    row("tanh", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_TANH),
    row("sigmoid", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_SIGMOID),
    row("silu", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_SILU),
    row("gelu", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_GELU),
    row("gelu_tanh", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_GELU_TANH),
    row("erf", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_ERF),
    row("softplus", task::map, LOCKSTEP_MAP, of_each, 2, 1, LOCKSTEP_MAP_SOFTPLUS),
    // The names under which NumPy's transpose and dot of matrices are not meant.
    row("matrix_transpose", task::transpose, LOCKSTEP_TRANSPOSE, {kw_x}, 1, 1),
    row("vdot", task::sums, LOCKSTEP_SUMS, {kw_x, kw_y, kw_dtype}, 2, 2, LOCKSTEP_SUMS_DOT),
};
constexpr int count_of_operations = sizeof table / sizeof *table, count_of_docs = sizeof docs / sizeof *docs;

// Calls a helper that calls the operation anew on other arrays: helper(function, x, detail, arguments by name).
PyObject* by_helper(state& s, const char* helper, const operation& o, const array& source, PyObject* detail,
                    PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  const ref self(PyObject_GetAttrString(s.module, o.name)), named(PyDict_New());
  if (!self || !detail || !named) return nullptr;
  PyObject* const x = source.object;  // of a list the array that NumPy made of it
  for (Py_ssize_t i = 1; i < n; ++i)
    if (PyDict_SetItem(named.get(), s.names[o.own[i]], a[i]) != 0) return nullptr;
  const Py_ssize_t count = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const key = PyTuple_GetItem(keywords, i);
    if (PyUnicode_CompareWithASCIIString(key, keyword_names[kw_x]) != 0 &&
        PyDict_SetItem(named.get(), key, a[n + i]) != 0)
      return nullptr;
  }
  return call_helper(s, helper, self.get(), x, detail, named.get()).release();
}

// By a helper that asks for x's type. widened_call: types that the backend does not take go through an exact copy in a
// wider one. rooted_call: C takes no root of a device's variances; the array's library does, which rounds a double's
// root correctly too.
PyObject* by_type(state& s, const char* helper, const operation& o, const array& x, PyObject* const* a, Py_ssize_t n,
                  PyObject* keywords) {
  char text[64];
  const ref name(PyUnicode_FromString(element_name(x.type, text)));
  return by_helper(s, helper, o, x, name.get(), a, n, keywords);
}

// Rows or sequences that do not lie along the last axes are moved there, and the result back.
PyObject* along_others(state& s, const operation& o, const array& x, const call& c, PyObject* const* a, Py_ssize_t n,
                       PyObject* keywords) {
  const ref axes(PyTuple_New(c.inner));
  for (int i = 0; axes && i < c.inner; ++i) {
    PyObject* const axis = PyLong_FromLong(c.axes[i]);
    if (!axis || PyTuple_SetItem(axes.get(), i, axis) != 0) return nullptr;
  }
  return by_helper(s, "moved_call", o, x, axes.get(), a, n, keywords);
}

// A mask, or a value that each result is joined with.
PyObject* with_words(state& s, const operation& o, prepared& p, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  return read_source(s, p.v[kw_x], "x", p.set, p.x)
             ? by_helper(s, "chosen_call", o, p.x.direct, Py_None, a, n, keywords)
             : nullptr;
}

// Warns of a call that means another thing in NumPy.
bool warn_of_meaning(const operation& o, const prepared& p, Py_ssize_t positional) {
  const char* text = nullptr;
  const int rank = p.x.direct.rank;
  if (o.what == task::transpose && rank > 2 && !p.v[kw_axes] && std::strcmp(o.name, "transpose") == 0)
    text =
        "transpose of three axes or more exchanges the last two, where numpy.transpose reverses all; use "
        "matrix_transpose, or name the axes";
  else if (std::strcmp(o.name, "norm") == 0 && positional > 1 && p.v[kw_axis] && rank > 1)
    text =
        "the second argument of norm is axis, where that of numpy.linalg.norm is ord; write axis=, or take l1_norm for "
        "the 1-norm";
  else if (std::strcmp(o.name, "dot") == 0 && rank == 2 && !p.v[kw_axis] && p.other && p.other->y.direct.rank == 2)
    text =
        "dot of two matrices sums all products of their elements, where numpy.dot multiplies matrices; use vdot, or "
        "axis=(0, 1), or multiply by x @ y";
  return !text || PyErr_WarnEx(PyExc_UserWarning, text, 1) == 0;
}

}  // namespace

bool in_scope(state& s, bool* scoped) {
  *scoped = s.scoped;
  if (!*scoped) return true;
  const ref scope(PyObject_CallNoArgs(s.scope_get));
  *scoped = scope.get() != Py_None;  // else all blocks have been left
  return static_cast<bool>(scope);
}

PyObject* operate(state& s, const operation& o, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  const called_function named(o.name);
  bool scoped = false;
  if (!in_scope(s, &scoped)) return nullptr;
  if (!scoped) {
    PyObject* const done = run_kept(s, o, a, n, keywords);
    if (done || PyErr_Occurred()) return done;
  }
  settings set;
  prepared p(o, set);
  if (!p.read(s, a, n, keywords)) return nullptr;
  if (p.v[kw_where] || p.v[kw_initial]) return with_words(s, o, p, a, n, keywords);
  if (!p.describe(s, true) || !warn_of_meaning(o, p, n)) return nullptr;
  if ((p.wide && !may_copy(p.set, "x", "would have to be made wider")) ||
      (p.of_rows && o.what == task::normalize && !may_copy(p.set, "x", "has several axes, which are moved first")) ||
      (p.elsewhere && !may_copy(p.set, "x", "does not lie as the operation reads it along these axes")))
    return nullptr;
  if (p.wide) return by_type(s, "widened_call", o, p.x.direct, a, n, keywords);
  if (p.root) return by_type(s, "rooted_call", o, p.x.direct, a, n, keywords);
  if (p.elsewhere) return along_others(s, o, p.x.direct, p.description, a, n, keywords);
  if (p.of_rows && o.what == task::normalize)
    return by_helper(s, "ragged_call", o, p.x.direct, Py_None, a, n, keywords);
  if (p.of_rows) return segments_of_rows(s, p);
  if (o.what == task::moments) return moments(s, p.description, p.set, *p.x.use, o.kind);
  result r;
  if (!make_result(s, p.description, *p.x.use, p.set.out, p.set.stream, r) || !place(s, *p.x.use, r.dst, p.description))
    return nullptr;
  PyObject* const done = execute(s, p.description, p.set, *p.x.use, r);
  if (done && o.what == task::normalize && !warn_of_rows(o, p.description, *p.x.use, r.dst))
    return Py_DECREF(done), nullptr;
  if (!scoped && done && is_brief(p.description, p.set, *p.set.context, *p.x.use, r.dst)) keep(s, p, r, a, n, keywords);
  if (done || !p.may_widen() || !is_narrow(dtype_of(p.x.direct.type)) ||
      !PyErr_ExceptionMatches(s.errors[LOCKSTEP_UNSUPPORTED]))
    return done;
  PyErr_Clear();
  if (!may_copy(p.set, "x", "would have to be made wider")) return nullptr;
  return by_type(s, "widened_call", o, p.x.direct, a, n, keywords);
}

namespace {

template <int i>
PyObject* entry(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  return operate(*state_of(module), table[i], a, n, keywords);
}

constexpr int count_of_row_docs = sizeof row_docs / sizeof *row_docs;
constexpr int count_of_sums_docs = sizeof sums_docs / sizeof *sums_docs;
constexpr const char* doc_of(int i) {
  if (i < count_of_docs) return docs[i];
  i -= count_of_docs;
  if (i < count_of_row_docs) return row_docs[i];
  i -= count_of_row_docs;
  return i < count_of_sums_docs ? sums_docs[i] : function_docs[i - count_of_sums_docs];
}

PyMethodDef method(const char* name, PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*),
                   const char* doc = nullptr) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function)), METH_FASTCALL | METH_KEYWORDS,
          doc};
}

template <int... i>
void fill_methods(PyMethodDef* methods, std::integer_sequence<int, i...>) {
  ((methods[i] = method(table[i].name, entry<i>, doc_of(i))), ...);
}

// A plan of mean_var gives C's pairs as they are: one more axis, of two.
bool pair_of(call& c, int parts) {
  if (parts != (part_mean | part_variance) || c.rank == max_rank) return false;
  c.shape[c.rank++] = 2;
  c.scalar = false;
  return true;
}

}  // namespace

const operation* operation_named(state& s, PyObject* const* a, Py_ssize_t n, const char** name) {
  if (n < 1) return PyErr_SetString(PyExc_TypeError, "name a function, then give its arguments"), nullptr;
  if (!read_text(s, a[0], "function", name)) return nullptr;
  for (const operation& o : table)
    if (*name && std::strcmp(o.name, *name) == 0) return &o;
  return raise(s, LOCKSTEP_INVALID_ARGUMENT, "there is no operation '%s'", *name ? *name : ""), nullptr;
}

namespace {

// plan(function, x, ...): the same arguments as the function's, but for out and check.
PyObject* plan(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  state& s = *state_of(module);
  const char* name = nullptr;
  const operation* const found = operation_named(s, a, n, &name);
  if (!found) return nullptr;
  const operation& o = *found;
  settings set;
  prepared p(o, set);
  bool tune = false;
  if (!p.read(s, a + 1, n - 1, keywords, {kw_tune, kw_workspace}) || !read_flag(p.v[kw_tune], &tune) ||
      !p.describe(s, false))
    return nullptr;
  for (const keyword k : {kw_out, kw_stream, kw_check})
    if (p.v[k])
      return PyErr_Format(PyExc_TypeError, "plan.%s() has no argument %s; give it to the plan's calls", name,
                          keyword_names[k]);
  // Any address says that each call brings one: the plan then has none of its own.
  bool brought = false;
  if (!read_flag(p.v[kw_workspace], &brought)) return nullptr;
  alignas(256) static char anywhere[256];
  if (brought) p.set.options.workspace = anywhere, p.set.options.workspace_bytes = SIZE_MAX;
  if (tune) p.set.options.flags |= LOCKSTEP_TUNE;
  char text[64];
  if (p.wide)
    return raise_dtype(s, "x holds %s, which %s takes only as a copy of a wider type; make a plan for that type",
                       element_name(p.x.use->type, text), name);
  if (p.x.use != &p.x.direct) return raise(s, LOCKSTEP_UNSUPPORTED, "a plan makes no copy; give a packed array");
  if (p.of_rows)
    return raise(s, LOCKSTEP_UNSUPPORTED, "a plan takes segments of an array of one axis; call %s itself", name);
  if (o.what == task::moments && !pair_of(p.description, o.kind))
    return raise(s, LOCKSTEP_UNSUPPORTED, "there is no plan of %s alone; plan.mean_var gives an array of pairs", name);
  // What its calls read besides x and out: a copy of offsets that are not packed, the array that was made of a list.
  const auto read = [&](const source& from, keyword k) {
    return from.copy ? from.copy.get() : from.direct.object ? from.direct.object : or_none(p.v[k]);
  };
  const ref keep(Py_BuildValue(
      "[OOOOOOOOOO]", read(p.offsets, kw_offsets), p.more ? read(p.more->weight, kw_weight) : Py_None,
      p.more ? read(p.more->bias, kw_bias) : Py_None, p.more ? read(p.more->residual, kw_residual) : Py_None,
      or_none(p.v[kw_residual_out]), p.more ? read(p.more->labels, kw_labels) : Py_None,
      p.other ? read(p.other->y, kw_y) : Py_None, p.more ? read(p.more->gradient, kw_gradient) : Py_None,
      or_none(p.v[kw_weight_gradient]), or_none(p.v[kw_bias_gradient])));
  return keep ? make_plan(s, p.description, p.set, p.x.direct, keep.get()) : nullptr;
}

// describe(function, x, ...): what an XLA program needs to know of a call on packed arrays; xla.cpp.
PyObject* describe(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  state& s = *state_of(module);
  const char* name = nullptr;
  const operation* const o = operation_named(s, a, n, &name);
  if (!o) return nullptr;
  settings set;
  prepared p(*o, set);
  if (!p.read(s, a + 1, n - 1, keywords) || !p.describe(s, false)) return nullptr;
  char text[64];
  if (p.wide || p.elsewhere || p.root || p.of_rows || p.x.use != &p.x.direct || p.v[kw_offsets] ||
      (o->what == task::moments && !pair_of(p.description, o->kind)))
    return raise_dtype(s, "%s of %s needs a copy; call it outside jit, or convert x", name,
                       element_name(p.x.use->type, text));
  call& c = p.description;
  array dst;  // packed, without memory
  dst.type = c.type;
  pack(dst, c.rank, c.shape);
  if (!place(s, p.x.direct, dst, c)) return nullptr;
  return write_down(s, c, p.x.direct, p.v);
}

PyMethodDef methods[count_of_operations + 7];

}  // namespace

int add_operations(PyObject* module) {
  static_assert(count_of_docs + count_of_row_docs + count_of_sums_docs + sizeof function_docs / sizeof *function_docs ==
                count_of_operations);
  fill_methods(methods, std::make_integer_sequence<int, count_of_operations>());
  methods[count_of_operations] = method("plan", plan);
  methods[count_of_operations + 1] = method("describe", describe);
  methods[count_of_operations + 2] = {"xla_handlers", xla_handlers, METH_NOARGS, nullptr};
  methods[count_of_operations + 3] = method("group", group);
  methods[count_of_operations + 4] = method("plan_group", plan_group);
  methods[count_of_operations + 5] = method("digest", digest);
  return PyModule_AddFunctions(module, methods);
}

}  // namespace lockstep::python
