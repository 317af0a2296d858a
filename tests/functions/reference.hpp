// reference.hpp - what lockstep_map must give, by libm's doubles and, near the middle of two results, by MPFR's 200 and
// more binary digits. Shares nothing with lib/bits/functions.hpp but the functions' names.
#pragma once

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace reference {

enum function { exp, expm1, log, log1p, sqrt, rsqrt, reciprocal, tanh, sigmoid, silu, gelu, gelu_tanh, erf, softplus };

// Within `margin` units in the last place of a double; where the value is far beyond the range of f32, any such.
constexpr int64_t margin = 8192;
inline double rough(int f, double x) {
  switch (f) {
    case exp: return std::exp(x);
    case expm1: return std::expm1(x);
    case log: return std::log(x);
    case log1p: return std::log1p(x);
    case sqrt: return std::sqrt(x);
    case rsqrt: return 1 / std::sqrt(x);
    case reciprocal: return 1 / x;
    case tanh: return std::tanh(x);
    case sigmoid: return 1 / (1 + std::exp(-x));
    case silu: return x == -HUGE_VAL ? -0.0 : x / (1 + std::exp(-x));
    case gelu: return x == -HUGE_VAL ? -0.0 : 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2);
    case gelu_tanh: {
      if (x < -1e6) return -0.0;
      const double u = 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
      return x / (1 + std::exp(-u));
    }
    case erf: return std::erf(x);
    default: return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
  }
}

// Values by MPFR, x finite and in the function's domain.
class exact {
 public:
  explicit exact(int digits = 400) {
    for (auto* v : {&y_, &t_, &u_}) mpfr_init2(*v, digits);
  }
  ~exact() {
    for (auto* v : {&y_, &t_, &u_}) mpfr_clear(*v);
  }
  exact(const exact&) = delete;
  exact& operator=(const exact&) = delete;

  // The sign of f(x) - y.
  int against(int f, double x, double y) {
    // From here on these differ from x by less than the digits show.
    if (x > (f == silu ? 100 : 12) && (f == silu || f == gelu || f == gelu_tanh)) return x > y ? 1 : -1;
    if (x > 100 && f == softplus) return x >= y ? 1 : -1;
    compute(f, x);
    return mpfr_cmp_d(y_, y);
  }

 private:
  void one_plus_exp_minus() {  // y_ = 1 + exp(-u_)
    mpfr_neg(t_, u_, MPFR_RNDN);
    mpfr_exp(t_, t_, MPFR_RNDN);
    mpfr_add_ui(y_, t_, 1, MPFR_RNDN);
  }
  void compute(int f, double x) {
    const auto n = MPFR_RNDN;
    mpfr_set_d(u_, x, n);
    switch (f) {
      case exp: mpfr_exp(y_, u_, n); return;
      case expm1: mpfr_expm1(y_, u_, n); return;
      case log: mpfr_log(y_, u_, n); return;
      case log1p: mpfr_log1p(y_, u_, n); return;
      case sqrt: mpfr_sqrt(y_, u_, n); return;
      case rsqrt: mpfr_rec_sqrt(y_, u_, n); return;
      case reciprocal: mpfr_ui_div(y_, 1, u_, n); return;
      case tanh: mpfr_tanh(y_, u_, n); return;
      case erf: mpfr_erf(y_, u_, n); return;
      case sigmoid:
        one_plus_exp_minus();
        mpfr_ui_div(y_, 1, y_, n);
        return;
      case silu:
        one_plus_exp_minus();
        mpfr_div(y_, u_, y_, n);
        return;
      case gelu:  // x erfc(-x / sqrt(2)) / 2
        mpfr_set_d(t_, 0.5, n);
        mpfr_sqrt(t_, t_, n);
        mpfr_mul_d(t_, t_, -x, n);
        mpfr_erfc(y_, t_, n);
        mpfr_mul_d(y_, y_, 0.5 * x, n);
        return;
      case gelu_tanh:  // x / (1 + exp(-u)), u = 2 sqrt(2 / pi) (x + 44715 x^3 / 10^6)
        mpfr_sqr(t_, u_, n);
        mpfr_mul(t_, t_, u_, n);
        mpfr_mul_ui(t_, t_, 44715, n);
        mpfr_div_ui(t_, t_, 1000000, n);
        mpfr_add(u_, u_, t_, n);
        mpfr_const_pi(t_, n);
        mpfr_ui_div(t_, 8, t_, n);
        mpfr_sqrt(t_, t_, n);
        mpfr_mul(u_, u_, t_, n);
        one_plus_exp_minus();
        mpfr_d_div(y_, x, y_, n);
        return;
      default:  // log1p(exp(x))
        mpfr_exp(t_, u_, n);
        mpfr_log1p(y_, t_, n);
    }
  }
  mpfr_t y_, t_, u_;
};

// A float type of `digits` significant bits, whose least normal number is 2^least.
struct format {
  const char* name;
  int digits, least;
};
constexpr format formats[] = {{"f16", 11, -14}, {"bf16", 8, -126}, {"f32", 24, -126}};

// Whether y is the middle of two neighbouring numbers of the type, the least infinite power of two being one of them.
inline bool middle(const format& to, double y) {
  const int exponent = std::max(std::ilogb(y), to.least);
  if (exponent > (to.digits == 11 ? 15 : 127)) return false;
  const double halves = std::ldexp(y, to.digits - exponent);
  return halves == std::floor(halves) && std::fmod(halves, 2) != 0;
}

}  // namespace reference
