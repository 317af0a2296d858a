// convert.cpp - a run of elements as another float type, times a factor.
// Idea    Through doubles: each element exactly, one product, one rounding (results.hpp). Without a factor the types up
//         to f32 go through floats, which hold them exactly too: twice as many to a register.
// Moves   each element in and out once, around the cache where the caller says so
// Limit   L1: conversions; the copy limit in DRAM
// Watch   the hardware's conversions keep payloads of NaN, so these become the canonical one first
// Source  lockstep.h
#include "../convert_kernels.hpp"
#include "results.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

template <bool stream, class V>
inline void put(void* p, V x) {
  if constexpr (stream)
    stream_store(p, x);
  else
    memcpy(p, &x, sizeof x);
}
template <bool stream>
inline void fetch_ahead(const void* p) {
  if constexpr (stream) __builtin_prefetch(static_cast<const char*>(p) + tuned.copy_ahead);
}

template <class E, class R, bool scaled>
inline typename R::vector from_doubles(vd x, vd by) {
  return rounded<R>(scaled ? x * by : x);
}

// Whole vectors; the number of elements done.
template <class E, class R, bool scaled, bool stream>
int64_t through_doubles(const typename E::type* from, typename R::type* to, int64_t n, double scale) {
  const vd by = splat(scale);
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    fetch_ahead<stream>(from + i);
    put<stream>(to + i, from_doubles<E, R, scaled>(E::load(from + i), by));
  }
  return i;
}

template <class E, class R, bool scaled>
void few(const typename E::type* from, typename R::type* to, int64_t n, double scale) {
  store_few<R>(to, from_doubles<E, R, scaled>(load_few<E>(from, n), splat(scale)), n);
}

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
inline vf2 canonical(vf2 x) { return x == x ? x : __builtin_nanf("") - vf2{}; }

#if defined(LOCKSTEP_ISA_AVX512)
inline bool any_nan(vf2 a, vf2 b) { return _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) != 0; }
// To the nearest bf16 in the upper half.
inline __m512i near_upper_half(vf2 x) {
  const __m512i bits = reinterpret_cast<__m512i>(x), below = _mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF));
  const __mmask16 odd = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x10000));
  return _mm512_srli_epi32(_mm512_mask_add_epi32(below, odd, below, _mm512_set1_epi32(1)), 16);
}
inline __m512i two_of_upper_halves(vf2 a, vf2 b) {
  const __m512i both = _mm512_packus_epi32(near_upper_half(a), near_upper_half(b));
  return _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), both);
}
#else
inline bool any_nan(vf2 a, vf2 b) { return _mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) != 0; }
inline __m256i near_upper_half(vf2 x) {
  const vu2 bits = reinterpret_cast<vu2>(x);
  return reinterpret_cast<__m256i>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
inline __m256i two_of_upper_halves(vf2 a, vf2 b) {
  return _mm256_permute4x64_epi64(_mm256_packus_epi32(near_upper_half(a), near_upper_half(b)), 0xD8);
}
#endif

// Two vectors at a time, so that a NaN costs half a comparison; it is rare.
template <class E, class R, bool stream>
int64_t through_floats(const typename E::type* from, typename R::type* to, int64_t n) {
  constexpr int lanes = 2 * W;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    for (int b = 0; b < 2 * lanes * static_cast<int>(sizeof(*from)); b += 64)
      fetch_ahead<stream>(reinterpret_cast<const char*>(from + i) + b);
    vf2 x = through<E>::load(from + i), y = through<E>::load(from + i + lanes);
    if (__builtin_expect(any_nan(x, y), false)) x = canonical(x), y = canonical(y);
    if constexpr (__is_same(R, bf16_element)) {
      put<stream>(to + i, two_of_upper_halves(x, y));
    } else {
      put<stream>(to + i, through<R>::round(x));
      put<stream>(to + i + lanes, through<R>::round(y));
    }
  }
  return i;
}
#endif

template <class E, class R, bool scaled, bool stream>
int64_t whole(const typename E::type* from, typename R::type* to, int64_t n, double scale) {
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
  if constexpr (!scaled && sizeof(typename E::type) <= 4 && sizeof(typename R::type) <= 4)
    return through_floats<E, R, stream>(from, to, n);
#endif
  return through_doubles<E, R, scaled, stream>(from, to, n, scale);
}

template <class E, class R, bool scaled>
void cached(const typename E::type* from, typename R::type* to, int64_t n, double scale) {
  int64_t i = whole<E, R, scaled, false>(from, to, n, scale);
  i += through_doubles<E, R, scaled, false>(from + i, to + i, n - i, scale);
  if (i < n) few<E, R, scaled>(from + i, to + i, n - i, scale);
}

template <class E, class R, bool scaled>
void run_all(const typename E::type* from, typename R::type* to, int64_t n, double scale, bool stream) {
  if (stream) {
    const auto past = static_cast<int64_t>(reinterpret_cast<uintptr_t>(to) % 64);
    int64_t i = past == 0 ? 0 : (64 - past) / static_cast<int64_t>(sizeof(typename R::type));
    if (i > n) i = n;
    cached<E, R, scaled>(from, to, i, scale);
    i += whole<E, R, scaled, true>(from + i, to + i, n - i, scale);
    from += i, to += i, n -= i;
  }
  cached<E, R, scaled>(from, to, n, scale);
}

template <class E, class R>
void run(const void* src, void* dst, int64_t n, double scale, bool stream) {
  const auto* from = static_cast<const typename E::type*>(src);
  auto* to = static_cast<typename R::type*>(dst);
  if (scale == 1) return run_all<E, R, false>(from, to, n, scale, stream);
  run_all<E, R, true>(from, to, n, scale, stream);
}

typedef f16_element A;
typedef bf16_element B;
typedef f32_element C;
typedef f64_element D;
}  // namespace

extern const convert_kernels converters_table;
const convert_kernels converters_table = {{{run<A, A>, run<A, B>, run<A, C>, run<A, D>},
                                           {run<B, A>, run<B, B>, run<B, C>, run<B, D>},
                                           {run<C, A>, run<C, B>, run<C, C>, run<C, D>},
                                           {run<D, A>, run<D, B>, run<D, C>, run<D, D>}}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
