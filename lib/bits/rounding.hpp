// rounding.hpp - rounds a double to a 16-bit float: once, to nearest, ties to even; a NaN becomes the canonical one.
// Integer arithmetic, so that the caller's float environment has no effect, and without float as an intermediate type,
// which would round twice.
#pragma once

#include <stdint.h>

namespace lockstep::order {

// mantissa: bits of the fraction, 10 for binary16 and 7 for bfloat16.
inline uint16_t rounded_to_16(uint64_t bits, int mantissa) {
  const int bias = (1 << (14 - mantissa)) - 1;
  const auto infinity = static_cast<uint64_t>(2 * bias + 1) << mantissa;
  const auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  const uint64_t magnitude = bits & 0x7FFFFFFFFFFFFFFF;
  if (magnitude > 0x7FF0000000000000) return static_cast<uint16_t>(infinity | uint64_t{1} << (mantissa - 1));
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > bias) return static_cast<uint16_t>(sign | infinity);
  // Below 2^(1 - bias) every halving loses one more bit. A denormal double becomes 0.
  const bool denormal = exponent < 1 - bias;
  const int drop = 52 - mantissa + (denormal ? 1 - bias - exponent : 0);
  if (drop > 53) return sign;
  const uint64_t significand = (magnitude & 0xFFFFFFFFFFFFF) | uint64_t{1} << 52;
  const uint64_t rest = significand & ((uint64_t{1} << drop) - 1), half = uint64_t{1} << (drop - 1);
  uint64_t kept = significand >> drop;
  if (rest > half || (rest == half && (kept & 1) != 0)) ++kept;
  // A carry goes on into the exponent, and from the largest number to infinity.
  if (!denormal) kept += static_cast<uint64_t>(exponent + bias - 1) << mantissa;
  return static_cast<uint16_t>(sign | kept);
}

}  // namespace lockstep::order
