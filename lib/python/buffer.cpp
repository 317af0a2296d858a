// buffer.cpp - the type _core.Buffer: memory of lockstep's own, handed out by DLPack, the buffer protocol and the
// CUDA array interface.
// Watch   a consumer may give its array back on any thread, without the GIL: the memory counts its users itself.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "call.hpp"

namespace lockstep::python {
namespace {

struct memory {
  std::atomic<int> users{1};
  void* data = nullptr;
  size_t bytes = 0;
  lockstep_memory kind = LOCKSTEP_HOST;
  char backend[16] = "cpu";
  lockstep_context* context = nullptr;  // a default context, which is never destroyed

  void release() {
    if (users.fetch_sub(1) != 1) return;
    if (kind == LOCKSTEP_HOST)
      std::free(data);
    else
      (void)!lockstep_free(context, backend, kind, bytes, data);
    delete this;
  }
};

struct buffer_object {
  PyObject_HEAD memory* block;
  element type;
  dlpack::device device;
  int rank;
  int64_t* shape;  // then the strides in elements, then in bytes
};

buffer_object* as_buffer(PyObject* object) { return reinterpret_cast<buffer_object*>(object); }

void buffer_dealloc(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  if (as_buffer(self)->block) as_buffer(self)->block->release();
  PyMem_Free(as_buffer(self)->shape);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(reinterpret_cast<PyObject*>(type));
}

const char* format_of(const element& e) {
  static constexpr const char* integers[] = {"b", "h", "i", "q"};
  static constexpr const char* naturals[] = {"B", "H", "I", "Q"};
  static constexpr const char* floats[] = {nullptr, "e", "f", "d"};
  const int log = e.bytes == 1 ? 0 : e.bytes == 2 ? 1 : e.bytes == 4 ? 2 : e.bytes == 8 ? 3 : -1;
  if (e.code == dlpack::complex) return e.bytes == 8 ? "Zf" : e.bytes == 16 ? "Zd" : nullptr;
  if (e.code == dlpack::boolean) return "?";
  if (log < 0) return nullptr;
  if (e.code == dlpack::integer) return integers[log];
  if (e.code == dlpack::unsigned_integer) return naturals[log];
  return e.code == dlpack::floating ? floats[log] : nullptr;
}

bool has_memory(buffer_object* b) {
  if (b->block->data) return true;
  PyErr_SetString(PyExc_BufferError, "this describes an array for a plan; it has no memory");
  return false;
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  buffer_object* b = as_buffer(self);
  const char* const format = format_of(b->type);
  view->obj = nullptr;
  if (!has_memory(b)) return -1;
  if (b->block->kind == LOCKSTEP_DEVICE || !format) {
    PyErr_SetString(PyExc_BufferError,
                    b->block->kind == LOCKSTEP_DEVICE
                        ? "the memory is on a device; take it by __dlpack__"
                        : "the buffer protocol has no format for these elements; take them by __dlpack__");
    return -1;
  }
  int64_t* const strides = b->shape + 2 * b->rank;
  view->buf = b->block->data;
  view->obj = Py_NewRef(self);
  view->len = static_cast<Py_ssize_t>(b->block->bytes);
  view->itemsize = b->type.bytes;
  view->readonly = 0;
  view->ndim = b->rank;
  view->format = flags & PyBUF_FORMAT ? const_cast<char*>(format) : nullptr;
  view->shape = flags & PyBUF_ND ? reinterpret_cast<Py_ssize_t*>(b->shape) : nullptr;
  view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? reinterpret_cast<Py_ssize_t*>(strides) : nullptr;
  view->suboffsets = nullptr;
  view->internal = nullptr;
  return 0;
}

template <class Managed>
struct exported {
  Managed head{};
  memory* block;
  int64_t numbers[1];  // shape, strides
};

template <class Managed>
void give_back(Managed* head) {
  auto* const e = static_cast<exported<Managed>*>(head->context);
  e->block->release();
  e->~exported<Managed>();
  std::free(e);
}

template <class Managed>
void drop_capsule(PyObject* capsule) {
  constexpr bool versioned = std::is_same_v<Managed, dlpack::versioned>;
  const char* const name = versioned ? "dltensor_versioned" : "dltensor";
  if (!PyCapsule_IsValid(capsule, name)) return;  // it was taken
  auto* const head = static_cast<Managed*>(PyCapsule_GetPointer(capsule, name));
  head->deleter(head);
}

template <class Managed>
PyObject* export_as(buffer_object* b, const char* name) {
  const size_t numbers = 2 * static_cast<size_t>(b->rank);
  void* const place = std::malloc(sizeof(exported<Managed>) + numbers * sizeof(int64_t));
  if (!place) return PyErr_NoMemory();
  auto* const e = new (place) exported<Managed>;
  std::memcpy(e->numbers, b->shape, numbers * sizeof(int64_t));
  e->block = b->block;
  e->head.context = e;
  e->head.deleter = give_back<Managed>;
  e->head.tensor = {
      b->block->data,       b->device, b->rank, {b->type.code, static_cast<uint8_t>(b->type.bytes * 8), 1}, e->numbers,
      e->numbers + b->rank, 0};
  if constexpr (std::is_same_v<Managed, dlpack::versioned>)
    e->head.version = {dlpack::version_major, dlpack::version_minor};
  b->block->users.fetch_add(1);
  PyObject* const capsule = PyCapsule_New(&e->head, name, drop_capsule<Managed>);
  if (!capsule) give_back(&e->head);
  return capsule;
}

// A pair of numbers, or None.
bool read_pair(PyObject* object, const char* name, int* first, int* second) {
  if (!object || object == Py_None) return true;
  if (PyTuple_Check(object) && PyTuple_Size(object) == 2) return PyArg_ParseTuple(object, "ii", first, second);
  return PyErr_Format(PyExc_TypeError, "%s is %R; give a tuple of two integers", name, object), false;
}

PyObject* buffer_dlpack(PyObject* self, PyObject* arguments, PyObject* keywords) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = nullptr, *version = nullptr, *device = nullptr, *copy = nullptr;
  if (!PyArg_ParseTupleAndKeywords(arguments, keywords, "|$OOOO:__dlpack__", const_cast<char**>(names), &stream,
                                   &version, &device, &copy))
    return nullptr;
  buffer_object* b = as_buffer(self);
  if (!has_memory(b)) return nullptr;
  if (copy && copy != Py_None && PyObject_IsTrue(copy)) {
    PyErr_SetString(PyExc_BufferError, "copy is True; a Buffer makes no copies: copy what you take");
    return nullptr;
  }
  if (device && device != Py_None) {
    int type = 0, id = 0;
    if (!read_pair(device, "dl_device", &type, &id)) return nullptr;
    if (type != b->device.type || id != b->device.id) {
      PyErr_Format(PyExc_BufferError, "dl_device is (%d, %d), but the memory is on (%d, %d)", type, id, b->device.type,
                   b->device.id);
      return nullptr;
    }
  }
  int major = 0, minor = 0;
  if (!read_pair(version, "max_version", &major, &minor)) return nullptr;
  // Calls that write a Buffer have finished when it is handed out, so any stream may read it.
  return major >= 1 ? export_as<dlpack::versioned>(b, "dltensor_versioned") : export_as<dlpack::managed>(b, "dltensor");
}

PyObject* buffer_device(PyObject* self, PyObject*) {
  return Py_BuildValue("(ii)", as_buffer(self)->device.type, as_buffer(self)->device.id);
}

PyObject* get_shape(PyObject* self, void*) {
  buffer_object* b = as_buffer(self);
  PyObject* const tuple = PyTuple_New(b->rank);
  for (int k = 0; tuple && k < b->rank; ++k)
    if (PyTuple_SetItem(tuple, k, PyLong_FromLongLong(b->shape[k])) != 0) return nullptr;
  return tuple;
}

PyObject* get_dtype(PyObject* self, void*) {
  char text[64];
  const element& e = as_buffer(self)->type;
  return PyUnicode_FromString(e.code == dlpack::boolean ? "bool" : element_name(e, text));
}

PyObject* get_interface(PyObject* self, void*) {
  buffer_object* b = as_buffer(self);
  static constexpr char letters[] = {'i', 'u', 'f', 0, 0, 'c', 'b'};
  const char letter = b->type.code <= dlpack::boolean ? letters[b->type.code] : '\0';
  if (b->block->kind == LOCKSTEP_HOST || !b->block->data || !letter) {
    PyErr_SetString(PyExc_AttributeError,
                    "a Buffer of these elements in this kind of memory has no __cuda_array_interface__");
    return nullptr;
  }
  char typestr[16];
  PyOS_snprintf(typestr, sizeof typestr, "%s%c%d", b->type.bytes == 1 ? "|" : "<", letter,
                static_cast<int>(b->type.bytes));
  return Py_BuildValue("{sNsss(NO)sOsi}", "shape", get_shape(self, nullptr), "typestr", typestr, "data",
                       PyLong_FromVoidPtr(b->block->data), Py_False, "strides", Py_None, "version", 3);
}

PyObject* get_bytes(PyObject* self, void*) { return PyLong_FromSize_t(as_buffer(self)->block->bytes); }

PyMethodDef methods[] = {{"__dlpack__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(buffer_dlpack)),
                          METH_VARARGS | METH_KEYWORDS, nullptr},
                         {"__dlpack_device__", buffer_device, METH_NOARGS, nullptr},
                         {nullptr, nullptr, 0, nullptr}};
PyGetSetDef properties[] = {{"shape", get_shape, nullptr, "The lengths of the axes.", nullptr},
                            {"dtype", get_dtype, nullptr, "The name of the element type.", nullptr},
                            {"nbytes", get_bytes, nullptr, "Bytes of all elements.", nullptr},
                            {"__cuda_array_interface__", get_interface, nullptr, nullptr, nullptr},
                            {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot slots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(buffer_dealloc)},
    {Py_tp_repr, reinterpret_cast<void*>(+[](PyObject* self) -> PyObject* { return repr_by_helper(self); })},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_tp_doc, const_cast<char*>("Memory of lockstep's own in C order: numpy.asarray, torch.from_dlpack and "
                                  "others take it without a copy. Made by empty().")},
    {0, nullptr}};
