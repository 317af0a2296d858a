// describe.cpp - the C description of a call, from shapes and strides.
// Idea    axes that lie one within another are merged; what C has no description for goes through a packed copy,
//         made by lockstep's own permute where the strides allow it.
#include <cstring>

#include "call.hpp"
#include "layout.hpp"

namespace lockstep::python {

bool permuted(state& s, source& x, settings& set, const int* axes, result& temporary) {
  if (!may_copy(set, "the array", "does not lie as the operation reads it along these axes")) return false;
  const array& from = *x.use;
  call c(LOCKSTEP_PERMUTE);
  for (int k = 0; k < from.rank; ++k) c.axes[k] = axes ? axes[k] : k;
  if (!describe_permute(s, from, c)) return false;
  if (!allocate(s, from, nullptr, c.rank, c.shape, set.stream, temporary) || !place(s, from, temporary.dst, c))
    return false;
  lockstep_options kept = set.options;
  set.options.variant = nullptr;  // it names one of the operation that was asked for
  queue_on(set, from, temporary.dst);
  const lockstep_status status = run(c, set, from, temporary.dst);
  set.options = kept;
  if (status != LOCKSTEP_OK) return raise_status(s, status), false;
  // The result is to be of the source's kind.
  temporary.dst.producer = from.producer;
  temporary.dst.object = from.object;
  x.use = &temporary.dst;
  return true;
}

bool no_copy(state& s, const char* what) {
  return raise(s, LOCKSTEP_UNSUPPORTED, "a plan makes no copy, and %s; give a packed array, or call the function",
               what),
         false;
}

bool describe_permute(state& s, const array& x, call& c) {
  if (x.type.bytes != 1 && x.type.bytes != 2 && x.type.bytes != 4 && x.type.bytes != 8 && x.type.bytes != 16)
    return raise_dtype(s, "x has elements of %lld bytes; use elements of 1, 2, 4, 8 or 16 bytes", x.type.bytes), false;
  c.type = x.type;
  c.rank = x.rank;
  for (int k = 0; k < x.rank; ++k) c.shape[k] = x.shape[c.axes[k]];
  return true;
}

namespace {
// Axes of one element go; neighbours that lie one within the other on both sides merge. In the result's order.
struct moved_axes {
  int rank = 0;
  int64_t length[max_rank], from[max_rank], to[max_rank];
};

bool merge_moved(state& s, const array& x, const array& dst, const call& c, moved_axes& m) {
  int64_t *const length = m.length, *const from = m.from, *const to = m.to;
  int& rank = m.rank;
  for (int k = 0; k < c.rank; ++k) {
    const int64_t n = c.shape[k], a = x.strides[c.axes[k]], b = dst.strides[k];
    if (n == 1) continue;
    if (rank > 0 && from[rank - 1] == n * a && to[rank - 1] == n * b) {
      length[rank - 1] *= n;
      from[rank - 1] = a;
      to[rank - 1] = b;
    } else {
      length[rank] = n, from[rank] = a, to[rank] = b;
      ++rank;
    }
  }
  if (rank == 0) length[0] = from[0] = to[0] = 1, rank = 1;
  if (rank > LOCKSTEP_MAX_RANK)
    return raise(s, LOCKSTEP_UNSUPPORTED,
                 "x has %d axes that do not merge; at most %d can be permuted at once: do it in two steps", rank,
                 LOCKSTEP_MAX_RANK),
           false;
  return true;
}
}  // namespace

// Any type of the C library's, by its name here.
static bool read_any_dtype(state& s, PyObject* object, lockstep_dtype* to) {
  if (!object) return true;
  const ref name = call_helper(s, "dtype_name", object);
  if (!name) return false;
  for (int d = LOCKSTEP_F16; d <= LOCKSTEP_BOOL; ++d)
    if (PyUnicode_CompareWithASCIIString(name.get(), dtype_name(lockstep_dtype(d))) == 0)
      return *to = lockstep_dtype(d), true;
  return raise_dtype(s, "dtype is %R; give a float of 16, 32 or 64 bits, an integer or bool, as \"int8\"", name.get()),
         false;
}

bool describe_convert(state& s, const array& x, values& v, call& c) {
  char text[64];
  const lockstep_dtype from = dtype_of(x.type);
  if (from == 0)
    return raise_dtype(s, "x holds %s; convert takes floats of 16, 32 and 64 bits, integers and bool",
                       element_name(x.type, text)),
           false;
  lockstep_dtype to = from;
  if (!read_any_dtype(s, v[kw_dtype], &to)) return false;
  c.op = LOCKSTEP_CONVERT;
  c.convert = {};
  c.convert.size = sizeof c.convert;
  c.convert.dtype = from;
  c.convert.result = to;
  c.convert.scale = 1;
  if (!read_double(s, v[kw_scale], "scale", &c.convert.scale)) return false;
  c.type = element_of(to);
  c.same_dtype = to == from;
  c.rank = x.rank;
  for (int k = 0; k < x.rank; ++k) c.shape[k] = x.shape[c.axes[k]];
  return true;
}

bool describe_map(state& s, const array& x, values& v, lockstep_function function, call& c) {
  char text[64];
  const lockstep_dtype from = dtype_of(x.type);
  if (from != LOCKSTEP_F32 && from != LOCKSTEP_F16 && from != LOCKSTEP_BF16)
    return raise_dtype(s, "x holds %s; %s takes float16, bfloat16 and float32, whose results it rounds correctly",
                       element_name(x.type, text), lockstep_function_name(function)),
           false;
  lockstep_dtype to = from;
  if (!read_result(s, v[kw_dtype], {from, floats_of_32 | floats_of_16}, &to)) return false;
  c.op = LOCKSTEP_MAP;
  c.map = {};
  c.map.size = sizeof c.map;
  c.map.dtype = from;
  c.map.result = to;
  c.map.scale = 1;
  c.map.function = function;
  if (!read_double(s, v[kw_scale], "scale", &c.map.scale)) return false;
  c.type = element_of(to);
  c.same_dtype = to == from;
  c.rank = x.rank;
  for (int k = 0; k < x.rank; ++k) c.shape[k] = x.shape[k], c.axes[k] = k;
  return true;
}

// map's axes too, whose description begins alike.
static bool place_convert(state& s, const array& x, const array& dst, call& c) {
  moved_axes m;
  if (!merge_moved(s, x, dst, c, m)) return false;
  lockstep_convert_desc& d = c.convert;
  d.rank = m.rank;
  for (int k = 0; k < m.rank; ++k) d.shape[k] = m.length[k], d.src_strides[k] = m.from[k], d.dst_strides[k] = m.to[k];
  return true;
}

static bool place_permute(state& s, const array& x, const array& dst, call& c) {
  c.op = LOCKSTEP_PERMUTE;
  c.permute = {};
  lockstep_permute_desc& d = c.permute;
  d.size = sizeof d;
  d.element_bytes = static_cast<size_t>(x.type.bytes);
  moved_axes m;
  if (!merge_moved(s, x, dst, c, m)) return false;
  const int rank = m.rank;
  const int64_t *const length = m.length, *const from = m.from, *const to = m.to;
  // The source's axes are named by decreasing stride, as a packed array has them.
  int order[LOCKSTEP_MAX_RANK];
  for (int k = 0; k < rank; ++k) {
    int j = k;
    for (; j > 0 && from[order[j - 1]] < from[k]; --j) order[j] = order[j - 1];
    order[j] = k;
  }
  d.rank = rank;
  for (int k = 0; k < rank; ++k) {
    d.shape[k] = length[order[k]];
    d.src_strides[k] = from[order[k]];
    d.perm[order[k]] = k;
    d.dst_strides[k] = to[k];
  }
  return true;
}

static bool place_transpose(state& s, const array& x, const array& dst, call& c) {
  const int n = x.rank;
  const int64_t rows = x.shape[n - 2], cols = x.shape[n - 1];
  int outer[max_rank];
  for (int k = 0; k < n - 2; ++k) outer[k] = k;
  run_of_axes from, to;
  const bool fits = (cols == 1 || x.strides[n - 1] == 1) && (rows == 1 || dst.strides[n - 1] == 1) &&
                    (rows == 1 || x.strides[n - 2] >= cols) && (cols == 1 || dst.strides[n - 2] >= rows) &&
                    merge(x, outer, n - 2, from) && merge(dst, outer, n - 2, to);
  if (!fits) return place_permute(s, x, dst, c);  // the same bits by a more general way
  c.transpose = {sizeof c.transpose,
                 static_cast<size_t>(x.type.bytes),
                 rows,
                 cols,
                 rows == 1 ? cols : x.strides[n - 2],
                 cols == 1 ? rows : dst.strides[n - 2],
                 from.length,
                 from.stride,
                 to.stride};
  if (from.length == 1) c.transpose.src_batch_stride = c.transpose.dst_batch_stride = 0;
  return true;
}

namespace {

struct named_value {
  const char* name;
  int value;
};
constexpr named_value boundaries[] = {
    {"reflect", LOCKSTEP_BOUNDARY_REFLECT},       {"mirror", LOCKSTEP_BOUNDARY_MIRROR},
    {"nearest", LOCKSTEP_BOUNDARY_NEAREST},       {"wrap", LOCKSTEP_BOUNDARY_WRAP},
    {"constant", LOCKSTEP_BOUNDARY_CONSTANT},     {"valid", LOCKSTEP_BOUNDARY_VALID},
    {"grid-mirror", LOCKSTEP_BOUNDARY_REFLECT},   {"grid-wrap", LOCKSTEP_BOUNDARY_WRAP},
    {"grid-constant", LOCKSTEP_BOUNDARY_CONSTANT}};
constexpr named_value kinds[] = {{"idx", LOCKSTEP_SHUFFLE_IDX},
                                 {"up", LOCKSTEP_SHUFFLE_UP},
                                 {"down", LOCKSTEP_SHUFFLE_DOWN},
                                 {"xor", LOCKSTEP_SHUFFLE_XOR}};

template <size_t N>
bool choose(state& s, PyObject* object, const char* name, const named_value (&table)[N], const char* list, int* to) {
  const char* text = nullptr;
  if (!read_text(s, object, name, &text)) return false;
  for (const auto& row : table)
    if (text && std::strcmp(row.name, text) == 0) return *to = row.value, true;
  return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is %R; give %s", name, object, list), false;
}

// The last `rank` axes packed at the end, the ones before them merged into a batch?
bool stencil_layout(const array& x, int rank, int64_t* strides, run_of_axes& batch) {
  const int first = x.rank - rank;
  int outer[max_rank];
  for (int k = 0; k < first; ++k) outer[k] = k;
  if (!merge(x, outer, first, batch)) return false;
  int64_t least = 1;
  for (int k = rank - 1; k >= 0; --k) {
    const int64_t n = x.shape[first + k], stride = x.strides[first + k];
    strides[k] = n == 1 ? least : stride;
    if (k == rank - 1 ? strides[k] != 1 : strides[k] < least) return false;
    if (__builtin_mul_overflow(strides[k], n, &least)) return false;
  }
  return batch.length == 1 || batch.stride >= least;
}

}  // namespace

bool describe_stencil(state& s, source& x, settings& set, values& v, call& c, bool may_copy, result& temporary) {
  const array* a = x.use;
  c.op = LOCKSTEP_STENCIL;
  lockstep_stencil_desc& d = c.stencil;
  d = {};
  d.size = sizeof d;
  d.dtype = dtype_of(a->type);
  if (d.dtype != LOCKSTEP_F32 && d.dtype != LOCKSTEP_F64) {
    char text[64];
    return raise_dtype(s, "x has %s; stencils take float32 and float64", element_name(a->type, text)), false;
  }
  int axes[max_rank], rank = a->rank;
  if (v[kw_axes]) {
    if (!read_axes(s, v[kw_axes], "axes", a->rank, axes, &rank)) return false;
    for (int k = 0; k < rank; ++k)
      if (axes[k] != a->rank - rank + k)
        return raise(s, LOCKSTEP_UNSUPPORTED,
                     "axes is %R; give the last ones in their order, and move others there with permute", v[kw_axes]),
               false;
  }
  if (rank < 1 || rank > 3)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "the stencil would have %d axes; it takes 1 to 3: name the last ones by axes=", rank),
           false;
  const ref weights(PySequence_Tuple(v[kw_weights]));
  if (!weights) return false;
  const Py_ssize_t count = PyTuple_Size(weights.get());
  constexpr Py_ssize_t most = sizeof c.coefficients / sizeof *c.coefficients;
  if (count < 1 || count > most)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "weights has %zd elements; give 2 * radius * %d + 1, at most %zd", count,
                 rank, most),
           false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const weight = PyTuple_GetItem(weights.get(), i);
    if (read_double(s, weight, "an element of weights", &c.coefficients[i])) continue;
    if (!PySequence_Check(weight) || !PyErr_ExceptionMatches(PyExc_ValueError)) return false;
    PyErr_Clear();
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "weights has rows, but those of a star are one sequence; lockstep.correlate takes kernels"),
           false;
  }
  static constexpr named_value forms[] = {{"general", LOCKSTEP_GENERAL},
                                          {"symmetric", LOCKSTEP_SYMMETRIC},
                                          {"antisymmetric", LOCKSTEP_ANTISYMMETRIC},
                                          {"auto", -1}};
  int form = -1, boundary = LOCKSTEP_BOUNDARY_REFLECT;
  if (v[kw_form] && !choose(s, v[kw_form], "form", forms, "general, symmetric, antisymmetric or auto", &form))
    return false;
  if (v[kw_mode] &&
      !choose(s, v[kw_mode], "mode", boundaries, "reflect, mirror, nearest, wrap, constant or valid", &boundary))
    return false;
  long long radius = 0, sweeps = 1;
  if (!read_integer(s, v[kw_radius], "radius", 1, 16, &radius) ||
      !read_integer(s, v[kw_sweeps], "sweeps", 1, INT32_MAX, &sweeps) || !read_double(s, v[kw_cval], "cval", &d.value))
    return false;
  if (form == -1) form = radius && count == 1 + radius * rank ? LOCKSTEP_SYMMETRIC : LOCKSTEP_GENERAL;
  const int taps = form == LOCKSTEP_GENERAL ? 2 * rank : rank;
  if (!radius) radius = (count - 1) / taps;
  if (count != 1 + radius * taps || radius < 1)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "weights has %zd elements; this form takes 1 + %d * radius", count,
                 taps),
           false;
  // Nine weights of two axes are a star's of radius 2, and look like a kernel of 3 by 3.
  const bool square = rank == 2 && form == LOCKSTEP_GENERAL && (count == 9 || count == 25);
  if (square && !v[kw_radius] && !PyObject_HasAttr(v[kw_weights], s.names[kw_radius]) &&
      PyErr_WarnFormat(PyExc_UserWarning, 1,
                       "%zd weights of two axes are those of a star of radius %lld, not of a square kernel; give "
                       "radius=%lld if so, or call lockstep.correlate with the kernel",
                       count, radius, radius) != 0)
    return false;
  d.form = lockstep_form(form);
  d.boundary = lockstep_boundary(boundary);
  d.rank = rank;
  d.radius = static_cast<int32_t>(radius);
  d.coefficient_count = static_cast<int32_t>(count);
  d.sweeps = static_cast<int32_t>(sweeps);
  run_of_axes batch;
  if (a->size > 0 && !stencil_layout(*a, rank, d.src_strides, batch)) {
    if (!may_copy) return no_copy(s, "the last axis must be packed");
    if (!permuted(s, x, set, nullptr, temporary)) return false;
    a = x.use;
    if (!stencil_layout(*a, rank, d.src_strides, batch))
      return raise(s, LOCKSTEP_INTERNAL, "a copy is not packed"), false;
  }
  c.type = a->type;
  c.rank = a->rank;
  d.batch = 1;
  for (int k = 0; k < a->rank; ++k) {
    const int axis = k - (a->rank - rank);
    c.shape[k] = a->shape[k];
    if (axis < 0) {
      d.batch *= a->shape[k];
      continue;
    }
    d.shape[axis] = a->shape[k];
    if (boundary == LOCKSTEP_BOUNDARY_VALID && a->size > 0) {
      c.shape[k] = a->shape[k] - 2 * radius * sweeps;
      if (c.shape[k] < 1)
        return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                     "mode is valid, but axis %d has %lld elements, of which none would be left", k,
                     static_cast<long long>(a->shape[k])),
               false;
    }
  }
  d.src_batch_stride = d.batch > 1 ? batch.stride : 0;
  return true;
}

