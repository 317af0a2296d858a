// integers.cuh - the element map where src or dst has integers or BOOL.
//
// Idea    A kernel knows how many bytes its elements have; their types stand in the walk. A quad is widened to one of
//         three forms, floats where both steps are exact in them, 64-bit integers among integers, else doubles, and
//         from there rounded to the type of dst. All threads of a launch take the same branches.
// Watch   The chip's conversions to integers saturate, but what they make of a NaN depends on the type.
// Source  lockstep.h; backends/cpu/isa/convert_integers.cpp does the same steps
#pragma once

#include <algorithm>
#include <limits>

#include "values.cuh"

namespace lockstep::cuda {

struct boolean {
  uint8_t byte;
};

// Calls body with a value of the type, one of `bytes` bytes.
template <int bytes, class Body>
__device__ __forceinline__ void with_type(int dtype, const Body& body) {
  if constexpr (bytes == 1) {
    if (dtype == LOCKSTEP_I8) return body(int8_t{});
    if (dtype == LOCKSTEP_U8) return body(uint8_t{});
    body(boolean{});
  } else if constexpr (bytes == 2) {
    if (dtype == LOCKSTEP_F16) return body(half16{});
    if (dtype == LOCKSTEP_BF16) return body(bfloat16{});
    if (dtype == LOCKSTEP_I16) return body(int16_t{});
    body(uint16_t{});
  } else if constexpr (bytes == 4) {
    if (dtype == LOCKSTEP_F32) return body(float{});
    if (dtype == LOCKSTEP_I32) return body(int32_t{});
    body(uint32_t{});
  } else {
    if (dtype == LOCKSTEP_F64) return body(double{});
    if (dtype == LOCKSTEP_I64) return body(int64_t{});
    body(uint64_t{});
  }
}

template <class T>
constexpr bool is_float_type = std::is_floating_point_v<T> || std::is_same_v<T, half16> || std::is_same_v<T, bfloat16>;
template <class T>
constexpr bool is_boolean = std::is_same_v<T, boolean>;
// Whether every value of the type is a float.
template <class T>
constexpr bool fits_float = sizeof(T) <= 2 || std::is_same_v<T, float>;

template <class To, class From>
__device__ __forceinline__ quad<To> same_bits(const quad<From>& q) {
  static_assert(sizeof(quad<To>) == sizeof q);
  quad<To> to;
  memcpy(&to, &q, sizeof to);
  return to;
}

// ---- widening ------------------------------------------------------------------------
template <class T>
__device__ __forceinline__ float as_float(const quad<T>& q, int j) {
  if constexpr (!fits_float<T>)
    return 0;  // never asked
  else if constexpr (is_float_type<T>)
    return narrow_value(q, j);
  else if constexpr (is_boolean<T>)
    return element(q, j).byte != 0 ? 1.0f : 0.0f;
  else
    return static_cast<float>(element(q, j));
}
// to_odd: an integer beyond 2^53 keeps fewer bits, the last one set where any were cut off, so that a second rounding
// gives what one alone would.
template <class T>
__device__ __forceinline__ double as_double(const quad<T>& q, int j, bool to_odd) {
  if constexpr (sizeof(T) == 8 && !is_float_type<T>) {
    const T x = element(q, j);
    const bool negative = std::is_signed_v<T> && static_cast<int64_t>(x) < 0;
    auto size = static_cast<uint64_t>(x);
    if (negative) size = -size;
    if (to_odd && size >> 53 != 0) size = (size & ~uint64_t{0x7FF}) | uint64_t{(size & 0x7FF) != 0} << 11;
    const double y = __ull2double_rn(size);
    return negative ? -y : y;
  } else if constexpr (is_float_type<T>) {
    return value(q, j);
  } else if constexpr (is_boolean<T>) {
    return element(q, j).byte != 0 ? 1.0 : 0.0;
  } else {
    return static_cast<double>(element(q, j));
  }
}
constexpr int64_t most_i64 = 0x7FFFFFFFFFFFFFFF;
// The upper half of U64 becomes the largest value, which every other type has as its own.
template <class T>
__device__ __forceinline__ int64_t as_integer(const quad<T>& q, int j) {
  if constexpr (is_float_type<T>)
    return 0;  // never asked
  else if constexpr (is_boolean<T>)
    return element(q, j).byte != 0;
  else if constexpr (std::is_same_v<T, uint64_t>)
    return static_cast<int64_t>(min(element(q, j), static_cast<uint64_t>(most_i64)));
  else
    return static_cast<int64_t>(element(q, j));
}

// ---- rounding ------------------------------------------------------------------------
template <class T>
__device__ __forceinline__ T saturated(int64_t x) {
  if constexpr (is_float_type<T>) {
    return {};  // never asked
  } else if constexpr (is_boolean<T>) {
    return {static_cast<uint8_t>(x != 0)};
  } else {
    constexpr int64_t least = std::numeric_limits<T>::min();
    constexpr auto most = static_cast<int64_t>(std::min(uint64_t{std::numeric_limits<T>::max()}, uint64_t{most_i64}));
    return static_cast<T>(max(least, min(x, most)));
  }
}
__device__ __forceinline__ int to_i32(float x) { return __float2int_rz(x); }
__device__ __forceinline__ int to_i32(double x) { return __double2int_rz(x); }
__device__ __forceinline__ uint32_t to_u32(float x) { return __float2uint_rz(x); }
__device__ __forceinline__ uint32_t to_u32(double x) { return __double2uint_rz(x); }
__device__ __forceinline__ int64_t to_i64(float x) { return __float2ll_rz(x); }
__device__ __forceinline__ int64_t to_i64(double x) { return __double2ll_rz(x); }
__device__ __forceinline__ uint64_t to_u64(float x) { return __float2ull_rz(x); }
__device__ __forceinline__ uint64_t to_u64(double x) { return __double2ull_rz(x); }
// Towards zero.
template <class T, class F>
__device__ __forceinline__ T truncated(F x) {
  const F number = x == x ? x : F{0};
  if constexpr (is_boolean<T>) {
    return {static_cast<uint8_t>(!(x == 0))};
  } else if constexpr (std::is_same_v<T, uint64_t>) {
    return to_u64(number);
  } else if constexpr (std::is_same_v<T, int64_t>) {
    return to_i64(number);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    return to_u32(number);
  } else if constexpr (std::is_same_v<T, int32_t>) {
    return to_i32(number);
  } else {
    constexpr int most = std::numeric_limits<T>::max(), least = std::numeric_limits<T>::min();
    return static_cast<T>(max(least, min(to_i32(number), most)));
  }
}
template <class T, class F>
__device__ __forceinline__ quad<T> rounded_or_truncated(const F (&y)[4]) {
  if constexpr (!is_float_type<T>) {
    quad<T> q{};
#pragma unroll
    for (int j = 0; j < 4; ++j) set_element(q, j, truncated<T>(y[j]));
    return q;
  } else if constexpr (std::is_same_v<F, float>) {
    return cast_quad<T>(y);
  } else {
    return rounded_quad<T>(y);
  }
}

// ---- the map -------------------------------------------------------------------------
// R and E are unsigned integers of the elements' sizes. One function of the device's machine code a pair of sizes, as
// there are 15 pairs of types and three forms to each; a thread's quads go through it together.
template <class T, int n>
struct quads {
  quad<T> of[n];
};
template <class R, class E, int n>
static __device__ __noinline__ quads<R, n> of_any_type(quads<E, n> x, any_type_plan plan) {
  constexpr int from_bytes = static_cast<int>(sizeof(E)), to_bytes = static_cast<int>(sizeof(R));
  quads<R, n> out{};
  // y of each element by widen(quad of its type, place), and each type's rounding of four.
  const auto convert = [&](auto(&y)[n][4], const auto& widen, const auto& round) {
    with_type<from_bytes>(plan.dtype, [&](auto from) {
#pragma unroll
      for (int q = 0; q < n; ++q)
#pragma unroll
        for (int j = 0; j < 4; ++j) y[q][j] = widen(same_bits<decltype(from)>(x.of[q]), j);
    });
    with_type<to_bytes>(plan.result, [&](auto to) {
#pragma unroll
      for (int q = 0; q < n; ++q) out.of[q] = same_bits<R>(round(y[q], to));
    });
  };
  const auto rounded = [](const auto& y, auto to) { return rounded_or_truncated<decltype(to)>(y); };
  if (plan.form == convert_form::floats) {
    float y[n][4];
    convert(
        y, [](const auto& q, int j) { return as_float(q, j); }, rounded);
  } else if (plan.form == convert_form::integers) {
    int64_t y[n][4];
    convert(
        y, [](const auto& q, int j) { return as_integer(q, j); },
        [](const int64_t(&four)[4], auto to) {
          quad<decltype(to)> q{};
#pragma unroll
          for (int j = 0; j < 4; ++j) set_element(q, j, saturated<decltype(to)>(four[j]));
          return q;
        });
  } else {
    double y[n][4];
    const bool to_odd = plan.scale == 1 && plan.result != LOCKSTEP_F64;
    convert(
        y, [&](const auto& q, int j) { return __dmul_rn(as_double(q, j, to_odd), plan.scale); }, rounded);
  }
  return out;
}
struct any_type {
  template <class R, class E>
  static __device__ __forceinline__ quad<R> of(const quad<E>& x, const convert_walk& walk) {
    if constexpr (sizeof(R) == sizeof(E))
      if (walk.types.form == convert_form::same) return same_bits<R>(x);
    return of_any_type<R, E, 1>({{x}}, walk.types).of[0];
  }
  template <class R, class E, int n>
  static __device__ __forceinline__ void many(const taken<E, any_type> (&x)[n], quad<R> (&y)[n],
                                              const convert_walk& walk) {
    quads<E, n> all;
#pragma unroll
    for (int q = 0; q < n; ++q) all.of[q] = x[q].x;
    quads<R, n> out;
    if (sizeof(R) == sizeof(E) && walk.types.form == convert_form::same)
      memcpy(&out, &all, sizeof(R) == sizeof(E) ? sizeof out : 0);
    else
      out = of_any_type<R, E, n>(all, walk.types);
#pragma unroll
    for (int q = 0; q < n; ++q) y[q] = out.of[q];
  }
};
template <>
constexpr bool takes_many<any_type> = true;

}  // namespace lockstep::cuda
