// functions.hpp - the functions of lockstep_map as programs in double, the same source for every instruction set, GPUs
// and ref, so that all have the same bits. exp_of and log_of are also E and L of normalize's kinds from SOFTMAX on:
// their bits are part of order id 1 and never change.
//
// A program takes an f16, bf16 or f32 held by a double, and is within about two units in the last place of the exact
// value. Rounded once to f32, f16 or bf16 the result is the correctly rounded one, because hardly any argument has its
// value so close to the middle of two results. Where some have, the program says how they are decided:
//   - for an argument near 0 or far out the value is an exact number plus a trace of known sign; the number is moved
//     by its last bit to that side, so that it is no middle any more;
//   - a few other arguments are named with their results.
// tests/functions compares each argument with 200 binary digits where doubles do not decide.
//
// Operations are fused only where the source says fma. Coefficients: minimax and Chebyshev fits made for these ranges.
#pragma once

#include <math.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define LOCKSTEP_PROGRAM __host__ __device__ __forceinline__
#else
#define LOCKSTEP_PROGRAM inline __attribute__((always_inline))
#endif

namespace lockstep::functions {

// As lockstep_function; ops/map.cpp asserts it.
enum function {
  exp,
  expm1,
  log,
  log1p,
  sqrt,
  rsqrt,
  reciprocal,
  tanh,
  sigmoid,
  silu,
  gelu,
  gelu_tanh,
  erf,
  softplus,
  count
};
inline constexpr const char* names[count] = {"exp",  "expm1",   "log",  "log1p", "sqrt",      "rsqrt", "reciprocal",
                                             "tanh", "sigmoid", "silu", "gelu",  "gelu_tanh", "erf",   "softplus"};

// What the programs are written in, here for one double: a vector of doubles has the same (isa/functions.cpp). For
// both, `condition ? a : b` chooses lane by lane, so both sides are always computed.
struct scalar {
  using real = double;
  using bits = uint64_t;
  static constexpr bool usual = false;
  LOCKSTEP_PROGRAM static real all(double x) { return x; }
  LOCKSTEP_PROGRAM static real fma(real a, real b, real c) { return ::fma(a, b, c); }
  LOCKSTEP_PROGRAM static real root(real x) { return ::sqrt(x); }
  LOCKSTEP_PROGRAM static bits bits_of(real x) {
    bits b;
    memcpy(&b, &x, sizeof b);
    return b;
  }
  LOCKSTEP_PROGRAM static real of_bits(bits b) {
    real x;
    memcpy(&x, &b, sizeof x);
    return x;
  }
};

// The same for arguments that is_usual names: what programs choose for all others is left out, bits are the same.
struct usual_scalar : scalar {
  static constexpr bool usual = true;
};
// Whether a float is far from the ends and exceptions of the function's program.
template <function f>
LOCKSTEP_PROGRAM bool is_usual(float x) {
  const float a = x < 0.0f ? -x : x;
  if constexpr (f == exp) return a <= 88.0f;
  if constexpr (f == expm1) return a >= 0x1p-40f && a <= 60.0f;
  if constexpr (f == log) return x > 0.0f && x < HUGE_VALF;
  if constexpr (f == log1p) return a >= 0x1p-40f && x > -1.0f && x < HUGE_VALF;
  if constexpr (f == tanh) return a >= 0x1p-20f && a <= 20.0f;
  if constexpr (f == sigmoid) return a >= 0x1p-12f && a <= 88.0f && x != -0x1.250c02p-10f;
  if constexpr (f == silu) return a >= 0x1p-40f && a <= 30.0f;
  if constexpr (f == gelu) return a >= 0x1p-40f && a <= 7.5f && a != 0x1.6148dep-16f;
  if constexpr (f == gelu_tanh) return a >= 0x1p-40f && a <= 6.5f && x != -0x1.6148dep-16f;
  if constexpr (f == erf) return a <= 7.0f;
  if constexpr (f == softplus) return a <= 30.0f && x != 0x1.d483ap-12f;
  return true;
}

template <class M>
struct programs {
  using D = typename M::real;
  using B = typename M::bits;

  // condition ? special : y, where a usual argument never meets the condition, and condition ? y : special, where it
  // always does.
  template <class C>
  LOCKSTEP_PROGRAM static D unless(C condition, D special, D y) {
    if constexpr (M::usual)
      return y;
    else
      return condition ? special : y;
  }
  template <class C>
  LOCKSTEP_PROGRAM static D usually(C condition, D y, D special) {
    if constexpr (M::usual)
      return y;
    else
      return condition ? y : special;
  }

