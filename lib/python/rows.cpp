// rows.cpp - the C descriptions of normalize and scan.
// Idea    rows of normalize are neighbouring axes, packed with those behind them, those before one stride apart; a
//         scan's sequence is one axis, or all. What lies otherwise is moved by permute, in lockstep/_kinds.py, and the
//         result moved back.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "../bits/normalizations.hpp"
#include "call.hpp"
#include "layout.hpp"
#include "operations.hpp"

namespace lockstep::python {
namespace {

bool is_float(lockstep_dtype dtype) { return lockstep_dtype_kind(dtype) == 'f'; }

// The axes of a row, and how many follow them.
struct row_axes {
  int inner, behind;
  int first(const array& a) const { return a.rank - inner - behind; }
};

// Those axes packed, those before them equally far apart?
bool rows_of(const array& a, const row_axes& of, int64_t* stride) {
  int axes[max_rank];
  for (int k = 0; k < a.rank; ++k) axes[k] = k;
  run_of_axes row, outer;
  const int first = of.first(a), inner = of.inner + of.behind;
  if (a.size > 0 &&
      (!merge(a, axes + first, inner, row) || (row.length > 1 && row.stride != 1) || !merge(a, axes, first, outer)))
    return false;
  *stride = outer.length == 1 ? row.length : outer.stride;
  return true;
}

bool same_shape(state& s, const array& x, int first, int count, const array& side, const char* name,
                const char* whose) {
  bool same = side.rank == count;
  for (int k = 0; same && k < side.rank; ++k) same = side.shape[k] == x.shape[first + k];
  if (same) return true;
  return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s has %d axes and %lld elements; give the shape of %s", name, side.rank,
               static_cast<long long>(side.size), whose),
         false;
}

// weight, bias or the gradient of one: x's dtype or float32.
bool column_dtype(state& s, const array& x, const array& side, const char* name) {
  char have[64], want[64];
  const lockstep_dtype own = dtype_of(side.type);
  return own == dtype_of(x.type) || own == LOCKSTEP_F32 ||
         raise_dtype(s, "%s holds %s; give %s or float32", name, element_name(side.type, have),
                     element_name(x.type, want));
}

// weight or bias: as long as a row, of x's dtype or float32.
bool read_column(state& s, PyObject* object, const char* name, settings& set, const array& x, const row_axes& of,
                 bool may_copy, source& to, lockstep_dtype* dtype, const void** data) {
  if (!object) return true;
  if (!read_source(s, object, name, set, to) || !same_device(s, x, *to.use, name) ||
      !same_shape(s, x, of.first(x), of.inner, *to.use, name, "a row of x") || !column_dtype(s, x, *to.use, name))
    return false;
  const lockstep_dtype own = dtype_of(to.use->type);
  if (*dtype && own != *dtype)
    return raise_dtype(s, "weight and bias hold %s and %s; give both of one dtype", dtype_name(*dtype),
                       dtype_name(own)),
           false;
  if (!may_copy && (to.use != &to.direct || !is_packed(*to.use))) return no_copy(s, "weight or bias is not packed");
  if (!is_packed(*to.use) && !make_packed(s, to, set, name)) return false;
  *dtype = own;
  *data = to.use->data;
  return true;
}

// residual, or what takes its sum with x: of x's shape and dtype.
bool like_x(state& s, const array& x, const array& side, const char* name) {
  char have[64], want[64];
  if (side.type != x.type)
    return raise_dtype(s, "%s holds %s; give %s, as x does", name, element_name(side.type, have),
                       element_name(x.type, want)),
           false;
  return same_device(s, x, side, name) && same_shape(s, x, 0, x.rank, side, name, "x");
}

// residual or gradient: the rows packed, one stride apart.
bool read_rows(state& s, PyObject* object, const char* name, settings& set, const array& x, const row_axes& of,
               bool may_copy, source& from, int64_t* stride) {
  if (!read_source(s, object, name, set, from) || !like_x(s, x, *from.use, name)) return false;
  const bool lies_well = rows_of(*from.use, of, stride);
  if (!may_copy && (from.use != &from.direct || !lies_well))
    return no_copy(s, ("the rows of " + std::string(name) + " do not lie so").c_str());
  return lies_well || (make_packed(s, from, set, name) && rows_of(*from.use, of, stride));
}

bool read_residual(state& s, values& v, settings& set, const array& x, const row_axes& of, bool may_copy, sides& more,
                   lockstep_normalize_desc& d) {
  if (v[kw_residual_out] && !v[kw_residual])
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "residual_out is given, but no residual; give both, or omit it"), false;
  if (!v[kw_residual]) return true;
  if (!read_rows(s, v[kw_residual], "residual", set, x, of, may_copy, more.residual, &d.residual_stride)) return false;
  d.residual = more.residual.use->data;
  if (!v[kw_residual_out]) return true;
  array& sum = more.sum;
  if (!import_array(s, v[kw_residual_out], "residual_out", true, x.on_device() ? x.stream : set.stream, sum) ||
      !like_x(s, x, sum, "residual_out"))
    return false;
  set.wait |= sum.elsewhere;
  if (!sum.plain || !rows_of(sum, of, &d.sum_stride))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "residual_out has rows that are not packed; give an array in C order"),
           false;
  d.sum = sum.data;
  return true;
}