PyType_Spec spec = {"lockstep._core.Buffer", sizeof(buffer_object), 0,
                    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};

}  // namespace

PyObject* make_buffer(state& s, const element& type, int rank, const int64_t* shape, lockstep_memory kind,
                      const char* backend, int device, bool with_memory) {
  int64_t bytes = type.bytes;
  for (int k = 0; k < rank; ++k)
    if (shape[k] < 0 || __builtin_mul_overflow(bytes, shape[k], &bytes))
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "shape[%d] is %lld; give 0 or more, and less than 2^63 bytes in all",
                   k, static_cast<long long>(shape[k]));
  const ref made(reinterpret_cast<allocfunc>(PyType_GetSlot(s.buffer_type, Py_tp_alloc))(s.buffer_type, 0));
  if (!made) return nullptr;
  buffer_object* b = as_buffer(made.get());
  b->type = type;
  b->rank = rank;
  b->device = {kind == LOCKSTEP_DEVICE    ? dlpack::cuda
               : kind == LOCKSTEP_PINNED  ? dlpack::cuda_host
               : kind == LOCKSTEP_MANAGED ? dlpack::cuda_managed
                                          : dlpack::cpu,
               kind == LOCKSTEP_HOST ? 0 : device};
  b->shape = static_cast<int64_t*>(PyMem_Malloc((3 * static_cast<size_t>(rank) + 1) * sizeof(int64_t)));
  b->block = new (std::nothrow) memory;
  if (!b->shape || !b->block) return PyErr_NoMemory();
  int64_t stride = 1;
  for (int k = rank - 1; k >= 0; --k) {
    b->shape[k] = shape[k];
    b->shape[rank + k] = stride;
    b->shape[2 * rank + k] = stride * type.bytes;
    stride *= shape[k] > 0 ? shape[k] : 1;
  }
  memory& m = *b->block;
  m.bytes = static_cast<size_t>(bytes);
  if (!with_memory) return Py_NewRef(made.get());
  if (kind == LOCKSTEP_HOST) {
    m.data = std::aligned_alloc(256, (m.bytes + 256) / 256 * 256);
    if (!m.data) return PyErr_NoMemory();
    return Py_NewRef(made.get());
  }
  context_object* const context = default_context(s);
  if (!context) return nullptr;
  PyOS_snprintf(m.backend, sizeof m.backend, "%s", backend);
  m.context = context->handle;
  lockstep_status status;
  {
    const without_gil released;
    status = lockstep_alloc(m.context, m.backend, kind, m.bytes ? m.bytes : 1, &m.data);
  }
  if (status != LOCKSTEP_OK) return raise_status(s, status);
  m.bytes = m.bytes ? m.bytes : 1;
  m.kind = kind;
  return Py_NewRef(made.get());
}

bool import_own(state& s, PyObject* object, const char* name, array& in) {
  const buffer_object* b = as_buffer(object);
  in.data = static_cast<char*>(b->block->data);
  in.type = b->type;
  in.device = b->device;
  in.rank = b->rank;
  std::memcpy(in.shape, b->shape, static_cast<size_t>(b->rank) * sizeof(int64_t));
  std::memcpy(in.strides, b->shape + b->rank, static_cast<size_t>(b->rank) * sizeof(int64_t));
  if (in.on_device() && !in.stream) in.stream = LOCKSTEP_STREAM_LEGACY;
  return finish_import(s, in, name);
}

bool add_buffer(state& s) {
  s.buffer_type = reinterpret_cast<PyTypeObject*>(PyType_FromModuleAndSpec(s.module, &spec, nullptr));
  return s.buffer_type && PyModule_AddType(s.module, s.buffer_type) == 0;
}

}  // namespace lockstep::python
