// float_terms.hpp - the terms of float_sums.cpp: elements as doubles, W at once, four, or the first few, and how each
// is added to its lane.
#pragma once

#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

#if defined(LOCKSTEP_ISA_AVX2) || defined(LOCKSTEP_ISA_AVX512)
inline __m256d four_f32(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
inline __m256d four_bf16(const uint16_t* p) {
  return _mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(_mm_loadl_epi64((const __m128i*)p)), 16)));
}
inline __m256d four_f16(const uint16_t* p) { return _mm256_cvtps_pd(_mm_cvtph_ps(_mm_loadl_epi64((const __m128i*)p))); }
#endif
inline vd load_f64(const double* p) { return load_line<vd>(p); }
inline vd load_f32(const float* p) {
  vf x;
  memcpy(&x, p, sizeof x);
  return to_double(x);
}
#if defined(LOCKSTEP_ISA_AVX512)
inline vd of_bf16(__m128i x) {
  return to_double(reinterpret_cast<vf>(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16)));
}
inline vd of_f16(__m128i x) { return to_double(_mm256_cvtph_ps(x)); }
#endif
inline vd load_bf16(const uint16_t* p) {
#if defined(LOCKSTEP_ISA_AVX512)
  return of_bf16(_mm_loadu_si128((const __m128i*)p));
#elif defined(LOCKSTEP_ISA_AVX2)
  return four_bf16(p);
#else
  float f[W];
  for (int i = 0; i < W; ++i) {
    const uint32_t bits = static_cast<uint32_t>(p[i]) << 16;
    memcpy(&f[i], &bits, 4);
  }
  return load_f32(f);
#endif
}
inline vd load_f16(const uint16_t* p) {
#if defined(LOCKSTEP_ISA_AVX512)
  return of_f16(_mm_loadu_si128((const __m128i*)p));
#elif defined(LOCKSTEP_ISA_AVX2)
  return four_f16(p);
#else
  // The fraction and exponent moved to f32's places are the value times 2^-112,
  // denormals included; infinities and NaN get the exponent that they lack.
  float f[W];
  for (int i = 0; i < W; ++i) {
    const uint32_t moved = static_cast<uint32_t>(p[i] & 0x7FFF) << 13;
    float scaled;
    memcpy(&scaled, &moved, 4);
    scaled *= 0x1p112f;
    uint32_t bits;
    memcpy(&bits, &scaled, 4);
    bits |= (moved >= 0x0F800000u ? 0x7F800000u : 0) | static_cast<uint32_t>(p[i] & 0x8000) << 16;
    memcpy(&f[i], &bits, 4);
  }
  return load_f32(f);
#endif
}

