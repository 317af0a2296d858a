// kinds.cuh - what a scan is made of. A kind has
//   element, result, partial     what is read and written; what leaves exchange
//   ordered                      the order shows in the bits (float sums)
//   none(), join(a, b)           the identity; a before b
//   of(quad, j)                  an element as a `local`, which sums within a leaf
//   put(value, sequence)         a result from a partial; told only for results that are stored
//   first()                      what an exclusive scan begins with
//   before(state, sequence)      of kinds without an order: what stands before a sequence (lockstep_scan_desc.before)
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "../normalize/quad.cuh"

namespace lockstep::cuda {

template <class E, class R>
struct float_scan {
  using element = E;
  using result = R;
  using partial = double;
  using local = double;
  static constexpr bool ordered = true;
  __device__ static double none() { return -0.0; }
  __device__ static double first() { return 0.0; }
  __device__ static double join(double a, double b) { return __dadd_rn(a, b); }
  __device__ static R put(double y, int64_t) { return rounded_to<R>::of(y); }
};

template <class T>
struct exact_scan {
  using element = T;
  using result = int64_t;
  using partial = int128;
  using local = std::conditional_t<sizeof(T) == 4, int64_t, int128>;  // 2,048 elements of 32 bits fit
  static constexpr bool ordered = false;
  report_word word;

  __device__ static partial none() { return 0; }
  __device__ static partial first() { return 0; }
  template <class P>
  __device__ static P join(P a, P b) {
    return a + b;
  }
  __device__ static local of(const quad<T>& q, int j) { return lockstep::cuda::element<T>(q, j); }
  __device__ static partial before(const void* state, int64_t s) {
    partial sum;
    memcpy(&sum, static_cast<const int64_t*>(state) + 2 * s, sizeof sum);
    return sum;
  }
  __device__ int64_t put(partial sum, int64_t s) const {
    const bool fits = sum >= INT64_MIN && sum <= INT64_MAX;
    if (!fits) report(word, fault::overflow, s);
    return fits ? static_cast<int64_t>(sum) : sum < 0 ? INT64_MIN : INT64_MAX;
  }
};

// The largest of keys that grow with an element, or for a minimum fall with it: turn is 0 or -1. A NaN's is beyond all.
template <class E>
struct extreme_scan {
  static constexpr bool floats = !std::is_integral_v<E>;
  using element = E;
  using result = E;
  using partial = std::conditional_t<sizeof(E) == 8, int64_t, int32_t>;
  using local = partial;
  static constexpr bool ordered = false;
  static constexpr partial most = sizeof(E) == 8 ? static_cast<partial>(INT64_MAX) : static_cast<partial>(INT32_MAX);
  static constexpr partial infinity = static_cast<partial>(sizeof(E) == 8 ? 0x7FF0000000000000 : 0x7F800000);
  partial turn;

  __device__ static partial none() { return floats ? ~infinity : ~most; }
  __device__ static partial first() { return none(); }
  __device__ static partial join(partial a, partial b) { return a > b ? a : b; }
  __device__ partial of(const quad<E>& q, int j) const {
    if constexpr (!floats) {
      return lockstep::cuda::element<E>(q, j) ^ turn;
    } else if constexpr (sizeof(E) == 8) {
      const double x = narrow_value(q, j);
      return x != x ? most : order::key_f64(static_cast<uint64_t>(__double_as_longlong(x))) ^ turn;
    } else {
      const float x = narrow_value(q, j);
      return x != x ? most : order::key_f32(__float_as_uint(x)) ^ turn;
    }
  }
  __device__ partial before(const void* state, int64_t s) const {
    quad<E> one{};
    set_element(one, 0, static_cast<const E*>(state)[s]);
    return of(one, 0);
  }
  __device__ E put(partial best, int64_t) const {
    const partial key = best ^ turn;
    if constexpr (!floats) {
      return key;
    } else if constexpr (sizeof(E) == 8) {
      const uint64_t bits = key >= 0 ? static_cast<uint64_t>(key) : static_cast<uint64_t>(~key) ^ 0x8000000000000000u;
      return __longlong_as_double(static_cast<int64_t>(best == most ? order::nan_f64 : bits));
    } else {
      const uint32_t bits = key >= 0 ? static_cast<uint32_t>(key) : static_cast<uint32_t>(~key) ^ 0x80000000u;
      const float x = __uint_as_float(bits);
      if constexpr (std::is_same_v<E, half16>)
        return {best == most ? order::nan_f16 : __half_as_ushort(__float2half_rn(x))};
      else if constexpr (std::is_same_v<E, bfloat16>)
        return {best == most ? order::nan_bf16 : static_cast<uint16_t>(bits >> 16)};
      else
        return best == most ? __uint_as_float(order::nan_f32) : x;
    }
  }
};

}  // namespace lockstep::cuda
