// described.cpp - arrays by what their producers say of them: the buffer protocol, DLPack's tensors and capsules, and
// the fields of an array interface.
// Idea    each field is judged before it is used, and a description that cannot be true is refused by name: memory
//         that is missing, shapes below zero, elements of no bytes, strides that leave the address space.
// Watch   a format's first character may be a byte order; NULL strides mean packed; a byte offset counts.
#include <cstring>

#include "exchange.hpp"

namespace lockstep::python {
namespace {

bool refuse(state& s, const char* name, const char* what, int64_t value) {
  return raise(s, LOCKSTEP_INVALID_ARGUMENT,
               "%s describes itself with %s %lld, which is impossible; its producer is wrong", name, what,
               static_cast<long long>(value)),
         false;
}

// Rank, type, shape and data are filled in. steps are the strides in bytes, NULL those of a packed array.
bool judge(state& s, array& in, const char* name, const int64_t* steps) {
  const int64_t bytes = in.type.bytes;
  if (bytes < 1)
    return raise_dtype(s, "%s has elements of %lld bytes; give an array of numbers", name,
                       static_cast<long long>(bytes)),
           false;
  bool empty = false;
  for (int k = 0; k < in.rank; ++k) {
    if (in.shape[k] < 0) return refuse(s, name, "an axis of the length", in.shape[k]);
    empty |= in.shape[k] == 0;
  }
  int64_t whole = bytes;  // of axes without elements too, as NumPy counts
  for (int k = 0; k < in.rank; ++k)
    if (__builtin_mul_overflow(whole, in.shape[k] ? in.shape[k] : 1, &whole))
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s has more than 2^63-1 bytes; use smaller arrays", name), false;
  pack(in);
  if (empty) return finish_import(s, in, name);
  if (in.data == nullptr)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s has a shape but no memory; give an array that holds data", name),
           false;
  // The first and the last byte, from data on. An axis of one element has no stride that would matter.
  int64_t low = 0, high = bytes - 1, end = 0;
  for (int k = 0; k < in.rank; ++k) {
    if (in.shape[k] == 1) continue;
    const int64_t step = steps ? steps[k] : in.strides[k] * bytes;
    int64_t reach;
    if (__builtin_mul_overflow(in.shape[k] - 1, step, &reach) ||
        __builtin_add_overflow(step < 0 ? low : high, reach, step < 0 ? &low : &high))
      return refuse(s, name, "a stride in bytes of", step);
    in.strides[k] = step % bytes ? odd_stride : step / bytes;
  }
  const auto at = static_cast<int64_t>(reinterpret_cast<uintptr_t>(in.data));  // below 2^63 where programs lie
  if (at < 0 || at + low < 0 || __builtin_add_overflow(at, high, &end))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s describes itself as memory from %p on that leaves the address space",
                 name, static_cast<void*>(in.data)),
           false;
  return finish_import(s, in, name);
}

bool has_object(const char* format) {
  bool named = false;
  for (; *format; ++format) {
    if (*format == ':') named = !named;
    if (*format == 'O' && !named) return true;
  }
  return false;
}

// The struct module's format of a buffer.
bool read_format(state& s, const char* format, int64_t bytes, const char* name, element& type) {
  type = {other_bytes, false, bytes};
  if (format == nullptr) format = "B";
  if (has_object(format)) return raise_dtype(s, "%s holds Python objects; give an array of numbers", name), false;
  const char* f = format;
  if (*f == '>' || *f == '!')
    type.swapped = bytes > 1, ++f;
  else if (*f == '@' || *f == '=' || *f == '<' || *f == '^')
    ++f;
  int64_t is = bytes, or_is = 0;  // sizes of the letter
  if (f[0] == 'Z' && (f[1] == 'f' || f[1] == 'd' || f[1] == 'g') && f[2] == 0) {
    type.code = dlpack::complex;
    is = f[1] == 'f' ? 8 : f[1] == 'd' ? 16 : bytes;
  } else if (f[0] != 0 && f[1] == 0) {
    if (std::strchr("bhilqn", *f)) type.code = dlpack::integer;
    if (std::strchr("BHILQN", *f)) type.code = dlpack::unsigned_integer;
    if (std::strchr("efd", *f)) type.code = dlpack::floating;
    if (*f == '?') type.code = dlpack::boolean;
    if (std::strchr("bB?c", *f)) is = 1;
    if (std::strchr("hHe", *f)) is = 2;
    if (std::strchr("iIf", *f)) is = 4;
    if (std::strchr("qQnNd", *f)) is = 8;
    if (*f == 'l' || *f == 'L') is = 8, or_is = 4;  // native, or by a byte order
  }
  if (bytes != is && bytes != or_is)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "%s describes itself with elements of %lld bytes in the format '%.20s', which has %lld; its producer "
                 "is wrong",
                 name, static_cast<long long>(bytes), format, static_cast<long long>(is)),
           false;
  return true;
}

}  // namespace

