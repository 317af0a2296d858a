// convert.cpp - cases convert/<dtype>/<result>/<sizes>/perm<axes>[/pad<src>,<dst>][/by_<scale>], and their oracle:
// sizes are src's, axis k of dst is axis perm[k] of src; pad as in permute.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* types[] = {"f16", "bf16", "f32", "f64", "i32", "i64", "i8",
                                 "i16", "u8",   "u16", "u32", "u64", "bool"};
constexpr size_t floats = 4;  // of types
// A power of two; floats; a double that is none; what leaves the range of each type; what is no number.
constexpr const char* scales[] = {"by_half",  "by_minus3", "by_255th", "by_tenth",    "by_2p20",
                                  "by_2m140", "by_1e300",  "by_zero",  "by_infinity", "by_nan"};
constexpr double factors[] = {0.5,
                              -3,
                              static_cast<double>(1.0F / 255),
                              0.1,
                              0x1p20,
                              0x1p-140,
                              1e300,
                              0,
                              std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN()};
static_assert(std::size(scales) == std::size(factors));
}  // namespace

// parse_map calls it for what comes after the function.
void parse_convert(tokens& in, test_case& c) {
  if (c.op != LOCKSTEP_MAP) c.op = LOCKSTEP_CONVERT;
  const auto type = [&] {
    const std::string word = in.next();
    const auto* const at = std::find(std::begin(types), std::end(types), word);
    if (at == std::end(types))
      in.refuse("\"" + word + "\" is no type; say f16, bf16, f32, f64, or as i8, u64, bool, of src and of dst");
    if (c.op == LOCKSTEP_MAP && at - types >= static_cast<int>(floats))
      in.refuse("\"" + word + "\" is no type of map; say f16, bf16 or f32");
    return static_cast<lockstep_dtype>(at - types + LOCKSTEP_F16);
  };
  const lockstep_dtype dtype = type(), result = type();
  const auto perm = in.numbers("perm", 0, LOCKSTEP_MAX_RANK - 1), pad = in.numbers("pad");
  const int by = in.one_of(scales);
  const auto size = in.sizes();
  const auto rank = static_cast<int32_t>(size.size());
  if (rank > LOCKSTEP_MAX_RANK || perm.size() != size.size()) in.refuse("perm and sizes do not fit");
  if (c.in_place && c.op == LOCKSTEP_CONVERT) in.refuse("it cannot be in place");
  int32_t axes[LOCKSTEP_MAX_RANK] = {};
  for (int k = 0; k < rank; ++k) {
    axes[k] = static_cast<int32_t>(perm[static_cast<size_t>(k)]);
    if (axes[k] >= rank || std::find(axes, axes + k, axes[k]) != axes + k)
      in.refuse("perm must name each of 0 to " + std::to_string(rank - 1) + " once");
  }
  lockstep_convert_desc& d = c.convert =
      lockstep_convert_packed(dtype, result, by < 0 ? 1 : factors[by], rank, size.data(), axes);
  if (!pad.empty()) {
    int64_t src_stride = 1, dst_stride = 1;
    for (int k = rank - 1; k >= 0; --k) {
      const auto at = static_cast<size_t>(std::find(axes, axes + rank, k) - axes);
      d.src_strides[at] = src_stride;
      d.dst_strides[k] = dst_stride;
      src_stride = in.plus(in.times(src_stride, d.shape[at]), in.times(pad.front(), rank - k));
      dst_stride = in.plus(in.times(dst_stride, d.shape[k]), in.times(pad.back(), rank - k));
    }
  }
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(dtype);
  c.dst.element_bytes = lockstep_dtype_bytes(result);
  for (int k = 0; k < rank; ++k) {
    c.src.axis(d.shape[k], d.src_strides[k]);
    c.dst.axis(d.shape[k], d.dst_strides[k]);
  }
  c.cell = "convert " + dtype_name(dtype) + " " + dtype_name(result) + (by < 0 ? " plain" : " scaled");
}