  LOCKSTEP_PROGRAM static D magnitude(D x) { return M::of_bits(M::bits_of(x) & ~(uint64_t{1} << 63)); }
  // y, not 0, moved by its last bit: up for a positive x, else down; and the other way.
  LOCKSTEP_PROGRAM static D moved(D y, bool up) { return y * (up ? 1 + 0x1p-52 : 1 - 0x1p-53); }
  LOCKSTEP_PROGRAM static D larger_for_positive(D y, D x) { return x > 0.0 ? moved(y, true) : moved(y, false); }
  LOCKSTEP_PROGRAM static D smaller_for_positive(D y, D x) { return x > 0.0 ? moved(y, false) : moved(y, true); }
  // large + small, |large| >= |small|. If that is a middle of two results, it is moved to the side of what was cut off.
  LOCKSTEP_PROGRAM static D off_the_middle(D large, D small) {
    const D y = large + small, cut = small - (y - large);
    const D beside = cut * y > 0.0 ? moved(y, true) : moved(y, false);
    const D side = cut == 0.0 ? y : beside;
    return (M::bits_of(y) & 0xFFFFFFFu) == 0u ? side : y;
  }

  // x * y cut off, its last bit set where anything was cut: rounded to a shorter type it gives the exact product's
  // rounding. Products too large or too small for a double are what they are there.
  LOCKSTEP_PROGRAM static D product_to_odd(D x, D y) {
    const D near = x * y, rest = M::fma(x, y, -near), size = magnitude(rest);
    const B beyond = (M::bits_of(near) ^ M::bits_of(rest)) >> 63;  // 1: the exact product is nearer to 0
    const D odd = M::of_bits((M::bits_of(near) - beyond) | 1u);
    const D finite = size < HUGE_VAL ? odd : near;
    return size > 0.0 ? finite : near;
  }

  // ---- exponentials -------------------------------------------------------
  // x = k ln2 + r, |r| <= ln2 / 2; `below` is added to r. shifted holds k in its low bits.
  struct reduced {
    D shifted, r;
  };
  LOCKSTEP_PROGRAM static reduced reduce(D x) {
    const D shifted = M::fma(x, M::all(0x1.71547652b82fep+0), M::all(0x1.8p52));
    const D k = shifted - 0x1.8p52;
    const D r = M::fma(k, M::all(-0x1.62e42fefa39efp-1), x);
    return {shifted, M::fma(k, M::all(-0x1.abc9e3b39803fp-56), r)};
  }
  // (exp(r) - 1 - r) / r^2.
  LOCKSTEP_PROGRAM static D exp_tail(D r) {
    D q = M::all(0x1.ad8d55a54a7bdp-26);
    q = M::fma(q, r, M::all(0x1.28ae3c99da451p-22));
    q = M::fma(q, r, M::all(0x1.71df1d1476cecp-19));
    q = M::fma(q, r, M::all(0x1.a01999231b74ap-16));
    q = M::fma(q, r, M::all(0x1.a01a012dcb964p-13));
    q = M::fma(q, r, M::all(0x1.6c16c18488a72p-10));
    q = M::fma(q, r, M::all(0x1.111111112725dp-7));
    q = M::fma(q, r, M::all(0x1.5555555550689p-5));
    q = M::fma(q, r, M::all(0x1.55555555554fcp-3));
    return M::fma(q, r, M::all(0x1.000000000000ap-1));
  }
  // exp(x + below), a `below` of the size of x's last bit; 0 below -708 and infinity above 709.
  LOCKSTEP_PROGRAM static D exp_of(D x, D below) {
    D within = unless(x < -708.0, M::all(-708), x);
    within = unless(within > 709.0, M::all(709), within);
    reduced a = reduce(within);
    a.r = a.r + below;
    const D y = M::fma(a.r, M::fma(a.r, exp_tail(a.r), M::all(1)), M::all(1));
    D scaled = M::of_bits(M::bits_of(y) + (M::bits_of(a.shifted) << 52));
    scaled = unless(x < -708.0, M::all(0), scaled);
    scaled = unless(x > 709.0, M::all(HUGE_VAL), scaled);
    return usually(x == x, scaled, x);
  }
  LOCKSTEP_PROGRAM static D exp_of(D x) { return exp_of(x, M::all(-0.0)); }
  // exp_of(x) of an x from -708 to 0, by fewer steps.
  LOCKSTEP_PROGRAM static D exp_within(D x) {
    const reduced a = reduce(x);
    const D y = M::fma(a.r, M::fma(a.r, exp_tail(a.r), M::all(1)), M::all(1));
    return M::of_bits(M::bits_of(y) + (M::bits_of(a.shifted) << 52));
  }
  // The same of any x that is 0 or less and no NaN.
  LOCKSTEP_PROGRAM static D exp_below(D x) {
    const D scaled = exp_within(x < -708.0 ? M::all(-708) : x);
    return x < -708.0 ? M::all(0) : scaled;
  }
  LOCKSTEP_PROGRAM static D expm1_of(D x) {
    D within = unless(x < -60.0, M::all(-60), x);
    within = unless(within > 708.0, M::all(708), within);
    const reduced a = reduce(within);
    const D p = M::fma(a.r * a.r, exp_tail(a.r), a.r);
    const D power = M::of_bits((M::bits_of(a.shifted) << 52) + 0x3FF0000000000000u);
    D y = M::fma(power, p, power - 1.0);
    y = unless(x > 708.0, M::all(HUGE_VAL), y);
    return usually(x == x, y, x);
  }

