// values.cuh - four elements at a time as another float type, in and out of memory.
//
// Watch   Without a factor no double is touched unless a side is F64: many chips have few units for doubles.
#pragma once

#include "../normalize/quad.cuh"
#include "convert.hpp"

namespace lockstep::cuda {

// ---- arithmetic ------------------------------------------------------------------------
// y of four elements as R.
template <class R>
__device__ __forceinline__ quad<R> cast_quad(const float (&y)[4]) {
  quad<R> q{};
  if constexpr (sizeof(R) == 2) {
    constexpr bool half = std::is_same_v<R, half16>;
    constexpr uint16_t quiet = half ? order::nan_f16 : order::nan_bf16;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if constexpr (half) {
        const __half2 two = __floats2half2_rn(y[2 * k], y[2 * k + 1]);
        memcpy(&q.word[k], &two, 4);
      } else {
        const __nv_bfloat162 two = __floats2bfloat162_rn(y[2 * k], y[2 * k + 1]);
        memcpy(&q.word[k], &two, 4);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (y[j] != y[j]) set_element(q, j, R{quiet});
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (sizeof(R) == 4)
        set_element(q, j, y[j] != y[j] ? __uint_as_float(order::nan_f32) : y[j]);
      else
        set_element(q, j, rounded_to<double>::of(static_cast<double>(y[j])));
    }
  }
  return q;
}

// Element `lane` of each of four quads, converted.
template <class E, class R, bool scaled>
__device__ __forceinline__ quad<R> converted(const quad<E> (&x)[4], int lane, double scale) {
  if constexpr (scaled || sizeof(E) == 8) {
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = scaled ? __dmul_rn(value(x[j], lane), scale) : value(x[j], lane);
    return rounded_quad<R>(y);
  } else {
    const float y[4] = {narrow_value(x[0], lane), narrow_value(x[1], lane), narrow_value(x[2], lane),
                        narrow_value(x[3], lane)};
    return cast_quad<R>(y);
  }
}
// The elements of one quad, converted.
template <class E, class R, bool scaled>
__device__ __forceinline__ quad<R> converted(const quad<E>& x, double scale) {
  if constexpr (scaled || sizeof(E) == 8) {
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = scaled ? __dmul_rn(value(x, j), scale) : value(x, j);
    return rounded_quad<R>(y);
  } else {
    const float y[4] = {narrow_value(x, 0), narrow_value(x, 1), narrow_value(x, 2), narrow_value(x, 3)};
    return cast_quad<R>(y);
  }
}

// ---- memory ----------------------------------------------------------------------------
template <class E>
__device__ __forceinline__ quad<E> load_whole(const E* at) {
  quad<E> q;
  if constexpr (sizeof(E) == 2) {
    const uint2 x = __ldg(reinterpret_cast<const uint2*>(at));
    q.word[0] = x.x, q.word[1] = x.y;
  } else {
#pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(E)); k += 4) {
      const uint4 x = __ldg(reinterpret_cast<const uint4*>(at) + k / 4);
      q.word[k] = x.x, q.word[k + 1] = x.y, q.word[k + 2] = x.z, q.word[k + 3] = x.w;
    }
  }
  return q;
}
// Chunks of a quad, in global or shared memory.
template <class R>
__device__ __forceinline__ void store_whole(void* at, const quad<R>& q) {
  if constexpr (sizeof(R) == 2) {
    *static_cast<uint2*>(at) = make_uint2(q.word[0], q.word[1]);
  } else {
#pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(R)); k += 4)
      static_cast<uint4*>(at)[k / 4] = make_uint4(q.word[k], q.word[k + 1], q.word[k + 2], q.word[k + 3]);
  }
}
struct convert_place {
  int64_t src, dst;  // elements
};
// Of index on the walk's axes.
__device__ __forceinline__ convert_place place_of(const convert_walk& walk, uint32_t index) {
  convert_place at{0, 0};
#pragma unroll 1
  for (int k = 0; k < walk.axes; ++k) {
    uint32_t here = index;
    index = walk.axis[k].count.split(here);
    at.src += int64_t{here} * walk.axis[k].src, at.dst += int64_t{here} * walk.axis[k].dst;
  }
  return at;
}

}  // namespace lockstep::cuda
