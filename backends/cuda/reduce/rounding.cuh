// rounding.cuh - a double rounded once to a result's type; a NaN becomes the canonical one.
// Watch   a 16-bit result by way of a float rounds once only if that is rounded to odd (backends/cpu/isa/results.hpp)
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "fold.cuh"

namespace lockstep::cuda {

// Cut off, and the last bit set where something was: what is then rounded to 16 bits comes out as if rounded at once.
__device__ __forceinline__ float to_odd_float(double x) {
  const float cut = __double2float_rz(x);
  bool inexact = (__double2loint(x) & 0x1FFFFFFF) != 0;
  if (fabsf(cut) < 0x1p-126f) inexact = static_cast<double>(cut) != x;  // a denormal float has fewer bits
  return __uint_as_float(__float_as_uint(cut) | inexact);
}

template <class T>
struct rounded_to;
template <>
struct rounded_to<half16> {
  static __device__ __forceinline__ half16 of(double x) {
    const float y = to_odd_float(x);
    return {y != y ? order::nan_f16 : __half_as_ushort(__float2half_rn(y))};
  }
};
template <>
struct rounded_to<bfloat16> {
  static __device__ __forceinline__ bfloat16 of(double x) {
    const float y = to_odd_float(x);
    return {y != y ? order::nan_bf16 : __bfloat16_as_ushort(__float2bfloat16_rn(y))};
  }
};
template <>
struct rounded_to<float> {
  static __device__ __forceinline__ float of(double x) {
    const float y = __double2float_rn(x);
    return y != y ? __uint_as_float(order::nan_f32) : y;
  }
};
template <>
struct rounded_to<double> {
  static __device__ __forceinline__ double of(double x) {
    return x != x ? __longlong_as_double(static_cast<int64_t>(order::nan_f64)) : x;
  }
};

__device__ __forceinline__ void store_float(void* dst, lockstep_dtype result, int64_t s, double y) {
  switch (result) {
    case LOCKSTEP_F16: static_cast<half16*>(dst)[s] = rounded_to<half16>::of(y); break;
    case LOCKSTEP_BF16: static_cast<bfloat16*>(dst)[s] = rounded_to<bfloat16>::of(y); break;
    case LOCKSTEP_F32: static_cast<float*>(dst)[s] = rounded_to<float>::of(y); break;
    default: static_cast<double*>(dst)[s] = rounded_to<double>::of(y);
  }
}

}  // namespace lockstep::cuda
