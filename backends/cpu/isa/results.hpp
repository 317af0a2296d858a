// results.hpp - W doubles rounded once to f16, bf16, f32 or f64, a NaN as the canonical one.
#pragma once

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "float_terms.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

typedef int32_t vi32 __attribute__((vector_size(W * 4)));
typedef uint32_t vu32 __attribute__((vector_size(W * 4)));
typedef int64_t vi64 __attribute__((vector_size(W * 8)));
typedef uint16_t vu16 __attribute__((vector_size(W * 2)));

inline vf to_float(vd x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_maskz_cvtpd_ps(0xFF, x);
#elif defined(LOCKSTEP_ISA_AVX2)
  return _mm256_cvtpd_ps(x);
#else
  return __builtin_convertvector(x, vf);
#endif
}

// Rounds to odd: truncates, and sets the last bit if anything was cut off. A second rounding, to nearest with at least
// two bits less, then gives the same result as rounding x once.
inline vf to_odd_float(vd x) {
#if defined(LOCKSTEP_ISA_AVX512)
  const __m256 cut = _mm512_maskz_cvt_roundpd_ps(0xFF, x, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC);
  const __mmask8 inexact = _mm512_cmp_pd_mask(to_double(reinterpret_cast<vf>(cut)), x, _CMP_NEQ_UQ);
  const __m256i bits = _mm256_castps_si256(cut);
  return reinterpret_cast<vf>(_mm256_mask_or_epi32(bits, inexact, bits, _mm256_set1_epi32(1)));
#else
  const vf near = to_float(x);
  const vd back = to_double(near);
  const vi64 sign = reinterpret_cast<vi64>(splat(-0.0));
  const vi64 beyond = reinterpret_cast<vd>(reinterpret_cast<vi64>(back) & ~sign) >
                      reinterpret_cast<vd>(reinterpret_cast<vi64>(x) & ~sign);
  const vi64 inexact = back != x;
  const vi32 bits = reinterpret_cast<vi32>(near) + __builtin_convertvector(beyond, vi32);  // one less in magnitude
  return reinterpret_cast<vf>(bits | (__builtin_convertvector(inexact, vi32) & 1));
#endif
}

// The same for what becomes an f16, in the double's own bits: AVX2 has no conversion that truncates. A denormal float
// may be rounded to nearest here, for as an f16 it is 0.
inline vf to_odd_for_f16(vd x) {
#if defined(LOCKSTEP_ISA_AVX2)
  const vi64 bits = reinterpret_cast<vi64>(x), cut = vi64{} + 0x1FFFFFFF;
  return to_float(reinterpret_cast<vd>((((bits & cut) + cut) | bits) & ~cut));
#else
  return to_odd_float(x);
#endif
}