std::vector<std::string> list_convert(level depth) {
  std::vector<std::string> names;
  // Runs, matrices, neither; padded; sides around a vector, a line, a strip, a block.
  const char* shapes[] = {"1/perm0",
                          "7/perm0/off1,1",
                          "1000/perm0/special",
                          "100003/perm0/off3,1",
                          "9x257/perm0,1/pad3,1",
                          "40x3/perm0,1/pad0,2",
                          "17x33/perm1,0",
                          "128x128/perm1,0/special",
                          "300x131/perm1,0/off1,3",
                          "5x64/perm1,0/pad3,1",
                          "251x129/perm1,0/off0,1",
                          "2x62x133/perm0,2,1/pad1,2/off1,3/special",
                          "1000x3/perm1,0",
                          "3x1000/perm1,0/off0,1",
                          "2x1200x7/perm0,2,1",
                          "2x5x1100/perm0,2,1/off1,3",
                          "3x300x32/perm0,2,1/off4,0",
                          "50x33/perm0,1/pad3,1",
                          "9x70x12/perm0,1,2/pad2,6",
                          "2x65x130/perm0,2,1/pad2,5/special",
                          "13x5x9/perm2,0,1/pad1,2",
                          "7x40x65/perm2,1,0",
                          "33x20x3/perm1,0,2/wide",
                          "2x3x4x5/perm0,2,3,1",
                          "6x5x14x23/perm3,2,1,0",
                          "2x3x1x5x2x3x1x2/perm7,3,1,0,5,2,4,6/pad1,3",
                          "3x0x4/perm2,1,0"};
  const char* scaled[] = {"by_half", "by_minus3", "by_255th", "by_tenth", "by_2p20", "by_2m140"};
  for (size_t from = 0; from < std::size(types); ++from)
    for (size_t to = 0; to < std::size(types); ++to) {
      const std::string dtype = types[from], result = types[to];
      const auto add = [&](const std::string& rest) {
        names.push_back("convert/" + dtype + "/" + result + "/" + rest);
      };
      if (from >= floats || to >= floats) {  // integers: a run, beside a line, a matrix, with gaps, by a factor
        for (const char* rest :
             {"1000/perm0/special", "70x90/perm1,0/special", "2003/perm0/off1,3/small", "9x257/perm0,1/pad3,1",
              "6x5x14x23/perm3,2,1,0", "70x90/perm1,0/special/by_half", "513/perm0/by_tenth",
              "33x20x3/perm1,0,2/special/by_minus3", "501/perm0/special/by_1e300"})
          add(rest);
        continue;
      }
      for (const std::string rest : shapes) add(rest);
      for (const char* by : scaled) {
        add("2003/perm0/wide/" + std::string(by));
        add("70x90/perm1,0/special/" + std::string(by));
      }
      for (const char* by : {"by_1e300", "by_zero", "by_infinity", "by_nan"})
        add("31x33/perm1,0/special/off1,2/" + std::string(by));
      add("9x20x21/perm2,0,1/pad1,1/by_tenth");
      add("2x5x4/perm1,2,0/by_tenth/special");
    }
  // Large enough (16 MiB moved) for the CPU's stores around the cache: in lines and beside them, whole and ragged.
  for (const char* rest :
       {"f32/f16/1500x2048/perm1,0/by_half", "f32/f16/2040x1501/perm1,0/off1,3", "f16/f32/1536x2049/perm1,0/off0,5",
        "f32/bf16/3100001/perm0/off1,7", "bf16/f32/3000x1031/perm0,1/pad1,3", "f64/f32/700x2049/perm1,0/off3,1",
        "f32/f64/1100x1408/perm1,0/by_tenth", "f32/f16/3x1000003/perm1,0", "f32/f16/1000003x3/perm1,0/off1,1",
        "f16/bf16/5x67x101x131/perm3,0,2,1", "f32/f16/64x130x416/perm2,1,0"})
    names.push_back("convert/" + std::string(rest));
  if (depth == level::full)
    for (const std::string pair : {"f32/f16/", "f16/f32/", "f32/bf16/", "f64/f32/", "f32/f64/", "bf16/f16/"})
      for (const char* rest : {"8x64x28x28/perm0,2,3,1", "8x28x28x64/perm0,3,1,2", "16x24x32x40/perm3,2,1,0",
                               "16x24x32x40/perm0,2,1,3/by_tenth", "6x5x7x8x9x3/perm5,1,3,0,4,2",
                               "127x3x129/perm2,1,0/pad5,3/off1,1", "70000x3x2/perm1,2,0", "3000001/perm0/special"})
        names.push_back("convert/" + pair + rest);
  return names;
}

