// cases.cpp - names to cases and back to calls.
#include "cases.hpp"

#include <algorithm>

#include "describe.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* fill_names[] = {"random", "special", "finite",   "ties",  "zeros", "wide",
                                      "huge",   "tiny",    "one_nan",  "small", "cross", "over",
                                      "under",  "sparse",  "positive", "units", "equal", "nearly"};
constexpr int64_t most_shift = 1 << 20;  // elements; less than 64 bytes of them are asked for

// Before a buffer is made: what a view asks for can be counted in bytes.
void require_countable(const tokens& in, const view& v, int64_t shift) {
  int64_t elements = 1, end = in.plus(v.first, 1 + shift);
  bool empty = false;
  for (int k = 0; k < v.rank; ++k) {
    if (v.counts[k] < 0) in.refuse("too few elements: an axis of the result would have " + std::to_string(v.counts[k]));
    empty = empty || v.counts[k] == 0;
    elements = in.times(elements, std::max<int64_t>(v.counts[k], 1));
    if (v.counts[k] != 0) end = in.plus(end, in.times(v.counts[k] - 1, v.strides[k]));
  }
  if (!empty && std::max(elements, end) > most_bytes / static_cast<int64_t>(v.element_bytes)) in.too_large();
}
}  // namespace

lockstep_normalize_desc with_sides(const test_case& c) {
  lockstep_normalize_desc d = c.normalize;
  d.weight = c.weight.empty() ? nullptr : c.weight.data();
  d.bias = c.bias.empty() ? nullptr : c.bias.data();
  d.residual = c.residual.empty() ? nullptr : c.residual.data();
  d.gradient = c.gradient.empty() ? nullptr : c.gradient.data();
  d.weight_gradient = c.weight_gradient.empty() ? nullptr : c.weight_gradient.data();
  d.bias_gradient = c.bias_gradient.empty() ? nullptr : c.bias_gradient.data();
  d.given = c.given.empty() ? nullptr : c.given.data();
  return d;
}
lockstep_scan_desc with_before(const test_case& c) {
  lockstep_scan_desc d = c.scan;
  d.before = c.before.empty() ? nullptr : c.before.data();
  return d;
}

void view::axis(int64_t count, int64_t stride) {
  counts[rank] = count;
  strides[rank++] = stride;
}
int64_t view::elements() const {
  int64_t n = 1;
  for (int k = 0; k < rank; ++k) n *= counts[k];
  return n;
}
size_t view::span_bytes() const {
  int64_t last = first;
  for (int k = 0; k < rank; ++k) {
    if (counts[k] == 0) return 0;
    last += (counts[k] - 1) * strides[k];
  }
  return static_cast<size_t>(last + 1) * element_bytes;
}

