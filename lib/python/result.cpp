// result.cpp - where results go: the caller's out, a NumPy scalar, or new memory from the source's library.
#include "call.hpp"

namespace lockstep::python {
namespace {

ref shape_tuple(int rank, const int64_t* shape) {
  ref tuple(PyTuple_New(rank));
  for (int k = 0; tuple && k < rank; ++k) {
    PyObject* const n = PyLong_FromLongLong(shape[k]);
    if (!n || PyTuple_SetItem(tuple.get(), k, n) != 0) return ref();
  }
  return tuple;
}

void keep_error(void* context, const char* kind, const char* message) {
  PyErr_Format(static_cast<state*>(context)->errors[LOCKSTEP_OUT_OF_MEMORY], "%s: %s", kind, message);
}

// Whether the memory that a library made for a result is what was asked for.
bool is_as_asked(state& s, const array& dst, const array& x, const element& type, int rank, const int64_t* shape) {
  bool same = dst.type == type && dst.rank == rank && dst.on_device() == x.on_device() && dst.plain && !dst.read_only;
  for (int k = 0; same && k < rank; ++k) same = dst.shape[k] == shape[k];
  return same || raise(s, LOCKSTEP_UNSUPPORTED,
                       "the library of x made another array for the result than it was asked for; give an out, or x as "
                       "an array of NumPy");
}

// By the table of the source's library: no Python call.
bool allocate_by_table(state& s, const array& x, const element& type, int rank, const int64_t* shape, result& to) {
  const dlpack::exchange& table = *x.producer->table;
  array& dst = to.dst;
  pack(dst, rank, shape);
  dlpack::tensor like{nullptr,   x.device,    rank, {type.code, static_cast<uint8_t>(type.bytes * 8), 1},
                      dst.shape, dst.strides, 0};
  dlpack::versioned* made = nullptr;
  if (table.allocate(&like, &made, &s, keep_error) != 0) {
    if (!PyErr_Occurred()) raise(s, LOCKSTEP_OUT_OF_MEMORY, "no memory for the result");
    return false;
  }
  if (!made || !import_tensor(s, made->tensor, "out", dst) || !is_as_asked(s, dst, x, type, rank, shape)) {
    if (made && made->deleter) made->deleter(made);
    if (!PyErr_Occurred()) raise(s, LOCKSTEP_OUT_OF_MEMORY, "no memory for the result");
    return false;
  }
  dst.producer = x.producer;
  dst.stream = x.stream;
  PyObject* object = nullptr;
  if (table.export_owned(made, reinterpret_cast<void**>(&object)) != 0) return false;
  to.object = ref(object);
  return true;
}

}  // namespace

bool allocate(state& s, const array& x, const element* type, int rank, const int64_t* shape, void* stream, result& to) {
  const element& wanted = type ? *type : x.type;
  const lockstep_dtype dtype = dtype_of(wanted);
  // (The table orders no streams.)
  if (x.producer->table && x.producer->table->allocate && x.producer->table->export_owned &&
      wanted.code != other_bytes && !x.elsewhere)
    return allocate_by_table(s, x, wanted, rank, shape, to);
  if (x.producer->library == numpy && s.numpy) {
    to.object = ref(numpy_empty(s, type ? nullptr : &x, dtype, rank, shape));
  } else {
    const ref tuple = shape_tuple(rank, shape);
    if (!tuple) return false;
    // (An object of no library has no dtype; NumPy is asked for the one of records and the like alone.)
    const bool named = type || (dtype && x.producer->library == buffer);
    const ref name(named ? PyUnicode_FromString(dtype_name(dtype)) : Py_NewRef(Py_None));
    if (!name) return false;
    to.object = call_helper(s, "empty", x.object, tuple.get(), name.get());
    if (to.object.get() == Py_None) {
      char backend[16] = "cpu";
      if (x.on_device()) PyOS_snprintf(backend, sizeof backend, "cuda:%d", static_cast<int>(x.device.id));
      to.object = ref(
          make_buffer(s, wanted, rank, shape, x.on_device() ? LOCKSTEP_DEVICE : LOCKSTEP_HOST, backend, x.device.id));
      to.adopt = true;
    }
  }
  return to.object && import_array(s, to.object.get(), "out", true, x.on_device() ? x.stream : stream, to.dst) &&
         is_as_asked(s, to.dst, x, wanted, rank, shape);
}

bool take_out(state& s, const element& type, int rank, const int64_t* shape, const array& x, PyObject* out,
              void* stream, result& to) {
  array& dst = to.dst;
  if (!import_array(s, out, "out", true, x.on_device() ? x.stream : stream, dst, &x)) return false;
  char have[64], want[64];
  if (dst.type != type)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "out holds %s; this result is %s", element_name(dst.type, have),
                 element_name(type, want)),
           false;
  bool same = dst.rank == rank;
  for (int k = 0; same && k < rank; ++k) same = dst.shape[k] == shape[k];
  if (!same) {
    const ref is = shape_tuple(dst.rank, dst.shape), should = shape_tuple(rank, shape);
    if (!is || !should) return false;
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "out has the shape %R; this result has %R", is.get(), should.get()),
           false;
  }
  if (!same_device(s, x, dst, "out")) return false;
  if (!dst.plain)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "out has strides that are not positive multiples of its elements, or is not aligned"),
           false;
  to.object = ref::borrowed(out);
  return true;
}

// A full reduction is a number where arrays of NumPy come out.
static bool gives_number(const call& c, const array& x) {
  return c.scalar && !x.on_device() && (x.producer->library == numpy || x.producer->library == buffer);
}

bool make_result(state& s, const call& c, const array& x, PyObject* out, void* stream, result& to) {
  if (x.data == nullptr && x.producer->library == own && x.size > 0)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "x describes an array for a plan; it has no memory"), false;
  if (out) return take_out(s, c.type, c.rank, c.shape, x, out, stream, to);
  if (gives_number(c, x)) {
    array& dst = to.dst;
    to.scalar = true;
    dst.data = to.value;
    dst.type = c.type;
    dst.rank = 0;
    dst.producer = x.producer;
    return true;
  }
  return allocate(s, x, c.same_dtype ? nullptr : &c.type, c.rank, c.shape, stream, to);
}

PyObject* number_of(state& s, const array* like, lockstep_dtype dtype, char* value) {
  if (s.numpy) return numpy_scalar(s, like, dtype, value);
  const ref bytes(PyBytes_FromStringAndSize(value, static_cast<Py_ssize_t>(lockstep_dtype_bytes(dtype)))),
      name(PyUnicode_FromString(dtype_name(dtype)));
  return bytes && name ? call_helper(s, "scalar", bytes.get(), name.get()).release() : nullptr;
}

PyObject* finish_result(state& s, const call& c, const array& x, result& r) {
  if (r.scalar) {
    const bool same = c.type == x.type && x.producer->library == numpy;
    return number_of(s, same ? &x : nullptr, dtype_of(c.type), r.value);
  }
  if (!r.adopt) return r.object.release();
  return call_helper(s, "adopt", x.object, r.object.get()).release();
}

}  // namespace lockstep::python