bool finish_import(state& s, array& in, const char* name) {
  in.size = 1;
  for (int k = 0; k < in.rank; ++k)
    if (__builtin_mul_overflow(in.size, in.shape[k], &in.size))
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s has more than 2^63-1 elements; use smaller arrays", name), false;
  const int64_t bytes = in.type.bytes;
  if (in.size > 0 && (bytes & (bytes - 1)) == 0 && reinterpret_cast<uintptr_t>(in.data) % bytes != 0) in.plain = false;
  for (int k = 0; k < in.rank; ++k)
    if (in.shape[k] > 1 && in.strides[k] < 1 && in.size > 0) {
      in.repeats = (in.plain || in.repeats) && in.strides[k] == 0;
      in.plain = false;
    }
  return true;
}

bool import_buffer(state& s, PyObject* object, const char* name, bool writable, array& in) {
  if (PyObject_GetBuffer(object, &in.view, writable ? PyBUF_RECORDS : PyBUF_RECORDS_RO) != 0) return false;
  in.has_view = true;
  const Py_buffer& v = in.view;
  if (v.ndim > max_rank || v.ndim < 0)
    return raise(s, LOCKSTEP_UNSUPPORTED, "%s has %d axes; at most %d are taken", name, v.ndim, max_rank), false;
  if (v.itemsize > 0 && !read_format(s, v.format, v.itemsize, name, in.type)) return false;
  if (v.itemsize < 1) in.type = {other_bytes, false, v.itemsize};
  if (v.ndim > 0 && v.shape == nullptr && (v.ndim > 1 || v.itemsize < 1))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s describes itself with %d axes, but no shape; its producer is wrong",
                 name, v.ndim),
           false;
  for (int k = 0; k < v.ndim && v.suboffsets; ++k)
    if (v.suboffsets[k] >= 0)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s holds pointers to its rows; give a copy in C order", name), false;
  in.data = static_cast<char*>(v.buf);
  in.rank = v.ndim;
  in.read_only = v.readonly != 0;
  for (int k = 0; k < v.ndim; ++k) in.shape[k] = v.shape ? v.shape[k] : v.len / v.itemsize;
  static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));
  if (!judge(s, in, name, v.strides)) return false;
  return in.size * in.type.bytes <= v.len || refuse(s, name, "a shape of more bytes than its length", v.len);
}