  // ---- logarithms ---------------------------------------------------------
  // u = 2^k (1 + f), 1 + f from sqrt(1/2) to sqrt(2); u is normal and positive.
  struct parts {
    D k, f;
  };
  LOCKSTEP_PROGRAM static parts split(D u) {
    const B biased = (M::bits_of(u) + (0x3FF0000000000000u - 0x3FE6A09E667F3BCDu)) >> 52;
    const D k = M::of_bits(biased | 0x4330000000000000u) - (0x1p52 + 1023);
    return {k, M::of_bits(M::bits_of(u) - ((biased - 1023u) << 52)) - 1.0};
  }
  // k ln2 + log(1 + f) + below, by s = f / (2 + f): log(1 + f) = f - (h - s (h + R(s^2))), h = f^2 / 2.
  struct two_parts {
    D large, small;
  };
  LOCKSTEP_PROGRAM static two_parts log_of_parts(D k, D f, D below) {
    const D s = f / (f + 2.0), z = s * s, h = 0.5 * f * f;
    D R = M::all(0x1.2b7d1f0990b77p-3);
    R = M::fma(R, z, M::all(0x1.39fb717e4f952p-3));
    R = M::fma(R, z, M::all(0x1.7462caadf34ccp-3));
    R = M::fma(R, z, M::all(0x1.c71c629bb2debp-3));
    R = M::fma(R, z, M::all(0x1.2492492e25b5ap-2));
    R = M::fma(R, z, M::all(0x1.9999999995184p-2));
    R = M::fma(R, z, M::all(0x1.5555555555558p-1));
    const D t = M::fma(s, M::fma(R, z, h), k * 0x1.ef35793c76730p-45);
    const D high = k * 0x1.62e42fefa3800p-1;  // exact
    const D sum = high + f, lost = f - (sum - high);
    return {sum, lost - (h - (t + below))};
  }
  LOCKSTEP_PROGRAM static D log_of(D x) {
    const parts p = split(x);
    const two_parts l = log_of_parts(p.k, p.f, M::all(-0.0));
    const D y = usually(x < HUGE_VAL, l.large + l.small, x);
    const D none = x == 0.0 ? M::all(-HUGE_VAL) : M::all(__builtin_nan(""));
    return usually(x > 0.0, y, none);
  }
  LOCKSTEP_PROGRAM static D log1p_of(D x) {
    const D u = x + 1.0;
    const parts p = split(u);
    const two_parts l = log_of_parts(p.k, p.k == 0.0 ? x : p.f, M::all(-0.0));
    D y = off_the_middle(l.large, l.small);
    y = unless(magnitude(x) < 0x1p-40, smaller_for_positive(x, x), y);
    y = usually(x < HUGE_VAL, y, x);
    const D none = x == -1.0 ? M::all(-HUGE_VAL) : M::all(__builtin_nan(""));
    return usually(x > -1.0, y, none);
  }

