// arguments.cpp - keywords, axes, numbers, and the settings that every operation takes.
#include <cstring>

#include "call.hpp"

namespace lockstep::python {

const char* const keyword_names[kw_count] = {"x",
                                             "axis",
                                             "axes",
                                             "dtype",
                                             "keepdims",
                                             "offsets",
                                             "weights",
                                             "radius",
                                             "mode",
                                             "cval",
                                             "sweeps",
                                             "form",
                                             "kind",
                                             "operand",
                                             "width",
                                             "out",
                                             "stream",
                                             "context",
                                             "backend",
                                             "variant",
                                             "check",
                                             "weight",
                                             "bias",
                                             "eps",
                                             "residual",
                                             "residual_out",
                                             "exclusive",
                                             "tune",
                                             "y",
                                             "correction",
                                             "copy",
                                             "scale",
                                             "stack",
                                             "workspace",
                                             "ddof",
                                             "ord",
                                             "where",
                                             "initial",
                                             "labels",
                                             "times",
                                             "gradient",
                                             "weight_gradient",
                                             "bias_gradient"};

settings::~settings() {
  if (context) release_user(context);
}

bool parse(state& s, const char* function, const keyword* names, int positional, int count, int required,
           PyObject* const* arguments, Py_ssize_t given, PyObject* keywords, values& to) {
  for (auto& v : to) v = nullptr;
  if (given > positional)
    return PyErr_Format(PyExc_TypeError, "%s() takes %d positional arguments, %zd were given; the others go by name",
                        function, positional, given),
           false;
  for (Py_ssize_t i = 0; i < given; ++i) to[names[i]] = arguments[i];
  const Py_ssize_t named = keywords ? PyTuple_Size(keywords) : 0;
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GetItem(keywords, i);
    int found = -1;
    for (int k = 0; k < count && found < 0; ++k)
      if (s.names[names[k]] == name) found = names[k];
    for (int k = 0; k < count && found < 0; ++k)  // a name that was made at run time
      if (PyUnicode_CompareWithASCIIString(name, keyword_names[names[k]]) == 0) found = names[k];
    if (found < 0) return PyErr_Format(PyExc_TypeError, "%s() has no argument %R", function, name), false;
    if (to[found])
      return PyErr_Format(PyExc_TypeError, "%s() was given %s twice", function, keyword_names[found]), false;
    to[found] = arguments[given + i];
  }
  for (int k = 0; k < required; ++k)
    if (!to[names[k]])
      return PyErr_Format(PyExc_TypeError, "%s() needs the argument %s", function, keyword_names[names[k]]), false;
  for (int k = required; k < count; ++k)
    if (to[names[k]] == Py_None) to[names[k]] = nullptr;
  return true;
}

bool read_text(state& s, PyObject* object, const char* name, const char** to) {
  *to = nullptr;
  if (!object || object == Py_None) return true;
  if (!PyUnicode_Check(object)) return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; give a str", name, object), false;
  Py_ssize_t length = 0;
  *to = PyUnicode_AsUTF8AndSize(object, &length);
  if (*to && std::strlen(*to) != static_cast<size_t>(length))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R, with a NUL character", name, object), false;
  return *to != nullptr;
}

namespace {
// An int of Python's; TypeError of the whole argument where an item of it is none.
ref index_of(PyObject* item, const char* name, PyObject* whole, const char* wanted) {
  ref index(PyNumber_Index(item));
  if (!index && PyErr_ExceptionMatches(PyExc_TypeError))
    PyErr_Format(PyExc_TypeError, "%s is %R; give %s", name, whole, wanted);
  return index;
}
}  // namespace

bool read_integer(state& s, PyObject* object, const char* name, long long low, long long high, long long* to) {
  if (!object) return true;
  const ref index = index_of(object, name, object, "an int");
  if (!index) return false;
  int overflow = 0;
  *to = PyLong_AsLongLongAndOverflow(index.get(), &overflow);
  if (overflow || *to < low || *to > high)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; give %lld to %lld", name, object, low, high), false;
  return true;
}

bool read_flag(PyObject* object, bool* to) {
  if (!object) return true;
  const int truth = PyObject_IsTrue(object);
  *to = truth > 0;
  return truth >= 0;
}

bool read_double(state& s, PyObject* object, const char* name, double* to) {
  if (!object) return true;
  *to = PyFloat_AsDouble(object);
  if (*to != -1.0 || !PyErr_Occurred()) return true;
  if (!PyErr_ExceptionMatches(PyExc_Exception)) return false;  // an interrupt is no number's fault
  PyErr_Clear();
  return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; give a number", name, object), false;
}

bool read_result(state& s, PyObject* object, results allowed, lockstep_dtype* to) {
  if (!object) return true;
  const ref name = call_helper(s, "dtype_name", object);
  if (!name) return false;
  char list[96];
  int length = 0;
  for (const lockstep_dtype d : {allowed.plain, LOCKSTEP_F32, LOCKSTEP_F16, LOCKSTEP_BF16}) {
    const bool other = length > 0 && d == allowed.plain;
    if (length > 0 && (other || !(allowed.floats & (d == LOCKSTEP_F32 ? floats_of_32 : floats_of_16)))) continue;
    if (PyUnicode_CompareWithASCIIString(name.get(), dtype_name(d)) == 0) return *to = d, true;
    length += PyOS_snprintf(list + length, sizeof list - static_cast<size_t>(length), "%s%s", length ? ", " : "",
                            dtype_name(d));
  }
  return raise_dtype(s, "dtype is %R; this result comes as %s", name.get(), list), false;
}

