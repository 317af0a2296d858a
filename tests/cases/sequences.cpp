// sequences.cpp - what square_sum's and reduce's cases share:
//   <op>/<reduction>/<dtype>/<layout>/<sizes>[/ld<n>][/stride<n>][/first<n>][/to_<dtype>]
// full/<n>, strided/<n>/stride<n>, rows/<r>x<c>, columns/<r>x<c>, and segments of
// four kinds: even/<segments>x<length>, mixed (0 to twice the length), nonempty
// (1 to twice the length), lopsided (one of the length, the rest 0 to 3).
#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* layouts[] = {"full", "strided", "rows", "columns", "even", "mixed", "nonempty", "lopsided"};
// By number.
std::vector<std::string> lower_case_names() {
  std::vector<std::string> names(1);
#define LOCKSTEP_ROW(name, ...) names.resize(LOCKSTEP_##name + 1), names[LOCKSTEP_##name] = #name;
  LOCKSTEP_DTYPES(LOCKSTEP_ROW)
#undef LOCKSTEP_ROW
  for (std::string& name : names)
    for (char& letter : name)
      if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter - 'A' + 'a');
  return names;
}
}  // namespace

const std::vector<std::string>& reduction_names() {
  static const std::vector<std::string> names = {"sum",   "min", "max", "argmin", "argmax",  "ssq",     "norm2",
                                                 "count", "any", "all", "prod",   "nan_sum", "nan_min", "nan_max"};
  return names;
}
const std::vector<std::string>& dtype_names() {
  static const std::vector<std::string> names = lower_case_names();
  return names;
}
const std::string& dtype_name(int dtype) { return dtype_names()[static_cast<size_t>(dtype)]; }

void parse_reduction(tokens& in, test_case& c) {
  const int reduction = in.one_of(reduction_names()), dtype = in.one_of(dtype_names()), layout = in.one_of(layouts);
  if (reduction < 0 || dtype < 1 || layout < 0) in.refuse("say reduction/dtype/layout");
  const auto what = static_cast<lockstep_reduction>(reduction);
  const auto type = static_cast<lockstep_dtype>(dtype);
  const int64_t stride = in.number("stride", 1, 1), first = in.number("first", 0), ld = in.number("ld", 0);
  const int to = in.one_of(roundings);
  const auto size = in.sizes();
  lockstep_reduce_desc& d = c.reduce;
  if (layout < 2) {
    if (size.size() != 1) in.refuse("give one size");
    d = lockstep_reduce_full(what, type, size[0], stride);
  } else {
    if (size.size() != 2) in.refuse("give two sizes");
    const int64_t apart = ld != 0 ? ld : size[1];
    if (layout == 2)
      d = lockstep_reduce_rows(what, type, size[0], size[1], apart);
    else if (layout == 3)
      d = lockstep_reduce_columns(what, type, size[0], size[1], apart);
    else {
      d = lockstep_reduce_segments(what, type, size[0], nullptr);
      if (layout == 6 && size[1] < 1) in.refuse("segments that are not empty have a length of 1 or more");
      draw_offsets(in, c, layout - 4, size[0], size[1], first);
    }
    if (layout == 2 && stride != 1) {  // rows of every stride-th element
      d.element_stride = stride;
      d.sequence_stride = ld != 0 ? ld : in.times(size[1], stride);
    }
  }
  if (layout >= 4) d.element_stride = stride;
  if (to >= 0) d.result = rounded[to];
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(type);
  c.dst.element_bytes = lockstep_dtype_bytes(d.result);
  if (layout >= 4) {
    c.src.first = in.times(first, stride);
    c.src.axis(c.offsets.back() - first, stride);
  } else {
    c.src.axis(d.count, d.sequence_stride);
    c.src.axis(d.length, d.element_stride);
  }
  c.dst.axis(d.count, 1);
  c.cell = std::string(lockstep_op_name(c.op)) + " " + reduction_names()[static_cast<size_t>(reduction)] + " " +
           dtype_name(dtype) + " " + (layout >= 4 ? "segments" : layouts[layout]) +
           (to >= 0 ? " " + std::string(roundings[to]) : "");
}

void draw_offsets(tokens& in, test_case& c, int layout, int64_t count, int64_t length, int64_t first) {
  (void)in.plus(first, in.times(in.times(count, length), 4));  // the last offset is no more
  if (count > most_bytes / 8) in.too_large();
  c.offsets.assign(1, first);
  const auto segments = static_cast<uint64_t>(count), n = static_cast<uint64_t>(length);
  for (uint64_t s = 0; s < segments; ++s) {
    const uint64_t draw = mix(c.seed * 1000003 + s);
    const uint64_t here = layout == 0         ? n
                          : layout == 1       ? draw % (2 * n + 1)
                          : layout == 2       ? 1 + draw % (2 * n)
                          : s == segments / 2 ? n
                                              : draw % 4;
    c.offsets.push_back(c.offsets.back() + static_cast<int64_t>(here));
  }
}

}  // namespace lockstep::cases
