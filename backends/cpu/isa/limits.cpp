// limits.cpp - see limits.hpp. Vectors are 64 bytes wide; the compiler splits them for
// levels with shorter ones.
#include "limits.hpp"

#include <string.h>

#include "../tuning.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

#if defined(LOCKSTEP_ISA_BASELINE)
constexpr int width = 16;
#elif defined(LOCKSTEP_ISA_AVX2)
constexpr int width = 32;
#else
constexpr int width = 64;
#endif
using vector = uint64_t __attribute__((vector_size(width)));
using unaligned_vector = uint64_t __attribute__((vector_size(width), aligned(1)));
constexpr int unroll = 8;  // independent accumulators: one would be bound by latency in cache

void copy(unsigned char* dst, const unsigned char* src, int64_t bytes) {
  int64_t i = 0;
  for (; i + 4 * width <= bytes; i += 4 * width)
    for (int k = 0; k < 4; ++k)
      *reinterpret_cast<unaligned_vector*>(dst + i + k * width) =
          *reinterpret_cast<const unaligned_vector*>(src + i + k * width);
  memcpy(dst + i, src + i, static_cast<size_t>(bytes - i));
}

void copy_streaming(unsigned char* dst, const unsigned char* src, int64_t bytes) {
#if defined(__x86_64__)
  int64_t i = static_cast<int64_t>(-reinterpret_cast<uintptr_t>(dst) & 63);
  if (i > bytes) i = bytes;
  memcpy(dst, src, static_cast<size_t>(i));
  for (; i + 64 <= bytes; i += 64) {
    __builtin_prefetch(src + i + tuned.copy_ahead);
    for (int k = 0; k < 64; k += width) {
#if defined(LOCKSTEP_ISA_AVX512)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + i + k), _mm512_loadu_si512(src + i + k));
#elif defined(LOCKSTEP_ISA_AVX2)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(dst + i + k),
                          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(src + i + k)));
#else
      _mm_stream_si128(reinterpret_cast<__m128i*>(dst + i + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(src + i + k)));
#endif
    }
  }
  _mm_sfence();
  memcpy(dst + i, src + i, static_cast<size_t>(bytes - i));
#else
  copy(dst, src, bytes);
#endif
}

template <bool prefetch>
uint64_t read_all(const unsigned char* src, int64_t bytes) {
  vector a = {}, b = {}, c = {}, d = {}, e = {}, f = {}, g = {}, h = {};
  int64_t i = 0;
  const auto at = [&](int k) { return *reinterpret_cast<const unaligned_vector*>(src + i + k * width); };
  for (; i + unroll * width <= bytes; i += unroll * width) {
    if constexpr (prefetch)
      for (int k = 0; k < unroll * width; k += 64) __builtin_prefetch(src + i + tuned.read_ahead + k);
    a ^= at(0), b ^= at(1), c ^= at(2), d ^= at(3), e ^= at(4), f ^= at(5), g ^= at(6), h ^= at(7);
  }
  const vector all = ((a ^ b) ^ (c ^ d)) ^ ((e ^ f) ^ (g ^ h));
  uint64_t total = 0;
  for (int k = 0; k < width / 8; ++k) total ^= all[k];
  for (; i < bytes; ++i) total ^= src[i];
  return total;
}

// Both halves side by side: from DRAM the fastest of the three on Zen 5, by 3 to 10 %.
uint64_t read_two(const unsigned char* src, int64_t bytes) {
  vector one[unroll] = {}, two[unroll] = {};
  const int64_t half = bytes / 2;
  int64_t i = 0;
  for (; i + unroll * width <= half; i += unroll * width) {
#pragma GCC unroll 8
    for (int k = 0; k < unroll; ++k) one[k] ^= *reinterpret_cast<const unaligned_vector*>(src + i + k * width);
#pragma GCC unroll 8
    for (int k = 0; k < unroll; ++k) two[k] ^= *reinterpret_cast<const unaligned_vector*>(src + half + i + k * width);
  }
  uint64_t total = read_all<false>(src + i, half - i) ^ read_all<false>(src + half + i, bytes - half - i);
  for (int k = 0; k < unroll; ++k)
    for (int l = 0; l < width / 8; ++l) total ^= one[k][l] ^ two[k][l];
  return total;
}

// ---- arithmetic -------------------------------------------------------------
// A register of T's fused multiply-add. The baseline of x86 has none: it calls libm's.
template <class T>
struct lanes_of {
  typedef T type __attribute__((vector_size(width)));
  typedef T unaligned __attribute__((vector_size(width), aligned(sizeof(T))));
};
using floats = lanes_of<float>::type;
using doubles = lanes_of<double>::type;
#if defined(LOCKSTEP_ISA_AVX512)
inline floats fused(floats x, floats a, floats c) { return _mm512_fmadd_ps(x, a, c); }
inline doubles fused(doubles x, doubles a, doubles c) { return _mm512_fmadd_pd(x, a, c); }
#elif defined(LOCKSTEP_ISA_AVX2)
inline floats fused(floats x, floats a, floats c) { return _mm256_fmadd_ps(x, a, c); }
inline doubles fused(doubles x, doubles a, doubles c) { return _mm256_fmadd_pd(x, a, c); }
#else
inline floats fused(floats x, floats a, floats c) {
  for (int l = 0; l < 4; ++l) x[l] = __builtin_fmaf(x[l], a[l], c[l]);
  return x;
}
inline doubles fused(doubles x, doubles a, doubles c) {
  for (int l = 0; l < 2; ++l) x[l] = __builtin_fma(x[l], a[l], c[l]);
  return x;
}
#endif

// Two ports of latency 4 need 8 chains in flight; 12 and the two constants fit 16 registers.
constexpr int chains = 12;
template <class T>
constexpr int fma_lanes = chains* width / static_cast<int>(sizeof(T));

template <class T>
uint64_t run_fma(int64_t blocks, const T* start, const T* want) {
  using V = typename lanes_of<T>::type;
  constexpr int lanes = width / static_cast<int>(sizeof(T));
  const auto at = [](const T* p, int k) -> V {
    return *reinterpret_cast<const typename lanes_of<T>::unaligned*>(p + k * lanes);
  };
  const V zero = {}, a = zero + static_cast<T>(fma_factor), c = zero + static_cast<T>(fma_addend);
  vector wrong = {};
  for (; blocks > 0; --blocks) {
    asm volatile("" ::: "memory");  // stops the compiler from reusing the result of the block before
    V x[chains];
#pragma GCC unroll 12
    for (int k = 0; k < chains; ++k) x[k] = at(start, k);
    for (int step = 0; step < fma_steps; ++step)
#pragma GCC unroll 12
      for (int k = 0; k < chains; ++k) x[k] = fused(x[k], a, c);
#pragma GCC unroll 12
    for (int k = 0; k < chains; ++k) wrong |= reinterpret_cast<vector>(x[k]) ^ reinterpret_cast<vector>(at(want, k));
  }
  uint64_t total = 0;
  for (int k = 0; k < width / 8; ++k) total |= wrong[k];
  return total;
}

static_assert(fma_lanes<float> <= most_fma_lanes);

}  // namespace

extern const limit_kernels limit_kernels_of_table;
const limit_kernels limit_kernels_of_table = {copy,
                                              copy_streaming,
                                              read_all<false>,
                                              read_all<true>,
                                              read_two,
                                              {fma_lanes<float>, run_fma<float>},
                                              {fma_lanes<double>, run_fma<double>}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