// A NaN in x must already be the canonical one.
inline vu16 to_bf16(vf x) {
  const vu32 bits = reinterpret_cast<vu32>(x);
  return __builtin_convertvector((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16, vu16);
}
inline vu16 to_bf16(vd x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return to_bf16(to_odd_float(x));
#else
  // A number so large is added that the sum's last bit is the bf16's last bit, then taken away again. Between the least
  // normal power of 2 and the one that is infinite; the sign of what becomes 0 is put back.
  const vi64 bits = reinterpret_cast<vi64>(x), sign = reinterpret_cast<vi64>(splat(-0.0));
  const vd power = reinterpret_cast<vd>(bits & (int64_t{0x7FF} << 52)), least = splat(0x1p-126), most = splat(0x1p128);
#if defined(LOCKSTEP_ISA_AVX2)
  const vd large = _mm256_min_pd(_mm256_max_pd(power, least), most) * splat(0x1.8p45);
#else
  const vd above = power > least ? power : least, large = (above < most ? above : most) * splat(0x1.8p45);
#endif
  const vi64 near = reinterpret_cast<vi64>((x + large) - large) | (bits & sign);
  return __builtin_convertvector(reinterpret_cast<vu32>(to_float(reinterpret_cast<vd>(near))) >> 16, vu16);
#endif
}
inline vu16 to_f16(vf x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vu16>(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#elif defined(LOCKSTEP_ISA_AVX2)
  const __m128i all = _mm_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT);
  vu16 low;
  memcpy(&low, &all, sizeof low);
  return low;
#else
  vu16 out;
  for (int i = 0; i < W; ++i) {
    uint32_t bits;
    memcpy(&bits, reinterpret_cast<const char*>(&x) + 4 * i, 4);
    const uint32_t sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
    uint32_t half;
    if (magnitude > 0x7F800000u) {
      half = 0x7E00u;
    } else if (magnitude >= 0x477FF000u) {  // 65,520 and more round to infinity
      half = 0x7C00u;
    } else if (magnitude >= 0x38800000u) {  // 2^-14, the least normal one
      half = (magnitude - 0x38000000u + 0xFFFu + (magnitude >> 13 & 1)) >> 13;
    } else {  // adding 0.5 aligns a denormal's last bit with f32's last bit
      float f;
      memcpy(&f, &magnitude, 4);
      f += 0.5f;
      memcpy(&half, &f, 4);
      half -= 0x3F000000u;
    }
    out[i] = static_cast<uint16_t>(sign | half);
  }
  return out;
#endif
}

// The element types, indexed by lockstep_dtype - 1.
struct f16_element {
  typedef uint16_t type;
  static constexpr bool of_upper_half = false;  // its bits are the upper half of a float's
  typedef vu16 vector;
  static vd load(const type* p) { return load_f16(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static vd of(__m128i x) { return of_f16(x); }
#endif
  static vector round(vd y) { return to_f16(to_odd_for_f16(y)); }
};
struct bf16_element {
  typedef uint16_t type;
  static constexpr bool of_upper_half = true;
  typedef vu16 vector;
  static vd load(const type* p) { return load_bf16(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static vd of(__m128i x) { return of_bf16(x); }
#endif
  static vector round(vd y) { return to_bf16(y); }
};
struct f32_element {
  typedef float type;
  typedef vf vector;
  static vd load(const type* p) { return load_f32(p); }
  static vector round(vd y) { return to_float(y); }
};
struct f64_element {
  typedef double type;
  typedef vd vector;
  static vd load(const type* p) {
    vd x;
    memcpy(&x, p, sizeof x);
    return x;
  }
  static vector round(vd y) { return y; }
};

template <class R>
inline typename R::vector rounded(vd y) {
  y = y == y ? y : splat(__builtin_nan(""));
  return R::round(y);
}

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
typedef float vf2 __attribute__((vector_size(W * 8)));
typedef uint32_t vu2 __attribute__((vector_size(W * 8)));
typedef uint16_t vh2 __attribute__((vector_size(W * 4)));

// 2 W floats at once, of elements that a float holds.
template <class E>
struct through;
template <>
struct through<f16_element> {
  static vf2 load(const uint16_t* p) {
#if defined(LOCKSTEP_ISA_AVX512)
    return _mm512_maskz_cvtph_ps(0xFFFF, _mm256_loadu_si256((const __m256i*)p));
#else
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i*)p));
#endif
  }
  static vh2 round(vf2 x) {
#if defined(LOCKSTEP_ISA_AVX512)
    return reinterpret_cast<vh2>(_mm512_maskz_cvtps_ph(0xFFFF, x, _MM_FROUND_TO_NEAREST_INT));
#else
    return reinterpret_cast<vh2>(_mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
#endif
  }
};
template <>
struct through<bf16_element> {
  static vf2 load(const uint16_t* p) {
#if defined(LOCKSTEP_ISA_AVX512)
    return reinterpret_cast<vf2>(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i*)p)), 16));
#else
    return reinterpret_cast<vf2>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i*)p)), 16));
#endif
  }
  static vh2 round(vf2 x) {
    const vu2 bits = reinterpret_cast<vu2>(x);
    return __builtin_convertvector((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16, vh2);
  }
};
template <>
struct through<f32_element> {
  static vf2 load(const float* p) {
    vf2 x;
    memcpy(&x, p, sizeof x);
    return x;
  }
  static vf2 round(vf2 x) { return x; }
};

#endif

// These elements, and zeros.
template <class E>
inline vd load_lanes(const typename E::type* p, few_lanes these) {
  if constexpr (sizeof(typename E::type) > 2)
    return load_first(p, these, 0);
  else
    return load_first<E>(p, these, 0);
}
// The first m < W elements, and zeros.
template <class E>
inline vd load_few(const typename E::type* p, int64_t m) {
  return load_lanes<E>(p, first_lanes(m));
}
// The first m < W of y.
template <class R>
inline void store_few(typename R::type* to, typename R::vector y, int64_t m) {
#if defined(LOCKSTEP_ISA_AVX512)
  const auto first = static_cast<__mmask8>((1 << m) - 1);
  if constexpr (sizeof y == 16)
    _mm_mask_storeu_epi16(to, first, reinterpret_cast<__m128i>(y));
  else if constexpr (sizeof y == 32)
    _mm256_mask_storeu_ps(to, first, y);
  else
    _mm512_mask_storeu_pd(to, first, y);
#else
  typename R::type some[W];
  memcpy(some, &y, sizeof y);
  for (int64_t k = 0; k < m; ++k) to[k] = some[k];
#endif
}
// a in these lanes, b in the others.
inline vd first_of(few_lanes these, vd a, vd b) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_mask_blend_pd(these, b, a);
#else
  vi64 lane;
  for (int i = 0; i < W; ++i) lane[i] = i;
  return lane < these ? a : b;
#endif
}

// Around the cache; p is aligned to x.
template <class V>
inline void stream_store(void* p, V x) {
#if defined(__SSE2__)
  if constexpr (sizeof x == 64) {
#if defined(LOCKSTEP_ISA_AVX512)
    _mm512_stream_si512(static_cast<__m512i*>(p), reinterpret_cast<__m512i>(x));
#endif
  } else if constexpr (sizeof x == 32) {
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
    _mm256_stream_si256(static_cast<__m256i*>(p), reinterpret_cast<__m256i>(x));
#endif
  } else if constexpr (sizeof x == 16) {
    _mm_stream_si128(static_cast<__m128i*>(p), reinterpret_cast<__m128i>(x));
  } else {
    memcpy(p, &x, sizeof x);
  }
#else
  memcpy(p, &x, sizeof x);
#endif
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
