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
  const auto y = from_doubles<E, R, scaled>(load_few<E>(from, n), splat(scale));
  typename R::type some[W];
  memcpy(some, &y, sizeof y);
  for (int64_t k = 0; k < n; ++k) to[k] = some[k];
}

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
typedef float vf2 __attribute__((vector_size(W * 8)));
typedef uint32_t vu2 __attribute__((vector_size(W * 8)));
typedef uint16_t vh2 __attribute__((vector_size(W * 4)));

// Elements that a float holds, by their names for doubles.
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

template <class E, class R, bool stream>
int64_t through_floats(const typename E::type* from, typename R::type* to, int64_t n) {
  constexpr int lanes = 2 * W;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    fetch_ahead<stream>(from + i);
    vf2 x = through<E>::load(from + i);
    if (!LOCKSTEP_MUTANT("convert_keeps_payloads")) x = x == x ? x : __builtin_nanf("") - vf2{};
    put<stream>(to + i, through<R>::round(x));
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
  if (i == n || LOCKSTEP_MUTANT("convert_tail_lost")) return;
  if (n >= W)  // the last vector again, as far as it has been done
    through_doubles<E, R, scaled, false>(from + n - W, to + n - W, W, scale);
  else
    few<E, R, scaled>(from, to, n, scale);
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
