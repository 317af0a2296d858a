// xla.cpp - one custom call for JAX: XLA hands over pointers and the attributes that lockstep/jax.py has written down
// when the program was traced, the C library's operation and description among them.
// Idea    arrays within an XLA program are packed, so the description of a plan for them is all that C needs.
// Watch   it runs on XLA's threads, without the interpreter's lock: nothing of Python may be touched. Fields that an
//         older runtime does not know lie behind its struct_size.
// Source  XLA's FFI, xla/ffi/api/c_api.h of jaxlib 0.8 to 0.12: structs of a stable binary interface, major version 0.
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>

#include "call.hpp"

namespace lockstep::python {
namespace {

namespace xla {
struct error;
struct context;
struct extension {
  size_t size;
  int type;
  extension* next;
};
struct api_version {
  size_t size;
  extension* extensions;
  int major, minor;
};
struct metadata {
  size_t size;
  api_version version;
  uint32_t traits;
};
struct metadata_extension {
  extension base;
  xla::metadata* metadata;
};
struct error_arguments {
  size_t size;
  extension* extensions;
  const char* message;
  int code;
};
struct stream_arguments {
  size_t size;
  extension* extensions;
  xla::context* context;
  void* stream;
};
struct ordinal_arguments {
  size_t size;
  extension* extensions;
  xla::context* context;
  int32_t ordinal;
};
struct functions {
  size_t size;
  extension* extensions;
  api_version version;
  const void* internal;
  error* (*error_create)(error_arguments*);
  void* error_get_message;
  void* error_destroy;
  void* handler_register;
  error* (*stream_get)(stream_arguments*);
  void* others[12];  // of types, states, device memory, thread pools, futures, run ids
  error* (*device_ordinal_get)(ordinal_arguments*);
};
struct buffer {
  size_t size;
  extension* extensions;
  int dtype;
  void* data;
  int64_t rank;
  int64_t* shape;
};
struct buffers {
  size_t size;
  extension* extensions;
  int64_t count;
  int* types;
  buffer** items;
};
struct bytes {
  const char* data;
  size_t length;
};
struct attributes {
  size_t size;
  extension* extensions;
  int64_t count;
  int* types;
  bytes** names;
  void** values;
};
struct frame {
  size_t size;
  extension* extensions;
  const functions* api;
  xla::context* context;
  int stage;
  buffers arguments, results;
  attributes given;
};
constexpr int of_metadata = 1, of_buffer = 1, of_string = 4, stage_execute = 3;
enum code : int { invalid_argument = 3, exhausted = 8, out_of_range = 11, unimplemented = 12, internal = 13 };
}  // namespace xla

// Kept for the process: programs that were compiled with it may run until the end.
lockstep_context* program_context = nullptr;

xla::error* fail(const xla::frame& f, xla::code code, const char* text) {
  xla::error_arguments a{sizeof a, nullptr, text, code};
  return f.api->error_create(&a);
}

xla::error* fail(const xla::frame& f, lockstep_status status) {
  const char* const text = lockstep_last_error();
  switch (status) {
    case LOCKSTEP_OUT_OF_MEMORY: return fail(f, xla::exhausted, text);
    case LOCKSTEP_OVERFLOW: return fail(f, xla::out_of_range, text);
    case LOCKSTEP_UNSUPPORTED: return fail(f, xla::unimplemented, text);
    case LOCKSTEP_INVALID_ARGUMENT:
    case LOCKSTEP_EMPTY: return fail(f, xla::invalid_argument, text);
    default: return fail(f, xla::internal, text);
  }
}

// Bytes of an element by XLA's number of its type; 0 for those that no operation takes.
int bytes_of(int dtype) {
  static constexpr signed char bytes[] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 0, 8, 2, 0, 16};
  return dtype >= 0 && dtype < static_cast<int>(sizeof bytes) ? bytes[dtype] : 0;
}

int digit(char c) { return c <= '9' ? c - '0' : c - 'a' + 10; }

// The bytes that an attribute of hexadecimal digits stands for; false where it is not there or has not these bytes.
bool read(const xla::frame& f, const char* name, void* to, size_t room, size_t* length) {
  for (int64_t i = 0; i < f.given.count; ++i) {
    const xla::bytes& is = *f.given.names[i];
    if (is.length != std::strlen(name) || std::memcmp(is.data, name, is.length) != 0) continue;
    const auto& text = *static_cast<const xla::bytes*>(f.given.values[i]);
    if (f.given.types[i] != xla::of_string || text.length % 2 != 0 || text.length / 2 > room) return false;
    for (size_t k = 0; k < text.length / 2; ++k)
      static_cast<unsigned char*>(to)[k] =
          static_cast<unsigned char>(digit(text.data[2 * k]) << 4 | digit(text.data[2 * k + 1]));
    *length = text.length / 2;
    return true;
  }
  return false;
}

// What describe() below writes down.
struct written {
  int32_t op, count, results;  // of arguments, of results
  int32_t places[4];           // where the description holds the pointers of those behind the first, results last
  int32_t coefficients;        // where it holds that of the coefficients, 0 where it has none
  int32_t source, result;      // bytes of an element, to see that both sides speak of the same arrays
};

// Whether all pointers that will be put into a description of so many bytes lie within.
bool fits(const written& w, size_t bytes) {
  const auto within = [bytes](int32_t place) {
    return place >= 0 && static_cast<size_t>(place) + sizeof(void*) <= bytes;
  };
  return w.count >= 1 && w.results >= 1 && w.count + w.results <= 6 && within(w.coefficients) &&
         std::all_of(std::begin(w.places), std::end(w.places), within);
}

void put(char* description, int32_t place, const void* pointer) {
  std::memcpy(description + place, &pointer, sizeof pointer);
}

template <bool on_device>
xla::error* handle(xla::frame* given) {
  for (xla::extension* e = given->extensions; e; e = e->next) {
    if (e->type != xla::of_metadata) continue;
    xla::metadata& m = *reinterpret_cast<xla::metadata_extension*>(e)->metadata;
    m.version.major = 0;
    m.version.minor = given->api ? given->api->version.minor : 1;
    m.traits = 0;
    return nullptr;
  }
  xla::frame& f = *given;
  if (f.stage != xla::stage_execute) return nullptr;
  written w{};
  alignas(16) char description[sizeof(call)];
  alignas(8) double coefficients[sizeof call::coefficients / sizeof(double)];
  size_t length = 0, described = 0, weights = 0;
  if (!read(f, "call", &w, sizeof w, &length) || length != sizeof w ||
      !read(f, "description", description, sizeof description, &described) ||
      !read(f, "coefficients", coefficients, sizeof coefficients, &weights) || !fits(w, described) ||
      f.arguments.count != w.count || f.results.count != w.results ||
      bytes_of(f.arguments.items[0]->dtype) != w.source || bytes_of(f.results.items[0]->dtype) != w.result)
    return fail(f, xla::invalid_argument, "the program was compiled by another release of lockstep; compile it again");
  if (w.coefficients) put(description, w.coefficients, coefficients);
  const int32_t* place = w.places;
  for (int i = 1; i < w.count; ++i) put(description, *place++, f.arguments.items[i]->data);
  for (int i = 1; i < w.results; ++i) put(description, *place++, f.results.items[i]->data);
  lockstep_options options = lockstep_options_defaults();
  options.backend = "cpu";
  char backend[16];
  if (on_device) {
    constexpr size_t known = offsetof(xla::functions, device_ordinal_get) + sizeof(void*);
    if (f.api->size < known)
      return fail(f, xla::unimplemented, "this jaxlib does not tell the device of a call; install 0.8 or later");
    xla::stream_arguments stream{sizeof stream, nullptr, f.context, nullptr};
    xla::ordinal_arguments device{sizeof device, nullptr, f.context, 0};
    if (xla::error* const e = f.api->stream_get(&stream)) return e;
    if (xla::error* const e = f.api->device_ordinal_get(&device)) return e;
    PyOS_snprintf(backend, sizeof backend, "cuda:%d", static_cast<int>(device.ordinal));
    options.backend = backend;
    options.stream = stream.stream ? stream.stream : LOCKSTEP_STREAM_LEGACY;
    options.flags = LOCKSTEP_ASYNC | LOCKSTEP_NO_FALLBACK;
  }
  const lockstep_status status = lockstep_execute(program_context, static_cast<lockstep_op>(w.op), description,
                                                  f.arguments.items[0]->data, f.results.items[0]->data, &options);
  return status == LOCKSTEP_OK ? nullptr : fail(f, status);
}

ref hexadecimal(const void* data, size_t bytes) {
  const ref raw(PyBytes_FromStringAndSize(static_cast<const char*>(data), static_cast<Py_ssize_t>(bytes)));
  return raw ? ref(PyObject_CallMethod(raw.get(), "hex", nullptr)) : ref();
}

}  // namespace