// enter(acc, x): the term joined to its lane. pad: an element that changes no lane.
struct f32_sum {
  typedef float element;
  static vd load(const float* p) { return load_f32(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static v4d four(const float* p) { return four_f32(p); }
  static v4d term(v4d x) { return x; }
  // Equal to acc + x. On Zen 4 adds share their units with conversions, and multiplications do not.
  static v4d enter(v4d acc, v4d x) { return _mm256_fmadd_pd(x, _mm256_set1_pd(1), acc); }
#endif
  static vd enter(vd acc, vd x) { return acc + x; }
  static constexpr float pad = -0.0f;
};
struct f64_sum {
  typedef double element;
  static vd load(const double* p) { return load_f64(p); }
  static vd enter(vd acc, vd x) { return acc + x; }
  static constexpr double pad = -0.0;
};
struct f16_sum {
  typedef uint16_t element;
  static vd load(const uint16_t* p) { return load_f16(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static vd of(__m128i x) { return of_f16(x); }
#endif
  static vd enter(vd acc, vd x) { return acc + x; }
  static constexpr uint16_t pad = 0x8000;
};
struct bf16_sum : f16_sum {
  static vd load(const uint16_t* p) { return load_bf16(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static vd of(__m128i x) { return of_bf16(x); }
#endif
};
// A padded square adds +0.0, which turns only an untouched lane's -0.0 into +0.0;
// any square is at least +0.0, so no sum that has one can tell.
struct f16_square {
  typedef uint16_t element;
  static vd load(const uint16_t* p) { return load_f16(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static vd of(__m128i x) { return of_f16(x); }
#endif
  template <class V>
  static V enter(V acc, V x) {
    return exact_square(x, acc);
  }
  static constexpr uint16_t pad = 0;
};
struct bf16_square : f16_square {
  static vd load(const uint16_t* p) { return load_bf16(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static vd of(__m128i x) { return of_bf16(x); }
#endif
};
struct f32_square {
  typedef float element;
  static vd load(const float* p) { return load_f32(p); }
#if defined(LOCKSTEP_ISA_AVX512)
  static v4d four(const float* p) { return four_f32(p); }
  static v4d term(v4d x) { return x * x; }
#endif
  template <class V>
  static V enter(V acc, V x) {
    return exact_square(x, acc);
  }
  static constexpr float pad = 0;
};
struct f64_square {
  typedef double element;
  static vd load(const double* p) { return load_f64(p); }
  static vd enter(vd acc, vd x) { return fused_square(x, acc); }
  static constexpr double pad = 0;
};

// The first m <= W lanes, in the form that loads need: made once for many rows of one length.
#if defined(LOCKSTEP_ISA_AVX512)
typedef __mmask8 few_lanes;
inline few_lanes first_lanes(int64_t m) { return static_cast<__mmask8>((1 << m) - 1); }
#else
typedef int64_t few_lanes;
inline few_lanes first_lanes(int64_t m) { return m; }
#endif

// The first m < W elements of p and pads.
inline vd load_first(const float* p, few_lanes m, float pad) {
#if defined(LOCKSTEP_ISA_AVX512)
  return to_double(_mm256_mask_loadu_ps(_mm256_set1_ps(pad), m, p));
#elif defined(LOCKSTEP_ISA_AVX2)
  const __m128i mask = _mm256_castsi256_si128(first_lanes32(m));
  return to_double(_mm_blendv_ps(_mm_set1_ps(pad), _mm_maskload_ps(p, mask), _mm_castsi128_ps(mask)));
#else
  return m == 0 ? splat(pad) : vd{p[0], pad};
#endif
}
inline vd load_first(const double* p, few_lanes m, double pad) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_mask_loadu_pd(_mm512_set1_pd(pad), m, p);
#elif defined(LOCKSTEP_ISA_AVX2)
  const __m256i mask = first_lanes64(m);
  return _mm256_blendv_pd(_mm256_set1_pd(pad), _mm256_maskload_pd(p, mask), _mm256_castsi256_pd(mask));
#else
  return m == 0 ? splat(pad) : vd{p[0], pad};
#endif
}
// K: an element of two bytes.
template <class K>
inline vd load_first(const uint16_t* p, few_lanes m, uint16_t pad) {
#if defined(LOCKSTEP_ISA_AVX512)
  return K::of(_mm_mask_loadu_epi16(_mm_set1_epi16(static_cast<int16_t>(pad)), m, p));
#else
  // Through a general register, because a vector load of elements just stored would stall.
  const uint64_t pads = pad * uint64_t{0x0001000100010001};
  uint64_t bits[2] = {pads, pads};
  for (int64_t i = 0; i < m; ++i) bits[i / 4] ^= static_cast<uint64_t>(p[i] ^ pad) << (i % 4 * 16);
  uint16_t part[8];
  memcpy(part, bits, sizeof part);
  return K::load(part);
#endif
}
template <class K>
inline vd load_part(const typename K::element* p, int64_t m) {
  if constexpr (sizeof(typename K::element) > 2)
    return load_first(p, first_lanes(m), K::pad);
  else
    return load_first<K>(p, first_lanes(m), static_cast<uint16_t>(K::pad));
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