namespace {

__extension__ using wide = unsigned __int128;

void store_integer(lockstep_dtype dtype, unsigned char* p, int64_t at, signed_wide x) {
  const int bits = 8 * static_cast<int>(lockstep_dtype_bytes(dtype));
  const bool with_sign = lockstep_dtype_kind(dtype) == 'i';
  const signed_wide one = 1, most = dtype == LOCKSTEP_BOOL ? 1 : (one << (with_sign ? bits - 1 : bits)) - 1;
  const auto value = static_cast<uint64_t>(std::clamp(x, with_sign ? -most - 1 : signed_wide{0}, most));
  const auto put = [&](auto as) { std::memcpy(p + at * static_cast<int64_t>(sizeof as), &as, sizeof as); };
  switch (bits) {
    case 8: return put(static_cast<uint8_t>(value));
    case 16: return put(static_cast<uint16_t>(value));
    case 32: return put(static_cast<uint32_t>(value));
    default: return put(value);
  }
}

// By whole numbers: the bits that a float keeps, and what half of the last of them makes of the rest.
double nearest(bool negative, wide size, int kept) {
  int dropped = 0;
  while (size >> dropped >> kept != 0) ++dropped;
  if (dropped > 0) {
    const auto rest = size & ((static_cast<wide>(1) << dropped) - 1), half = static_cast<wide>(1) << (dropped - 1);
    size >>= dropped;
    if (rest > half || (rest == half && (size & 1) != 0)) ++size;
  }
  const double value = std::ldexp(static_cast<double>(static_cast<uint64_t>(size)), dropped);
  return negative ? -value : value;
}

void convert_element(const test_case& c, const unsigned char* src, int64_t from, unsigned char* dst, int64_t to) {
  const lockstep_dtype dtype = c.convert.dtype, result = c.convert.result;
  const auto integer = [](lockstep_dtype d) { return d > LOCKSTEP_F64; };
  const double scale = c.convert.scale;
  double x = 0;
  if (integer(dtype)) {
    const auto bytes = static_cast<int64_t>(lockstep_dtype_bytes(dtype));
    const signed_wide value = as_integer(src + from * bytes, dtype);
    const bool negative = value < 0;
    const auto size = static_cast<wide>(negative ? -value : value);
    if (scale == 1 && integer(result))
      return store_integer(result, dst, to, result == LOCKSTEP_BOOL ? signed_wide{value != 0} : value);
    const int kept = scale != 1 || result == LOCKSTEP_F64 ? 53
                     : result == LOCKSTEP_F32             ? 24
                     : result == LOCKSTEP_F16             ? 11
                                                          : 8;
    x = nearest(negative, size, kept) * scale;
  } else {
    x = float_element(dtype, src, from) * scale;
  }
  if (!integer(result)) return store_element(result, dst, to, x);
  if (result == LOCKSTEP_BOOL) return store_integer(result, dst, to, x == 0 ? 0 : 1);
  const double bounded = std::isnan(x) ? 0 : std::clamp(x, -0x1p100, 0x1p100);
  store_integer(result, dst, to, static_cast<signed_wide>(bounded));
}

}  // namespace

void oracle_convert(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const int64_t total = c.dst.elements();
  for (int64_t n = 0; n < total; ++n) {
    int64_t rest = n, from = 0, to = 0;
    for (int k = c.dst.rank - 1; k >= 0; --k) {
      const int64_t index = rest % c.dst.counts[k];
      rest /= c.dst.counts[k];
      from += index * c.src.strides[k];
      to += index * c.dst.strides[k];
    }
    convert_element(c, src, from, dst, to);
  }
}

}  // namespace lockstep::cases
