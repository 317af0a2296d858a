// draws.hpp - what the draws of a sample (sample.hpp) are made of: random numbers that are the same on every platform,
// and the shapes that several ops share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "../format.hpp"
#include "cases.hpp"

namespace lockstep::tool::bench {

// Logarithm and power by operations that IEEE 754 defines exactly, because those of C libraries differ in the last bit.
constexpr int bits = 48;
inline double log2_of(double x) {  // of 1 and more
  double whole = 0, part = 0;
  for (; x >= 2; x /= 2) ++whole;
  for (double bit = 0.5; bit > std::ldexp(1.0, -bits); bit /= 2) {
    x *= x;
    if (x >= 2) x /= 2, part += bit;
  }
  return whole + part;
}
inline double exp2_of(double y) {  // of 0 and more
  const double whole = std::floor(y);
  double part = y - whole, root = 2, x = 1;
  for (int k = 0; k < bits; ++k) {
    root = std::sqrt(root);
    part *= 2;
    if (part >= 1) part -= 1, x *= root;
  }
  return std::ldexp(x, static_cast<int>(whole));
}

class dice {
 public:
  dice(uint64_t seed, uint64_t draw) : state_(cases::mix(cases::mix(seed) + draw)) {}

  double unit() { return static_cast<double>(word() >> 11) * 0x1p-53; }
  bool chance(double p) { return unit() < p; }
  size_t below(size_t n) { return static_cast<size_t>((word() >> 32) * n >> 32); }
  template <class T, size_t n>
  const T& one_of(const T (&list)[n]) {
    return list[below(n)];
  }
  int64_t size(double low, double high) {
    const double at_low = log2_of(low), v = exp2_of(at_low + unit() * (log2_of(high) - at_low)), how = unit();
    if (how < 0.3) return int64_t{1} << std::lround(log2_of(v));
    if (how < 0.6) return std::max<int64_t>(8, std::lround(v / 8) * 8);
    return std::max<int64_t>(1, std::lround(v));
  }

 private:
  uint64_t word() { return cases::mix(state_ += 0x9E3779B97F4A7C15u); }
  uint64_t state_;
};

constexpr int64_t least_elements = 1 << 16, least_reduced = 1 << 13;

inline bool fits(int64_t elements, int64_t most, int64_t least = least_elements) {
  return elements >= least && elements <= most;
}
template <class Sizes>
int64_t product(const Sizes& sizes) {
  int64_t all = 1;
  for (const int64_t one : sizes) all *= one;
  return all;
}
template <class Numbers>
std::string listed(const Numbers& numbers, const char* between) {
  std::string text;
  for (const auto one : numbers) text += (text.empty() ? "" : between) + std::to_string(one);
  return text;
}

// Batch, tokens, heads, depth, and an order of them.
struct drawn_move {
  std::vector<int64_t> shape;
  const char* order;
};
inline drawn_move attention_move(dice& d) {
  constexpr int64_t batches[] = {1, 2, 4, 8, 16, 32}, tokens[] = {77, 128, 197, 256, 512, 577, 1024, 1500, 2048, 4096},
                    heads[] = {6, 8, 12, 16, 32, 40}, depths[] = {40, 64, 80, 96, 128};
  constexpr const char* orders[] = {"0,2,1,3", "0,2,3,1", "2,0,1,3", "0,3,1,2"};
  const int64_t batch = d.one_of(batches), length = d.one_of(tokens), count = d.one_of(heads), depth = d.one_of(depths);
  return {{batch, length, count, depth}, d.one_of(orders)};
}
// NCHW to NHWC, or back.
inline drawn_move image_move(dice& d) {
  constexpr int64_t batches[] = {1, 8, 16, 32, 64, 128}, channels[] = {3, 4, 16, 24, 48, 64, 96, 255, 256, 512},
                    sides[] = {7, 14, 28, 56, 112, 160, 224, 384};
  const int64_t n = d.one_of(batches), c = d.one_of(channels), side = d.one_of(sides);
  if (d.chance(0.5)) return {{n, c, side, side}, "0,2,3,1"};
  return {{n, side, side, c}, "0,3,1,2"};
}

// A shape of the second distribution (sample_new.cpp).
std::string drawn_new_case(dice& d, int64_t most_elements);

}  // namespace lockstep::tool::bench