// Where the gradient of weight or bias goes: as long as a row, packed.
bool read_column_out(state& s, PyObject* object, const char* name, settings& set, const array& x, const row_axes& of,
                     array& to, lockstep_dtype* dtype, void** data) {
  if (!object) return true;
  if (!import_array(s, object, name, true, x.on_device() ? x.stream : set.stream, to) || !same_device(s, x, to, name) ||
      !same_shape(s, x, of.first(x), of.inner, to, name, "a row of x") || !column_dtype(s, x, to, name))
    return false;
  set.wait |= to.elsewhere;
  const lockstep_dtype own = dtype_of(to.type);
  if (*dtype && own != *dtype)
    return raise_dtype(s, "%s holds %s, weight or the other gradient %s; give all of one dtype", name, dtype_name(own),
                       dtype_name(*dtype)),
           false;
  if (!to.plain || !is_packed(to))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s is not packed; give an array in C order", name), false;
  *dtype = own;
  *data = to.data;
  return true;
}

// What the kinds *_BACKWARD have besides.
bool read_gradients(state& s, values& v, settings& set, const array& x, const row_axes& of, bool may_copy, sides& more,
                    lockstep_normalize_desc& d) {
  if (!read_rows(s, v[kw_gradient], "gradient", set, x, of, may_copy, more.gradient, &d.gradient_stride)) return false;
  d.gradient = more.gradient.use->data;
  return read_column_out(s, v[kw_weight_gradient], "weight_gradient", set, x, of, more.weight_gradient, &d.weight_dtype,
                         &d.weight_gradient) &&
         read_column_out(s, v[kw_bias_gradient], "bias_gradient", set, x, of, more.bias_gradient, &d.weight_dtype,
                         &d.bias_gradient);
}

// Those of PICKED: of x's shape without the axes of a row.
bool read_labels(state& s, values& v, settings& set, const array& x, const row_axes& of, bool may_copy, source& to,
                 lockstep_normalize_desc& d) {
  if (!read_source(s, v[kw_labels], "labels", set, to) || !same_device(s, x, *to.use, "labels")) return false;
  bool same = to.use->rank == x.rank - of.inner;
  for (int k = 0; same && k < to.use->rank; ++k) same = to.use->shape[k] == x.shape[k < of.first(x) ? k : k + of.inner];
  if (!same)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "labels has %d axes and %lld elements; give the shape of x without the axes of a row", to.use->rank,
                 static_cast<long long>(to.use->size)),
           false;
  if (!packed_integers(s, set, "labels", to)) return false;
  if (!may_copy && to.use != &to.direct) return no_copy(s, "labels is not packed int64");
  d.labels = reinterpret_cast<const int64_t*>(to.use->data);
  return true;
}

}  // namespace