uint64_t mix(uint64_t x) {  // SplitMix64's finaliser
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

test_case parse(const std::string& name, bool bare) {
  tokens in(name);
  test_case c;
  c.name = name;
  c.bare = bare;
  const std::string op = in.next();
  c.seed = static_cast<uint64_t>(in.number("seed", 1));
  if (const auto off = in.numbers("off", 0, most_shift); !off.empty()) {
    c.src_shift = off.front();
    c.dst_shift = off.back();
  }
  c.in_place = in.flag("inplace");
  if (const int what = in.one_of(fill_names); what >= 0) c.what = static_cast<fill>(what);
  if (op == "transpose")
    parse_transpose(in, c);
  else if (op == "permute")
    parse_permute(in, c);
  else if (op == "square_sum" || op == "reduce") {
    c.op = op == "reduce" ? LOCKSTEP_REDUCE : LOCKSTEP_SQUARE_SUM;
    parse_reduction(in, c);
  } else if (op == "stencil")
    parse_stencil(in, c);
  else if (op == "shuffle")
    parse_shuffle(in, c);
  else if (op == "normalize")
    parse_normalize(in, c);
  else if (op == "scan")
    parse_scan(in, c);
  else if (op == "sums")
    parse_sums(in, c);
  else if (op == "reduce_axes")
    parse_reduce_axes(in, c);
  else if (op == "convert")
    parse_convert(in, c);
  else if (op == "map")
    parse_map(in, c);
  else
    in.refuse("no op is called \"" + op + "\"");
  in.require_all_used();
  if (c.cell.empty()) in.refuse("it stands for no cell of the matrix");
  require_countable(in, c.src, c.src_shift);
  require_countable(in, c.dst, c.dst_shift);
  return c;
}

std::vector<std::string> list(lockstep_op op, level depth, uint64_t seed) {
  std::vector<std::string> names, more;
  switch (op) {
    case LOCKSTEP_TRANSPOSE: names = list_transpose(depth); break;
    case LOCKSTEP_PERMUTE: names = list_permute(depth); break;
    case LOCKSTEP_SQUARE_SUM: names = list_square_sum(depth), more = list_more_types(op); break;
    case LOCKSTEP_REDUCE:
      names = list_reduce(depth), more = list_more_types(op);
      for (std::string& name : list_more_reductions(op)) more.push_back(std::move(name));
      break;
    case LOCKSTEP_STENCIL: names = list_stencil(depth); break;
    case LOCKSTEP_SHUFFLE: names = list_shuffle(depth); break;
    case LOCKSTEP_NORMALIZE: names = list_normalize(depth); break;
    case LOCKSTEP_SCAN: names = list_scan(depth); break;
    case LOCKSTEP_SUMS: names = list_sums(depth); break;
    case LOCKSTEP_REDUCE_AXES: names = list_reduce_axes(depth), more = list_more_reductions(op); break;
    case LOCKSTEP_CONVERT: names = list_convert(depth); break;
    case LOCKSTEP_MAP: names = list_map(depth); break;
    case LOCKSTEP_OP_COUNT: break;
  }
  names.insert(names.end(), more.begin(), more.end());
  for (std::string& name : names) name += "/seed" + std::to_string(seed);
  std::vector<std::string> unique;  // the order of the list is kept
  for (std::string& name : names)
    if (std::find(unique.begin(), unique.end(), name) == unique.end()) unique.push_back(std::move(name));
  return unique;
}

namespace {
// The description of the case's op, its pointers set.
template <class Use>
lockstep_status with_description(const test_case& c, const arrays_beside& beside, const Use& use) {
  switch (c.op) {
    case LOCKSTEP_TRANSPOSE: return use(&c.transpose);
    case LOCKSTEP_PERMUTE: return use(&c.permute);
    case LOCKSTEP_SQUARE_SUM:
    case LOCKSTEP_REDUCE: {
      lockstep_reduce_desc d = c.reduce;
      d.offsets = c.offsets.empty() ? nullptr : beside.offsets;
      return use(&d);
    }
    case LOCKSTEP_STENCIL: {
      lockstep_stencil_desc d = c.stencil;
      d.coefficients = c.coefficients.data();
      return use(&d);
    }
    case LOCKSTEP_SHUFFLE: return use(&c.shuffle);
    case LOCKSTEP_NORMALIZE: {
      lockstep_normalize_desc d = with_sides(c);
      if (d.weight != nullptr && beside.weight != nullptr) d.weight = beside.weight;
      if (d.bias != nullptr && beside.bias != nullptr) d.bias = beside.bias;
      if (d.residual != nullptr && beside.residual != nullptr) d.residual = beside.residual;
      d.offsets = c.offsets.empty() ? nullptr : beside.offsets;
      if (d.gradient != nullptr && beside.gradient != nullptr) d.gradient = beside.gradient;
      if (d.weight_gradient != nullptr && beside.weight_gradient != nullptr) d.weight_gradient = beside.weight_gradient;
      if (d.bias_gradient != nullptr && beside.bias_gradient != nullptr) d.bias_gradient = beside.bias_gradient;
      if (d.given != nullptr && beside.given != nullptr) d.given = static_cast<const double*>(beside.given);
      return use(&d);
    }
    case LOCKSTEP_SCAN: {
      lockstep_scan_desc d = with_before(c);
      if (d.before != nullptr && beside.before != nullptr) d.before = beside.before;
      d.offsets = c.offsets.empty() ? nullptr : beside.offsets;
      return use(&d);
    }
    case LOCKSTEP_SUMS: {
      lockstep_sums_desc d = with_other(c, beside.offsets);
      if (d.other != nullptr && beside.other != nullptr) d.other = beside.other;
      return use(&d);
    }
    case LOCKSTEP_REDUCE_AXES: return use(&c.reduce_axes);
    case LOCKSTEP_CONVERT: return use(&c.convert);
    case LOCKSTEP_MAP: {
      lockstep_map_desc d = c.map;
      if (!c.other.empty()) d.times = beside.other != nullptr ? beside.other : c.other.data();
      return use(&d);
    }
    case LOCKSTEP_OP_COUNT: break;
  }
  return LOCKSTEP_INTERNAL;
}
}  // namespace

std::vector<unsigned char> description_of(const test_case& c, const arrays_beside& beside) {
  std::vector<unsigned char> bytes;
  (void)with_description(c, beside, [&](const auto* desc) {
    const auto* at = reinterpret_cast<const unsigned char*>(desc);
    bytes.assign(at, at + sizeof *desc);
    return LOCKSTEP_OK;
  });
  return bytes;
}

lockstep_status call(lockstep_context* context, const test_case& c, const void* src, void* dst,
                     const arrays_beside& beside, const lockstep_options* options) {
  return with_description(c, beside,
                          [&](const void* desc) { return lockstep_execute(context, c.op, desc, src, dst, options); });
}

lockstep_status plan(lockstep_context* context, const test_case& c, const arrays_beside& beside,
                     const lockstep_options* options, lockstep_plan** out) {
  return with_description(c, beside,
                          [&](const void* desc) { return lockstep_plan_create(context, c.op, desc, options, out); });
}

}  // namespace lockstep::cases
