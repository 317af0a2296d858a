// map.cpp - cases map/<function>/<dtype>/<result>/<sizes>/perm<axes>[/pad<src>,<dst>][/by_half|/by_2p20][/times]
// [/inplace], as those of convert, and their oracle. times: with a second array.
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {

using extended = long double;
static_assert(std::numeric_limits<extended>::digits >= 64, "the oracle needs more digits than a double has");
constexpr extended infinity = std::numeric_limits<extended>::infinity();

// The value to 60 bits and more. trace: the exact one is this far above (1) or below (-1) a value that has no more
// digits, by less than they show.
struct value {
  extended y;
  int trace = 0;
};
value value_of(int function, extended x) {
  const int sign = x > 0 ? 1 : x < 0 ? -1 : 0;
  const bool little = std::fabs(x) < 0x1p-30L;
  const auto unit = [&](extended y, bool far) {  // x / 2 near 0, x far out
    if (x == -infinity) return value{-0.0L};
    if (far && x != infinity) return value{x, -1};
    return little && x != 0 ? value{x / 2, 1} : value{y};
  };
  switch (function) {
    case LOCKSTEP_MAP_EXP: return {std::exp(x)};
    case LOCKSTEP_MAP_EXPM1: return little && x != 0 ? value{x, 1} : value{std::expm1(x)};
    case LOCKSTEP_MAP_LOG: return {std::log(x)};
    case LOCKSTEP_MAP_LOG1P: return little && x != 0 ? value{x, -1} : value{std::log1p(x)};
    case LOCKSTEP_MAP_SQRT: return {std::sqrt(x)};
    case LOCKSTEP_MAP_RSQRT: return {1 / std::sqrt(x)};
    case LOCKSTEP_MAP_RECIPROCAL: return {1 / x};
    case LOCKSTEP_MAP_TANH: return std::fabs(x) < 0x1p-20L ? value{x, -sign} : value{std::tanh(x)};
    case LOCKSTEP_MAP_SIGMOID:
      return std::fabs(x) < 0x1p-14L ? value{0.5L + x / 4, -sign} : value{1 / (1 + std::exp(-x))};
    case LOCKSTEP_MAP_SILU: return unit(x / (1 + std::exp(-x)), x > 30);
    case LOCKSTEP_MAP_GELU: return unit(x * std::erfc(-x / std::numbers::sqrt2_v<extended>) / 2, x > 8);
    case LOCKSTEP_MAP_GELU_TANH: {
      const extended u = std::sqrt(8 / std::numbers::pi_v<extended>) * (x + 44715 * x * x * x / 1000000);
      return unit(x / (1 + std::exp(-u)), x > 6);
    }
    case LOCKSTEP_MAP_ERF: return {std::erf(x)};
    default:
      if (x > 30 && x != infinity) return {x, 1};
      return {x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x))};
  }
}

// As a double that rounds to any shorter type as the value does: cut off, its last bit set where anything is missing.
double to_odd(value v) {
  if (!std::isfinite(v.y)) return static_cast<double>(v.y);
  auto near = static_cast<double>(v.y);
  const extended rest = v.y - near;
  const int missing = rest > 0 ? 1 : rest < 0 ? -1 : v.trace;
  if (missing == 0 || std::isinf(near)) return near;
  uint64_t bits = 0;
  std::memcpy(&bits, &near, sizeof near);
  if ((missing > 0) == std::signbit(near)) --bits;  // it lies nearer to 0
  bits |= 1;
  std::memcpy(&near, &bits, sizeof near);
  return near;
}

}  // namespace

void parse_map(tokens& in, test_case& c) {
  const std::string word = in.next();
  int function = 0;
  while (function < LOCKSTEP_FUNCTION_COUNT && word != lockstep_function_name(static_cast<lockstep_function>(function)))
    ++function;
  if (function == LOCKSTEP_FUNCTION_COUNT) in.refuse("\"" + word + "\" is no function of map");
  c.op = LOCKSTEP_MAP;
  const bool times = in.flag("times");
  parse_convert(in, c);
  const lockstep_convert_desc& as = c.convert;
  if (as.dtype == LOCKSTEP_F64 || as.result == LOCKSTEP_F64) in.refuse("map takes f16, bf16 and f32");
  // Of other factors the oracle does not know what the product of a double is.
  if (as.scale != 1 && as.scale != 0.5 && as.scale != 0x1p20) in.refuse("map's factors are by_half and by_2p20");
  std::memcpy(&c.map, &as, sizeof as);
  c.map.size = sizeof c.map;
  c.map.function = static_cast<lockstep_function>(function);
  if (c.in_place)
    for (int k = 0; k < as.rank; ++k)
      if (as.dtype != as.result || as.src_strides[k] != as.dst_strides[k]) in.refuse("it cannot be in place");
  if (times) {
    test_case second;  // laid out as src
    second.dtype = c.dtype, second.what = c.what, second.seed = mix(c.seed + 4), second.src = c.src;
    c.other.resize(c.bare ? 1 : c.src.span_bytes());
    if (!c.other.empty() && !c.bare) fill_src(second, c.other.data());
  }
  c.cell = "map " + word + " " + dtype_name(as.dtype) + " " + dtype_name(as.result) +
           (times           ? " times"
            : c.in_place    ? " in_place"
            : as.scale == 1 ? " plain"
                            : " scaled");
}