  // ---- around the normal distribution -------------------------------------
  // The share of the standard normal distribution beyond a, 0 <= a <= 38: exp(-a^2 / 2) P(t) / (1 + a), t = (a - 6) /
  // (a + 6); square is a^2.
  LOCKSTEP_PROGRAM static D beyond(D a, D square) {
    const D t = (a - 6.0) / (a + 6.0);
    D P = M::all(0x1.ac9543f3ae29bp-30);
    P = M::fma(P, t, M::all(0x1.907d0a01287ebp-29));
    P = M::fma(P, t, M::all(-0x1.0c954ccaaaa82p-26));
    P = M::fma(P, t, M::all(-0x1.56b8ca022d3c8p-26));
    P = M::fma(P, t, M::all(0x1.1c53e0cc3c7d1p-23));
    P = M::fma(P, t, M::all(-0x1.1ddee4c4081b2p-31));
    P = M::fma(P, t, M::all(-0x1.0c577d91e04e1p-20));
    P = M::fma(P, t, M::all(0x1.deda82f98321cp-20));
    P = M::fma(P, t, M::all(0x1.281d60d7118aep-18));
    P = M::fma(P, t, M::all(-0x1.ba230dc05e9b3p-16));
    P = M::fma(P, t, M::all(0x1.3d0be2a4ebe87p-15));
    P = M::fma(P, t, M::all(0x1.f52d0bbaf8427p-14));
    P = M::fma(P, t, M::all(-0x1.c79a7d24b325dp-11));
    P = M::fma(P, t, M::all(0x1.80c840e0ecf49p-9));
    P = M::fma(P, t, M::all(-0x1.ceac1d889384cp-8));
    P = M::fma(P, t, M::all(0x1.b212c02878d22p-7));
    P = M::fma(P, t, M::all(-0x1.43da9f739c75bp-6));
    P = M::fma(P, t, M::all(0x1.7227accaeb3c3p-6));
    P = M::fma(P, t, M::all(-0x1.08766e432d0cfp-6));
    P = M::fma(P, t, M::all(-0x1.1e9d4130ecb2ep-8));
    P = M::fma(P, t, M::all(0x1.46229bd016ffep-5));
    P = M::fma(P, t, M::all(-0x1.5c438de6f0fe7p-4));
    P = M::fma(P, t, M::all(0x1.d0568f5d76666p-2));
    return exp_of(-0.5 * square) * P / (a + 1.0);
  }
  LOCKSTEP_PROGRAM static D erf_of(D x) {
    const D a = magnitude(x), within = unless(a > 7.0, M::all(7), a), square = within * within;
    D y = 1.0 - 2.0 * beyond(within * 0x1.6a09e667f3bcdp+0, 2.0 * square);
    y = x < 0.0 ? -y : y;
    D P = M::all(-0x1.d00a2691c511bp-24);
    P = M::fma(P, square, M::all(0x1.aacdf52f37044p-20));
    P = M::fma(P, square, M::all(-0x1.f3e8db077d9d8p-17));
    P = M::fma(P, square, M::all(0x1.f99b26554582cp-14));
    P = M::fma(P, square, M::all(-0x1.c02d899dd2bfep-11));
    P = M::fma(P, square, M::all(0x1.565bcc859a127p-8));
    P = M::fma(P, square, M::all(-0x1.b82ce3107f376p-6));
    P = M::fma(P, square, M::all(0x1.ce2f21a03e85ap-4));
    P = M::fma(P, square, M::all(-0x1.812746b0379a7p-2));
    P = M::fma(P, square, M::all(0x1.20dd750429b6dp+0));
    y = a < 0.5 ? x * P : y;
    return usually(x == x, y, x);
  }
  // Arguments are held where the tail counts as 0, so that an infinity times 0 is not asked for.
  LOCKSTEP_PROGRAM static D gelu_of(D x) {
    const D held = unless(x < -38.0, M::all(-38), x), a = magnitude(held), within = unless(a > 38.0, M::all(38), a);
    const D tail = beyond(within, within * within);
    const D y = unit_tails(x, held * (x < 0.0 ? tail : 1.0 - tail), 7.5);
    return unless(a == 0x1.6148dep-16, smaller_for_positive(y, x), y);  // else middles of two f32
  }
  // Units that are x / 2 near 0 and x from `from` on, but for a trace.
  LOCKSTEP_PROGRAM static D unit_tails(D x, D y, double from) {
    y = unless(magnitude(x) < 0x1p-40, larger_for_positive(0.5 * x, x), y);
    y = unless(x > from, moved(x, false), y);
    return usually(x == x, y, x);
  }
  // x / (1 + exp(-u)), u = 2 sqrt(2 / pi) (x + 0.044715 x^3) in two parts.
  LOCKSTEP_PROGRAM static D gelu_tanh_of(D x) {
    D held = unless(x < -22.0, M::all(-22), x);
    held = unless(held > 22.0, M::all(22), held);
    const D linear = M::all(0x1.9884533d43651p+0), cubic = M::all(0x1.2444f2a4d8b4bp-4);
    const D square = held * held, h = cubic * square, sum = linear + h, back = sum - linear;
    D low = M::fma(cubic, square, -h) + square * -0x1.6c843a29d1c70p-61;
    low = low + (((linear - (sum - back)) + (h - back)) + -0x1.cbc0d30ebfd15p-54);
    const D u = sum * held, rest = M::fma(sum, held, -u) + low * held;
    const D y = unit_tails(x, held / (exp_of(-u, -rest) + 1.0), 6.5);
    return unless(x == -0x1.6148dep-16, moved(y, true), y);  // else a middle of two f32
  }
  LOCKSTEP_PROGRAM static D silu_of(D x) {
    const D held = unless(x < -1000.0, M::all(-1000), x);
    return unit_tails(x, held / (exp_of(-x) + 1.0), 30);
  }
  LOCKSTEP_PROGRAM static D sigmoid_of(D x) {
    D y = 1.0 / (exp_of(-x) + 1.0);
    y = unless(x == -0x1.250c02p-10, moved(y, true), y);  // else a middle of two f32
    y = unless(magnitude(x) < 0x1p-12, smaller_for_positive(0.25 * x + 0.5, x), y);
    return unless(x == 0.0, M::all(0.5), y);
  }
  LOCKSTEP_PROGRAM static D tanh_of(D x) {
    D twice = unless(x < -40.0, M::all(-80), x + x);
    twice = unless(x > 40.0, M::all(80), twice);
    const D e = expm1_of(twice), y = e / (e + 2.0);
    return unless(magnitude(x) < 0x1p-20, moved(x, false), y);
  }
  LOCKSTEP_PROGRAM static D softplus_of(D x) {
    const D t = exp_of(-magnitude(x)), u = t + 1.0, cut = t - (u - 1.0);
    const parts p = split(u);
    // What u cut off matters by about 0.6 of itself where k is 1.
    const two_parts parts = log_of_parts(p.k, p.k == 0.0 ? t : p.f, p.k == 0.0 ? M::all(-0.0) : cut * 0.6);
    const D l = parts.large + parts.small;
    D y = x > 0.0 ? x + l : l;
    y = unless(x == 0x1.d483ap-12, moved(y, true), y);  // else a middle of two f32
    y = unless(x > 30.0, moved(x, true), y);
    return usually(x == x, y, x);
  }

