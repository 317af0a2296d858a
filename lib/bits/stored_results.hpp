// stored_results.hpp - elements as reductions compare and add them, parts of exact results joined, and results stored
// as elements of their type.
#pragma once

#include <bit>

#include "exact_values.hpp"
#include "lockstep/lockstep.h"
#include "order.hpp"
#include "rounding.hpp"

namespace lockstep::order {

// ---- joins ------------------------------------------------------------------
inline void add(wide& into, const wide& value) {
  bool carry = false;
  for (int k = 0; k < 3; ++k) {
    uint64_t sum;
    const bool first = __builtin_add_overflow(into.limb[k], value.limb[k], &sum);
    carry = __builtin_add_overflow(sum, uint64_t{carry}, &into.limb[k]) || first;
  }
}

inline void subtract(wide& from, wide value) {
  for (uint64_t& limb : value.limb) limb = ~limb;
  add(from, value);
  add(from, {{1, 0, 0}});
}

inline void multiply(exact_factor& into, const exact_factor& value) {
  into.negative ^= value.negative;
  into.beyond |= value.beyond;
  const bool zero = into.size == 0 || value.size == 0;
  into.beyond |= !zero && __builtin_mul_overflow(into.size, value.size, &into.size);
  if (zero)
    into.size = 0;
  else if (into.beyond)
    into.size = 1;
}

// ---- elements ---------------------------------------------------------------
// Element i, an integer or a boolean; of U64 its bits.
inline int64_t integer_at(lockstep_dtype dtype, const void* src, int64_t i) {
  switch (dtype) {
    case LOCKSTEP_I8: return static_cast<const int8_t*>(src)[i];
    case LOCKSTEP_U8: return static_cast<const uint8_t*>(src)[i];
    case LOCKSTEP_BOOL: return static_cast<const uint8_t*>(src)[i] != 0 ? 1 : 0;
    case LOCKSTEP_I16: return static_cast<const int16_t*>(src)[i];
    case LOCKSTEP_U16: return static_cast<const uint16_t*>(src)[i];
    case LOCKSTEP_I32: return static_cast<const int32_t*>(src)[i];
    case LOCKSTEP_U32: return static_cast<const uint32_t*>(src)[i];
    default: return static_cast<const int64_t*>(src)[i];
  }
}

// An integer that grows with element i; of a NaN `nan`.
inline int64_t key_at(lockstep_dtype dtype, const void* src, int64_t i, int64_t nan) {
  switch (dtype) {
    case LOCKSTEP_F16:
    case LOCKSTEP_BF16: {
      const auto x = static_cast<const int16_t*>(src)[i];
      if ((x & 0x7FFF) > (dtype == LOCKSTEP_F16 ? 0x7C00 : 0x7F80)) return nan;
      return x < 0 ? x ^ 0x7FFF : x;
    }
    case LOCKSTEP_F32: {
      const float x = static_cast<const float*>(src)[i];
      return x != x ? nan : key_f32(std::bit_cast<uint32_t>(x));
    }
    case LOCKSTEP_F64: {
      const double x = static_cast<const double*>(src)[i];
      return x != x ? nan : key_f64(std::bit_cast<uint64_t>(x));
    }
    case LOCKSTEP_U64: return integer_at(dtype, src, i) ^ INT64_MIN;
    default: return integer_at(dtype, src, i);
  }
}

// ---- results ----------------------------------------------------------------
// Rounded once, a NaN as the canonical one.
inline void store_float(lockstep_dtype result, void* dst, int64_t s, double value) {
  const bool nan = value != value;
  switch (result) {
    case LOCKSTEP_F32:
      static_cast<uint32_t*>(dst)[s] = nan ? nan_f32 : std::bit_cast<uint32_t>(static_cast<float>(value));
      break;
    case LOCKSTEP_F16:
    case LOCKSTEP_BF16:
      static_cast<uint16_t*>(dst)[s] = rounded_to_16(std::bit_cast<uint64_t>(value), result == LOCKSTEP_F16 ? 10 : 7);
      break;
    default: static_cast<uint64_t*>(dst)[s] = nan ? nan_f64 : std::bit_cast<uint64_t>(value);
  }
}

// The element for an extreme's key.
inline void store_key(lockstep_dtype dtype, void* dst, int64_t s, int64_t key) {
  const bool nan = key == INT64_MAX || key == INT64_MIN;
  const auto half = [&](uint16_t quiet) {
    static_cast<uint16_t*>(dst)[s] = nan ? quiet : static_cast<uint16_t>(key < 0 ? key ^ 0x7FFF : key);
  };
  switch (dtype) {
    case LOCKSTEP_F16: return half(0x7E00);
    case LOCKSTEP_BF16: return half(0x7FC0);
    case LOCKSTEP_F32:  // key_f32 is its own inverse
      static_cast<uint32_t*>(dst)[s] = nan ? nan_f32 : static_cast<uint32_t>(key_f32(static_cast<uint32_t>(key)));
      return;
    case LOCKSTEP_F64:
      static_cast<uint64_t*>(dst)[s] = nan ? nan_f64 : static_cast<uint64_t>(key_f64(static_cast<uint64_t>(key)));
      return;
    case LOCKSTEP_U64: static_cast<uint64_t*>(dst)[s] = static_cast<uint64_t>(key) ^ uint64_t { 1 } << 63; return;
    case LOCKSTEP_I64: static_cast<int64_t*>(dst)[s] = key; return;
    case LOCKSTEP_I32:
    case LOCKSTEP_U32: static_cast<uint32_t*>(dst)[s] = static_cast<uint32_t>(key); return;
    case LOCKSTEP_I16:
    case LOCKSTEP_U16: static_cast<uint16_t*>(dst)[s] = static_cast<uint16_t>(key); return;
    default: static_cast<uint8_t*>(dst)[s] = static_cast<uint8_t>(key);
  }
}

// An exact sum as the result's type, I64 or U64; false, and the nearest value, if it does not fit.
inline bool store_exact(lockstep_dtype result, void* dst, int64_t s, const wide& sum) {
  const uint64_t sign = 0 - (sum.limb[2] >> 63), low_sign = 0 - (sum.limb[0] >> 63);
  if (result == LOCKSTEP_U64) {
    const bool fits = sum.limb[2] == 0 && sum.limb[1] == 0;
    static_cast<uint64_t*>(dst)[s] = fits ? sum.limb[0] : UINT64_MAX;
    return fits;
  }
  const bool fits = sum.limb[2] == sign && sum.limb[1] == sign && low_sign == sign;
  static_cast<int64_t*>(dst)[s] = fits ? static_cast<int64_t>(sum.limb[0]) : sign != 0 ? INT64_MIN : INT64_MAX;
  return fits;
}

inline bool store_exact(lockstep_dtype result, void* dst, int64_t s, const exact_factor& product) {
  if (result == LOCKSTEP_U64) {
    static_cast<uint64_t*>(dst)[s] = product.beyond && product.size != 0 ? UINT64_MAX : product.size;
    return !product.beyond || product.size == 0;
  }
  const uint64_t most = static_cast<uint64_t>(INT64_MAX) + (product.negative ? 1 : 0);
  const bool fits = product.size == 0 || (!product.beyond && product.size <= most);
  const uint64_t size = fits ? product.size : most;
  static_cast<int64_t*>(dst)[s] = static_cast<int64_t>(product.negative ? 0 - size : size);
  return fits;
}

}  // namespace lockstep::order