bool same_device(state& s, const array& x, const array& side, const char* name) {
  if (side.on_device() == x.on_device() && (!x.on_device() || side.device.id == x.device.id)) return true;
  return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s lives on %s, x on %s; give both on one device", name,
               side.on_device() ? "a CUDA device" : "the host", x.on_device() ? "a CUDA device" : "the host"),
         false;
}

static bool require_float(state& s, const array& x) {
  char text[64];
  return is_float(dtype_of(x.type)) ||
         raise_dtype(s, "x holds %s; floats of 16, 32 and 64 bits are normalised", element_name(x.type, text));
}

bool scans(lockstep_dtype dtype) { return is_float(dtype) || dtype == LOCKSTEP_I32 || dtype == LOCKSTEP_I64; }

bool describe_normalize(state& s, source& x, settings& set, values& v, lockstep_normalization kind, call& c,
                        bool may_copy, result& temporary, sides& more, bool* elsewhere) {
  const lockstep_dtype dtype = dtype_of(x.use->type);
  if (!require_float(s, *x.use)) return false;
  const int rank = x.use->rank;
  if (rank < 1) return raise(s, LOCKSTEP_INVALID_ARGUMENT, "x has no axes; give an array with one or more"), false;
  c.op = LOCKSTEP_NORMALIZE;
  int axes[max_rank] = {rank - 1}, count = 1;
  if (v[kw_axis] && !read_axes(s, v[kw_axis], "axis", rank, axes, &count)) return false;
  bool in_row[max_rank] = {};
  for (int i = 0; i < count; ++i) in_row[axes[i]] = true;
  c.inner = 0;
  for (int k = 0; k < rank; ++k)
    if (in_row[k]) c.axes[c.inner++] = k;
  if (count < 1) return raise(s, LOCKSTEP_INVALID_ARGUMENT, "axis is (); name one axis or more"), false;
  c.behind = rank - c.axes[c.inner - 1] - 1;
  const row_axes of{c.inner, c.behind};
  const lib::normalization_kind& which = lib::kind_of(kind);
  if (c.axes[0] != rank - c.inner) {  // rows side by side; what cannot be taken so is moved
    const bool neighbours = c.axes[c.inner - 1] - c.axes[0] == c.inner - 1;
    array dst;
    if (v[kw_out] && !which.one_result &&
        !import_array(s, v[kw_out], "out", true, x.use->on_device() ? x.use->stream : set.stream, dst))
      return false;
    int64_t unused = 0;
    const bool moved = x.use->on_device() && may_copy;  // a GPU permutes rows faster than it takes them from columns
    if (which.backward || moved || !neighbours || !rows_of(*x.use, of, &unused) ||
        (v[kw_out] && !which.one_result && (dst.rank != rank || !rows_of(dst, of, &unused)))) {
      *elsewhere = true;
      return may_copy || no_copy(s, "axis names others than the last axes, of an array that does not lie in C order");
    }
  }
  lockstep_normalize_desc& d = c.normalize;
  d = {};
  d.size = sizeof d;
  d.kind = kind;
  d.dtype = d.result = dtype;
  d.eps = kind == LOCKSTEP_NORMALIZE_L2                                               ? 1e-12
          : kind == LOCKSTEP_NORMALIZE_RMS || kind == LOCKSTEP_NORMALIZE_RMS_BACKWARD ? 1e-6
                                                                                      : 1e-5;
  if (which.exponential) d.scale = 1;
  if (!read_double(s, v[kw_eps], "eps", &d.eps) || !read_double(s, v[kw_scale], "scale", &d.scale) ||
      !read_result(s, v[kw_dtype], {which.one_result ? LOCKSTEP_F64 : dtype, floats_of_32 | floats_of_16}, &d.result))
    return false;
  if (!rows_of(*x.use, of, &d.src_stride)) {
    if (!may_copy) return no_copy(s, "the rows of x are not packed");
    if (!permuted(s, x, set, nullptr, temporary) || !rows_of(*x.use, of, &d.src_stride)) return false;
  }
  const array& a = *x.use;
  if (!read_column(s, v[kw_weight], "weight", set, a, of, may_copy, more.weight, &d.weight_dtype, &d.weight) ||
      !read_column(s, v[kw_bias], "bias", set, a, of, may_copy, more.bias, &d.weight_dtype, &d.bias) ||
      !read_residual(s, v, set, a, of, may_copy, more, d) ||
      (which.backward && !read_gradients(s, v, set, a, of, may_copy, more, d)) ||
      (v[kw_labels] && !read_labels(s, v, set, a, of, may_copy, more.labels, d)))
    return false;
  if (!d.weight_dtype) d.weight_dtype = dtype;
  bool keep = !which.one_result;  // the axes of a row
  if (!read_flag(v[kw_keepdims], &keep)) return false;
  d.count = d.length = d.inner = 1;
  c.rank = 0;
  c.scalar = !keep && c.inner == rank;
  for (int k = 0; k < rank; ++k) {
    if (keep || !in_row[k]) c.shape[c.rank++] = in_row[k] && which.one_result ? 1 : a.shape[k];
    (in_row[k] ? d.length : d.count) *= a.shape[k];
    if (k >= rank - c.behind) d.inner *= a.shape[k];
  }
  c.type = element_of(d.result);
  c.same_dtype = c.type == a.type;
  return true;
}