static bool place_stencil(state& s, const array& dst, call& c) {
  lockstep_stencil_desc& d = c.stencil;
  d.coefficients = c.coefficients;  // here, since a call may have moved
  run_of_axes batch;
  if (dst.size > 0 && !stencil_layout(dst, d.rank, d.dst_strides, batch))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "out must have a packed last axis and rows that lie apart"), false;
  d.dst_batch_stride = d.batch > 1 ? batch.stride : 0;
  return true;
}

bool describe_shuffle(state& s, const array& x, values& v, call& c) {
  c.op = LOCKSTEP_SHUFFLE;
  int kind = 0;
  long long operand = 0, width = 32;
  if (!choose(s, v[kw_kind], "kind", kinds, "idx, up, down or xor", &kind) ||
      !read_integer(s, v[kw_operand], "operand", INT32_MIN, INT32_MAX, &operand) ||
      !read_integer(s, v[kw_width], "width", INT32_MIN, INT32_MAX, &width))
    return false;
  if (x.type.bytes != 4 && x.type.bytes != 8)
    return raise_dtype(s, "x has elements of %lld bytes; shuffles take 4 and 8", x.type.bytes), false;
  c.shuffle = {sizeof c.shuffle, lockstep_shuffle_kind(kind), static_cast<size_t>(x.type.bytes),
               x.size,           static_cast<int>(width),     static_cast<int32_t>(operand)};
  c.type = x.type;
  c.rank = x.rank;
  for (int k = 0; k < x.rank; ++k) c.shape[k] = x.shape[k];
  return true;
}

bool packed_source(state& s, source& x, settings& set, result& temporary) {
  return is_packed(*x.use) || permuted(s, x, set, nullptr, temporary);
}

bool require_packed(state& s, const array& x) { return is_packed(x) || no_copy(s, "x is not packed"); }

bool place(state& s, const array& x, const array& dst, call& c) {
  switch (c.op) {
    case LOCKSTEP_TRANSPOSE: return place_transpose(s, x, dst, c);
    case LOCKSTEP_PERMUTE: return place_permute(s, x, dst, c);
    case LOCKSTEP_STENCIL: return place_stencil(s, dst, c);
    case LOCKSTEP_NORMALIZE: return place_normalize(s, dst, c);
    case LOCKSTEP_SCAN: return place_scan(s, dst, c);
    case LOCKSTEP_CONVERT:
    case LOCKSTEP_MAP: return place_convert(s, x, dst, c);
    default: break;
  }
  return require_packed_out(s, dst);
}

bool require_packed_out(state& s, const array& dst) {
  return is_packed(dst) || raise(s, LOCKSTEP_INVALID_ARGUMENT, "out is not packed; give an array in C order");
}

}  // namespace lockstep::python
