// exchange.cpp - arrays in: which of the ways in an object has, and DLPack's table of functions.
#include "exchange.hpp"

#include <cstring>

namespace lockstep::python {

lockstep_dtype dtype_of(const element& e) {
  constexpr lockstep_dtype none = lockstep_dtype(0);
  // By the logarithm of their bytes.
  static constexpr lockstep_dtype integers[] = {LOCKSTEP_I8, LOCKSTEP_I16, LOCKSTEP_I32, LOCKSTEP_I64};
  static constexpr lockstep_dtype naturals[] = {LOCKSTEP_U8, LOCKSTEP_U16, LOCKSTEP_U32, LOCKSTEP_U64};
  static constexpr lockstep_dtype floats[] = {none, LOCKSTEP_F16, LOCKSTEP_F32, LOCKSTEP_F64};
  if (e.swapped) return none;
  const int log = e.bytes == 1 ? 0 : e.bytes == 2 ? 1 : e.bytes == 4 ? 2 : e.bytes == 8 ? 3 : -1;
  if (log < 0) return none;
  switch (e.code) {
    case dlpack::floating: return floats[log];
    case dlpack::bfloat: return e.bytes == 2 ? LOCKSTEP_BF16 : none;
    case dlpack::integer: return integers[log];
    case dlpack::unsigned_integer: return naturals[log];
    case dlpack::boolean: return e.bytes == 1 ? LOCKSTEP_BOOL : none;
    default: return none;
  }
}

element element_of(lockstep_dtype dtype) {
  const auto bytes = static_cast<int64_t>(lockstep_dtype_bytes(dtype));
  switch (lockstep_dtype_kind(dtype)) {
    case 'i': return {dlpack::integer, false, bytes};
    case 'u': return {dlpack::unsigned_integer, false, bytes};
    case 'b': return {dlpack::boolean, false, bytes};
    default: return {dtype == LOCKSTEP_BF16 ? uint8_t{dlpack::bfloat} : uint8_t{dlpack::floating}, false, bytes};
  }
}

const char* dtype_name(lockstep_dtype dtype) {
  static constexpr const char* names[] = {"",     "float16", "bfloat16", "float32", "float64", "int32",  "int64",
                                          "int8", "int16",   "uint8",    "uint16",  "uint32",  "uint64", "bool"};
  return names[dtype];
}

const char* element_name(const element& e, char (&text)[64]) {
  const char* base = e.code == dlpack::integer            ? "int"
                     : e.code == dlpack::unsigned_integer ? "uint"
                     : e.code == dlpack::floating         ? "float"
                     : e.code == dlpack::bfloat           ? "bfloat"
                     : e.code == dlpack::complex          ? "complex"
                     : e.code == dlpack::boolean          ? "bool"
                                                          : nullptr;
  if (e.code == dlpack::boolean && e.bytes == 1)
    PyOS_snprintf(text, sizeof text, "bool");
  else if (base)
    PyOS_snprintf(text, sizeof text, "%s%s%lld", e.swapped ? "byte-swapped " : "", base,
                  static_cast<long long>(e.bytes * 8));
  else
    PyOS_snprintf(text, sizeof text, "an element of %lld bytes", static_cast<long long>(e.bytes));
  return text;
}

void array::give_back() {
  if (has_view) PyBuffer_Release(&view);
  // A deleter may be Python code, which must not meet the exception that is on its way.
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  if (versioned && versioned->deleter) versioned->deleter(versioned);
  if (managed && managed->deleter) managed->deleter(managed);
  PyErr_Restore(type, value, trace);
}

void pack(array& a) {
  int64_t stride = 1;
  for (int k = a.rank - 1; k >= 0; --k) {
    a.strides[k] = stride;
    stride *= a.shape[k] > 0 ? a.shape[k] : 1;
  }
}

void pack(array& a, int rank, const int64_t* shape) {
  a.rank = rank;
  a.size = 1;
  for (int k = 0; k < rank; ++k) a.size *= a.shape[k] = shape[k];
  pack(a);
}

namespace {

void release_kind(PyObject* capsule) { delete static_cast<kind*>(PyCapsule_GetPointer(capsule, nullptr)); }

// A truth that a tensor tells, as an attribute or by its type's method, which is looked up once. -1 with an exception.
int tells(PyObject* object, PyObject* name, shared<PyObject*>* method) {
  if (method && !*method) {
    PyObject* const found = PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(object)), name);
    if (!found) return -1;
    if (!set_once(*method, found)) Py_DECREF(found);
  }
  const ref value(method ? PyObject_CallFunctionObjArgs(*method, object, nullptr) : PyObject_GetAttr(object, name));
  return value ? PyObject_IsTrue(value.get()) : -1;
}

