// fill.cpp - fills the buffers, using only integer arithmetic, so that every machine gets the same data.
#include <algorithm>
#include <bit>
#include <cstring>

#include "cases.hpp"

namespace lockstep::cases {
namespace {

struct float_format {
  int bits, mantissa, bias;
  uint64_t sign() const { return uint64_t{1} << (bits - 1); }
  uint64_t exponents() const { return (sign() >> mantissa) - 1; }  // the one of infinity and NaN
  uint64_t make(uint64_t draw, int64_t exponent) const {           // sign and mantissa out of draw
    return (draw >> 40 & 1) * sign() | static_cast<uint64_t>(exponent + bias) << mantissa |
           (mix(draw) & ((uint64_t{1} << mantissa) - 1));
  }
};
float_format format_of(int dtype) {
  switch (dtype) {
    case LOCKSTEP_F16: return {16, 10, 15};
    case LOCKSTEP_BF16: return {16, 7, 127};
    case LOCKSTEP_F32: return {32, 23, 127};
    default: return {64, 52, 1023};
  }
}

uint64_t special_float(const float_format& f, uint64_t draw, bool finite) {
  const uint64_t sign = (draw >> 20 & 1) * f.sign(), infinity = f.exponents() << f.mantissa;
  const uint64_t payload = mix(draw) & ((uint64_t{1} << f.mantissa) - 1);
  switch ((draw >> 8) % (finite ? 6 : 9)) {
    case 0: return sign;                                                // a zero
    case 1: return sign | payload;                                      // a denormal
    case 2: return sign | 1;                                            // the smallest
    case 3: return sign | uint64_t{1} << f.mantissa;                    // the smallest normal
    case 4: return sign | (infinity - 1);                               // the largest
    case 5: return sign | static_cast<uint64_t>(f.bias) << f.mantissa;  // one
    case 6: return sign | infinity;
    case 7: return sign | infinity | payload | 1;                       // NaN, quiet or signalling
    default: return sign | infinity | uint64_t{1} << (f.mantissa - 1);  // a quiet NaN
  }
}

uint64_t float_element(const test_case& c, uint64_t draw, bool chosen) {
  const float_format f = format_of(c.dtype);
  const auto range = static_cast<int64_t>(f.exponents()) - 2;  // normal exponents 1 .. range+1, biased
  switch (c.what) {
    case fill::special:
    case fill::finite:
      // One in four; the rest of a `finite` stays far from overflow.
      return draw % 4 == 0 ? special_float(f, draw, c.what == fill::finite)
                           : f.make(draw, static_cast<int64_t>(draw >> 8 & 7) - 4);
    case fill::ties: {
      const uint64_t one = static_cast<uint64_t>(f.bias) << f.mantissa;
      const uint64_t few[] = {0, f.sign(), one, f.sign() | one};
      return few[draw % 4];
    }
    case fill::zeros: return f.sign();
    case fill::wide:
      return f.make(draw, 1 - f.bias + static_cast<int64_t>(mix(draw + 1) % static_cast<uint64_t>(range + 1)));
    case fill::huge: return f.make(draw, 480 + static_cast<int64_t>(mix(draw + 1) % 544));
    case fill::tiny:
      return draw % 5 == 0 ? (draw >> 40 & 1) * f.sign() | (mix(draw) & ((uint64_t{1} << f.mantissa) - 1))
                           : f.make(draw, -1022 + static_cast<int64_t>(mix(draw + 1) % 500));
    case fill::one_nan:
      return chosen ? f.sign() | f.exponents() << f.mantissa | 0x55
                    : f.make(draw, static_cast<int64_t>(draw >> 8 & 7) - 4);
    case fill::sparse: return draw % 1000 == 0 ? f.make(draw, static_cast<int64_t>(draw >> 8 & 7) - 4) : 0;
    case fill::units: return f.make(draw, -static_cast<int64_t>(draw >> 8 & 1));
    case fill::equal: return f.make(mix(c.seed), 3);
    case fill::nearly: return f.make(mix(c.seed), 3) ^ static_cast<uint64_t>(chosen);
    case fill::positive: return f.make(draw, static_cast<int64_t>(draw >> 8 & 15) - 8) & ~f.sign();
    default: return f.make(draw, static_cast<int64_t>(draw >> 8 & 15) - 8);
  }
}

uint64_t integer_element(const test_case& c, uint64_t draw, int64_t index, int64_t count) {
  const char kind = lockstep_dtype_kind(static_cast<lockstep_dtype>(c.dtype));
  const int bits = 8 * static_cast<int>(c.src.element_bytes);
  const uint64_t all = ~uint64_t{0} >> (64 - bits), most = kind == 'i' ? all >> 1 : all, least = most + 1;
  if (kind == 'b') {  // what is not 0 is true
    const uint64_t few[] = {0, 1, 2, 0x80, 0xFF, 0, 1, 0x10};
    const bool sparse = c.what == fill::sparse;
    return c.what == fill::zeros     ? 0
           : c.what == fill::special ? few[draw >> 8 & 7]
           : sparse                  ? draw % 1000 == 0
                                     : draw >> 9 & 1;
  }
  switch (c.what) {
    case fill::special: {
      const uint64_t few[] = {most, least, 0, 1, ~uint64_t{0}, most - 1, least + 1, draw >> 32};
      return few[(draw >> 8) % 8];
    }
    case fill::ties: return (draw >> 8) % 3 - 1;
    case fill::zeros: return 0;
    case fill::units:
      return draw % 40 == 0 ? 2 + (draw >> 8 & 1) : kind == 'i' && (draw >> 8 & 1) != 0 ? ~uint64_t{0} : 1;
    case fill::small: return (draw & 0x1FFFFF) - (kind == 'i' ? 0x100000 : 0);
    case fill::sparse: return draw % 1000 == 0 ? (draw >> 20 & 0xFFFF) : 0;
    case fill::cross: {  // MAX 1 -1 | MIN -1 1 | ... : partial sums pass both ends, the whole fits
      const uint64_t one = 1, cycle[] = {most, one, ~uint64_t{0}, least, ~uint64_t{0}, one, one};
      return cycle[index % 7];
    }
    case fill::over: return index == 0 ? most : index == count - 1 ? 1 : 0;
    case fill::under: return index == 0 ? least : index == count - 1 ? ~uint64_t{0} : 0;
    default: return bits == 64 ? draw : draw >> 32;
  }
}

}  // namespace

void poison(unsigned char* base, size_t bytes, size_t element_bytes, uint64_t salt) {
  // NaN and -1; large; very negative; noise: by turns, an element each.
  for (size_t i = 0, turn = salt % 4; i < bytes; turn = (turn + 1) % 4)
    for (const size_t end = std::min(bytes, i + element_bytes); i < end; ++i)
      base[i] = turn == 0 ? 0xFF : turn == 1 ? 0x7B : turn == 2 ? 0x81 : static_cast<unsigned char>(mix(i ^ salt));
}

void fill_src(const test_case& c, unsigned char* base) {
  const size_t span = c.src.span_bytes(), bytes = c.src.element_bytes;
  poison(base, span, bytes, c.seed);
  if (span == 0) return;
  const int64_t total = c.src.elements();
  // Patterns within a sequence (cross, over) count from its start; rows and
  // columns are sequences along the last axis.
  const int64_t per_sequence = c.src.counts[c.src.rank - 1];
  const int64_t nan_at = static_cast<int64_t>(mix(c.seed) % static_cast<uint64_t>(total));
  int64_t at[8] = {};
  int64_t offset = c.src.first;
  size_t segment = 0;
  for (int64_t i = 0; i < total; ++i) {
    const uint64_t draw = mix(c.seed << 40 ^ static_cast<uint64_t>(i));
    int64_t index = i % per_sequence, count = per_sequence;
    if (!c.offsets.empty()) {
      while (i + c.offsets.front() >= c.offsets[segment + 1]) ++segment;
      index = i + c.offsets.front() - c.offsets[segment];
      count = c.offsets[segment + 1] - c.offsets[segment];
    }
    unsigned char* element = base + static_cast<size_t>(offset) * bytes;
    if (bytes == 16) {
      const uint64_t both[] = {draw, mix(draw)};
      std::memcpy(element, both, 16);
    } else {
      uint64_t value = draw >> 7;
      const char kind = lockstep_dtype_kind(static_cast<lockstep_dtype>(c.dtype));
      if (kind != 0 && kind != 'f')
        value = integer_element(c, draw, index, count);
      else if (c.dtype != 0)
        value = float_element(c, draw, i == nan_at);
      else if (c.what == fill::special && bytes >= 4)
        value = special_float(bytes == 4 ? float_format{32, 23, 127} : float_format{64, 52, 1023}, draw, false);
      if constexpr (std::endian::native == std::endian::big) value <<= 64 - 8 * bytes;
      std::memcpy(element, &value, bytes);
    }
    for (int k = c.src.rank - 1; k >= 0; --k) {  // the next element, last axis fastest
      offset += c.src.strides[k];
      if (++at[k] < c.src.counts[k]) break;
      offset -= c.src.counts[k] * c.src.strides[k];
      at[k] = 0;
    }
  }
}

}  // namespace lockstep::cases
