// terms.hpp - the kernels that reduce each dtype, and how their results are stored.
#pragma once

#include <bit>
#include <cstring>
#include <string>

#include "lockstep/backend.h"
#include "order.hpp"
#include "reduce_kernels.hpp"
#include "rounding.hpp"

namespace lockstep::cpu {

struct dtype_terms {
  bool floats;
  float_term sum_of_floats, squares_of_floats;
  exact_term sum, squares;
  extreme_term largest, smallest;
};

inline dtype_terms terms_of(lockstep_dtype dtype) {
  const auto floats = [](float_term sum, float_term square, extreme_term largest, extreme_term smallest) {
    return dtype_terms{true, sum, square, exact_terms, exact_terms, largest, smallest};
  };
  const auto integers = [](exact_term sum, exact_term square, extreme_term largest, extreme_term smallest) {
    return dtype_terms{false, float_terms, float_terms, sum, square, largest, smallest};
  };
  switch (dtype) {
    case LOCKSTEP_F16: return floats(sum_f16, square_f16, largest_f16, smallest_f16);
    case LOCKSTEP_BF16: return floats(sum_bf16, square_bf16, largest_bf16, smallest_bf16);
    case LOCKSTEP_F32: return floats(sum_f32, square_f32, largest_f32, smallest_f32);
    case LOCKSTEP_F64: return floats(sum_f64, square_f64, largest_f64, smallest_f64);
    case LOCKSTEP_I32: return integers(sum_i32, square_i32, largest_i32, smallest_i32);
    case LOCKSTEP_I8: return integers(sum_i8, square_i8, largest_i8, smallest_i8);
    case LOCKSTEP_I16: return integers(sum_i16, square_i16, largest_i16, smallest_i16);
    case LOCKSTEP_U8: return integers(sum_u8, square_u8, largest_u8, smallest_u8);
    case LOCKSTEP_U16: return integers(sum_u16, square_u16, largest_u16, smallest_u16);
    case LOCKSTEP_U32: return integers(sum_u32, square_u32, largest_u32, smallest_u32);
    case LOCKSTEP_U64: return integers(sum_u64, square_u64, largest_u64, smallest_u64);
    case LOCKSTEP_BOOL: return integers(sum_bool, sum_bool, largest_bool, smallest_bool);
    default: return integers(sum_i64, square_i64, largest_i64, smallest_i64);
  }
}

inline void store_float(const lockstep_call* call, int64_t s, double value) {
  const bool nan = value != value;
  switch (call->reduce.result) {
    case LOCKSTEP_F32:
      static_cast<uint32_t*>(call->dst)[s] = nan ? order::nan_f32 : std::bit_cast<uint32_t>(static_cast<float>(value));
      break;
    case LOCKSTEP_F16:
    case LOCKSTEP_BF16:
      static_cast<uint16_t*>(call->dst)[s] =
          order::rounded_to_16(std::bit_cast<uint64_t>(value), call->reduce.result == LOCKSTEP_F16 ? 10 : 7);
      break;
    default: static_cast<uint64_t*>(call->dst)[s] = nan ? order::nan_f64 : std::bit_cast<uint64_t>(value);
  }
}

inline void store_floats(const lockstep_call* call, int64_t first, const double* values, int64_t count) {
  if (const lockstep_dtype result = call->reduce.result; result != LOCKSTEP_F32 && result != LOCKSTEP_F64) {
    for (int64_t k = 0; k < count; ++k) store_float(call, first + k, values[k]);
  } else if (result == LOCKSTEP_F32) {
    auto* const to = static_cast<float*>(call->dst) + first;
    for (int64_t k = 0; k < count; ++k) {
      const auto value = static_cast<float>(values[k]);
      to[k] = value == value ? value : std::bit_cast<float>(order::nan_f32);
    }
  } else {
    auto* const to = static_cast<double*>(call->dst) + first;
    for (int64_t k = 0; k < count; ++k)
      to[k] = values[k] == values[k] ? values[k] : std::bit_cast<double>(order::nan_f64);
  }
}

// The element for an extreme's key.
inline void store_key(const lockstep_call* call, int64_t s, int64_t key) {
  const bool nan = key == INT64_MAX || key == INT64_MIN;
  const auto half = [&](uint16_t quiet) {
    static_cast<uint16_t*>(call->dst)[s] = nan ? quiet : static_cast<uint16_t>(key < 0 ? key ^ 0x7FFF : key);
  };
  switch (call->reduce.dtype) {
    case LOCKSTEP_F16: return half(0x7E00);
    case LOCKSTEP_BF16: return half(0x7FC0);
    case LOCKSTEP_F32:  // key_f32 is its own inverse
      static_cast<uint32_t*>(call->dst)[s] =
          nan ? order::nan_f32 : static_cast<uint32_t>(order::key_f32(static_cast<uint32_t>(key)));
      return;
    case LOCKSTEP_F64:
      static_cast<uint64_t*>(call->dst)[s] =
          nan ? order::nan_f64 : static_cast<uint64_t>(order::key_f64(static_cast<uint64_t>(key)));
      return;
    case LOCKSTEP_U64: static_cast<uint64_t*>(call->dst)[s] = static_cast<uint64_t>(key) ^ uint64_t { 1 } << 63; return;
    case LOCKSTEP_I64: static_cast<int64_t*>(call->dst)[s] = key; return;
    case LOCKSTEP_I32:
    case LOCKSTEP_U32: static_cast<uint32_t*>(call->dst)[s] = static_cast<uint32_t>(key); return;
    case LOCKSTEP_I16:
    case LOCKSTEP_U16: static_cast<uint16_t*>(call->dst)[s] = static_cast<uint16_t>(key); return;
    default: static_cast<uint8_t*>(call->dst)[s] = static_cast<uint8_t>(key);
  }
}

// An exact sum as the result's type; false, and the nearest value, if it does not fit.
inline bool store_exact(const lockstep_call* call, int64_t s, const wide& sum) {
  const uint64_t sign = 0 - (sum.limb[2] >> 63), low_sign = 0 - (sum.limb[0] >> 63);
  if (call->reduce.result == LOCKSTEP_U64) {
    const bool fits = sum.limb[2] == 0 && sum.limb[1] == 0;
    static_cast<uint64_t*>(call->dst)[s] = fits ? sum.limb[0] : UINT64_MAX;
    return fits;
  }
  const bool fits = sum.limb[2] == sign && sum.limb[1] == sign && low_sign == sign;
  static_cast<int64_t*>(call->dst)[s] = fits ? static_cast<int64_t>(sum.limb[0]) : sign != 0 ? INT64_MIN : INT64_MAX;
  return fits;
}

// "I64" and the value in dst[s], for the text of an overflow.
inline const char* exact_name(const lockstep_call* call) { return call->reduce.result == LOCKSTEP_U64 ? "U64" : "I64"; }
inline std::string exact_text(const lockstep_call* call, int64_t s) {
  return call->reduce.result == LOCKSTEP_U64 ? std::to_string(static_cast<const uint64_t*>(call->dst)[s])
                                             : std::to_string(static_cast<const int64_t*>(call->dst)[s]);
}

}  // namespace lockstep::cpu