bool import_tensor(state& s, const dlpack::tensor& t, const char* name, array& in) {
  if (t.device.type != dlpack::cpu && t.device.type != dlpack::cuda && t.device.type != dlpack::cuda_host &&
      t.device.type != dlpack::cuda_managed)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "%s is on a DLPack device of type %d; use host or CUDA memory: copy it there", name,
                 static_cast<int>(t.device.type)),
           false;
  if (t.dtype.lanes != 1 || t.dtype.bits % 8 != 0 || t.dtype.bits == 0)
    return raise_dtype(s, "%s has elements of %d x %d bits; use elements of one lane and whole bytes", name,
                       t.dtype.lanes, t.dtype.bits),
           false;
  if (t.rank > max_rank || t.rank < 0)
    return raise(s, LOCKSTEP_UNSUPPORTED, "%s has %d axes; at most %d are taken", name, t.rank, max_rank), false;
  if (t.rank > 0 && t.shape == nullptr)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s describes itself with %d axes, but no shape; its producer is wrong",
                 name, t.rank),
           false;
  if (t.byte_offset > uint64_t{INT64_MAX})
    return refuse(s, name, "a byte offset of", static_cast<int64_t>(t.byte_offset));
  if (t.data) in.data = reinterpret_cast<char*>(reinterpret_cast<uintptr_t>(t.data) + t.byte_offset);
  in.type = {t.dtype.code <= dlpack::boolean && t.dtype.code != 3 ? t.dtype.code : other_bytes, false,
             t.dtype.bits / 8};
  in.device = t.device;
  in.rank = t.rank;
  int64_t steps[max_rank];
  for (int k = 0; k < t.rank; ++k) {
    in.shape[k] = t.shape[k];
    if (!t.strides || in.shape[k] == 1)
      steps[k] = 0;
    else if (__builtin_mul_overflow(t.strides[k], in.type.bytes, &steps[k]))
      return refuse(s, name, "a stride of", t.strides[k]);
  }
  return judge(s, in, name, t.strides ? steps : nullptr);
}

bool import_capsule(state& s, PyObject* capsule, const char* name, array& in) {
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* t = static_cast<dlpack::versioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    if (t->version.major != dlpack::version_major)
      return raise(s, LOCKSTEP_UNSUPPORTED, "%s comes by DLPack %u; this build reads version %u", name,
                   t->version.major, dlpack::version_major),
             false;
    if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) return false;
    in.versioned = t;
    in.read_only = (t->flags & dlpack::read_only) != 0;
    return import_tensor(s, t->tensor, name, in);
  }
  if (!PyCapsule_IsValid(capsule, "dltensor"))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "%s.__dlpack__() gave %R, which is not a capsule of DLPack, or was taken before; its producer "
                 "is wrong",
                 name, capsule),
           false;
  auto* t = static_cast<dlpack::managed*>(PyCapsule_GetPointer(capsule, "dltensor"));
  if (PyCapsule_SetName(capsule, "used_dltensor") != 0) return false;
  in.managed = t;
  return import_tensor(s, t->tensor, name, in);
}

bool import_interface(state& s, PyObject* fields, const char* name, array& in, PyObject** stream, PyObject** keeper) {
  PyObject *data = nullptr, *shape = nullptr, *strides = nullptr;
  int read_only = 0, code = 0, swapped = 0, device = 0;
  long long bytes = 0;
  if (!PyArg_ParseTuple(fields, "OpipLO!O!iOO", &data, &read_only, &code, &swapped, &bytes, &PyTuple_Type, &shape,
                        &PyTuple_Type, &strides, &device, stream, keeper))
    return false;
  const Py_ssize_t rank = PyTuple_Size(shape);
  if (rank > max_rank || PyTuple_Size(strides) != rank)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "%s describes itself with %zd axes and %zd strides; at most %d are taken", name, rank,
                 PyTuple_Size(strides), max_rank),
           false;
  in.data = static_cast<char*>(PyLong_AsVoidPtr(data));
  in.read_only = read_only != 0;
  in.type = {static_cast<uint8_t>(code), swapped != 0, bytes};
  in.device.type = device;
  in.device_known = false;
  in.rank = static_cast<int>(rank);
  int64_t steps[max_rank];
  for (int k = 0; k < in.rank; ++k) {
    in.shape[k] = PyLong_AsLongLong(PyTuple_GetItem(shape, k));
    steps[k] = PyLong_AsLongLong(PyTuple_GetItem(strides, k));
  }
  return !PyErr_Occurred() && judge(s, in, name, steps);
}

}  // namespace lockstep::python