  template <function f>
  LOCKSTEP_PROGRAM static D apply(D x) {
    if constexpr (f == exp) return exp_of(x);
    if constexpr (f == expm1) {
      const D y = expm1_of(x);
      return unless(magnitude(x) < 0x1p-40, larger_for_positive(x, x), y);
    }
    if constexpr (f == log) return log_of(x);
    if constexpr (f == log1p) return log1p_of(x);
    if constexpr (f == sqrt) return M::root(x);
    if constexpr (f == rsqrt) return 1.0 / M::root(x);
    if constexpr (f == reciprocal) return 1.0 / x;
    if constexpr (f == tanh) return tanh_of(x);
    if constexpr (f == sigmoid) return sigmoid_of(x);
    if constexpr (f == silu) return silu_of(x);
    if constexpr (f == gelu) return gelu_of(x);
    if constexpr (f == gelu_tanh) return gelu_tanh_of(x);
    if constexpr (f == erf) return erf_of(x);
    if constexpr (f == softplus) return softplus_of(x);
  }
};

// The program of a function that is known only when the call runs, for one double.
LOCKSTEP_PROGRAM double apply(int f, double x) {
  using P = programs<scalar>;
  switch (f) {
    case exp: return P::apply<exp>(x);
    case expm1: return P::apply<expm1>(x);
    case log: return P::apply<log>(x);
    case log1p: return P::apply<log1p>(x);
    case sqrt: return P::apply<sqrt>(x);
    case rsqrt: return P::apply<rsqrt>(x);
    case reciprocal: return P::apply<reciprocal>(x);
    case tanh: return P::apply<tanh>(x);
    case sigmoid: return P::apply<sigmoid>(x);
    case silu: return P::apply<silu>(x);
    case gelu: return P::apply<gelu>(x);
    case gelu_tanh: return P::apply<gelu_tanh>(x);
    case erf: return P::apply<erf>(x);
    default: return P::apply<softplus>(x);
  }
}

}  // namespace lockstep::functions
