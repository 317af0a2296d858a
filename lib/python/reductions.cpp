// reductions.cpp - the C descriptions of reductions and of sums of two arrays: which axes go, and how the others lie.
// Idea    axes that lie one within another are one; where what is left is no sequence beside another, reduce_axes takes
//         the array as it lies, and sums a packed copy.
#include <memory>

#include "call.hpp"
#include "layout.hpp"

namespace lockstep::python {
namespace {

// The source's axes, those that stay first, each group in the array's order: so are the elements of a sequence.
struct split {
  int order[max_rank], kept = 0, count = 0;
  int64_t sequences = 1, length = 1;
};

// Reads axis and keepdims; fills in the shape of the result.
bool split_axes(state& s, const array& a, values& v, call& c, split& to) {
  for (const keyword k : {kw_where, kw_initial})
    if (v[k])
      return raise(s, LOCKSTEP_UNSUPPORTED,
                   "plans and groups take no argument %s; call the function itself, or give x with the other elements "
                   "replaced",
                   keyword_names[k]),
             false;
  int axes[max_rank], count = a.rank;
  if (v[kw_axis]) {
    if (!read_axes(s, v[kw_axis], "axis", a.rank, axes, &count)) return false;
  } else {
    for (int k = 0; k < count; ++k) axes[k] = k;
  }
  bool reduced[max_rank] = {}, keep = false;
  for (int i = 0; i < count; ++i) reduced[axes[i]] = true;
  if (!read_flag(v[kw_keepdims], &keep)) return false;
  c.scalar = count == a.rank && !keep;
  for (int k = 0; k < a.rank; ++k)
    if (!reduced[k]) to.order[to.count++] = k, to.sequences *= a.shape[k];
  to.kept = to.count;
  for (int k = 0; k < a.rank; ++k)
    if (reduced[k]) to.order[to.count++] = k, to.length *= a.shape[k];
  c.rank = 0;
  for (int k = 0; k < a.rank; ++k)
    if (!reduced[k])
      c.shape[c.rank++] = a.shape[k];
    else if (keep)
      c.shape[c.rank++] = 1;
  return true;
}

// Strides of sequences that lie one beside another.
bool beside(const array& a, const split& axes, int64_t* element_stride, int64_t* sequence_stride) {
  run_of_axes outer, inner;
  if (!merge(a, axes.order, axes.kept, outer) || !merge(a, axes.order + axes.kept, axes.count - axes.kept, inner))
    return false;
  *element_stride = inner.stride;
  *sequence_stride = outer.length == 1 ? 0 : outer.stride;
  return true;
}

// Sequences may be the same memory, one beside another; what repeats otherwise is copied.
bool may_repeat(state& s, source& x, settings& set, const split& axes, const char* name) {
  int64_t element_stride = 0, sequence_stride = 0;
  const array& a = *x.use;
  return a.plain || (beside(a, axes, &element_stride, &sequence_stride) && element_stride > 0) ||
         make_packed(s, x, set, name);
}

// The variant of the op that a call turns out to be: one named in the call, or the scope's for that op.
bool variant_of(state& s, lockstep_op op, values& v, settings& set) {
  if (v[kw_variant] || !set.scope || set.scope.get() == Py_None) return true;
  set.options.variant = nullptr;
  PyObject* const names = PyTuple_GetItem(set.scope.get(), 2);
  PyObject* const name = names ? PyTuple_GetItem(names, op) : nullptr;
  return name && read_text(s, name, "variant", &set.options.variant);
}

// Whether the backend that device data is computed by has the op at all.
bool on_its_device(const array& a, lockstep_op op) { return !a.on_device() || lockstep_variant_count("cuda", op) > 0; }

// The reduction as one over axes where they lie; false where more than C takes are left.
bool over_axes(const array& a, const split& axes, call& c) {
  lockstep_reduce_axes_desc d{};
  d.size = sizeof d;
  d.reduction = c.reduce.reduction;
  d.dtype = c.reduce.dtype;
  d.result = c.reduce.result;
  for (int i = 0; i < axes.count; ++i) {
    const int64_t n = a.shape[axes.order[i]], stride = a.strides[axes.order[i]];
    const bool goes = i >= axes.kept;
    const int last = d.rank - 1;
    if (n == 1) continue;
    if (d.rank > 0 && (d.axis_count > 0) == goes && d.src_strides[last] == n * stride) {
      d.shape[last] *= n;
      d.src_strides[last] = stride;
      continue;
    }
    if (d.rank == LOCKSTEP_MAX_RANK) return false;
    if (goes) d.axes[d.axis_count++] = d.rank;
    d.shape[d.rank] = n;
    d.src_strides[d.rank++] = stride;
  }
  if (d.axis_count == 0) {  // each element is a sequence
    if (d.rank == LOCKSTEP_MAX_RANK) return false;
    d.axes[d.axis_count++] = d.rank;
    d.shape[d.rank] = d.src_strides[d.rank] = 1;
    ++d.rank;
  }
  c.op = LOCKSTEP_REDUCE_AXES;
  c.reduce_axes = d;
  return true;
}

// Sequences one beside another, of a packed copy where x lies otherwise.
bool lay_out(state& s, source& x, settings& set, const split& axes, bool may_copy, result& temporary,
             int64_t* element_stride, int64_t* sequence_stride) {
  if (x.use->size == 0 || beside(*x.use, axes, element_stride, sequence_stride)) return true;
  if (!may_copy) return no_copy(s, "these axes of this layout need one");
  *element_stride = 1;
  *sequence_stride = axes.length;
  return permuted(s, x, set, axes.order, temporary);
}

// The second array of a sum: of x's shape, or of that of its reduced axes, which every sequence then shares.
bool read_other(state& s, source& x, settings& set, values& v, const split& axes, bool may_copy, second& other,
                lockstep_sums_desc& d) {
  source& y = other.y;
  if (!read_source(s, v[kw_y], "y", set, y, true) || !same_device(s, *x.use, *y.use, "y")) return false;
  const array &a = *x.use, &b = *y.use;
  char have[64], want[64];
  if (b.type != a.type)
    return raise_dtype(s, "y holds %s; give %s, as x does", element_name(b.type, have), element_name(a.type, want)),
           false;
  bool same = b.rank == a.rank, shared = b.rank == axes.count - axes.kept;
  for (int k = 0; same && k < b.rank; ++k) same = b.shape[k] == a.shape[k];
  for (int k = 0; shared && k < b.rank; ++k) shared = b.shape[k] == a.shape[axes.order[axes.kept + k]];
  if (!same && !shared)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "y has %d axes and %lld elements; give the shape of x, or of the axes of x that are reduced", b.rank,
                 static_cast<long long>(b.size)),
           false;
  split of_other = axes;
  if (!same) {
    of_other.kept = 0;
    of_other.count = b.rank;
    for (int k = 0; k < b.rank; ++k) of_other.order[k] = k;
  }
  if (!may_repeat(s, y, set, of_other, "y")) return false;
  if (!may_copy && y.use != &y.direct) return no_copy(s, "y is not packed");
  if (!lay_out(s, y, set, of_other, may_copy, other.temporary, &d.other_element_stride, &d.other_sequence_stride))
    return false;
  if (!same) d.other_sequence_stride = 0;
  d.other = y.use->data;
  return true;
}

}  // namespace

