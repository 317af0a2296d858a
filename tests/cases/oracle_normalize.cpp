// oracle_normalize.cpp - an independent implementation of normalize: whole arrays of lanes, leaves and levels, and
// results rounded by trying both neighbours.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "cases.hpp"

namespace lockstep::cases {
namespace {

// A type of 16, 32 or 64 bits by its words.
struct type {
  int bytes, fraction;
  uint64_t sign() const { return uint64_t{1} << (8 * bytes - 1); }
  uint64_t infinity() const { return sign() - (uint64_t{1} << fraction); }
  double value(uint64_t word) const {  // of a word without its sign
    if (bytes == 8) return std::bit_cast<double>(word);
    if (word > infinity()) return std::nan("");
    if (bytes == 4) return std::bit_cast<float>(static_cast<uint32_t>(word));
    if (fraction == 7) return std::bit_cast<float>(static_cast<uint32_t>(word << 16));
    if (word == infinity()) return INFINITY;
    const int exponent = static_cast<int>(word >> 10);
    const double digits = static_cast<double>(word & 1023) + (exponent != 0 ? 1024 : 0);
    return digits * std::exp2(std::max(exponent, 1) - 25);
  }
  double load(const unsigned char* p, int64_t i) const {
    uint64_t word = 0;
    std::memcpy(&word, p + i * bytes, static_cast<size_t>(bytes));
    return (word & sign()) != 0 ? -value(word & ~sign()) : value(word);
  }
  // Halving finds the largest element that is not above |y|; then the nearer of it and the next, the even one of two.
  void store(unsigned char* p, int64_t i, double y) const {
    uint64_t word = infinity() | uint64_t{1} << (fraction - 1);
    if (!std::isnan(y)) {
      const double magnitude = std::fabs(y);
      uint64_t low = 0, high = infinity();
      while (high - low > 1) {
        const uint64_t middle = low + (high - low) / 2;
        (value(middle) <= magnitude ? low : high) = middle;
      }
      if (std::isinf(y)) low = infinity();
      word = low;
      if (bytes < 8 && low != infinity() && value(low) < magnitude) {
        // Infinity stands one step beyond the largest element.
        const double step = value(low) - (low != 0 ? value(low - 1) : 0);
        const double next = high == infinity() ? value(low) + step : value(high);
        const double below = magnitude - value(low), above = next - magnitude;
        if (above < below || (above == below && (low & 1) != 0)) word = high;
      }
      if (std::signbit(y)) word |= sign();
    }
    std::memcpy(p + i * bytes, &word, static_cast<size_t>(bytes));
  }
};
type type_of(int dtype) {
  switch (dtype) {
    case LOCKSTEP_F16: return {2, 10};
    case LOCKSTEP_BF16: return {2, 7};
    case LOCKSTEP_F32: return {4, 23};
    default: return {8, 52};
  }
}

}  // namespace

double float_element(int dtype, const unsigned char* p, int64_t i) { return type_of(dtype).load(p, i); }
void store_element(int dtype, unsigned char* p, int64_t i, double y) { type_of(dtype).store(p, i, y); }

namespace {

using doubles = std::vector<double>;

double of_lanes(std::array<double, 128> lane) {
  for (size_t half = 64; half > 0; half /= 2)
    for (size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
  return lane[0];
}
template <class Enter>
double of_leaf(const doubles& x, size_t begin, const Enter& enter) {
  std::array<double, 128> lane;
  lane.fill(-0.0);
  for (size_t i = begin; i < std::min(x.size(), begin + 2048); ++i) {
    double& mine = lane[(i - begin) % 128];
    mine = enter(mine, x[i]);
  }
  return of_lanes(lane);
}

struct piece {
  double count, sum, squares;
};
piece pieces(const doubles& x, bool about_the_mean) {
  std::vector<piece> level;
  for (size_t begin = 0; begin < x.size(); begin += 2048) {
    piece p{static_cast<double>(std::min<size_t>(2048, x.size() - begin)), 0, 0};
    p.sum = of_leaf(x, begin, [](double a, double v) { return a + v; });
    const double centre = about_the_mean ? p.sum / p.count : 0;
    p.squares = of_leaf(x, begin, [&](double a, double v) { return std::fma(v - centre, v - centre, a); });
    level.push_back(p);
  }
  for (; level.size() > 1;) {
    std::vector<piece> above;
    for (size_t i = 0; i + 1 < level.size(); i += 2) {
      const piece &a = level[i], &b = level[i + 1];
      piece joined{a.count + b.count, a.sum + b.sum, a.squares + b.squares};
      if (about_the_mean) {
        const double off = b.sum / b.count - a.sum / a.count;
        joined.squares += off * off * (b.count / joined.count * a.count);
      }
      above.push_back(joined);
    }
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level[0];
}

double norm(doubles x, bool f64) {
  double most = 0;
  bool finite = true;
  for (const double v : x) most = std::max(most, std::fabs(v)), finite = finite && std::isfinite(v);
  const double plain = pieces(x, false).squares;
  if (!f64 || !finite || most == 0 || (plain >= std::ldexp(1.0, -900) && !std::isinf(plain))) return std::sqrt(plain);
  const int e = std::max(std::ilogb(most), -1022);
  for (double& v : x) v = std::ldexp(v, -e);
  return std::ldexp(std::sqrt(pieces(x, false).squares), e);
}

// ---- exponentials -----------------------------------------------------------
// The two programs of order id 1, from their description (order.md).
double frozen_exp(double x) {
  if (std::isnan(x)) return x;
  if (x < -708) return 0;
  constexpr double tail[] = {0x1.000000000000ap-1,  0x1.55555555554fcp-3,  0x1.5555555550689p-5,  0x1.111111112725dp-7,
                             0x1.6c16c18488a72p-10, 0x1.a01a012dcb964p-13, 0x1.a01999231b74ap-16, 0x1.71df1d1476cecp-19,
                             0x1.28ae3c99da451p-22, 0x1.ad8d55a54a7bdp-26};
  const double k = std::nearbyint(std::fma(x, 0x1.71547652b82fep0, 0x1.8p52)) - 0x1.8p52;
  const double r = std::fma(k, -0x1.abc9e3b39803fp-56, std::fma(k, -0x1.62e42fefa39efp-1, x));
  double q = tail[9];
  for (int i = 8; i >= 0; --i) q = std::fma(q, r, tail[i]);
  return std::ldexp(std::fma(r, std::fma(r, q, 1), 1), static_cast<int>(k));
}
double frozen_log(double x) {  // 1 <= x < infinity
  if (std::isnan(x)) return x;
  constexpr double series[] = {0x1.5555555555558p-1, 0x1.9999999995184p-2, 0x1.2492492e25b5ap-2, 0x1.c71c629bb2debp-3,
                               0x1.7462caadf34ccp-3, 0x1.39fb717e4f952p-3, 0x1.2b7d1f0990b77p-3};
  int k = 0;
  double u = std::frexp(x, &k);
  if (u < 0x1.6a09e667f3bcdp-1) u *= 2, --k;
  const double f = u - 1, s = f / (f + 2), z = s * s, half = 0.5 * f * f;
  double R = series[6];
  for (int i = 5; i >= 0; --i) R = std::fma(R, z, series[i]);
  const double low = std::fma(s, std::fma(R, z, half), k * 0x1.ef35793c76730p-45);
  const double high = k * 0x1.62e42fefa3800p-1, sum = high + f, lost = f - (sum - high);
  return sum + (lost - (half - low));
}
// The results of a row: one or all.
doubles of_exponentials(const lockstep_normalize_desc& d, const doubles& h, int64_t label, const double* given) {
  double m = h[0];
  for (const double x : h) m = std::isnan(m) || std::isnan(x) ? NAN : d.scale > 0 ? std::max(m, x) : std::min(m, x);
  if (given != nullptr) m = given[0];
  doubles below, e, y;
  for (const double x : h) below.push_back((x - m) * d.scale), e.push_back(frozen_exp(below.back()));
  const double sum = given != nullptr ? given[1] : pieces(e, false).sum, log = frozen_log(sum), inverse = 1 / sum;
  if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP) return {std::isinf(m) ? m * d.scale : m * d.scale + log};
  if (d.kind == LOCKSTEP_NORMALIZE_PICKED) return {below[static_cast<size_t>(label)] - log};
  for (size_t i = 0; i < h.size(); ++i)
    y.push_back(d.kind == LOCKSTEP_NORMALIZE_SOFTMAX ? e[i] * inverse : below[i] - log);
  return y;
}

}  // namespace

void oracle_moments(const std::vector<double>& x, bool f64, double& mean, double& squares) {
  const piece all = pieces(x, true);
  mean = all.sum / static_cast<double>(x.size()), squares = all.squares;
  if (!f64 || std::isinf(x[0]) || *std::min_element(x.begin(), x.end()) != *std::max_element(x.begin(), x.end()))
    return;
  for (const double v : x)
    if (std::isnan(v) || v == 0) return;
  mean = x[0], squares = 0;
}

namespace {

// ---- gradients ----------------------------------------------------------------
// The sum of products in order, by levels as everything here.
double of_products(const doubles& x, const doubles& y) {
  std::vector<double> level;
  for (size_t begin = 0; begin < x.size(); begin += 2048) {
    std::array<double, 128> lane;
    lane.fill(-0.0);
    for (size_t i = begin; i < std::min(x.size(), begin + 2048); ++i)
      lane[(i - begin) % 128] = std::fma(x[i], y[i], lane[(i - begin) % 128]);
    level.push_back(of_lanes(lane));
  }
  for (; level.size() > 1;) {
    std::vector<double> above;
    for (size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level[0];
}

struct rows_of_gradients {
  std::vector<doubles> g, t;
};
// One row of dst; g and t go to columns.
void of_gradients(const test_case& c, int64_t r, const doubles& h, rows_of_gradients& all, unsigned char* dst) {
  const lockstep_normalize_desc& d = c.normalize;
  const bool layer = d.kind == LOCKSTEP_NORMALIZE_LAYER_BACKWARD;
  const auto n = static_cast<double>(d.length);
  double mean = 0, squares = 0;
  if (layer)
    oracle_moments(h, d.dtype == LOCKSTEP_F64, mean, squares);
  else
    squares = pieces(h, false).squares;
  const double scale = 1.0 / std::sqrt(squares / n + d.eps);
  doubles g, t, u, off;
  for (size_t i = 0; i < h.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    g.push_back(type_of(d.dtype).load(c.gradient.data(), r * d.gradient_stride + at));
    u.push_back(c.weight.empty() ? g[i] : g[i] * type_of(d.weight_dtype).load(c.weight.data(), at));
    t.push_back((h[i] - mean) * scale);
    off.push_back(layer ? h[i] - h[0] : h[i]);
  }
  const double all_u = layer ? pieces(u, false).sum : 0, products = of_products(u, off);
  const double b = (layer ? std::fma(h[0] - mean, all_u, products) : products) * scale / n, a = all_u / n;
  for (size_t i = 0; i < h.size(); ++i)
    type_of(d.result).store(dst, r * d.dst_stride + static_cast<int64_t>(i), std::fma(-t[i], b, u[i] - a) * scale);
  all.g.push_back(g), all.t.push_back(t);
}
void of_columns(const test_case& c, const rows_of_gradients& all) {
  const type to = type_of(c.normalize.weight_dtype);
  for (size_t i = 0; i < static_cast<size_t>(c.normalize.length) && !all.g.empty(); ++i) {
    doubles g, t;
    for (size_t r = 0; r < all.g.size(); ++r) g.push_back(all.g[r][i]), t.push_back(all.t[r][i]);
    const auto at = static_cast<int64_t>(i);
    if (!c.weight_gradient.empty()) to.store(c.weight_gradient.data(), at, of_products(g, t));
    if (!c.bias_gradient.empty()) to.store(c.bias_gradient.data(), at, pieces(g, false).sum);
  }
}

}  // namespace

void oracle_normalize(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const lockstep_normalize_desc& d = c.normalize;
  const type from = type_of(d.dtype), to = type_of(d.result), weighs = type_of(d.weight_dtype);
  const bool f64 = d.dtype == LOCKSTEP_F64, segments = !c.offsets.empty();
  rows_of_gradients gradients;
  const int64_t inner = std::max<int64_t>(d.inner, 1);
  const auto place = [&](int64_t stride, int64_t r, int64_t i) { return r / inner * stride + i * inner + r % inner; };
  for (int64_t r = 0; r < d.count; ++r) {
    const int64_t begin = segments ? c.offsets[static_cast<size_t>(r)] : 0;
    const int64_t length = segments ? c.offsets[static_cast<size_t>(r) + 1] - begin : d.length;
    const auto n = static_cast<double>(length);
    if (length == 0) {
      if (segments && d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP) to.store(dst, r * d.dst_stride, -INFINITY);
      continue;
    }
    doubles h(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) {
      double& element = h[static_cast<size_t>(i)];
      element = from.load(src, segments ? begin + i : place(d.src_stride, r, i));
      if (c.residual.empty()) continue;
      unsigned char rounded[8];
      from.store(rounded, 0, element + from.load(c.residual.data(), place(d.residual_stride, r, i)));
      element = from.load(rounded, 0);
    }
    if (d.kind > LOCKSTEP_NORMALIZE_PICKED) {
      of_gradients(c, r, h, gradients, dst);
      continue;
    }
    if (d.kind >= LOCKSTEP_NORMALIZE_SOFTMAX) {
      int64_t label = 0;
      if (d.kind == LOCKSTEP_NORMALIZE_PICKED) std::memcpy(&label, c.weight.data() + r * 8, sizeof label);
      const doubles y = of_exponentials(d, h, label, c.given.empty() ? nullptr : c.given.data() + 2 * r);
      for (size_t i = 0; i < y.size(); ++i) {
        const auto k = static_cast<int64_t>(i);
        const bool one = d.kind >= LOCKSTEP_NORMALIZE_LOGSUMEXP;
        to.store(dst, one ? r * d.dst_stride : segments ? begin + k : place(d.dst_stride, r, k), y[i]);
      }
      continue;
    }
    double mean = 0, divisor;
    if (!c.given.empty()) {
      mean = c.given[2 * static_cast<size_t>(r)], divisor = c.given[2 * static_cast<size_t>(r) + 1];
    } else if (d.kind == LOCKSTEP_NORMALIZE_L2) {
      divisor = norm(h, f64);
      divisor = std::isnan(divisor) ? divisor : std::max(divisor, d.eps);
    } else {
      double squares = 0;
      if (d.kind == LOCKSTEP_NORMALIZE_LAYER)
        oracle_moments(h, f64, mean, squares);
      else
        squares = pieces(h, false).squares;
      divisor = std::sqrt(squares / n + d.eps);
    }
    const double times = 1.0 / divisor;
    for (int64_t i = 0; i < d.length; ++i) {
      const double off = h[static_cast<size_t>(i)] - mean;
      double y = f64 ? off / divisor : off * times;
      if (!c.weight.empty() && c.bias.empty()) y *= weighs.load(c.weight.data(), i);
      if (!c.bias.empty())
        y = c.weight.empty() ? y + weighs.load(c.bias.data(), i)
                             : std::fma(y, weighs.load(c.weight.data(), i), weighs.load(c.bias.data(), i));
      to.store(dst, place(d.dst_stride, r, i), y);
    }
  }
  of_columns(c, gradients);
}

}  // namespace lockstep::cases
