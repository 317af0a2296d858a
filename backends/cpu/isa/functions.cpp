// functions.cpp - functions of doubles in place, for map; exponentials of rows, for softmax and its kin.
// Idea    The programs of lib/bits/functions.hpp, a vector of doubles at a time. Elements of other types are widened
//         before and rounded after by convert's kernels, so that a function is compiled once and not for each pair of
//         types.
// Moves   each double in and out once, in the L1
// Limit   fused multiply-adds: 16 to 45 per element
// Watch   the baseline has no fused multiply-add and calls the C library's, which is slow but gives the same bits
// Source  lib/bits/functions.hpp
#include "bits/functions.hpp"

#include "../convert_kernels.hpp"
#include "results.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

struct lanes {
  using real = vd;
  using bits = vu;
  static constexpr bool usual = false;
  LOCKSTEP_PROGRAM static vd all(double x) { return splat(x); }
  LOCKSTEP_PROGRAM static vd fma(vd a, vd b, vd c) {
#if defined(LOCKSTEP_ISA_AVX512)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(LOCKSTEP_ISA_AVX2)
    return _mm256_fmadd_pd(a, b, c);
#else
    return vd{__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
#endif
  }
  LOCKSTEP_PROGRAM static vd root(vd x) {
#if defined(LOCKSTEP_ISA_AVX512)
    return _mm512_maskz_sqrt_pd(0xFF, x);
#elif defined(LOCKSTEP_ISA_AVX2)
    return _mm256_sqrt_pd(x);
#else
    return vd{__builtin_sqrt(x[0]), __builtin_sqrt(x[1])};
#endif
  }
  LOCKSTEP_PROGRAM static vu bits_of(vd x) { return reinterpret_cast<vu>(x); }
  LOCKSTEP_PROGRAM static vd of_bits(vu x) { return reinterpret_cast<vd>(x); }
};

template <functions::function f>
void apply(double* x, int64_t n) {
  for (int64_t i = 0; i < n; i += W) {
    vd v;
    memcpy(&v, x + i, sizeof v);
    v = functions::programs<lanes>::apply<f>(v);
    memcpy(x + i, &v, sizeof v);
  }
}

void products(double* x, const double* by, int64_t n, double scale) {
  const vd s = splat(scale);
  for (int64_t i = 0; i < n; i += W) {
    vd v, b;
    memcpy(&v, x + i, sizeof v);
    memcpy(&b, by + i, sizeof b);
    v = functions::programs<lanes>::product_to_odd(v * s, b);
    memcpy(x + i, &v, sizeof v);
  }
}

// to[i] = of((x[i] - centre) * scale).
template <class E, class Of>
inline void each(const void* x, int64_t n, double centre, double scale, double* to, const Of& of) {
  const auto* p = static_cast<const typename E::type*>(x);
  const vd m = splat(centre), s = splat(scale);
  int64_t i = 0;
#pragma GCC unroll 2
  for (; i + W <= n; i += W) {
    const vd y = of((E::load(p + i) - m) * s);
    memcpy(to + i, &y, sizeof y);
  }
  if (i == n) return;
  const vd y = of((load_few<E>(p + i, n - i) - m) * s);
  memcpy(to + i, &y, sizeof y);
}
bool any_below(vd x, double limit) {
#if defined(LOCKSTEP_ISA_AVX512)
  return _mm512_cmp_pd_mask(x, splat(limit), _CMP_LT_OQ) != 0;
#else
  bool any = false;
  for (int j = 0; j < W; ++j) any = any || x[j] < limit;
  return any;
#endif
}
// The whole blocks of `each` vectors whose exponentials are all normal numbers, which need no choice for each lane:
// how many elements they are.
template <class E, bool scales>
int64_t exponentials_within(const typename E::type* p, int64_t n, double centre, double scale, double* to) {
  constexpr int64_t each = 8;
  const vd m = splat(centre), s = splat(scale);
  int64_t i = 0;
  for (; i + each * W <= n; i += each * W) {
    vd least = splat(0);
#pragma GCC unroll 2
    for (int64_t k = 0; k < each * W; k += W) {
      vd d = E::load(p + i + k) - m;
      if (scales) d = d * s;
      least = d < least ? d : least;
      const vd y = functions::programs<lanes>::exp_within(d);
      memcpy(to + i + k, &y, sizeof y);
    }
    if (any_below(least, -708)) break;
  }
  return i;
}
template <class E>
void exponentials(const void* x, int64_t n, double centre, double scale, double* to) {
  const auto* p = static_cast<const typename E::type*>(x);
  const int64_t done = scale == 1 ? exponentials_within<E, false>(p, n, centre, scale, to)
                                  : exponentials_within<E, true>(p, n, centre, scale, to);
  each<E>(p + done, n - done, centre, scale, to + done, [](vd d) { return functions::programs<lanes>::exp_below(d); });
}
template <class E>
void differences(const void* x, int64_t n, double centre, double scale, double less, double* to) {
  each<E>(x, n, centre, scale, to, [l = splat(less)](vd d) { return d - l; });
}

typedef f16_element A;
typedef bf16_element B;
typedef f32_element C;
typedef f64_element D;
}  // namespace

extern const function_kernels functions_of_table;
const function_kernels functions_of_table = {
    {apply<functions::exp>, apply<functions::expm1>, apply<functions::log>, apply<functions::log1p>,
     apply<functions::sqrt>, apply<functions::rsqrt>, apply<functions::reciprocal>, apply<functions::tanh>,
     apply<functions::sigmoid>, apply<functions::silu>, apply<functions::gelu>, apply<functions::gelu_tanh>,
     apply<functions::erf>, apply<functions::softplus>},
    products,
    {exponentials<A>, exponentials<B>, exponentials<C>, exponentials<D>},
    {differences<A>, differences<B>, differences<C>, differences<D>}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
