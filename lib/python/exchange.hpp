// exchange.hpp - arrays of any library as pointers, shapes and strides.
#pragma once

#include "state.hpp"

namespace lockstep::python {

constexpr int max_rank = 64;          // NumPy's own
constexpr uint8_t other_bytes = 255;  // an element that only moves: a record, a string
constexpr int64_t odd_stride = -1;    // no whole number of elements

struct element {
  uint8_t code = other_bytes;  // dlpack::type_code or other_bytes
  bool swapped = false;        // the other byte order
  int64_t bytes = 0;
  bool operator==(const element&) const = default;
};
// The lockstep_dtype of an element, 0 when there is none.
lockstep_dtype dtype_of(const element& e);
element element_of(lockstep_dtype dtype);
// "float32", "bool", ... as NumPy and PyTorch name them.
const char* dtype_name(lockstep_dtype dtype);
// "float32", "int8", "record of 12 bytes"
const char* element_name(const element& e, char (&text)[64]);

struct array {
  array() = default;
  ~array() {
    if (has_view || versioned || managed) give_back();
  }
  array(const array&) = delete;
  array& operator=(const array&) = delete;

  char* data = nullptr;
  element type;
  dlpack::device device{dlpack::cpu, 0};
  int rank = 0;
  bool read_only = false;
  bool device_known = true;  // the CUDA array interface does not say which of several
  bool plain = true;         // strides are whole, >= 1 where an axis is longer than one, and data is aligned
  bool repeats = false;      // not plain, but only because steps along some axes are of 0 elements
  int64_t size = 1;          // elements
  const kind* producer = nullptr;
  PyObject* object = nullptr;  // borrowed
  void* stream = nullptr;      // device data: the stream that its producer works on, or that the caller named
  bool elsewhere = false;      // its producer works on another stream than the call, which waits for it
  bool current = false;        // stream is the one that its producer works on now
  bool no_tangents = false;    // PyTorch's: no block of forward mode is open
  int64_t shape[max_rank];
  int64_t strides[max_rank];  // elements

  // Managed memory too: what wrote it may still be queued.
  bool on_device() const { return device.type == dlpack::cuda || device.type == dlpack::cuda_managed; }

  // What holds the memory.
  void give_back();
  Py_buffer view;
  bool has_view = false;
  dlpack::versioned* versioned = nullptr;
  dlpack::managed* managed = nullptr;
  ref keeper;
};

const kind* kind_of(state& s, PyObject* object);

// Fills in from a Python object; name is the argument's, for errors. stream is the one that the call comes on, which
// then waits for what the producer has queued on its own; NULL: the producer's current one. beside is an array of the
// same call that is in already: what holds for all of its library is not asked again. False with an exception set.
bool import_array(state& s, PyObject* object, const char* name, bool writable, void* stream, array& in,
                  const array* beside = nullptr);
// DLPack's description of a tensor whose memory somebody else holds.
bool import_tensor(state& s, const dlpack::tensor& t, const char* name, array& in);
// An object's buffer; has_view says whether it has one.
bool import_buffer(state& s, PyObject* object, const char* name, bool writable, array& in);
bool import_capsule(state& s, PyObject* capsule, const char* name, array& in);
// The fields of an array interface as lockstep/_kinds.py sorts them; stream and keeper are borrowed.
bool import_interface(state& s, PyObject* fields, const char* name, array& in, PyObject** stream, PyObject** keeper);
// For importers: size, and whether the operations can take the layout as it is.
bool finish_import(state& s, array& in, const char* name);
// NumPy's array by its structure; false without an exception where the buffer protocol must say more.
bool import_ndarray(state& s, PyObject* object, const char* name, array& in);
int64_t ndarray_size(PyObject* object);  // elements
// Takes the functions of a NumPy of a known binary interface; false where it is another.
bool use_numpy(state& s, PyObject* capsule);
// With these functions: a number from its bytes, and memory for an array, of like's type where it is given.
PyObject* numpy_scalar(state& s, const array* like, lockstep_dtype dtype, void* value);
PyObject* numpy_empty(state& s, const array* like, lockstep_dtype dtype, int rank, const int64_t* shape);
// A Buffer of lockstep's own; one without memory has data NULL.
bool import_own(state& s, PyObject* object, const char* name, array& in);
// The strides of a packed array; of one of this shape its size too.
void pack(array& a);
void pack(array& a, int rank, const int64_t* shape);

// A caller's stream: an int, or an object of a library that has streams. False with an exception.
bool import_stream(state& s, PyObject* object, void** stream);

}  // namespace lockstep::python
