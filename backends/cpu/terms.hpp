// terms.hpp - the kernels of each reduction (lib/bits/reductions.hpp) and dtype, and how their results are stored.
#pragma once

#include <bit>
#include <cstring>
#include <string>

#include "bits/order.hpp"
#include "bits/reductions.hpp"
#include "bits/rounding.hpp"
#include "sequences.hpp"

namespace lockstep::cpu {

inline bool is_float(lockstep_dtype dtype) { return lockstep_dtype_kind(dtype) == 'f'; }

// The kernels of floats that are added or multiplied: kind.ordered(dtype).
inline float_term float_term_of(const lib::reduction_kind& kind, lockstep_dtype dtype) {
  const auto of_type = [dtype](float_term first) { return static_cast<float_term>(first + (dtype - LOCKSTEP_F16)); };
  if (kind.by == lib::join::product) return of_type(factor_f16);
  switch (kind.of) {
    case lib::term::plain: return of_type(sum_f16);
    case lib::term::square: return of_type(square_f16);
    case lib::term::number: return of_type(number_f16);
    case lib::term::truth: break;  // counted exactly
  }
  return float_terms;
}

// The kernels of exact sums.
inline exact_term exact_term_of(const lib::reduction_kind& kind, lockstep_dtype dtype) {
  const auto of_type = [dtype](exact_term first) { return static_cast<exact_term>(first + (dtype - LOCKSTEP_I32)); };
  switch (kind.of) {
    case lib::term::number:  // no integer is a NaN
    case lib::term::plain: return of_type(sum_i32);
    case lib::term::square: return of_type(square_i32);
    case lib::term::truth: break;
  }
  const size_t bytes = lockstep_dtype_bytes(dtype);
  if (is_float(dtype)) return bytes == 2 ? truth_f16 : bytes == 4 ? truth_f32 : truth_f64;
  return bytes == 1 ? sum_bool : bytes == 2 ? truth_16 : bytes == 4 ? truth_32 : truth_64;
}

inline extreme_term extreme_term_of(const lib::reduction_kind& kind, lockstep_dtype dtype) {
  const bool most = kind.by == lib::join::largest;
  const int type = dtype - LOCKSTEP_F16;
  if (kind.of == lib::term::number && is_float(dtype))
    return static_cast<extreme_term>((most ? largest_number : smallest_number) + type);
  return static_cast<extreme_term>((most ? largest : smallest) + type);
}

inline void store_float(const sequences& q, int64_t s, double value) {
  const bool nan = value != value;
  switch (q.d.result) {
    case LOCKSTEP_F32:
      static_cast<uint32_t*>(q.dst)[s] = nan ? order::nan_f32 : std::bit_cast<uint32_t>(static_cast<float>(value));
      break;
    case LOCKSTEP_F16:
    case LOCKSTEP_BF16:
      static_cast<uint16_t*>(q.dst)[s] =
          order::rounded_to_16(std::bit_cast<uint64_t>(value), q.d.result == LOCKSTEP_F16 ? 10 : 7);
      break;
    default: static_cast<uint64_t*>(q.dst)[s] = nan ? order::nan_f64 : std::bit_cast<uint64_t>(value);
  }
}

inline void store_floats(const sequences& q, int64_t first, const double* values, int64_t count) {
  if (const lockstep_dtype result = q.d.result; result != LOCKSTEP_F32 && result != LOCKSTEP_F64) {
    for (int64_t k = 0; k < count; ++k) store_float(q, first + k, values[k]);
  } else if (result == LOCKSTEP_F32) {
    auto* const to = static_cast<float*>(q.dst) + first;
    for (int64_t k = 0; k < count; ++k) {
      const auto value = static_cast<float>(values[k]);
      to[k] = value == value ? value : std::bit_cast<float>(order::nan_f32);
    }
  } else {
    auto* const to = static_cast<double*>(q.dst) + first;
    for (int64_t k = 0; k < count; ++k)
      to[k] = values[k] == values[k] ? values[k] : std::bit_cast<double>(order::nan_f64);
  }
}

// The element for an extreme's key.
inline void store_key(const sequences& q, int64_t s, int64_t key) {
  const bool nan = key == INT64_MAX || key == INT64_MIN;
  const auto half = [&](uint16_t quiet) {
    static_cast<uint16_t*>(q.dst)[s] = nan ? quiet : static_cast<uint16_t>(key < 0 ? key ^ 0x7FFF : key);
  };
  switch (q.d.dtype) {
    case LOCKSTEP_F16: return half(0x7E00);
    case LOCKSTEP_BF16: return half(0x7FC0);
    case LOCKSTEP_F32:  // key_f32 is its own inverse
      static_cast<uint32_t*>(q.dst)[s] =
          nan ? order::nan_f32 : static_cast<uint32_t>(order::key_f32(static_cast<uint32_t>(key)));
      return;
    case LOCKSTEP_F64:
      static_cast<uint64_t*>(q.dst)[s] =
          nan ? order::nan_f64 : static_cast<uint64_t>(order::key_f64(static_cast<uint64_t>(key)));
      return;
    case LOCKSTEP_U64: static_cast<uint64_t*>(q.dst)[s] = static_cast<uint64_t>(key) ^ uint64_t { 1 } << 63; return;
    case LOCKSTEP_I64: static_cast<int64_t*>(q.dst)[s] = key; return;
    case LOCKSTEP_I32:
    case LOCKSTEP_U32: static_cast<uint32_t*>(q.dst)[s] = static_cast<uint32_t>(key); return;
    case LOCKSTEP_I16:
    case LOCKSTEP_U16: static_cast<uint16_t*>(q.dst)[s] = static_cast<uint16_t>(key); return;
    default: static_cast<uint8_t*>(q.dst)[s] = static_cast<uint8_t>(key);
  }
}

// An exact sum as the result's type; false, and the nearest value, if it does not fit.
inline bool store_exact(const sequences& q, int64_t s, const wide& sum) {
  const uint64_t sign = 0 - (sum.limb[2] >> 63), low_sign = 0 - (sum.limb[0] >> 63);
  if (q.d.result == LOCKSTEP_U64) {
    const bool fits = sum.limb[2] == 0 && sum.limb[1] == 0;
    static_cast<uint64_t*>(q.dst)[s] = fits ? sum.limb[0] : UINT64_MAX;
    return fits;
  }
  const bool fits = sum.limb[2] == sign && sum.limb[1] == sign && low_sign == sign;
  static_cast<int64_t*>(q.dst)[s] = fits ? static_cast<int64_t>(sum.limb[0]) : sign != 0 ? INT64_MIN : INT64_MAX;
  return fits;
}

inline bool store_exact(const sequences& q, int64_t s, const exact_factor& product) {
  if (q.d.result == LOCKSTEP_U64) {
    static_cast<uint64_t*>(q.dst)[s] = product.beyond && product.size != 0 ? UINT64_MAX : product.size;
    return !product.beyond || product.size == 0;
  }
  const uint64_t most = static_cast<uint64_t>(INT64_MAX) + (product.negative ? 1 : 0);
  const bool fits = product.size == 0 || (!product.beyond && product.size <= most);
  const uint64_t size = fits ? product.size : most;
  static_cast<int64_t*>(q.dst)[s] = static_cast<int64_t>(product.negative ? 0 - size : size);
  return fits;
}

// "I64" and the value in dst[s], for the text of an overflow.
inline const char* exact_name(const sequences& q) { return q.d.result == LOCKSTEP_U64 ? "U64" : "I64"; }
inline std::string exact_text(const sequences& q, int64_t s) {
  return q.d.result == LOCKSTEP_U64 ? std::to_string(static_cast<const uint64_t*>(q.dst)[s])
                                    : std::to_string(static_cast<const int64_t*>(q.dst)[s]);
}

}  // namespace lockstep::cpu
