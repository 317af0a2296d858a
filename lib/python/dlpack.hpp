// dlpack.hpp - the structures of DLPack 1.3, as arrays are handed between libraries.
// Source: DLPack's specification, https://dmlc.github.io/dlpack/latest.
#pragma once

#include <cstdint>

namespace lockstep::python::dlpack {

enum device_type : int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };
enum type_code : uint8_t { integer = 0, unsigned_integer = 1, floating = 2, bfloat = 4, complex = 5, boolean = 6 };
constexpr uint64_t read_only = 1;
constexpr uint32_t version_major = 1, version_minor = 3;

struct version {
  uint32_t major, minor;
};
struct device {
  int32_t type, id;
};
struct dtype {
  uint8_t code, bits;
  uint16_t lanes;
};
struct tensor {
  void* data;
  dlpack::device device;
  int32_t rank;
  dlpack::dtype dtype;
  int64_t* shape;
  int64_t* strides;  // elements; NULL for a packed array
  uint64_t byte_offset;
};
struct managed {  // before 1.0
  dlpack::tensor tensor;
  void* context;
  void (*deleter)(managed*);
};
struct versioned {
  dlpack::version version;
  void* context;
  void (*deleter)(versioned*);
  uint64_t flags;
  dlpack::tensor tensor;
};

// A library's functions for exchange without a Python call, an attribute of its array type.
struct exchange {
  dlpack::version version;
  exchange* previous;
  int (*allocate)(tensor* like, versioned** out, void* context,
                  void (*set_error)(void* context, const char* kind, const char* message));
  int (*import_owned)(void* object, versioned** out);
  int (*export_owned)(versioned* array, void** object);
  int (*import_borrowed)(void* object, tensor* out);  // may be NULL
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace lockstep::python::dlpack