bool describe_reduce(state& s, source& x, settings& set, values& v, lockstep_reduction reduction, call& c,
                     bool may_copy, result& temporary) {
  c.op = reduction == LOCKSTEP_SUM_OF_SQUARES || reduction == LOCKSTEP_NORM2 ? LOCKSTEP_SQUARE_SUM : LOCKSTEP_REDUCE;
  split axes;
  if (!split_axes(s, *x.use, v, c, axes) || !may_repeat(s, x, set, axes, "x")) return false;
  const array& a = *x.use;
  lockstep_reduce_desc& d = c.reduce;
  const lockstep_dtype dtype = dtype_of(a.type), given = lockstep_default_result(reduction, dtype);
  d = {sizeof d, reduction, dtype, given, axes.sequences, axes.length, 1, axes.length, nullptr};
  // Floats that are added up come in the source's type, of 16 bits in 32; max and min have no argument dtype.
  if (given == LOCKSTEP_F64 && lockstep_dtype_kind(dtype) == 'f' && dtype != LOCKSTEP_F64) d.result = LOCKSTEP_F32;
  if (!read_result(s, v[kw_dtype], {given, given == LOCKSTEP_F64 ? floats_of_32 | floats_of_16 : 0}, &d.result))
    return false;
  c.type = element_of(d.result);
  c.same_dtype = c.type == a.type;
  if (a.size == 0 || beside(a, axes, &d.element_stride, &d.sequence_stride)) return true;
  if (on_its_device(a, LOCKSTEP_REDUCE_AXES) && over_axes(a, axes, c))
    return variant_of(s, LOCKSTEP_REDUCE_AXES, v, set);
  if (!may_copy) return no_copy(s, "these axes of this layout need one");
  return permuted(s, x, set, axes.order, temporary);
}