bool read_axes(state& s, PyObject* object, const char* name, int rank, int* axes, int* count) {
  constexpr const char* wanted = "an int or a sequence of ints";
  bool seen[max_rank] = {};
  // Other sequences are asked second: an array of no axes is a number and has the methods of a sequence.
  ref one, many(PyTuple_Check(object) ? Py_NewRef(object) : nullptr);
  if (!many && !(one = index_of(object, name, object, wanted))) {
    if (!PyErr_ExceptionMatches(PyExc_TypeError) || !PySequence_Check(object)) return false;
    PyErr_Clear();
    if (!(many = ref(PySequence_Tuple(object)))) return false;
  }
  const Py_ssize_t n = many ? PyTuple_Size(many.get()) : 1;
  if (n > rank)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; the array has %d axes", name, object, rank), false;
  for (Py_ssize_t i = 0; i < n; ++i) {
    const ref index = many ? index_of(PyTuple_GetItem(many.get(), i), name, object, wanted) : std::move(one);
    if (!index) return false;
    int overflow = 0;
    const long given = PyLong_AsLongAndOverflow(index.get(), &overflow);
    const long axis = given < 0 ? given + rank : given;
    if (overflow || axis < 0 || axis >= rank)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; the array has %d axes, so give %d to %d", name, object,
                   rank, -rank, rank - 1),
             false;
    if (seen[axis]) return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; name each axis once", name, object), false;
    seen[axis] = true;
    axes[i] = static_cast<int>(axis);
  }
  *count = static_cast<int>(n);
  return true;
}

bool read_settings(state& s, lockstep_op op, values& v, settings& to) {
  to.out = v[kw_out];
  PyObject* context = v[kw_context];
  PyObject *backend = v[kw_backend], *variant = v[kw_variant];
  if (s.scoped) {
    to.scope = ref(PyObject_CallNoArgs(s.scope_get));
    if (!to.scope) return false;
    if (to.scope.get() != Py_None) {  // (context, backend, (variant of each op))
      if (!context && (context = PyTuple_GetItem(to.scope.get(), 0)) == Py_None) context = nullptr;
      if (!backend) backend = PyTuple_GetItem(to.scope.get(), 1);
      if (!variant) variant = PyTuple_GetItem(PyTuple_GetItem(to.scope.get(), 2), op);
      if (PyErr_Occurred()) return false;
    }
  }
  context_object* object = nullptr;
  if (context) {
    if (!PyObject_TypeCheck(context, s.context_type))
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "context is %R; give a lockstep.Context", context), false;
    object = reinterpret_cast<context_object*>(context);
  } else if (!(object = default_context(s))) {
    return false;
  }
  if (!use_context(s, object)) return false;
  to.context = object;
  return (!backend || read_text(s, backend, "backend", &to.options.backend)) &&
         (!variant || read_text(s, variant, "variant", &to.options.variant)) &&
         (!v[kw_stream] || import_stream(s, v[kw_stream], &to.stream)) && read_flag(v[kw_check], &to.check) &&
         read_flag(v[kw_copy], &to.copy);
}

bool may_copy(const settings& set, const char* name, const char* why) {
  if (set.copy) return true;
  PyErr_Format(PyExc_BufferError, "copy is False, but %s %s; give a packed array, or omit copy=", name, why);
  return false;
}

bool make_packed(state& s, source& x, settings& set, const char* name) {
  if (!may_copy(set, name, "has strides or an address that the operation cannot read")) return false;
  const ref text(PyUnicode_FromString(name));
  if (!text) return false;
  x.copy = call_helper(s, "packed", x.direct.object, text.get());
  if (!x.copy || !import_array(s, x.copy.get(), name, false, set.queue ? set.queue : set.stream, x.packed))
    return false;
  set.wait |= x.packed.elsewhere;
  x.use = &x.packed;
  return true;
}

bool require_device(state& s, const settings& set, const array& x) {
  if (!x.on_device()) return true;
  const char* const named = set.options.backend;
  if (named ? std::strncmp(named, "cpu", 3) == 0 : set.context && set.context->on_cpu)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "the backend is cpu, but the data is in device memory, whose stream the CPU does not wait for; copy "
                 "it to the "
                 "host, or name auto or cuda"),
           false;
  if (!s.cuda_usable) {  // else the address would be taken for one of the host's
    const ref found = call_helper(s, "require_cuda");
    if (!found) return false;
    s.cuda_usable = true;
  }
  return true;
}

bool read_source(state& s, PyObject* object, const char* name, settings& set, source& to, bool may_repeat) {
  if (!import_array(s, object, name, false, set.queue ? set.queue : set.stream, to.direct) ||
      !require_device(s, set, to.direct))
    return false;
  set.wait |= to.direct.elsewhere;
  if (!set.queue && to.direct.on_device()) set.queue = to.direct.stream;  // x comes first
  return to.direct.plain || (may_repeat && to.direct.repeats) || make_packed(s, to, set, name);
}

}  // namespace lockstep::python
