// ndarray.cpp - NumPy's arrays by their structure and its table of functions, a tenth of the time that the buffer
// protocol and calls of Python take.
// Watch   use_numpy has looked at the version of NumPy's binary interface, of which structure and places are a part.
// Source  NumPy's documentation, "Array API", PyArrayObject and PyArray_Descr, and its header __multiarray_api.h.
#include "exchange.hpp"

namespace lockstep::python {
namespace {

struct ndarray {
  PyObject_HEAD char* data;
  int rank;
  Py_ssize_t* shape;
  Py_ssize_t* strides;  // bytes
  PyObject* base;
  struct descriptor {
    PyObject_HEAD PyTypeObject* type;
    char kind, letter, byte_order, flags;
    int number;
  } * dtype;
  int flags;
};
constexpr int writeable = 0x400, warns = static_cast<int>(0x80000000u);

struct number {
  uint8_t code, bytes_log2;
};
constexpr uint8_t unknown = 15;
constexpr uint8_t of_long = sizeof(long) == 8 ? 3 : 2;
// By NumPy's numbers of its types: bool, byte to ulonglong, float, double, longdouble, cfloat, cdouble; then 23, half.
constexpr number numbers[] = {{dlpack::boolean, 0},
                              {dlpack::integer, 0},
                              {dlpack::unsigned_integer, 0},
                              {dlpack::integer, 1},
                              {dlpack::unsigned_integer, 1},
                              {dlpack::integer, 2},
                              {dlpack::unsigned_integer, 2},
                              {dlpack::integer, of_long},
                              {dlpack::unsigned_integer, of_long},
                              {dlpack::integer, 3},
                              {dlpack::unsigned_integer, 3},
                              {dlpack::floating, 2},
                              {dlpack::floating, 3},
                              {0, unknown},
                              {dlpack::complex, 3},
                              {dlpack::complex, 4}};
constexpr int half = 23;
// The same numbers by lockstep_dtype; NumPy has none of its own for bfloat16.
constexpr bool long_has_8 = sizeof(long) == 8;
constexpr int type_numbers[] = {-1, half, -1, 11, 12, 5, long_has_8 ? 7 : 9, 1, 3, 2, 4, 6, long_has_8 ? 8 : 10, 0};

// Places in the table.
enum place : int { version = 0, descriptor_of = 45, scalar = 60, empty = 184 };
template <class Function>
Function* function_at(state& s, place where) {
  void** const table = s.numpy;
  return reinterpret_cast<Function*>(table[where]);
}
// NumPy's dtype: like's, where it is given.
PyObject* descriptor(state& s, const array* like, lockstep_dtype dtype) {
  if (like && like->producer->ndarray)
    return Py_NewRef(reinterpret_cast<PyObject*>(reinterpret_cast<ndarray*>(like->object)->dtype));
  if (like) return PyObject_GetAttrString(like->object, "dtype");
  if (dtype == LOCKSTEP_BF16) {
    const ref name(PyUnicode_FromString(dtype_name(dtype)));
    return name ? call_helper(s, "numpy_dtype", name.get()).release() : nullptr;
  }
  return function_at<PyObject*(int)>(s, descriptor_of)(type_numbers[dtype]);
}

}  // namespace

bool use_numpy(state& s, PyObject* capsule) {
  auto** const table = static_cast<void**>(PyCapsule_GetPointer(capsule, nullptr));
  if (!table) return false;
  const unsigned found = reinterpret_cast<unsigned (*)()>(table[version])();
  if (found != 0x01000009 && found != 0x02000000) return false;
  s.numpy = table;
  return true;
}

PyObject* numpy_scalar(state& s, const array* like, lockstep_dtype dtype, void* value) {
  const ref type(descriptor(s, like, dtype));
  return type ? function_at<PyObject*(void*, PyObject*, PyObject*)>(s, scalar)(value, type.get(), nullptr) : nullptr;
}

PyObject* numpy_empty(state& s, const array* like, lockstep_dtype dtype, int rank, const int64_t* shape) {
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  PyObject* const type = descriptor(s, like, dtype);
  if (!type) return nullptr;  // else the function takes the reference
  return function_at<PyObject*(int, const int64_t*, PyObject*, int)>(s, empty)(rank, shape, type, 0);
}

int64_t ndarray_size(PyObject* object) {
  const auto& a = *reinterpret_cast<const ndarray*>(object);
  int64_t size = 1;
  for (int k = 0; k < a.rank; ++k) size *= a.shape[k];
  return size;
}

bool import_ndarray(state& s, PyObject* object, const char* name, array& in) {
  const auto& a = *reinterpret_cast<const ndarray*>(object);
  const int type = a.dtype->number;
  const bool plain_number = type >= 0 && type < static_cast<int>(sizeof numbers / sizeof *numbers);
  const number n = type == half ? number{dlpack::floating, 1} : plain_number ? numbers[type] : number{0, unknown};
  if (n.bytes_log2 == unknown || a.dtype->byte_order == '>' || (a.flags & warns) != 0 || a.rank > max_rank)
    return false;
  in.data = a.data;
  in.type = {n.code, false, int64_t{1} << n.bytes_log2};
  in.rank = a.rank;
  in.read_only = (a.flags & writeable) == 0;
  const int64_t rest = in.type.bytes - 1;
  for (int k = 0; k < a.rank; ++k) {
    in.shape[k] = a.shape[k];
    in.strides[k] = a.strides[k] & rest ? odd_stride : a.strides[k] >> n.bytes_log2;
  }
  return finish_import(s, in, name);
}

}  // namespace lockstep::python