bool read_times(state& s, source& x, settings& set, values& v, bool may_copy, result& temporary, second& other) {
  source& y = other.y;
  if (!read_source(s, v[kw_y], "times", set, y) || !same_device(s, *x.use, *y.use, "times")) return false;
  const array &a = *x.use, &b = *y.use;
  char have[64], want[64];
  if (b.type != a.type)
    return raise_dtype(s, "times holds %s; give %s, as x does", element_name(b.type, have), element_name(a.type, want)),
           false;
  bool same = b.rank == a.rank, alike = true;
  for (int k = 0; same && k < b.rank; ++k) same = b.shape[k] == a.shape[k];
  if (!same)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "times has %d axes and %lld elements; give the shape of x", b.rank,
                 static_cast<long long>(b.size)),
           false;
  for (int k = 0; k < b.rank; ++k) alike = alike && (b.shape[k] == 1 || b.strides[k] == a.strides[k]);
  if (!may_copy && (y.use != &y.direct || !alike)) return no_copy(s, "times does not lie as x does");
  return alike || b.size == 0 || (packed_source(s, x, set, temporary) && packed_source(s, y, set, other.temporary));
}

bool describe_sums(state& s, source& x, settings& set, values& v, lockstep_sums_kind kind, call& c, bool may_copy,
                   result& temporary, second& other) {
  const lockstep_dtype dtype = dtype_of(x.use->type);
  const bool is_float = lockstep_dtype_kind(dtype) == 'f', moments = kind == LOCKSTEP_SUMS_MEAN_VARIANCE;
  char text[64];
  if (moments && !is_float)
    return raise_dtype(s, "x holds %s; means and variances are of floats: give x as float64",
                       element_name(x.use->type, text)),
           false;
  if (!x.use->device_known && !on_its_device(*x.use, LOCKSTEP_SUMS))
    return raise(
               s, LOCKSTEP_UNSUPPORTED,
               "x does not say which device it is on, and the CUDA backend has no kernel for this; copy x to the host"),
           false;
  c.op = LOCKSTEP_SUMS;
  split axes;
  if (!split_axes(s, *x.use, v, c, axes) || !may_repeat(s, x, set, axes, "x")) return false;
  lockstep_sums_desc& d = c.sums;
  d = {};
  d.size = sizeof d;
  d.kind = kind;
  d.dtype = dtype;
  d.count = axes.sequences;
  d.length = axes.length;
  d.element_stride = d.other_element_stride = 1;
  d.sequence_stride = d.other_sequence_stride = axes.length;
  const lockstep_dtype widest = is_float ? LOCKSTEP_F64 : dtype == LOCKSTEP_U64 ? LOCKSTEP_U64 : LOCKSTEP_I64;
  d.result = is_float && dtype != LOCKSTEP_F64 ? LOCKSTEP_F32 : widest;
  long long correction = 0;
  if (!read_result(s, v[kw_dtype], {widest, is_float ? floats_of_32 | floats_of_16 : 0}, &d.result) ||
      !read_integer(s, v[kw_correction], "correction", 0, INT64_MAX, &correction))
    return false;
  d.correction = correction;
  if (v[kw_y] && !read_other(s, x, set, v, axes, may_copy, other, d)) return false;
  c.type = element_of(d.result);
  c.same_dtype = c.type == x.use->type;
  return lay_out(s, x, set, axes, may_copy, temporary, &d.element_stride, &d.sequence_stride);
}

}  // namespace lockstep::python
