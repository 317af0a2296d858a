// terms.hpp - the kernels of each reduction (lib/bits/reductions.hpp) and dtype, and how their results are stored.
#pragma once

#include <bit>
#include <cstring>
#include <string>

#include "bits/order.hpp"
#include "bits/reductions.hpp"
#include "bits/stored_results.hpp"
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
  order::store_float(q.d.result, q.dst, s, value);
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
inline void store_key(const sequences& q, int64_t s, int64_t key) { order::store_key(q.d.dtype, q.dst, s, key); }

// An exact sum or product as the result's type; false, and the nearest value, if it does not fit.
template <class Exact>
bool store_exact(const sequences& q, int64_t s, const Exact& value) {
  return order::store_exact(q.d.result, q.dst, s, value);
}

// "I64" and the value in dst[s], for the text of an overflow.
inline const char* exact_name(const sequences& q) { return q.d.result == LOCKSTEP_U64 ? "U64" : "I64"; }
inline std::string exact_text(const sequences& q, int64_t s) {
  return q.d.result == LOCKSTEP_U64 ? std::to_string(static_cast<const uint64_t*>(q.dst)[s])
                                    : std::to_string(static_cast<const int64_t*>(q.dst)[s]);
}

}  // namespace lockstep::cpu
