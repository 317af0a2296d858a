// quad.cuh - four neighbouring elements of a thread: loaded, widened to double, rounded once and stored.
//
// Idea    A thread holds lanes 4t to 4t + 3 of a row of lanes (lib/bits/order.hpp), or two of them where several
//         warps share a leaf.
//         Elements stay as they came, in words, so that a row waits in registers at its own size.
// Watch   a 16-bit result rounds once from double: by way of a float rounded to odd (backends/cpu/isa/results.hpp)
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "../reduce/norm.cuh"

namespace lockstep::cuda {

template <class T, int N>
struct few {
  uint32_t word[N * sizeof(T) / 4];
};
template <class T>
using quad = few<T, 4>;
template <class T>
using pair = few<T, 2>;

// Element j as a float where that is exact, and as a double.
template <class T, int N>
__device__ __forceinline__ auto narrow_value(const few<T, N>& q, int j) {
  if constexpr (std::is_same_v<T, half16>)
    return __half2float(__ushort_as_half(static_cast<uint16_t>(q.word[j / 2] >> (j % 2 * 16))));
  else if constexpr (std::is_same_v<T, bfloat16>)
    return __uint_as_float(j % 2 == 0 ? q.word[j / 2] << 16 : q.word[j / 2] & 0xFFFF0000u);
  else if constexpr (sizeof(T) == 4)
    return __uint_as_float(q.word[j]);
  else
    return __hiloint2double(static_cast<int>(q.word[2 * j + 1]), static_cast<int>(q.word[2 * j]));
}
template <class T, int N>
__device__ __forceinline__ double value(const few<T, N>& q, int j) {
  return narrow_value(q, j);
}

// A finite element j by shifts, times a power of two, which unscaled makes up for in a product or a fused one:
// conversions have a pipe of a quarter of the speed. The exponent has its own bias still, so that denormal numbers come
// out right too.
template <class T>
constexpr double unscaled = std::is_same_v<T, half16> ? 0x1p1008 : 0x1p896;
// bits: of 16-bit elements the upper half.
template <class T>
__device__ __forceinline__ double scaled_bits(uint32_t bits) {
  static_assert(sizeof(T) <= 4);
  constexpr bool half = std::is_same_v<T, half16>;
  const auto high = static_cast<int32_t>(bits);
  const uint32_t shifted = static_cast<uint32_t>(half ? high >> 6 : high >> 3) & (half ? 0x81FFFFFFu : 0x8FFFFFFFu);
  return __hiloint2double(static_cast<int>(shifted), sizeof(T) == 2 ? 0 : static_cast<int>(bits << 29));
}
template <class T, int N>
__device__ __forceinline__ double scaled_value(const few<T, N>& q, int j) {
  if constexpr (sizeof(T) == 2)
    return scaled_bits<T>(j % 2 == 0 ? q.word[j / 2] << 16 : q.word[j / 2] & 0xFFFF0000u);
  else
    return scaled_bits<T>(q.word[j]);
}

// acc + element j; anything where a float is not finite. 16-bit elements of a quad take more instructions by shifts.
template <class T, int N>
__device__ __forceinline__ double plus_finite(double acc, const few<T, N>& q, int j) {
  if constexpr (sizeof(T) == 4)
    return __fma_rn(scaled_value(q, j), unscaled<T>, acc);
  else
    return __dadd_rn(acc, value(q, j));
}
template <class T>
__device__ __forceinline__ double plus_finite(double acc, T x) {
  if constexpr (sizeof(T) == 8) {
    return __dadd_rn(acc, x);
  } else {
    std::conditional_t<sizeof(T) == 2, uint16_t, uint32_t> bits;
    memcpy(&bits, &x, sizeof x);
    return __fma_rn(scaled_bits<T>(uint32_t{bits} << (32 - 8 * sizeof x)), unscaled<T>, acc);
  }
}

// The bits of element j, and q with them.
template <class T, int N>
__device__ __forceinline__ T element(const few<T, N>& q, int j) {
  T x;
  if constexpr (sizeof(T) == 2) {
    const auto bits = static_cast<uint16_t>(q.word[j / 2] >> (j % 2 * 16));
    memcpy(&x, &bits, 2);
  } else if constexpr (sizeof(T) == 4) {
    memcpy(&x, &q.word[j], 4);
  } else {
    const uint64_t bits = static_cast<uint64_t>(q.word[2 * j + 1]) << 32 | q.word[2 * j];
    memcpy(&x, &bits, 8);
  }
  return x;
}
template <class T, int N>
__device__ __forceinline__ void set_element(few<T, N>& q, int j, T x) {
  if constexpr (sizeof(T) == 2) {
    uint16_t bits;
    memcpy(&bits, &x, 2);
    q.word[j / 2] = j % 2 == 0 ? (q.word[j / 2] & 0xFFFF0000u) | bits
                               : (q.word[j / 2] & 0xFFFFu) | static_cast<uint32_t>(bits) << 16;
  } else if constexpr (sizeof(T) == 4) {
    memcpy(&q.word[j], &x, 4);
  } else {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    q.word[2 * j] = static_cast<uint32_t>(bits);
    q.word[2 * j + 1] = static_cast<uint32_t>(bits >> 32);
  }
}

// ---- memory --------------------------------------------------------------------------
// Whether quads that begin at multiples of 4 elements are aligned in every row.
template <class T>
inline bool aligned_quads(const void* at, int64_t stride) {
  constexpr int64_t unit = sizeof(T) == 2 ? 8 : 16;
  return reinterpret_cast<uintptr_t>(at) % unit == 0 && stride * static_cast<int64_t>(sizeof(T)) % unit == 0;
}

// An address worked out once: else the compiler adds up its parts again for each use.
template <class T>
__device__ __forceinline__ T* opaque(T* at) {
  asm volatile("" : "+l"(at));
  return at;
}

// Quad k of `count`: elements i + k * step to i + k * step + 3 of n at `at`. whole: n is a multiple of 4, quads are
// aligned. In place of missing elements the last ones come again: for a load under a condition the compiler waits
// before it starts the next. Not by the read-only path, for a call may be in place.
template <int count, class T>
__device__ __forceinline__ void load_quads(const T* at, int i, int step, int n, bool whole, int64_t stride,
                                           quad<T> (&q)[count]) {
  if (whole) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const T* from = at + min(i + k * step, n - 4);
      uint32_t(&w)[sizeof(T)] = q[k].word;
      if constexpr (sizeof(T) == 2) {
        asm volatile("ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];"
                     : "=r"(w[0]), "=r"(w[1])
                     : "l"(from)
                     : "memory");
      } else if constexpr (sizeof(T) == 4) {
        asm volatile("ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                     : "l"(from)
                     : "memory");
      } else {  // the second half lies in the same lines
#pragma unroll
        for (int m = 0; m < 8; m += 4)
          asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(w[m]), "=r"(w[m + 1]), "=r"(w[m + 2]), "=r"(w[m + 3])
                       : "l"(from + m / 2)
                       : "memory");
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < count; ++k) {
#pragma unroll
      for (int j = 0; j < 4; ++j) set_element(q[k], j, at[min(i + k * step + j, n - 1) * stride]);
    }
  }
}

