// fixed_order.hpp - order id 1 written out for the references: lanes, leaves and tree as
// in the definition, one element at a time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>

#include "../queue.hpp"

namespace lockstep::cpu::ref {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

// The offset of element i of sequence s, in elements from src.
inline int64_t position(const lockstep_reduce_desc& d, int64_t s, int64_t i) {
  return d.offsets != nullptr ? (d.offsets[s] + i) * d.element_stride : s * d.sequence_stride + i * d.element_stride;
}
inline int64_t length_of(const lockstep_reduce_desc& d, int64_t s) {
  return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length;
}

// How two lanes, or two leaves, become one, and the lane of no elements.
struct adding {
  static constexpr double none = -0.0;
  static double joined(double a, double b) { return a + b; }
};
struct multiplying {
  static constexpr double none = 1.0;
  static double joined(double a, double b) { return a * b; }
};

// A leaf: elements [first, last) of a sequence, at most 2,048 of them.
// enter(acc, i) returns acc with element i joined.
template <class Join, class Enter>
double leaf_of(int64_t first, int64_t last, const Enter& enter) {
  double lane[128];
  for (double& value : lane) value = Join::none;
  for (int64_t i = first; i < last; ++i) lane[(i - first) % 128] = enter(lane[(i - first) % 128], i);
  for (int d = 64; d >= 1; d /= 2)
    for (int l = 0; l < d; ++l) lane[l] = Join::joined(lane[l], lane[l + d]);
  return lane[0];
}

// Leaves [first, last) of n elements: the left half of a pair holds the largest
// power of two of leaves, which is what joining 2i with 2i+1 level by level gives.
template <class Join, class Enter>
double tree_of(int64_t first, int64_t last, int64_t n, const Enter& enter) {
  if (last - first == 1) return leaf_of<Join>(first * 2048, n < last * 2048 ? n : last * 2048, enter);
  int64_t left = 1;
  while (2 * left < last - first) left *= 2;
  const double a = tree_of<Join>(first, first + left, n, enter), b = tree_of<Join>(first + left, last, n, enter);
  return Join::joined(a, b);
}

// Whether n elements are all the same finite number other than 0: of F64, their mean.
template <class Element>
bool all_equal(int64_t n, const Element& x) {
  for (int64_t i = 1; i < n; ++i)
    if (x(i) != x(0)) return false;
  return std::isfinite(x(0)) && x(0) != 0;
}

template <class Add>
double fixed_order_sum(int64_t n, const Add& add) {
  return n == 0 ? 0.0 : tree_of<adding>(0, (n - 1) / 2048 + 1, n, add);
}
template <class Multiply>
double fixed_order_product(int64_t n, const Multiply& multiply) {
  return n == 0 ? 1.0 : tree_of<multiplying>(0, (n - 1) / 2048 + 1, n, multiply);
}

// Element i of src, a float, as a double: exactly.
inline double widened(const void* src, lockstep_dtype dtype, int64_t i) {
  switch (dtype) {
    case LOCKSTEP_F16: {
      const uint16_t bits = static_cast<const uint16_t*>(src)[i];
      const int exponent = (bits >> 10) & 31, fraction = bits & 1023;
      const double magnitude = exponent == 31  ? (fraction != 0 ? NAN : INFINITY)
                               : exponent == 0 ? std::ldexp(fraction, -24)
                                               : std::ldexp(1024 + fraction, exponent - 25);
      return (bits & 0x8000) != 0 ? -magnitude : magnitude;
    }
    case LOCKSTEP_BF16: return std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(src)[i]) << 16);
    case LOCKSTEP_F32: return static_cast<const float*>(src)[i];
    default: return static_cast<const double*>(src)[i];
  }
}

// The 16 bits of the nearest float with that many bits of fraction, ties to even; computed in units of its last bit.
inline uint16_t nearest_16(double x, int fraction) {
  const int bias = (1 << (14 - fraction)) - 1;
  const uint16_t sign = std::signbit(x) ? 0x8000 : 0;
  if (x == 0) return sign;
  const int unit = std::isinf(x) ? 0 : (std::ilogb(x) > 1 - bias ? std::ilogb(x) : 1 - bias) - fraction;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(std::fabs(x), -unit)), unit);
  if (rounded >= std::ldexp(1, bias + 1)) return static_cast<uint16_t>(sign | (2 * bias + 1) << fraction);
  const int exponent = rounded < std::ldexp(1, 1 - bias) ? 0 : std::ilogb(rounded) + bias;
  const double steps = std::ldexp(rounded, fraction + bias - (exponent != 0 ? exponent : 1));
  return static_cast<uint16_t>(sign | (exponent << fraction) | (static_cast<int>(steps) & ((1 << fraction) - 1)));
}

