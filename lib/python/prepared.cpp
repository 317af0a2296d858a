// prepared.cpp - a call's arguments and its sources, as far as its description for C needs them.
#include "operations.hpp"

namespace lockstep::python {
namespace {

constexpr keyword common[] = {kw_out, kw_stream, kw_context, kw_backend, kw_variant, kw_check, kw_copy};

bool describe_axes(state& s, const operation& o, const array& x, values& v, call& c) {
  for (int k = 0; k < x.rank; ++k) c.axes[k] = k;
  if (o.what == task::transpose) {
    if (x.rank < 2)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                   "x has %d axes; transpose exchanges the last two: give an array with two or more", x.rank),
             false;
    std::swap(c.axes[x.rank - 2], c.axes[x.rank - 1]);
  } else if (o.what == task::permute || v[kw_axes]) {
    int count = 0;
    if (!read_axes(s, v[kw_axes], "axes", x.rank, c.axes, &count)) return false;
    if (count != x.rank)
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "axes is %R; name each of the array's %d axes", v[kw_axes], x.rank),
             false;
  }
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
  if (!read_source(s, v[kw_x], "x", set, x)) return false;
  call& c = description;
  switch (which.what) {
    case task::transpose:
    case task::permute:
    case task::convert: return describe_axes(s, which, *x.use, v, c);
    case task::stencil: return describe_stencil(s, x, set, v, c, may_copy, temporary);
    case task::shuffle:
      return (may_copy ? packed_source(s, x, set, temporary) : require_packed(s, *x.use)) &&
             describe_shuffle(s, *x.use, v, c);
    case task::normalize:
      more = std::make_unique<sides>();
      return describe_normalize(s, x, set, v, lockstep_normalization(which.kind), c, may_copy, temporary, *more,
                                &elsewhere);
    default: break;
  }
  const lockstep_dtype dtype = dtype_of(x.use->type);
  const auto reduction = lockstep_reduction(which.kind);
  if ((wide = which.what == task::scan ? !scans(dtype) : dtype == 0)) return true;
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
  return (of_rows = x.use->rank > 1) || describe_segments(s, x, *offsets.use, v, reduction, c);
}

}  // namespace lockstep::python
