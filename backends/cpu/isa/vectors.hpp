// vectors.hpp - one level's vectors of doubles, as GCC vector extensions: W of them in
// a register. Everything here has internal linkage (see isa.hpp).
#pragma once

#include <stdint.h>
#include <string.h>

#include "../tuning.hpp"
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
#include <immintrin.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns inside its own _mm512_undefined_epi32 (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

#if defined(LOCKSTEP_ISA_AVX512)
constexpr int W = 8;
#elif defined(LOCKSTEP_ISA_AVX2)
constexpr int W = 4;
#else
constexpr int W = 2;
#endif
typedef double vd __attribute__((vector_size(W * 8)));
typedef float vf __attribute__((vector_size(W * 4)));
typedef uint64_t vu __attribute__((vector_size(W * 8)));

// GCC 12 compiles a vector conversion to two conversions and an insert, which halves the
// speed, so use intrinsics: for AVX-512 the maskz form with all lanes, because GCC 12 warns
// about the plain one.
inline vd to_double(vf x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_maskz_cvtps_pd(0xFF, x);
#elif defined(LOCKSTEP_ISA_AVX2)
  return _mm256_cvtps_pd(x);
#else
  return __builtin_convertvector(x, vd);
#endif
}

#if defined(LOCKSTEP_ISA_AVX2)
// All ones in the first m of a register's lanes.
inline __m256i first_lanes32(int64_t m) {
  static const int32_t ones[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i*)(ones + 8 - m));
}
inline __m256i first_lanes64(int64_t m) {
  static const int64_t ones[8] = {-1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i*)(ones + 4 - m));
}
#endif

// The lane of no elements, and the join of two lanes: of a sum, unless K multiplies (loops.cpp).
template <class K>
constexpr double none = requires {
  K::multiplies;
}
? 1.0 : -0.0;
template <class K, class V>
inline V joined(V a, V b) {
  if constexpr (requires { K::multiplies; })
    return a * b;
  else
    return a + b;
}

// acc + x * x, rounded once.
inline vd fused_square(vd x, vd acc) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_fmadd_pd(x, x, acc);
#elif defined(LOCKSTEP_ISA_AVX2)
  return _mm256_fmadd_pd(x, x, acc);
#else
  return vd{__builtin_fma(x[0], x[0], acc[0]), __builtin_fma(x[1], x[1], acc[1])};
#endif
}

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
typedef double v4d __attribute__((vector_size(32)));
#endif
#if defined(LOCKSTEP_ISA_AVX512)
inline v4d fused_square(v4d x, v4d acc) { return _mm256_fmadd_pd(x, x, acc); }
#endif

// The same where x * x is exact in double, so that two roundings are one.
template <class V>
inline V exact_square(V x, V acc) {
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
  return fused_square(x, acc);
#else
  return acc + x * x;
#endif
}

// x - 0 keeps the sign of -0.0, which 0 + x would lose.
template <class V>
inline V all_lanes(double x) {
  return x - V{};
}
inline vd splat(double x) { return all_lanes<vd>(x); }

// Lane i: the lanes of v[i] joined in steps d = W/2 ... 1. W vectors together, so
// that each add works on full registers: W - 1 adds instead of W * log2(W).
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
inline v4d join_lanes(const v4d* v) {
  v4d two[2];
  for (int i = 0; i < 2; ++i)
    two[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 1, 4, 5) +
             __builtin_shufflevector(v[2 * i], v[2 * i + 1], 2, 3, 6, 7);
  return __builtin_shufflevector(two[0], two[1], 0, 2, 4, 6) + __builtin_shufflevector(two[0], two[1], 1, 3, 5, 7);
}
#endif
#if !defined(LOCKSTEP_ISA_AVX2)
inline vd join_lanes(const vd* v) {
#if defined(LOCKSTEP_ISA_AVX512)
  vd four[4], two[2];
  for (int i = 0; i < 4; ++i)
    four[i] = __builtin_shufflevector(v[2 * i], v[2 * i + 1], 0, 1, 2, 3, 8, 9, 10, 11) +
              __builtin_shufflevector(v[2 * i], v[2 * i + 1], 4, 5, 6, 7, 12, 13, 14, 15);
  for (int i = 0; i < 2; ++i)
    two[i] = __builtin_shufflevector(four[2 * i], four[2 * i + 1], 0, 1, 4, 5, 8, 9, 12, 13) +
             __builtin_shufflevector(four[2 * i], four[2 * i + 1], 2, 3, 6, 7, 10, 11, 14, 15);
  return __builtin_shufflevector(two[0], two[1], 0, 2, 4, 6, 8, 10, 12, 14) +
         __builtin_shufflevector(two[0], two[1], 1, 3, 5, 7, 9, 11, 13, 15);
#else
  return __builtin_shufflevector(v[0], v[1], 0, 2) + __builtin_shufflevector(v[0], v[1], 1, 3);
#endif
}
#endif

}  // namespace

// Prefetches, except on chips whose hardware prefetchers do better alone.
inline void fetch(const void* p) {
  if (!tuned.halves) __builtin_prefetch(p);
}

// Optimisation barrier: stops GCC from repeating or reordering this load, which would confuse the hardware's
// prefetcher.
template <class V>
inline V held(V x) {
#if defined(LOCKSTEP_ISA_AVX512)
  asm volatile("" : "+v"(x));
#elif defined(__x86_64__)
  asm volatile("" : "+x"(x));
#endif
  return x;
}

// Loads a line by two loads, which is about a tenth faster from memory on Zen 4. held() stops the compiler from joining
// them. The insert has a memory operand, because every further instruction leaves fewer lines in flight.
template <class V>
inline V load_of_stream(const void* p) {
#if defined(LOCKSTEP_ISA_AVX512)
  const auto* half = static_cast<const __m256i*>(p);
  const __m512i low = _mm512_castsi256_si512(held(_mm256_loadu_si256(half)));
  return reinterpret_cast<V>(_mm512_inserti64x4(low, _mm256_loadu_si256(half + 1), 1));
#else
  V x;
  memcpy(&x, p, sizeof x);
  return x;
#endif
}
// Loads a line in the way that is best for this level.
template <class V>
inline V load_line(const void* p) {
  if constexpr (tuned.halves) return load_of_stream<V>(p);
  V x;
  memcpy(&x, p, sizeof x);
  return x;
}

}  // namespace lockstep::cpu::LOCKSTEP_ISA