std::vector<std::string> list_map(level depth) {
  std::vector<std::string> names;
  for (int f = 0; f < LOCKSTEP_FUNCTION_COUNT; ++f) {
    const std::string function = lockstep_function_name(static_cast<lockstep_function>(f));
    const auto add = [&](const std::string& rest) { names.push_back("map/" + function + "/" + rest); };
    for (const std::string pair :
         {"f32/f32", "f16/f16", "bf16/bf16", "f32/f16", "f32/bf16", "f16/f32", "f16/bf16", "bf16/f32", "bf16/f16"}) {
      add(pair + "/1003/perm0/special");
      add(pair + "/17x33/perm1,0/off1,3");
    }
    for (const char* rest : {"7/perm0", "1009/perm0/wide", "1009/perm0/positive/off3,1", "9x257/perm0,1/pad3,1",
                             "13x5x9/perm2,0,1/pad1,2/special", "1009/perm0/special/by_half", "33x70/perm1,0/by_2p20",
                             "1009/perm0/inplace/off3,3", "9x65x5/perm0,1,2/pad2,2/inplace/special", "3x0x4/perm2,1,0",
                             "1009/perm0/times/special", "1009/perm0/times/off3,1", "300/perm0/times/inplace"})
      add("f32/f32/" + std::string(rest));
    for (const std::string pair : {"f32/f16", "f32/bf16", "f16/f32", "bf16/bf16"}) add(pair + "/517/perm0/times");
  }
  // Every way of the kernels, with a second array.
  for (const char* rest :
       {"silu/f16/f32/40x300/perm0,1/times", "gelu/bf16/bf16/9x257/perm0,1/pad3,1/times/special",
        "silu/bf16/bf16/70x90/perm1,0/times/special", "gelu_tanh/f32/f16/13x5x9/perm2,0,1/pad1,2/times",
        "tanh/f32/f32/300x131/perm1,0/off1,3/times/by_half", "exp/f32/bf16/1000x3/perm1,0/times",
        "silu/f32/f32/3x1000/perm1,0/times/off0,1", "gelu/f32/f32/1500x2048/perm1,0/times",
        "silu/bf16/bf16/2100001/perm0/times/off1,7", "reciprocal/f32/f16/6x5x14x23/perm3,2,1,0/times/special",
        "silu/f32/f32/3x0x4/perm2,1,0/times"})
    names.push_back("map/" + std::string(rest));
  // Large enough for the CPU's stores around the cache.
  for (const char* rest : {"exp/f32/f32/2100001/perm0/off1,7", "silu/f32/bf16/1500x2048/perm1,0",
                           "log/f16/f32/1536x2049/perm1,0/off0,5", "sqrt/f32/f32/2100003/perm0/inplace/off3,3"})
    names.push_back("map/" + std::string(rest));
  if (depth == level::full)
    for (const std::string function : {"exp", "log", "tanh", "gelu", "softplus"})
      for (const char* rest : {"f32/f16/8x64x28x28/perm0,2,3,1", "f16/f32/6x5x7x8x9x3/perm5,1,3,0,4,2",
                               "bf16/bf16/3000001/perm0/special", "f32/f32/127x3x129/perm2,1,0/pad5,3/off1,1"})
        names.push_back("map/" + function + "/" + rest);
  return names;
}

void oracle_map(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const int64_t total = c.dst.elements();
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n, from = 0, to = 0;
    for (int k = c.dst.rank - 1; k >= 0; --k) {
      const int64_t index = rest % c.dst.counts[k];
      rest /= c.dst.counts[k];
      from += index * c.src.strides[k];
      to += index * c.dst.strides[k];
    }
    value v = value_of(c.map.function, float_element(c.dtype, src, from));
    v.y *= c.map.scale;
    if (!c.other.empty()) {
      // Of these the program's double is known, and may lie beside a value that the product would make a middle.
      if (c.map.function >= LOCKSTEP_MAP_SQRT && c.map.function <= LOCKSTEP_MAP_RECIPROCAL)
        v.y = static_cast<double>(v.y);
      const extended by = float_element(c.dtype, c.other.data(), from);
      v.y *= by;
      if (by < 0) v.trace = -v.trace;
      if (by == 0) v.trace = 0;
    }
    store_element(c.map.result, dst, to, to_odd(v));
  }
}

}  // namespace lockstep::cases