// Whether a block of forward mode is open, where a tensor may carry a tangent. -1 with an exception.
int in_forward_mode(state& s) {
  if (!s.forward_mode) {
    PyObject* const found = call_helper(s, "forward_mode").release();
    if (!found) return -1;
    if (!set_once(s.forward_mode, found)) Py_DECREF(found);
  }
  PyObject* const level = PyDict_GetItemWithError(s.forward_mode, s.attribute_current_level);  // a small int
  return level ? PyLong_AsLong(level) >= 0 : PyErr_Occurred() ? -1 : 0;
}

// A tensor's memory is not all that it is: a helper says what to do where a flag is set.
bool check_torch(state& s, PyObject* object, const char* name, array& in, const array* beside) {
  const int count = in.type.code == dlpack::complex ? 4 : 3;
  in.no_tangents = beside && beside->no_tangents;
  for (int k = in.no_tangents ? 1 : 0; k < count; ++k) {
    PyObject* const names[] = {nullptr, s.attribute_requires_grad, s.attribute_is_neg, s.attribute_is_conj};
    const int set = k == 0 ? in_forward_mode(s) : tells(object, names[k], k > 1 ? &s.tensor_methods[k - 2] : nullptr);
    if (set < 0) return false;
    if (k == 0) in.no_tangents = !set;
    if (!set) continue;
    const ref text(PyUnicode_FromString(name));
    if (!text || !call_helper(s, "check_torch", object, text.get())) return false;
  }
  return true;
}

// In place of PyTorch's own exception: what to do with a tensor that stands for others and has no memory.
void tell_why_not(state& s, PyObject* object, const char* name) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const ref kept_type(type), error(value), kept_trace(trace), text(PyUnicode_FromString(name));
  if (text) (void)call_helper(s, "refuse_torch", object, text.get(), error.get());
}

}  // namespace

namespace {

// DLPack's table: nothing is checked by it, so lockstep._kinds looks first. False without an exception where the
// call comes on another stream than the producer's: __dlpack__ orders the two, the table does not.
bool import_by_table(state& s, PyObject* object, const char* name, array& in, const array* beside) {
  const dlpack::exchange& table = *in.producer->table;
  dlpack::tensor t{};
  if (table.import_borrowed) {
    if (table.import_borrowed(object, &t) != 0) return false;
    if (!import_tensor(s, t, name, in)) return false;
  } else {
    if (table.import_owned(object, &in.versioned) != 0 || !in.versioned) return false;
    in.read_only = (in.versioned->flags & dlpack::read_only) != 0;
    if (!import_tensor(s, in.versioned->tensor, name, in)) return false;
  }
  if (!in.on_device()) return true;
  if (beside && beside->current && beside->producer == in.producer && beside->device.id == in.device.id &&
      beside->stream == in.stream)
    return in.current = true;
  void* current = nullptr;
  if (table.current_stream(in.device.type, in.device.id, &current) != 0) return false;
  // Handle 0 is CUDA's legacy default stream, which lockstep knows by another name.
  if (current == nullptr) current = LOCKSTEP_STREAM_LEGACY;
  if (!in.stream) in.stream = current;
  if (in.stream == current) return in.current = true;
  if (in.versioned && in.versioned->deleter) in.versioned->deleter(in.versioned);
  in.versioned = nullptr;
  in.plain = true;
  in.repeats = false;
  return false;
}

}  // namespace

const kind* kind_of(state& s, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (const kind* const last = s.last_kind; last && last->type == type) return last;
  const section alone(s.kinds_mutex);
  PyObject* known = PyDict_GetItemWithError(s.kinds, reinterpret_cast<PyObject*>(type));
  ref made;
  if (known == nullptr) {
    if (PyErr_Occurred()) return nullptr;
    const ref found = call_helper(s, "classify", object);
    if (!found) return nullptr;
    int library = 0, exact = 0, ndarray = 0;
    PyObject* table = nullptr;
    if (!PyArg_ParseTuple(found.get(), "ippO", &library, &exact, &ndarray, &table)) return nullptr;
    dlpack::exchange* functions = nullptr;
    if (table != Py_None) {
      functions = static_cast<dlpack::exchange*>(PyCapsule_GetPointer(table, "dlpack_exchange_api"));
      if (functions == nullptr) PyErr_Clear();  // no such table; there is __dlpack__
      while (functions && functions->version.major != dlpack::version_major) functions = functions->previous;
      if (functions && !((functions->import_borrowed || functions->import_owned) && functions->current_stream))
        functions = nullptr;
    }
    made = ref(PyCapsule_New(new kind{type, python::library(library), exact != 0, ndarray != 0, functions}, nullptr,
                             release_kind));
    if (!made || PyDict_SetItem(s.kinds, reinterpret_cast<PyObject*>(type), made.get()) != 0) return nullptr;
    known = made.get();
  }
  const auto* const found = static_cast<const kind*>(PyCapsule_GetPointer(known, nullptr));
  s.last_kind = found;  // s.kinds keeps it alive, and its type
  return found;
}

