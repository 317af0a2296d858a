// prepared.cpp - a call's arguments and its sources, as far as its description for C needs them.
#include "operations.hpp"

namespace lockstep::python {
namespace {

constexpr keyword common[] = {kw_out, kw_stream, kw_context, kw_backend, kw_variant, kw_check, kw_copy};

// NumPy's names of what has another here.
bool read_aliases(state& s, values& v) {
  if (v[kw_ddof] && v[kw_correction])
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "correction and ddof are two names of one number; give one of them"),
           false;
  if (v[kw_ddof]) v[kw_correction] = v[kw_ddof];
  if (v[kw_times]) v[kw_y] = v[kw_times];  // the second array, as far as plans and groups are concerned
  double order = 2;
  if (!v[kw_ord]) return true;
  if (PyUnicode_Check(v[kw_ord]) || !read_double(s, v[kw_ord], "ord", &order) || order != 2) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_ValueError)) return false;
    PyErr_Clear();
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "ord is %R; norm is the 2-norm of the elements: l1_norm has ord=1, max and min of absolute values the "
                 "others",
                 v[kw_ord]),
           false;
  }
  return true;
}

bool describe_axes(state& s, const operation& o, const array& x, values& v, call& c) {
  for (int k = 0; k < x.rank; ++k) c.axes[k] = k;
  if (o.what == task::transpose && !v[kw_axes]) {
    if (x.rank < 2)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                   "x has %d axes; transpose exchanges the last two: give an array with two or more", x.rank),
             false;
    std::swap(c.axes[x.rank - 2], c.axes[x.rank - 1]);
  }
  if (o.what == task::permute || v[kw_axes]) {
    int count = 0;
    if (!read_axes(s, v[kw_axes], "axes", x.rank, c.axes, &count)) return false;
    if (count != x.rank)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "axes is %R; name each of the array's %d axes", v[kw_axes], x.rank),
             false;
  }
  if (o.what == task::transpose && v[kw_axes]) c.op = LOCKSTEP_PERMUTE;
  return o.what == task::convert ? describe_convert(s, x, v, c) : describe_permute(s, x, c);
}

}  // namespace

bool prepared::read(state& s, PyObject* const* a, Py_ssize_t n, PyObject* keywords,
                    std::initializer_list<keyword> more) {
  keyword names[10 + sizeof common / sizeof *common];
  int count = 0;
  for (; count < which.own_count; ++count) names[count] = which.own[count];
  for (const keyword k : common) names[count++] = k;
  for (const keyword k : more) names[count++] = k;
  return parse(s, which.name, names, which.positional, count, which.required, a, n, keywords, v) &&
         read_settings(s, which.op, v, set);
}

bool prepared::describe(state& s, bool may_copy) {
  const bool may_repeat = which.what == task::reduce || which.what == task::sums || which.what == task::moments;
  if (!read_source(s, v[kw_x], "x", set, x, may_repeat) || !read_aliases(s, v)) return false;
  call& c = description;
  switch (which.what) {
    case task::transpose:
    case task::permute:
    case task::convert: return describe_axes(s, which, *x.use, v, c);
    case task::map:
      if (v[kw_y]) {
        other = std::make_unique<second>();
        if (!read_times(s, x, set, v, may_copy, temporary, *other)) return false;
      }
      if (!describe_map(s, *x.use, v, lockstep_function(which.kind), c)) return false;
      if (other) c.map.times = other->y.use->data;
      return true;
    case task::stencil: return describe_stencil(s, x, set, v, c, may_copy, temporary);
    case task::shuffle:
      return (may_copy ? packed_source(s, x, set, temporary) : require_packed(s, *x.use)) &&
             describe_shuffle(s, *x.use, v, c);
    case task::normalize:
      more = std::make_unique<sides>();
      if (v[kw_offsets]) {
        if (!read_offsets(s, set, v, offsets)) return false;
        return (of_rows = x.use->rank > 1) ||
               describe_ragged_rows(s, x, *offsets.use, set, v, lockstep_normalization(which.kind), c, may_copy,
                                    temporary, *more);
      }
      return describe_normalize(s, x, set, v, lockstep_normalization(which.kind), c, may_copy, temporary, *more,
                                &elsewhere);
    default: break;
  }
  const lockstep_dtype dtype = dtype_of(x.use->type);
  const auto reduction = lockstep_reduction(which.kind);
  if ((wide = which.what == task::scan ? !scans(dtype) : dtype == 0)) return true;
  const bool whole = lockstep_dtype_kind(dtype) != 'f';
  if ((wide = whole && which.what == task::moments)) return true;
  if (whole && v[kw_dtype] && which.what == task::reduce &&
      (reduction == LOCKSTEP_SUM || reduction == LOCKSTEP_SUM_OF_SQUARES)) {
    const ref name = call_helper(s, "dtype_name", v[kw_dtype]);
    if (!name) return false;
    for (const lockstep_dtype d : {LOCKSTEP_F64, LOCKSTEP_F32})
      wide |= PyUnicode_CompareWithASCIIString(name.get(), dtype_name(d)) == 0;
    if (wide) return true;
  }
  if ((root = which.what == task::moments && which.kind == part_root && x.use->on_device())) return true;
  if (which.what == task::sums || which.what == task::moments) {
    other = std::make_unique<second>();
    const auto kind = which.what == task::sums ? lockstep_sums_kind(which.kind) : LOCKSTEP_SUMS_MEAN_VARIANCE;
    return describe_sums(s, x, set, v, kind, c, may_copy, temporary, *other);
  }
  // auto would take the CPU for these, and no backend can be named.
  if ((wide = x.use->on_device() && !x.use->device_known && is_narrow(dtype))) return true;
  if (which.what == task::scan) return describe_scan(s, x, set, v, reduction, c, may_copy, temporary, &elsewhere);
  if (which.what == task::reduce) return describe_reduce(s, x, set, v, reduction, c, may_copy, temporary);
  if (!read_offsets(s, set, v, offsets)) return false;
  return (of_rows = x.use->rank > 1) || describe_segments(s, x, set, *offsets.use, v, reduction, c);
}

}  // namespace lockstep::python
