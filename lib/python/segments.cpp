// segments.cpp - reductions of segments of an array that offsets cut: of one axis by one call of C; along the first of
// several axes by a group of reductions, one a segment, each of rows that lie one beside another.
#include <string>
#include <vector>

#include "groups.hpp"
#include "layout.hpp"
#include "lockstep/group.h"

namespace lockstep::python {

bool read_offsets(state& s, settings& set, values& v, source& to) {
  if (!read_source(s, v[kw_offsets], "offsets", set, to)) return false;
  const array& a = *to.use;
  if (a.rank != 1 || a.shape[0] < 1)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT,
                 "offsets has %d axes and %lld elements; give one axis with one element more than there are segments",
                 a.rank, static_cast<long long>(a.size)),
           false;
  return packed_integers(s, set, "offsets", to);
}

bool packed_integers(state& s, settings& set, const char* of, source& to) {
  const array& a = *to.use;
  const lockstep_dtype dtype = dtype_of(a.type);
  const char kind = dtype ? lockstep_dtype_kind(dtype) : '\0';
  char text[64];
  if ((kind != 'i' && kind != 'u') || dtype == LOCKSTEP_U64)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s holds %s; give integers, of at most 63 bits", of,
                 element_name(a.type, text)),
           false;
  if (dtype == LOCKSTEP_I64 && is_packed(a)) return true;
  if (!may_copy(set, of, "would have to be copied as packed int64")) return false;
  const ref name(PyUnicode_FromString(dtype_name(dtype)));
  ref copy = name ? call_helper(s, "offsets64", a.object, name.get()) : ref();
  array& packed = to.use == &to.direct ? to.packed : to.direct;
  if (!copy || !import_array(s, copy.get(), of, false, set.queue ? set.queue : set.stream, packed)) return false;
  set.wait |= packed.elsewhere;
  to.copy = std::move(copy);
  to.use = &packed;
  return dtype_of(packed.type) == LOCKSTEP_I64 ||
         raise(s, LOCKSTEP_INVALID_ARGUMENT, "%s holds %s, and its library makes no int64 of it; give int64", of,
               element_name(a.type, text));
}

bool ends_of(state& s, const array& offsets, int64_t length, int64_t* first, int64_t* last) {
  if (offsets.on_device()) {
    const ref read = call_helper(s, "ends_of", offsets.object);
    long long begin = 0, end = 0;
    if (!read || !PyArg_ParseTuple(read.get(), "LL", &begin, &end)) return false;
    *first = begin, *last = end;
  } else {
    const auto* const all = reinterpret_cast<const int64_t*>(offsets.data);
    *first = all[0], *last = all[offsets.shape[0] - 1];
  }
  // C checks that offsets never decrease; it does not know where x ends.
  return *last <= length || raise(s, LOCKSTEP_INVALID_ARGUMENT, "offsets[-1] is %lld, but x has %lld elements",
                                  static_cast<long long>(*last), static_cast<long long>(length));
}

bool describe_segments(state& s, source& x, settings& set, const array& offsets, values& v,
                       lockstep_reduction reduction, call& c) {
  const array& a = *x.use;
  if (a.rank != 1)
    return raise(s, LOCKSTEP_INVALID_ARGUMENT, "x has no axes; segments are cut from the first of one or more"), false;
  int64_t first = 0, last = 0;
  // The device compares its offsets with the end of x itself, so that nobody waits for them.
  if (offsets.on_device())
    set.options.flags |= LOCKSTEP_BOUNDED;
  else if (!ends_of(s, offsets, a.shape[0], &first, &last))
    return false;
  result none;
  values plain{};
  plain[kw_dtype] = v[kw_dtype];
  settings unused;
  if (!describe_reduce(s, x, unused, plain, reduction, c, false, none)) return false;
  c.scalar = false;
  c.rank = 1;
  c.shape[0] = c.reduce.count = offsets.shape[0] - 1;
  c.reduce.length = a.shape[0];
  c.reduce.element_stride = a.shape[0] > 1 ? a.strides[0] : 1;
  c.reduce.offsets = reinterpret_cast<const int64_t*>(offsets.data);
  return true;
}