// A float as an element of dtype, by one rounding; NaN is the canonical one.
inline void store(lockstep_dtype dtype, void* dst, int64_t s, double value) {
  const bool nan = std::isnan(value);
  switch (dtype) {
    case LOCKSTEP_F16: static_cast<uint16_t*>(dst)[s] = nan ? 0x7E00 : nearest_16(value, 10); break;
    case LOCKSTEP_BF16: static_cast<uint16_t*>(dst)[s] = nan ? 0x7FC0 : nearest_16(value, 7); break;
    case LOCKSTEP_F32:
      static_cast<uint32_t*>(dst)[s] = nan ? 0x7FC00000u : std::bit_cast<uint32_t>(static_cast<float>(value));
      break;
    default: static_cast<uint64_t*>(dst)[s] = nan ? 0x7FF8000000000000u : std::bit_cast<uint64_t>(value);
  }
}
inline void store_float(const lockstep_reduce_desc& d, void* dst, int64_t s, double value) {
  store(d.result, dst, s, value);
}

// ---- integers ----------------------------------------------------------------
// Element i of src, an integer or a boolean.
inline int128 integer(const void* src, lockstep_dtype dtype, int64_t i) {
  switch (dtype) {
    case LOCKSTEP_I8: return static_cast<const int8_t*>(src)[i];
    case LOCKSTEP_I16: return static_cast<const int16_t*>(src)[i];
    case LOCKSTEP_I32: return static_cast<const int32_t*>(src)[i];
    case LOCKSTEP_U8: return static_cast<const uint8_t*>(src)[i];
    case LOCKSTEP_U16: return static_cast<const uint16_t*>(src)[i];
    case LOCKSTEP_U32: return static_cast<const uint32_t*>(src)[i];
    case LOCKSTEP_U64: return static_cast<const uint64_t*>(src)[i];
    case LOCKSTEP_BOOL: return static_cast<const uint8_t*>(src)[i] != 0 ? 1 : 0;
    default: return static_cast<const int64_t*>(src)[i];
  }
}
inline void store_integer(lockstep_dtype dtype, void* dst, int64_t s, int128 value) {
  switch (lockstep_dtype_bytes(dtype)) {
    case 1: static_cast<uint8_t*>(dst)[s] = static_cast<uint8_t>(value); break;
    case 2: static_cast<uint16_t*>(dst)[s] = static_cast<uint16_t>(value); break;
    case 4: static_cast<uint32_t*>(dst)[s] = static_cast<uint32_t>(value); break;
    default: static_cast<uint64_t*>(dst)[s] = static_cast<uint64_t>(value);
  }
}
// Stores an exact result; if it does not fit, stores the nearest value of the result's type and returns false.
inline bool store_exact(lockstep_dtype result, void* dst, int64_t s, int128 value, bool beyond = false) {
  const int128 most = result == LOCKSTEP_U64 ? static_cast<int128>(UINT64_MAX) : INT64_MAX;
  const int128 least = result == LOCKSTEP_U64 ? 0 : INT64_MIN;
  const bool fits = !beyond && value >= least && value <= most;
  store_integer(result, dst, s, fits ? value : beyond || value > most ? most : least);
  return fits;
}
// The error of the first sequence whose exact result does not fit. s < 0: of none.
inline lockstep_status overflowed(lockstep_dtype result, const void* dst, int64_t s, const char* what = "sum",
                                  const char* shorter = "sum", const char* besides = "") {
  if (s < 0) return LOCKSTEP_OK;
  const bool of_u64 = result == LOCKSTEP_U64;
  return failed(LOCKSTEP_OVERFLOW,
                "the exact {} of sequence {} does not fit {}, dst[{}] holds {}; {} shorter sequences or floats{}", what,
                s, of_u64 ? "U64" : "I64", s,
                of_u64 ? std::to_string(static_cast<const uint64_t*>(dst)[s])
                       : std::to_string(static_cast<const int64_t*>(dst)[s]),
                shorter, besides);
}

// Up to 2^63 terms of magnitude up to 2^128 need 192 bits.
struct sum192 {
  uint64_t limb[3] = {0, 0, 0};  // least significant first

  void add(uint128 term) {
    const uint64_t part[3] = {static_cast<uint64_t>(term), static_cast<uint64_t>(term >> 64), 0};
    uint64_t carry = 0;
    for (int k = 0; k < 3; ++k) {
      const uint128 digit = static_cast<uint128>(limb[k]) + part[k] + carry;
      limb[k] = static_cast<uint64_t>(digit);
      carry = static_cast<uint64_t>(digit >> 64);
    }
  }
  bool one_limb() const { return limb[2] == 0 && limb[1] == 0; }
};
inline uint128 magnitude(int128 x) { return x < 0 ? -static_cast<uint128>(x) : static_cast<uint128>(x); }

}  // namespace lockstep::cpu::ref