PyObject* write_down(state& s, const call& c, const array& x, const values& v) {
  written w{c.op, 1, 1, {}, 0, static_cast<int32_t>(x.type.bytes), static_cast<int32_t>(c.type.bytes)};
  const auto add = [&](size_t place) { w.places[w.count++ - 1] = static_cast<int32_t>(place); };
  const auto add_result = [&](size_t place) { w.places[w.count + w.results++ - 2] = static_cast<int32_t>(place); };
  if (c.op == LOCKSTEP_SUMS && v[kw_y]) add(offsetof(lockstep_sums_desc, other));
  if (c.op == LOCKSTEP_MAP && v[kw_y]) add(offsetof(lockstep_map_desc, times));
  if (c.op == LOCKSTEP_NORMALIZE && v[kw_weight]) add(offsetof(lockstep_normalize_desc, weight));
  if (c.op == LOCKSTEP_NORMALIZE && v[kw_labels]) add(offsetof(lockstep_normalize_desc, labels));
  if (c.op == LOCKSTEP_NORMALIZE && v[kw_bias]) add(offsetof(lockstep_normalize_desc, bias));
  if (v[kw_gradient]) add(offsetof(lockstep_normalize_desc, gradient));
  if (v[kw_weight_gradient]) add_result(offsetof(lockstep_normalize_desc, weight_gradient));
  if (v[kw_bias_gradient]) add_result(offsetof(lockstep_normalize_desc, bias_gradient));
  size_t count = 0;
  if (c.op == LOCKSTEP_STENCIL) {
    w.coefficients = offsetof(lockstep_stencil_desc, coefficients);
    count = static_cast<size_t>(c.stencil.coefficient_count);
  }
  size_t size;  // of the description, which begins with it
  std::memcpy(&size, c.description(), sizeof size);
  const ref call = hexadecimal(&w, sizeof w), description = hexadecimal(c.description(), size),
            coefficients = hexadecimal(c.coefficients, count * sizeof(double));
  const ref shape(PyTuple_New(c.rank));
  for (int k = 0; shape && k < c.rank; ++k) {
    PyObject* const n = PyLong_FromLongLong(c.shape[k]);
    if (!n || PyTuple_SetItem(shape.get(), k, n) != 0) return nullptr;
  }
  const lockstep_dtype dtype = dtype_of(c.type);
  if (!dtype) return raise_dtype(s, "x has elements that JAX cannot hand over; give floats, integers or bool");
  if (!call || !description || !coefficients || !shape) return nullptr;
  return Py_BuildValue("(OOOOs)", call.get(), description.get(), coefficients.get(), shape.get(), dtype_name(dtype));
}

PyObject* xla_handlers(PyObject* module, PyObject*) {
  state& s = *state_of(module);
  context_object* const context = default_context(s);
  if (!context || !use_context(s, context)) return nullptr;  // in use for ever
  program_context = context->handle;
  constexpr const char* name = "xla._CUSTOM_CALL_TARGET";
  const ref host(PyCapsule_New(reinterpret_cast<void*>(handle<false>), name, nullptr));
  const ref device(PyCapsule_New(reinterpret_cast<void*>(handle<true>), name, nullptr));
  return host && device ? Py_BuildValue("{sOsO}", "cpu", host.get(), "CUDA", device.get()) : nullptr;
}

}  // namespace lockstep::python