bool import_stream(state& s, PyObject* object, void** stream) {
  *stream = nullptr;
  if (object == nullptr || object == Py_None) return true;
  const ref handle = call_helper(s, "stream_handle", object);
  if (!handle) return false;
  *stream = PyLong_AsVoidPtr(handle.get());
  return *stream != nullptr || !PyErr_Occurred();
}

bool import_array(state& s, PyObject* object, const char* name, bool writable, void* stream, array& in,
                  const array* beside) {
  in.producer = kind_of(s, object);
  if (in.producer == nullptr) return false;
  in.object = object;
  in.stream = stream;
  bool done = false;
  if (in.producer->table) {
    done = import_by_table(s, object, name, in, beside);
    if (!done && in.producer->library == torch && PyErr_Occurred() && PyErr_ExceptionMatches(PyExc_RuntimeError))
      return tell_why_not(s, object, name), false;
    if (done && in.producer->library == torch && !check_torch(s, object, name, in, beside)) return false;
  } else if (in.producer->ndarray && (done = import_ndarray(s, object, name, in))) {
  } else if (PyErr_Occurred()) {
    return false;
  } else if (in.producer->library == own) {
    done = import_own(s, object, name, in);
    if (!done) return false;
  } else if (in.producer->library == numpy || in.producer->library == buffer || in.producer->library == jax ||
             in.producer->library == array_api) {
    done = import_buffer(s, object, name, writable, in);
    // What has no buffer of this kind may have another door; lack of memory and our own errors end here.
    if (!done && !in.has_view && !PyErr_ExceptionMatches(PyExc_MemoryError))
      PyErr_Clear();
    else if (!done)
      return false;
  }
  if (!done) {
    if (PyErr_Occurred()) return false;
    // (capsule, the producer's stream, keeper, device), or the fields of an array interface: (data, read only, code,
    // swapped, bytes, shape, strides, device type, the producer's stream, keeper), or an array of NumPy
    PyObject* const wanted = writable ? Py_True : Py_False;
    const ref handle(in.stream ? PyLong_FromVoidPtr(in.stream) : Py_NewRef(Py_None));
    const ref argument(PyUnicode_FromString(name));
    if (!handle || !argument) return false;
    const ref found = call_helper(s, "export", object, argument.get(), wanted, handle.get());
    if (!found) return false;
    PyObject *capsule = nullptr, *at = nullptr, *keeper = nullptr;
    if (PyTuple_Size(found.get()) == 1) {  // the array that NumPy made of it
      PyObject* const made = PyTuple_GetItem(found.get(), 0);
      in.keeper = ref::borrowed(made);
      return import_array(s, made, name, writable, stream, in, beside);
    }
    if (PyTuple_Size(found.get()) == 5) {
      int type = 0, id = 0;
      if (!PyArg_ParseTuple(found.get(), "OOOii", &capsule, &at, &keeper, &type, &id) ||
          !import_capsule(s, capsule, name, in))
        return false;
      const bool told = type == dlpack::cuda || type == dlpack::cuda_managed;
      if (in.on_device() != told || (told && in.device.id != id))
        return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                     "%s says by __dlpack_device__ that it is on (%d, %d), by __dlpack__ on (%d, %d); its producer is "
                     "wrong",
                     name, type, id, static_cast<int>(in.device.type), static_cast<int>(in.device.id)),
               false;
    } else if (!import_interface(s, found.get(), name, in, &at, &keeper)) {
      return false;
    }
    if (at != Py_None) {
      void* const own = PyLong_AsVoidPtr(at);
      if (!in.stream) in.stream = own;
      in.elsewhere = in.stream != own;
    }
    in.keeper = ref::borrowed(keeper);
  }
  if (writable && in.producer->library == jax)  // not every release says so of its memory
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is an array of JAX, which is read-only; omit it", name), false;
  if (writable && in.read_only)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is read-only; give an array that may be written", name), false;
  return true;
}

}  // namespace lockstep::python
