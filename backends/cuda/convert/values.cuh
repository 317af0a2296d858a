// values.cuh - four elements at a time as another float type, in and out of memory.
//
// Watch   Without a factor no double is touched unless a side is F64: many chips have few units for doubles.
#pragma once

#include "../kernel/element.cuh"
#include "../normalize/quad.cuh"
#include "bits/functions.hpp"
#include "convert.hpp"

namespace lockstep::cuda {

// Elements of one byte, as those of quad.cuh.
template <class T>
requires(sizeof(T) == 1) __device__ __forceinline__ T element(const quad<T>& q, int j) {
  const auto bits = static_cast<uint8_t>(q.word[0] >> 8 * j);
  T x;
  memcpy(&x, &bits, 1);
  return x;
}
template <class T>
requires(sizeof(T) == 1) __device__ __forceinline__ void set_element(quad<T>& q, int j, T x) {
  uint8_t bits;
  memcpy(&bits, &x, 1);
  q.word[0] = (q.word[0] & ~(0xFFu << 8 * j)) | static_cast<uint32_t>(bits) << 8 * j;
}

// ---- arithmetic ------------------------------------------------------------------------
// y of four elements as R.
template <class R>
__device__ __forceinline__ quad<R> cast_quad(const float (&y)[4]) {
  quad<R> q{};
  if constexpr (sizeof(R) == 2) {
    // A NaN becomes one with all bits set, of which the canonical one has some.
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if constexpr (std::is_same_v<R, half16>) {
        const __half2 two = __floats2half2_rn(y[2 * k], y[2 * k + 1]);
        memcpy(&q.word[k], &two, 4);
        q.word[k] &= ~(__hneu2_mask(two, two) & 0x10001u * (0x7FFF ^ order::nan_f16));
      } else {
        const __nv_bfloat162 two = __floats2bfloat162_rn(y[2 * k], y[2 * k + 1]);
        memcpy(&q.word[k], &two, 4);
        q.word[k] &= ~(__hneu2_mask(two, two) & 0x10001u * (0x7FFF ^ order::nan_bf16));
      }
    }
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

// ---- element maps ----------------------------------------------------------------------
// What kernels do to each element: of(x, walk) gives four values as R.
struct cast {
  template <class R, class E>
  static __device__ __forceinline__ quad<R> of(const quad<E>& x, const convert_walk&) {
    if constexpr (sizeof(E) == 8) {
      const double y[4] = {value(x, 0), value(x, 1), value(x, 2), value(x, 3)};
      return rounded_quad<R>(y);
    } else {
      const float y[4] = {narrow_value(x, 0), narrow_value(x, 1), narrow_value(x, 2), narrow_value(x, 3)};
      return cast_quad<R>(y);
    }
  }
};
struct scaled_cast {
  template <class R, class E>
  static __device__ __forceinline__ quad<R> of(const quad<E>& x, const convert_walk& walk) {
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(value(x, j), walk.scale);
    return rounded_quad<R>(y);
  }
};

// Four values of a function, by the programs of lib/bits/functions.hpp. One function of the device's machine code for
// all kernels of a file, because the programs are long; whole warps take the same case.
struct four_doubles {
  double x[4];
};
template <functions::function f>
__device__ __forceinline__ void apply_to_four(four_doubles& v) {
#pragma unroll
  for (int j = 0; j < 4; ++j) v.x[j] = functions::programs<functions::scalar>::apply<f>(v.x[j]);
}
static __device__ __noinline__ four_doubles function_of_four(int function, four_doubles v) {
  switch (function) {
    case functions::exp: apply_to_four<functions::exp>(v); break;
    case functions::expm1: apply_to_four<functions::expm1>(v); break;
    case functions::log: apply_to_four<functions::log>(v); break;
    case functions::log1p: apply_to_four<functions::log1p>(v); break;
    case functions::sqrt: apply_to_four<functions::sqrt>(v); break;
    case functions::rsqrt: apply_to_four<functions::rsqrt>(v); break;
    case functions::reciprocal: apply_to_four<functions::reciprocal>(v); break;
    case functions::tanh: apply_to_four<functions::tanh>(v); break;
    case functions::sigmoid: apply_to_four<functions::sigmoid>(v); break;
    case functions::silu: apply_to_four<functions::silu>(v); break;
    case functions::gelu: apply_to_four<functions::gelu>(v); break;
    case functions::gelu_tanh: apply_to_four<functions::gelu_tanh>(v); break;
    case functions::erf: apply_to_four<functions::erf>(v); break;
    default: apply_to_four<functions::softplus>(v); break;
  }
  return v;
}
struct mapped {
  template <class R, class E>
  static __device__ __forceinline__ quad<R> of(const quad<E>& x, const quad<E>& times, const convert_walk& walk) {
    four_doubles v = {{value(x, 0), value(x, 1), value(x, 2), value(x, 3)}};
    v = function_of_four(walk.function, v);
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(v.x[j], walk.scale);
    if (walk.gated)
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = functions::programs<functions::scalar>::product_to_odd(y[j], value(times, j));
    return rounded_quad<R>(y);
  }
};

// What a map takes of four neighbours; a function also their factors, if walk.gated.
template <class E, class Map>
struct taken {
  quad<E> x;
};
template <class E>
struct taken<E, mapped> {
  quad<E> x, times;
};
template <class R, class E, class Map>
__device__ __forceinline__ quad<R> mapped_quad(const taken<E, Map>& t, const convert_walk& walk) {
  if constexpr (std::is_same_v<Map, mapped>)
    return mapped::of<R>(t.x, t.times, walk);
  else
    return Map::template of<R>(t.x, walk);
}
// Whether a map takes all quads of a thread in one call, Map::many.
template <class Map>
constexpr bool takes_many = false;
// Element `lane` of each of four quads, mapped.
template <class R, class E, class Map>
__device__ __forceinline__ quad<R> converted(const taken<E, Map> (&from)[4], int lane, const convert_walk& walk) {
  taken<E, Map> one{};
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    set_element(one.x, j, element(from[j].x, lane));
    if constexpr (std::is_same_v<Map, mapped>) set_element(one.times, j, element(from[j].times, lane));
  }
  return mapped_quad<R>(one, walk);
}

// ---- memory ----------------------------------------------------------------------------
template <class E>
__device__ __forceinline__ quad<E> load_whole(const E* at) {
  quad<E> q;
  if constexpr (sizeof(E) == 1) {
    q.word[0] = __ldg(reinterpret_cast<const uint32_t*>(at));
  } else if constexpr (sizeof(E) == 2) {
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
// A whole quad, or element k of one, and the factors beside it.
template <class E, class Map>
__device__ __forceinline__ void take_whole(taken<E, Map>& t, const E* at, const convert_walk& walk) {
  t.x = load_whole(at);
  if constexpr (std::is_same_v<Map, mapped>)
    if (walk.gated) t.times = load_whole(at + walk.times);
}
// The same for a piece of N elements, half of a quad from element k on where N is 2.
template <int N, class E>
__device__ __forceinline__ void load_piece(quad<E>& q, int k, const E* at) {
  if constexpr (N == 4) {
    q = load_whole(at);
  } else if constexpr (sizeof(E) == 1) {
    q.word[0] |= uint32_t{__ldg(reinterpret_cast<const uint16_t*>(at))} << 8 * k;  // the other half is 0, or there
  } else {
    using words = typename element_of<2 * static_cast<int>(sizeof(E))>::type;
    const words w = __ldg(reinterpret_cast<const words*>(at));
    memcpy(&q.word[k * static_cast<int>(sizeof(E)) / 4], &w, sizeof w);
  }
}
template <int N, class E, class Map>
__device__ __forceinline__ void take_piece(taken<E, Map>& t, int k, const E* at, const convert_walk& walk) {
  load_piece<N>(t.x, k, at);
  if constexpr (std::is_same_v<Map, mapped>)
    if (walk.gated) load_piece<N>(t.times, k, at + walk.times);
}
template <class E, class Map>
__device__ __forceinline__ void take_one(taken<E, Map>& t, int k, const E* at, const convert_walk& walk) {
  set_element(t.x, k, *at);
  if constexpr (std::is_same_v<Map, mapped>)
    if (walk.gated) set_element(t.times, k, at[walk.times]);
}
// Chunks of a quad, in global or shared memory.
template <class R>
__device__ __forceinline__ void store_whole(void* at, const quad<R>& q) {
  if constexpr (sizeof(R) == 1) {
    *static_cast<uint32_t*>(at) = q.word[0];
  } else if constexpr (sizeof(R) == 2) {
    *static_cast<uint2*>(at) = make_uint2(q.word[0], q.word[1]);
  } else {
#pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(R)); k += 4)
      static_cast<uint4*>(at)[k / 4] = make_uint4(q.word[k], q.word[k + 1], q.word[k + 2], q.word[k + 3]);
  }
}
template <int N, class R>
__device__ __forceinline__ void store_piece(R* at, const quad<R>& q, int k) {
  if constexpr (N == 4) {
    store_whole(at, q);
  } else if constexpr (sizeof(R) == 1) {
    *reinterpret_cast<uint16_t*>(at) = static_cast<uint16_t>(q.word[0] >> 8 * k);
  } else {
    using words = typename element_of<2 * static_cast<int>(sizeof(R))>::type;
    words w;
    memcpy(&w, &q.word[k * static_cast<int>(sizeof(R)) / 4], sizeof w);
    *reinterpret_cast<words*>(at) = w;
  }
}
// Worked out once: else the compiler adds up its parts again for each use.
__device__ __forceinline__ uint32_t settled(uint32_t x) {
  asm volatile("" : "+r"(x));
  return x;
}
// The same for an address in global memory, which the compiler still knows it to be.
template <class T>
__device__ __forceinline__ T* settled(T* at) {
  auto address = reinterpret_cast<uintptr_t>(__cvta_generic_to_global(at));
  asm volatile("" : "+l"(address));
  return static_cast<T*>(__cvta_global_to_generic(address));
}
// 4, 8 or 16 bytes from shared memory.
template <int bytes>
__device__ __forceinline__ void copy_piece(void* to, const void* from) {
  using words = typename element_of<bytes>::type;
  *static_cast<words*>(to) = *static_cast<const words*>(from);
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