// Whole quads by asm: the compiler merges plain vector stores with the stores of single elements below, and then writes
// a quad word by word.
template <class T>
__device__ __forceinline__ void store_quad(T* at, int i, int n, bool whole, const quad<T>& q, int64_t stride = 1) {
  if (whole) {
    if (i >= n) return;
    const uint32_t(&w)[sizeof(T)] = q.word;
    if constexpr (sizeof(T) == 2) {
      asm volatile("st.global.v2.u32 [%0], {%1, %2};" ::"l"(at + i), "r"(w[0]), "r"(w[1]) : "memory");
    } else {
#pragma unroll
      for (int k = 0; k < static_cast<int>(sizeof(T)); k += 4)
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(at + i + k * 4 / static_cast<int>(sizeof(T))),
                     "r"(w[k]), "r"(w[k + 1]), "r"(w[k + 2]), "r"(w[k + 3])
                     : "memory");
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (i + j < n) at[(i + j) * stride] = element(q, j);
}

// ---- rounding ------------------------------------------------------------------------
// Four results rounded once. A 16-bit one may come by way of the nearest float unless that lies in the middle between
// two results, or is a NaN, zero or so small that a result has fewer bits.
template <class T>
__device__ __forceinline__ quad<T> rounded_quad(const double (&y)[4]) {
  quad<T> q{};
  if constexpr (sizeof(T) == 2) {
    constexpr bool half = std::is_same_v<T, half16>;
    constexpr uint32_t below = half ? 0x1FFFu : 0xFFFFu, middle = half ? 0x1000u : 0x8000u;
    float f[4];
    bool plain = true;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      f[j] = __double2float_rn(y[j]);
      plain = plain && fabsf(f[j]) >= (half ? 0x1p-14f : 0x1p-126f) && (__float_as_uint(f[j]) & below) != middle;
    }
    if (plain) {
#pragma unroll
      for (int k = 0; k < 2; ++k) {
        if constexpr (half) {
          const __half2 two = __floats2half2_rn(f[2 * k], f[2 * k + 1]);
          memcpy(&q.word[k], &two, 4);
        } else {
          const __nv_bfloat162 two = __floats2bfloat162_rn(f[2 * k], f[2 * k + 1]);
          memcpy(&q.word[k], &two, 4);
        }
      }
      return q;
    }
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) set_element(q, j, rounded_to<T>::of(y[j]));
  return q;
}

// x + y of each element, rounded once to T. A float has bits enough for a sum of 16-bit ones to be rounded twice.
template <class T, int N>
__device__ __forceinline__ few<T, N> sum_of(const few<T, N>& x, const few<T, N>& y) {
  few<T, N> q{};
#pragma unroll
  for (int j = 0; j < N; ++j) {
    if constexpr (sizeof(T) == 8) {
      set_element(q, j, rounded_to<double>::of(__dadd_rn(value(x, j), value(y, j))));
    } else {
      const float sum = __fadd_rn(narrow_value(x, j), narrow_value(y, j));
      if constexpr (std::is_same_v<T, half16>)
        set_element(q, j, half16{sum != sum ? order::nan_f16 : __half_as_ushort(__float2half_rn(sum))});
      else if constexpr (std::is_same_v<T, bfloat16>)
        set_element(q, j, bfloat16{sum != sum ? order::nan_bf16 : __bfloat16_as_ushort(__float2bfloat16_rn(sum))});
      else
        set_element(q, j, sum != sum ? __uint_as_float(order::nan_f32) : sum);
    }
  }
  return q;
}

}  // namespace lockstep::cuda