namespace {

// The offsets, which cut x without a gap below zero or beyond its end.
bool offsets_of_rows(state& s, const source& given, int64_t rows, std::vector<int64_t>& to) {
  array host;
  ref copy;
  const array* use = given.use;
  if (use->on_device()) {
    copy = call_helper(s, "on_host", use->object);
    if (!copy || !import_array(s, copy.get(), "offsets", false, nullptr, host)) return false;
    use = &host;
  }
  const auto* const first = reinterpret_cast<const int64_t*>(use->data);
  to.assign(first, first + use->shape[0]);
  for (size_t i = 0; i < to.size(); ++i)
    if (to[i] < (i ? to[i - 1] : 0))
      return raise(s, LOCKSTEP_INVALID_ARGUMENT, "offsets[%zd] is %lld; give offsets of 0 or more that never decrease",
                   static_cast<Py_ssize_t>(i), static_cast<long long>(to[i])),
             false;
  return to.back() <= rows || raise(s, LOCKSTEP_INVALID_ARGUMENT, "offsets[-1] is %lld, but x has %lld rows",
                                    static_cast<long long>(to.back()), static_cast<long long>(rows));
}

// Rows whose elements lie one beside another, in a copy of x where they lie otherwise.
bool describe_rows(state& s, prepared& p) {
  int axes[max_rank];
  for (int k = 0; k < p.x.use->rank; ++k) axes[k] = k;
  run_of_axes row;
  if (p.x.use->size > 0 && !merge(*p.x.use, axes + 1, p.x.use->rank - 1, row) &&
      !permuted(s, p.x, p.set, axes, p.temporary))
    return false;
  values plain{};
  const ref axis(PyLong_FromLong(0));
  if (!axis) return false;
  plain[kw_axis] = axis.get();
  plain[kw_dtype] = p.v[kw_dtype];
  settings unused;
  result none;
  return describe_reduce(s, p.x, unused, plain, lockstep_reduction(p.which.kind), p.description, false, none);
}

}  // namespace

PyObject* segments_of_rows(state& s, prepared& p) {
  call& c = p.description;
  std::vector<int64_t> offsets;
  if (!offsets_of_rows(s, p.offsets, p.x.use->shape[0], offsets) || !describe_rows(s, p)) return nullptr;
  const array& x = *p.x.use;
  const auto segments = static_cast<int64_t>(offsets.size()) - 1;
  for (int k = c.rank++; k > 0; --k) c.shape[k] = c.shape[k - 1];
  c.shape[0] = segments;
  result r;
  if (!make_result(s, c, x, p.set.out, p.set.stream, r) || !require_packed_out(s, r.dst)) return nullptr;
  queue_on(p.set, x, r.dst);
  if (r.adopt) p.set.options.flags &= ~unsigned{LOCKSTEP_ASYNC};
  const auto count = static_cast<size_t>(segments);
  std::vector<lockstep_reduce_desc> descs(count, c.reduce);
  std::vector<const void*> from(count);
  std::vector<void*> to(count);
  const int64_t row = c.reduce.count * c.type.bytes;
  for (size_t i = 0; i < count; ++i) {
    descs[i].length = offsets[i + 1] - offsets[i];
    from[i] = x.size ? x.data + offsets[i] * (x.shape[0] > 1 ? x.strides[0] : 0) * x.type.bytes : x.data;
    to[i] = r.dst.data + static_cast<int64_t>(i) * row;
  }
  lockstep_status status = LOCKSTEP_OK;
  if (count > 0) {
    const without_gil released;
    status = lockstep_execute_group(p.set.context->handle, c.op, descs.data(), sizeof(lockstep_reduce_desc), segments,
                                    from.data(), to.data(), &p.set.options);
  }
  if (status == LOCKSTEP_OK) return conclude(s, c, x, r, status);
  raise_of_calls(s, status, [](size_t k) { return "segment " + std::to_string(k); });
  if (status == LOCKSTEP_OVERFLOW) attach_out(s, c, x, r);
  return nullptr;
}

}  // namespace lockstep::python
