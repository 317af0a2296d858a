// digest.cpp - digest(x): the digest of one array with its dtype and shape, for lockstep/_digest.py.
#include "operations.hpp"

namespace lockstep::python {

PyObject* digest(PyObject* module, PyObject* const* a, Py_ssize_t n, PyObject* keywords) {
  state& s = *state_of(module);
  constexpr keyword names[] = {kw_x, kw_context, kw_backend, kw_variant, kw_copy};
  values v;
  settings set;
  source x;
  result temporary;
  if (!parse(s, "digest", names, 1, 5, 1, a, n, keywords, v) || !read_settings(s, LOCKSTEP_SUMS, v, set) ||
      !read_source(s, v[kw_x], "x", set, x))
    return nullptr;
  char text[64];
  const lockstep_dtype dtype = dtype_of(x.use->type);
  if (!dtype)
    return raise_dtype(s, "x holds %s; a digest is of bool, integers and floats of 16 to 64 bits",
                       element_name(x.use->type, text));
  const ref shape(PyTuple_New(x.use->rank));
  for (int k = 0; shape && k < x.use->rank; ++k) {
    PyObject* const length = PyLong_FromLongLong(x.use->shape[k]);
    if (!length || PyTuple_SetItem(shape.get(), k, length) != 0) return nullptr;
  }
  if (!shape || !packed_source(s, x, set, temporary)) return nullptr;
  queue_on(set, *x.use, array());  // the words are the host's, so the call waits for them
  uint64_t words[2] = {};
  const lockstep_sums_desc d = lockstep_sums_full(LOCKSTEP_SUMS_DIGEST, dtype, x.use->size, nullptr);
  lockstep_status status;
  {
    const without_gil released(true);
    status = lockstep_sums(set.context->handle, &d, x.use->data, words, &set.options);
  }
  if (status != LOCKSTEP_OK) return raise_status(s, status);
  PyOS_snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(words[0]),
                static_cast<unsigned long long>(words[1]));
  return Py_BuildValue("(ssO)", text, dtype_name(dtype), shape.get());
}

}  // namespace lockstep::python
