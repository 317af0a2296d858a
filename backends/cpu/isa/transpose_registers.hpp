// transpose_registers.hpp - registers of 16, 32 and 64 bytes for the tiles of transpose.cpp: loads
// from rows, stores to a row of dst, and the interleaving rounds that transpose their lanes.
#pragma once

#include <stdint.h>

#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns inside its own _mm512_undefined_epi32 (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Element type of a lane by size, for the interleaves.
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));

struct v128 {
  [[maybe_unused]] static constexpr int lanes = 1;
  u8x16 x;

  static v128 gather(const char* p, int64_t) {
    v128 v;
    __builtin_memcpy(&v.x, p, 16);
    return v;
  }
  template <class At>
  static v128 of(const At& at) {  // the 16 bytes at each lane's place
    return gather(at(0), 0);
  }
  template <bool stream>
  void put(char* p) const {
#if defined(__SSE2__)
    if constexpr (stream) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)x);
      return;
    }
#endif
    __builtin_memcpy(p, &x, 16);
  }
  template <int E>
  static v128 low(v128 a, v128 b) {
    if constexpr (E == 1)
      return {__builtin_shufflevector(a.x, b.x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)};
    else if constexpr (E == 2)
      return {(u8x16)__builtin_shufflevector((u16x8)a.x, (u16x8)b.x, 0, 8, 1, 9, 2, 10, 3, 11)};
    else if constexpr (E == 4)
      return {(u8x16)__builtin_shufflevector((u32x4)a.x, (u32x4)b.x, 0, 4, 1, 5)};
    else
      return {(u8x16)__builtin_shufflevector((u64x2)a.x, (u64x2)b.x, 0, 2)};
  }
  template <int E>
  static v128 high(v128 a, v128 b) {
    if constexpr (E == 1)
      return {__builtin_shufflevector(a.x, b.x, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
    else if constexpr (E == 2)
      return {(u8x16)__builtin_shufflevector((u16x8)a.x, (u16x8)b.x, 4, 12, 5, 13, 6, 14, 7, 15)};
    else if constexpr (E == 4)
      return {(u8x16)__builtin_shufflevector((u32x4)a.x, (u32x4)b.x, 2, 6, 3, 7)};
    else
      return {(u8x16)__builtin_shufflevector((u64x2)a.x, (u64x2)b.x, 1, 3)};
  }
};

#if defined(LOCKSTEP_ISA_AVX2) || defined(LOCKSTEP_ISA_AVX512)
inline __m128i load16(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

struct v256 {
  [[maybe_unused]] static constexpr int lanes = 2;
  __m256i x;

  template <class At>
  static v256 of(const At& at) {
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(load16(at(0))), load16(at(1)), 1)};
  }
  static v256 gather(const char* p, int64_t step) {
    return of([&](int lane) { return p + lane * step; });
  }
  template <bool stream>
  void put(char* p) const {
    if constexpr (stream)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(p), x);
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  template <int E>
  static v256 low(v256 a, v256 b) {
    if constexpr (E == 1) return {_mm256_unpacklo_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm256_unpacklo_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm256_unpacklo_epi32(a.x, b.x)};
    return {_mm256_unpacklo_epi64(a.x, b.x)};
  }
  template <int E>
  static v256 high(v256 a, v256 b) {
    if constexpr (E == 1) return {_mm256_unpackhi_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm256_unpackhi_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm256_unpackhi_epi32(a.x, b.x)};
    return {_mm256_unpackhi_epi64(a.x, b.x)};
  }
};
#endif

#if defined(LOCKSTEP_ISA_AVX512)
struct v512 {
  [[maybe_unused]] static constexpr int lanes = 4;
  __m512i x;

  template <class At>
  static v512 of(const At& at) {
    __m512i v = _mm512_zextsi128_si512(load16(at(0)));
    v = _mm512_inserti32x4(v, load16(at(1)), 1);
    v = _mm512_inserti32x4(v, load16(at(2)), 2);
    return {_mm512_inserti32x4(v, load16(at(3)), 3)};
  }
  static v512 gather(const char* p, int64_t step) {
    return of([&](int lane) { return p + lane * step; });
  }
  template <bool stream>
  void put(char* p) const {
    if constexpr (stream)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x);
    else
      _mm512_storeu_si512(p, x);
  }
  template <int E>
  static v512 low(v512 a, v512 b) {
    if constexpr (E == 1) return {_mm512_unpacklo_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm512_unpacklo_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm512_unpacklo_epi32(a.x, b.x)};
    return {_mm512_unpacklo_epi64(a.x, b.x)};
  }
  template <int E>
  static v512 high(v512 a, v512 b) {
    if constexpr (E == 1) return {_mm512_unpackhi_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm512_unpackhi_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm512_unpackhi_epi32(a.x, b.x)};
    return {_mm512_unpackhi_epi64(a.x, b.x)};
  }
};
using widest = v512;
#elif defined(LOCKSTEP_ISA_AVX2)
using widest = v256;
#else
using widest = v128;
#endif

// The interleaving rounds: n registers in, their lanes transposed, in place.
template <int E, class V>
inline __attribute__((always_inline)) void interleave(V* r) {
  constexpr int n = 16 / E;
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
    V t[n];
#pragma GCC unroll 16
    for (int k = 0; k < n / 2; ++k) {
      t[2 * k] = V::template low<E>(r[k], r[k + n / 2]);
      t[2 * k + 1] = V::template high<E>(r[k], r[k + n / 2]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) r[k] = t[k];
  }
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
