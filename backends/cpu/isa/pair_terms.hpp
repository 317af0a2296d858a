// pair_terms.hpp - how a pair of floats enters a lane.
#pragma once

#include "leaves.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// acc + x * y, rounded once.
inline vd fused(vd x, vd y, vd acc) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_fmadd_pd(x, y, acc);
#elif defined(LOCKSTEP_ISA_AVX2)
  return _mm256_fmadd_pd(x, y, acc);
#else
  return vd{__builtin_fma(x[0], y[0], acc[0]), __builtin_fma(x[1], y[1], acc[1])};
#endif
}
#if defined(LOCKSTEP_ISA_AVX512)
inline v4d fused(v4d x, v4d y, v4d acc) { return _mm256_fmadd_pd(x, y, acc); }
#endif
template <class V>
inline V magnitude(V x) {
  typedef int64_t bits __attribute__((vector_size(sizeof(V))));
  return reinterpret_cast<V>(reinterpret_cast<bits>(x) & ~reinterpret_cast<bits>(all_lanes<V>(-0.0)));
}

// How a pair of elements enters a lane. Products of the three small types are exact in double: without fma two
// roundings are one.
template <class E>
struct products {
  template <class V>
  V operator()(V acc, V a, V b) const {
    if constexpr (W == 2 && sizeof(typename E::type) < 8) return acc + a * b;
    return fused(a, b, acc);
  }
};
struct squared_distances {
  template <class V>
  V operator()(V acc, V a, V b) const {
    return fused_square(a - b, acc);
  }
};
struct distances {
  template <class V>
  V operator()(V acc, V a, V b) const {
    return acc + magnitude(a - b);
  }
};
struct magnitudes {
  template <class V>
  V operator()(V acc, V a, V) const {
    return acc + magnitude(a);
  }
};
template <class Enter>
constexpr bool takes_two = true;
template <>
constexpr bool takes_two<magnitudes> = false;

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