bool describe_ragged_rows(state& s, source& x, const array& offsets, settings& set, values& v,
                          lockstep_normalization kind, call& c, bool may_copy, result& temporary, sides& more) {
  const lockstep_dtype dtype = dtype_of(x.use->type);
  if (!require_float(s, *x.use)) return false;
  if (x.use->rank != 1)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "x has no axes; segments are cut from the first of one or more"), false;
  const lib::normalization_kind& which = lib::kind_of(kind);
  const int64_t elements = x.use->shape[0], segments = offsets.shape[0] - 1;
  int64_t first = 0, last = 0;
  if (!ends_of(s, offsets, elements, &first, &last)) return false;
  if (!which.one_result && (first != 0 || last != elements))
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "offsets begin at %lld and end at %lld, but x has %lld elements; give offsets from 0 to %lld",
                 static_cast<long long>(first), static_cast<long long>(last), static_cast<long long>(elements),
                 static_cast<long long>(elements)),
           false;
  if (!is_packed(*x.use) && !may_copy) return no_copy(s, "the elements of x are not packed");
  if (!packed_source(s, x, set, temporary)) return false;
  double scale = 1;
  lockstep_dtype result = dtype;
  if (!read_double(s, v[kw_scale], "scale", &scale) ||
      !read_result(s, v[kw_dtype], {which.one_result ? LOCKSTEP_F64 : dtype, floats_of_32 | floats_of_16}, &result))
    return false;
  c.op = LOCKSTEP_NORMALIZE;
  lockstep_normalize_desc& d = c.normalize;
  d = lockstep_normalize_segments(kind, dtype, segments, reinterpret_cast<const int64_t*>(offsets.data), scale);
  d.result = result;
  if (v[kw_labels]) {
    if (!read_source(s, v[kw_labels], "labels", set, more.labels) ||
        !same_device(s, *x.use, *more.labels.use, "labels"))
      return false;
    const array& labels = *more.labels.use;
    if (labels.rank != 1 || labels.size != segments)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                   "labels has %d axes and %lld elements; give one for each of %lld segments", labels.rank,
                   static_cast<long long>(labels.size), static_cast<long long>(segments)),
             false;
    if (!packed_integers(s, set, "labels", more.labels)) return false;
    if (!may_copy && more.labels.use != &more.labels.direct) return no_copy(s, "labels is not packed int64");
    d.labels = reinterpret_cast<const int64_t*>(more.labels.use->data);
  }
  c.inner = 1, c.behind = 0;
  c.scalar = false;
  c.rank = 1;
  c.shape[0] = which.one_result ? segments : elements;
  c.type = element_of(d.result);
  c.same_dtype = c.type == x.use->type;
  return true;
}

