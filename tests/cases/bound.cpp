// bound.cpp - the error bound for variants with an order of their own, computed from the data
// and not tuned.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runner.hpp"
#include "text.hpp"

namespace lockstep::cases {
namespace {

double value_at(const unsigned char* p, bool f32) {
  if (!f32) {
    double v;
    std::memcpy(&v, p, 8);
    return v;
  }
  float v;
  std::memcpy(&v, p, 4);
  return v;
}

// The same case with |x| for x and |c| (or 1) for c: its result is sum |c x|.
subject of_magnitudes(const subject& s, bool plain = false) {
  subject m = s;
  const size_t bytes = s.c.src.element_bytes;
  for (size_t i = bytes - 1; i < m.src.size(); i += bytes) m.src[i] &= 0x7F;  // little-endian sign bit
  for (double& c : m.c.coefficients) c = plain ? 1.0 : std::fabs(c);
  if (m.c.stencil.form == LOCKSTEP_ANTISYMMETRIC) m.c.stencil.form = LOCKSTEP_SYMMETRIC;
  m.c.stencil.value = std::fabs(m.c.stencil.value);
  m.c.reduce.result = s.c.op == LOCKSTEP_STENCIL ? s.c.reduce.result : LOCKSTEP_F64;
  m.c.dst.element_bytes = s.c.op == LOCKSTEP_STENCIL ? bytes : 8;
  m.after.assign(m.c.dst.span_bytes(), 0);
  m.want = oracle(m.c, m.src.data(), m.after.data());
  return m;
}

}  // namespace

std::string outside_bound(const subject& s, const unsigned char* got) {
  const test_case& c = s.c;
  const bool stencil = c.op == LOCKSTEP_STENCIL;
  const bool sum = (c.op == LOCKSTEP_REDUCE && c.reduce.reduction == LOCKSTEP_SUM) || c.op == LOCKSTEP_SQUARE_SUM;
  const bool integer = lockstep_dtype_kind(static_cast<lockstep_dtype>(c.dtype)) != 'f';
  const bool exact = !stencil && (!sum || integer || c.dst.element_bytes == 2);  // no such row rounds to 16 bits
  if (exact)
    return s.after.empty() || std::memcmp(got, s.after.data(), s.after.size()) == 0
               ? ""
               : "dst differs from the exact result; ";
  if (s.after.empty()) return "";
  const subject magnitudes = of_magnitudes(s);
  // The folded form adds two elements before it weighs them: that sum may overflow
  // where no product does.
  const subject pairs = stencil ? of_magnitudes(s, true) : magnitudes;
  const bool f32 = c.dst.element_bytes == 4;
  const bool m32 = magnitudes.c.dst.element_bytes == 4;
  const double unit = f32 ? 0x1p-24 : 0x1p-53;
  int64_t longest = c.reduce.length;
  for (size_t i = 1; i < c.offsets.size(); ++i) longest = std::max(longest, c.offsets[i] - c.offsets[i - 1]);
  const double taps = 2.0 * c.stencil.radius * c.stencil.rank + 1;
  double least = 1.0;  // the folded form adds two x before it weighs them
  for (const double coefficient : c.coefficients)
    if (coefficient != 0.0) least = std::min(least, std::fabs(coefficient));
  const double largest = f32 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  const size_t bytes = c.dst.element_bytes, count = s.after.size() / bytes;
  for (size_t i = 0; i < count; ++i) {
    const double want = value_at(s.after.data() + i * bytes, f32), is = value_at(got + i * bytes, f32);
    if (std::memcmp(got + i * bytes, s.after.data() + i * bytes, bytes) == 0) continue;  // results and gaps alike
    const double magnitude = value_at(magnitudes.after.data() + i * magnitudes.c.dst.element_bytes, m32);
    if (stencil && !std::isfinite(value_at(pairs.after.data() + i * bytes, f32))) continue;
    // Both sides are off by at most n roundings of the partial sums: 2 n u sum|x|;
    // a sweep adds its own to what came in. An underflow costs half a denormal each.
    double allowed;
    if (stencil)
      allowed = 2 * (taps + 1) * c.stencil.sweeps * unit * magnitude * 1.01 +
                taps * c.stencil.sweeps * (f32 ? 0x1p-149 : 0x1p-1074);
    else if (c.reduce.reduction == LOCKSTEP_NORM2)
      allowed = 2 * (static_cast<double>(longest) * 0x1p-53 + 2 * unit) * std::fabs(want);
    else
      allowed = 2 * static_cast<double>(longest) * 0x1p-53 * magnitude + 2 * unit * std::fabs(want);
    const bool may_overflow = std::isinf(magnitude) || (stencil && magnitude / least > largest);
    if (may_overflow || !std::isfinite(magnitude) || !std::isfinite(want)) {
      if (std::isnan(want) != std::isnan(is) && !may_overflow)
        return format_text("element {} is {}, not {}; ", i, is, want);
      continue;  // where sums overflow on the way, another order may overflow elsewhere
    }
    if (!(std::fabs(is - want) <= allowed))
      return format_text("element {} is {:.17g}, {:.17g} expected, {:.3g} off where {:.3g} is the bound; ", i, is, want,
                         is - want, allowed);
  }
  return "";
}

}  // namespace lockstep::cases
