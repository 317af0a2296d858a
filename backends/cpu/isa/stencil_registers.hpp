// stencil_registers.hpp - one register of stencil results, for each level: loads, shuffles, fma, the canonical NaN.
#pragma once

#include "../tuning.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// ---- one register of T ------------------------------------------------------
#if !defined(LOCKSTEP_ISA_BASELINE)
template <class T>
struct pack;
#endif

#if defined(LOCKSTEP_ISA_AVX512)
template <>
struct pack<float> {
  static constexpr int width = 16;
  __m512 v;
  static pack load(const float* p) { return {_mm512_loadu_ps(p)}; }
  static pack splat(float x) { return {_mm512_set1_ps(x)}; }
  static pack add(pack a, pack b) { return {_mm512_add_ps(a.v, b.v)}; }
  static pack mul(pack a, pack b) { return {_mm512_mul_ps(a.v, b.v)}; }
  static pack fma(pack a, pack b, pack c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  pack canonical() const {
    const __m512 quiet = _mm512_castsi512_ps(_mm512_set1_epi32(0x7FC00000));
    return {_mm512_mask_mov_ps(v, _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), quiet)};
  }
  static bool any_nan(pack a, pack b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q) != 0; }
  static constexpr bool slides = true;  // elements K .. K + width - 1 of two registers side by side
  template <int K>
  static pack slide(pack low, pack high) {
    return {_mm512_castsi512_ps(
        _mm512_maskz_alignr_epi32(0xFFFF, _mm512_castps_si512(high.v), _mm512_castps_si512(low.v), K))};
  }
  // The reach elements that end before p, at the high end; those from p on, at the low end. Nothing else is read.
  static pack before(const float* p, int reach) {
    return {_mm512_maskz_loadu_ps(static_cast<__mmask16>(-1 << (width - reach)), p - width)};
  }
  static pack after(const float* p, int reach) {
    return {_mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << reach) - 1), p)};
  }
  void store(float* p) const { _mm512_storeu_ps(p, v); }
  void stream(float* p) const { _mm512_stream_ps(p, v); }
};
template <>
struct pack<double> {
  static constexpr int width = 8;
  __m512d v;
  static pack load(const double* p) { return {_mm512_loadu_pd(p)}; }
  static pack splat(double x) { return {_mm512_set1_pd(x)}; }
  static pack add(pack a, pack b) { return {_mm512_add_pd(a.v, b.v)}; }
  static pack mul(pack a, pack b) { return {_mm512_mul_pd(a.v, b.v)}; }
  static pack fma(pack a, pack b, pack c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  pack canonical() const {
    const __m512d quiet = _mm512_castsi512_pd(_mm512_set1_epi64(0x7FF8000000000000));
    return {_mm512_mask_mov_pd(v, _mm512_cmp_pd_mask(v, v, _CMP_UNORD_Q), quiet)};
  }
  static bool any_nan(pack a, pack b) { return _mm512_cmp_pd_mask(a.v, b.v, _CMP_UNORD_Q) != 0; }
  static constexpr bool slides = true;
  template <int K>
  static pack slide(pack low, pack high) {
    return {_mm512_castsi512_pd(
        _mm512_maskz_alignr_epi64(0xFF, _mm512_castpd_si512(high.v), _mm512_castpd_si512(low.v), K))};
  }
  // The reach elements that end before p, at the high end; those from p on, at the low end. Nothing else is read.
  static pack before(const double* p, int reach) {
    return {_mm512_maskz_loadu_pd(static_cast<__mmask8>(-1 << (width - reach)), p - width)};
  }
  static pack after(const double* p, int reach) {
    return {_mm512_maskz_loadu_pd(static_cast<__mmask8>((1 << reach) - 1), p)};
  }
  void store(double* p) const { _mm512_storeu_pd(p, v); }
  void stream(double* p) const { _mm512_stream_pd(p, v); }
};
#elif defined(LOCKSTEP_ISA_AVX2)
template <>
struct pack<float> {
  static constexpr int width = 8;
  __m256 v;
  static pack load(const float* p) { return {_mm256_loadu_ps(p)}; }
  static pack splat(float x) { return {_mm256_set1_ps(x)}; }
  static pack add(pack a, pack b) { return {_mm256_add_ps(a.v, b.v)}; }
  static pack mul(pack a, pack b) { return {_mm256_mul_ps(a.v, b.v)}; }
  static pack fma(pack a, pack b, pack c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  pack canonical() const {
    const __m256 quiet = _mm256_castsi256_ps(_mm256_set1_epi32(0x7FC00000));
    return {_mm256_blendv_ps(v, quiet, _mm256_cmp_ps(v, v, _CMP_UNORD_Q))};
  }
  static constexpr bool slides = false;
  void store(float* p) const { _mm256_storeu_ps(p, v); }
  void stream(float* p) const { _mm256_stream_ps(p, v); }
};
template <>
struct pack<double> {
  static constexpr int width = 4;
  __m256d v;
  static pack load(const double* p) { return {_mm256_loadu_pd(p)}; }
  static pack splat(double x) { return {_mm256_set1_pd(x)}; }
  static pack add(pack a, pack b) { return {_mm256_add_pd(a.v, b.v)}; }
  static pack mul(pack a, pack b) { return {_mm256_mul_pd(a.v, b.v)}; }
  static pack fma(pack a, pack b, pack c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
  pack canonical() const {
    const __m256d quiet = _mm256_castsi256_pd(_mm256_set1_epi64x(0x7FF8000000000000));
    return {_mm256_blendv_pd(v, quiet, _mm256_cmp_pd(v, v, _CMP_UNORD_Q))};
  }
  static constexpr bool slides = false;
  void store(double* p) const { _mm256_storeu_pd(p, v); }
  void stream(double* p) const { _mm256_stream_pd(p, v); }
};
#endif

float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }
float quiet_nan(float) { return __builtin_nanf(""); }
double quiet_nan(double) { return __builtin_nan(""); }

// One element: for rows shorter than a register, and for everything on a level without
// native FMA, where only the result matters.
template <class T>
struct single {
  static constexpr int width = 1;
  T v;
  static constexpr bool slides = false;
  static single load(const T* p) { return {*p}; }
  static single splat(T x) { return {x}; }
  static single add(single a, single b) { return {a.v + b.v}; }
  static single mul(single a, single b) { return {a.v * b.v}; }
  static single fma(single a, single b, single c) { return {fused(a.v, b.v, c.v)}; }
  single canonical() const { return {v == v ? v : quiet_nan(v)}; }
  void store(T* p) const { *p = v; }
  void stream(T* p) const { *p = v; }
};
#if defined(LOCKSTEP_ISA_BASELINE)
template <class T>
using pack = single<T>;
#endif

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