bool place_normalize(state& s, const array& dst, call& c) {
  const bool one_result = lib::kind_of(c.normalize.kind).one_result;
  return rows_of(dst, one_result ? row_axes{0, 0} : row_axes{c.inner, c.behind}, &c.normalize.dst_stride) ||
         raise(s, LOCKSTEP_INVALID_ARGUMENT, "out has rows that are not packed; give an array in C order");
}

// The sequences of a scan: along one axis, the others one stride apart, or all elements in C order.
static bool sequences_of(const array& a, int axis, int64_t* element_stride, int64_t* sequence_stride) {
  int others[max_rank], count = 0;
  for (int k = 0; k < a.rank; ++k)
    if (k != axis) others[count++] = k;
  run_of_axes run;
  if (a.size > 0 && !merge(a, others, count, run)) return false;
  *element_stride = axis < 0 ? run.stride : a.shape[axis] == 1 ? 1 : a.strides[axis];
  *sequence_stride = axis < 0 || run.length == 1 ? 0 : run.stride;
  return true;
}

bool describe_scan(state& s, source& x, settings& set, values& v, lockstep_reduction reduction, call& c, bool may_copy,
                   result& temporary, bool* elsewhere) {
  const array* a = x.use;
  c.op = LOCKSTEP_SCAN;
  lockstep_scan_desc& d = c.scan;
  const lockstep_dtype dtype = dtype_of(a->type);
  d = {};
  d.size = sizeof d;
  d.reduction = reduction;
  d.dtype = d.result = dtype;
  bool exclusive = false;
  if (!read_flag(v[kw_exclusive], &exclusive)) return false;
  d.exclusive = exclusive;
  if (reduction == LOCKSTEP_SUM && is_float(dtype)) {
    if (dtype == LOCKSTEP_F16 || dtype == LOCKSTEP_BF16) d.result = LOCKSTEP_F32;
    const lockstep_dtype wanted = d.result;
    d.result = LOCKSTEP_F64;
    // As for sums: the source's type, of 16 bits 32, or what is asked for.
    if (!v[kw_dtype])
      d.result = wanted;
    else if (!read_result(s, v[kw_dtype], {LOCKSTEP_F64, floats_of_32 | (wanted != dtype ? floats_of_16 : 0)},
                          &d.result))
      return false;
  } else if (reduction == LOCKSTEP_SUM) {
    d.result = LOCKSTEP_I64;
    if (!read_result(s, v[kw_dtype], {LOCKSTEP_I64, 0}, &d.result)) return false;
  }
  c.inner = -1;
  int count = 0;
  if (v[kw_axis]) {
    if (!read_axes(s, v[kw_axis], "axis", a->rank, c.axes, &count)) return false;
    if (count != 1)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "axis is %R; name one axis, or none for all elements", v[kw_axis]),
             false;
    c.inner = c.axes[0];
  }
  array dst;  // as a result of the library's lies
  pack(dst, a->rank, a->shape);
  if (!sequences_of(*a, c.inner, &d.element_stride, &d.sequence_stride) ||
      (!v[kw_out] && !sequences_of(dst, c.inner, &d.dst_element_stride, &d.dst_sequence_stride))) {
    if (!may_copy) return no_copy(s, "this axis of this layout needs one");
    if (c.inner >= 0) {
      c.inner = 1;  // one axis, in c.axes
      return *elsewhere = true;
    }
    if (!permuted(s, x, set, nullptr, temporary)) return false;
    a = x.use;
    if (!sequences_of(*a, -1, &d.element_stride, &d.sequence_stride)) return false;
  }
  d.length = c.inner < 0 ? a->size : a->shape[c.inner];
  d.count = c.inner < 0 ? 1 : d.length ? a->size / d.length : 0;
  c.rank = c.inner < 0 ? 1 : a->rank;
  for (int k = 0; k < c.rank; ++k) c.shape[k] = c.inner < 0 ? a->size : a->shape[k];
  c.type = element_of(d.result);
  c.same_dtype = c.type == a->type;
  return true;
}

bool place_scan(state& s, const array& dst, call& c) {
  return sequences_of(dst, c.inner, &c.scan.dst_element_stride, &c.scan.dst_sequence_stride) ||
         raise(s, LOCKSTEP_INVALID_ARGUMENT,
               "out has axes that are not one stride apart; give one that lies as x does, or omit it");
}

namespace {

// Rows in memory as doubles.
double element_at(const void* data, lockstep_dtype dtype, int64_t i) {
  return dtype == LOCKSTEP_F64 ? static_cast<const double*>(data)[i]
                               : static_cast<double>(static_cast<const float*>(data)[i]);
}

enum class trouble { none, range };

// What is wrong with row y of x, as its first element that has a weight tells.
trouble judge_row(const lockstep_normalize_desc& d, const double* x, const void* y, int64_t begin, int64_t step) {
  int64_t k = 0;
  const auto weight = [&] { return d.weight ? element_at(d.weight, d.weight_dtype, k) : 1; };
  while (k < d.length && (x[k] == 0 || weight() == 0)) ++k;
  if (k == d.length || !std::isfinite(x[k])) return trouble::none;
  const double result = element_at(y, d.result, begin + k * step);
  if (d.kind == LOCKSTEP_NORMALIZE_RMS && std::isfinite(result) && (result != 0 || d.bias || std::fabs(x[k]) < 1e-100))
    return trouble::none;
  const bool equal = std::all_of(x, x + d.length, [&](double v) { return v == x[0]; });  // mostly the second is not
  if (d.kind == LOCKSTEP_NORMALIZE_LAYER && equal) return trouble::none;  // 0, or with eps 0 NaN, as it should be
  if (std::isfinite(result)) {  // elements that are the mean give 0; of a whole row it is the range
    if (d.bias || result != 0) return trouble::none;
    for (int64_t i = k; i < d.length; ++i)
      if (element_at(y, d.result, begin + i * step) != 0) return trouble::none;
  }
  return std::all_of(x, x + d.length, [](double v) { return std::isfinite(v); }) ? trouble::range : trouble::none;
}

}  // namespace

bool warn_of_rows(const operation& o, const call& c, const array& x, const array& dst) {
  const lockstep_normalize_desc& d = c.normalize;
  const bool squares = d.kind == LOCKSTEP_NORMALIZE_RMS || d.kind == LOCKSTEP_NORMALIZE_LAYER;
  if (!squares || d.dtype != LOCKSTEP_F64 || d.residual || x.on_device() || dst.on_device() || x.data == dst.data ||
      (d.result != LOCKSTEP_F64 && d.result != LOCKSTEP_F32) || d.length == 0)
    return true;
  std::vector<double> apart(static_cast<size_t>(d.inner > 1 ? d.length : 0));
  for (int64_t row = 0; row < d.count; ++row) {
    const int64_t outer = row / d.inner, column = row % d.inner;
    const double* elements = reinterpret_cast<const double*>(x.data) + outer * d.src_stride + column;
    for (size_t k = 0; k < apart.size(); ++k) apart[k] = elements[static_cast<int64_t>(k) * d.inner];
    const trouble found =
        judge_row(d, apart.empty() ? elements : apart.data(), dst.data, outer * d.dst_stride + column, d.inner);
    if (found == trouble::none) continue;
    return PyErr_WarnFormat(PyExc_RuntimeWarning, 1,
                            "%s: squares in row %lld of x leave the range of float64, so that its result is 0 or not "
                            "finite; scale x first, or use normalize, which rescales",
                            o.name, static_cast<long long>(row)) == 0;
  }
  return true;
}

}  // namespace lockstep::python
