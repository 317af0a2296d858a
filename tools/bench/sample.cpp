// sample.cpp - see sample.hpp.
#include "sample.hpp"

#include <algorithm>
#include <cmath>

#include "../format.hpp"
#include "cases.hpp"

namespace lockstep::tool::bench {
namespace {

// Logarithm and power by operations that IEEE 754 defines exactly, because those of C libraries differ in the last bit.
constexpr int bits = 48;
double log2_of(double x) {  // of 1 and more
  double whole = 0, part = 0;
  for (; x >= 2; x /= 2) ++whole;
  for (double bit = 0.5; bit > std::ldexp(1.0, -bits); bit /= 2) {
    x *= x;
    if (x >= 2) x /= 2, part += bit;
  }
  return whole + part;
}
double exp2_of(double y) {  // of 0 and more
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

// Bytes of f32 (4 in 12), bf16 and f16 (5), f64 (2) and u8 (1).
constexpr int moved[] = {4, 4, 4, 4, 2, 2, 2, 2, 2, 8, 8, 1};
constexpr int moved_wide[] = {4, 4, 4, 4, 2, 2, 2, 2, 2, 8, 8};
constexpr int64_t least_elements = 1 << 16, least_reduced = 1 << 13;

bool fits(int64_t elements, int64_t most, int64_t least = least_elements) {
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
template <class Sizes, class Axes>
std::string permute(int bytes, const Sizes& sizes, const Axes& axes) {
  return format_text("permute/b{}/{}/perm{}", bytes, listed(sizes, "x"), listed(axes, ","));
}

std::string transpose(dice& d, int64_t most) {
  for (;;) {
    const int64_t batch = d.chance(0.6) ? 1 : d.size(2, 4096), rows = d.size(3, 30000), cols = d.size(3, 30000);
    if (!fits(batch * rows * cols, most)) continue;
    return format_text("transpose/b{}/{}x{}{}", d.one_of(moved), rows, cols,
                       batch > 1 ? format_text("/batch{}", batch) : "");
  }
}

// "" where the shape is too large.
std::string attention(dice& d, int64_t most) {
  constexpr int64_t batches[] = {1, 2, 4, 8, 16, 32}, tokens[] = {77, 128, 197, 256, 512, 577, 1024, 1500, 2048, 4096},
                    heads[] = {6, 8, 12, 16, 32, 40}, depths[] = {40, 64, 80, 96, 128};
  constexpr const char* orders[] = {"0,2,1,3", "0,2,3,1", "2,0,1,3", "0,3,1,2"};
  constexpr int bytes[] = {2, 2, 4};  // bf16, f16, f32
  const int64_t shape[] = {d.one_of(batches), d.one_of(tokens), d.one_of(heads), d.one_of(depths)};
  const std::string order = d.one_of(orders);
  const int size = d.one_of(bytes);
  return product(shape) > most ? "" : format_text("permute/b{}/{}/perm{}", size, listed(shape, "x"), order);
}

std::string image(dice& d, int64_t most) {
  constexpr int64_t batches[] = {1, 8, 16, 32, 64, 128}, channels[] = {3, 4, 16, 24, 48, 64, 96, 255, 256, 512},
                    sides[] = {7, 14, 28, 56, 112, 160, 224, 384};
  constexpr int bytes[] = {4, 2, 1};  // f32, bf16, u8
  const int64_t n = d.one_of(batches), c = d.one_of(channels), side = d.one_of(sides);
  const bool to_nhwc = d.chance(0.5);
  const int size = d.one_of(bytes);
  if (!fits(n * c * side * side, most)) return "";
  return to_nhwc ? format_text("permute/b{}/{}x{}x{}x{}/perm0,2,3,1", size, n, c, side, side)
                 : format_text("permute/b{}/{}x{}x{}x{}/perm0,3,1,2", size, n, side, side, c);
}

std::string any_permute(dice& d, int64_t most) {
  constexpr int ranks[] = {3, 3, 4, 5, 6};
  constexpr double longest[] = {700, 150, 60, 30};  // of rank 3, 4, 5, 6
  for (;;) {
    const int rank = d.one_of(ranks);
    std::vector<int64_t> shape;
    std::vector<int> axes;
    for (int k = 0; k < rank; ++k) shape.push_back(d.size(2, longest[rank - 3])), axes.push_back(k);
    for (size_t k = axes.size() - 1; k > 0; --k) std::swap(axes[k], axes[d.below(k + 1)]);
    if (fits(product(shape), most) && !std::is_sorted(axes.begin(), axes.end()))
      return permute(d.one_of(moved_wide), shape, axes);
  }
}

std::string reduction(dice& d, int64_t most) {
  constexpr const char* kinds[] = {"sum", "ssq", "norm2", "max", "argmax", "sum", "ssq"};
  constexpr const char* of_squares[] = {"f32", "f32", "f32", "f32", "bf16", "f16", "f64"};
  constexpr const char* of_others[] = {"f32", "f32", "f32", "f32", "f64", "i32"};
  const std::string kind = d.one_of(kinds);
  const bool squares = kind == "ssq" || kind == "norm2";
  const std::string dtype = squares ? d.one_of(of_squares) : d.one_of(of_others);
  int64_t rows = 0, cols = 0;
  do {
    const bool whole = d.chance(0.2);
    rows = whole ? 1 : d.size(2, 2000000);
    cols = whole ? d.size(1000, static_cast<double>(most)) : d.size(2, 200000);
  } while (!fits(rows * cols, most, least_reduced));
  const std::string head = format_text("{}/{}/{}/", squares ? "square_sum" : "reduce", kind, dtype);
  if (rows == 1) return format_text("{}full/{}", head, cols);
  const bool columns = kind != "argmax" && d.chance(0.3);
  return format_text("{}{}/{}x{}", head, columns ? "columns" : "rows", rows, cols);
}

std::string stencil(dice& d, int64_t most) {
  constexpr int ranks[] = {1, 2, 3}, radii[] = {1, 1, 2, 3, 4, 4, 8};
  const int rank = d.one_of(ranks);
  const char* dtype = d.chance(0.75) ? "f32" : "f64";
  const double low = rank == 1 ? 10000 : rank == 2 ? 100 : 32;
  const double high = rank == 1 ? static_cast<double>(most) : rank == 2 ? 12000 : 700;
  std::vector<int64_t> shape(static_cast<size_t>(rank));
  do
    for (int64_t& one : shape) one = d.size(low, high);
  while (!fits(product(shape), most));
  const int radius = d.one_of(radii);
  return format_text("stencil/{}/symmetric/nearest/r{}/{}{}", dtype, radius, listed(shape, "x"),
                     d.chance(0.25) ? "/sweeps4" : "");
}
}  // namespace

std::string drawn_case(uint64_t seed, uint64_t draw, int64_t most) {
  dice d(seed, draw);
  for (;;) {
    const double kind = d.unit();
    if (kind < 0.22) return transpose(d, most);
    if (kind >= 0.85) return stencil(d, most);
    if (kind >= 0.55) return reduction(d, most);
    if (kind >= 0.44) return any_permute(d, most);
    if (const std::string name = kind < 0.34 ? attention(d, most) : image(d, most); !name.empty()) return name;
  }
}

std::vector<std::string> drawn_cases(uint64_t seed, int64_t first, int64_t count, int64_t most) {
  std::vector<std::string> names;
  for (int64_t draw = first; draw < count; ++draw)
    if (std::string name = drawn_case(seed, static_cast<uint64_t>(draw), most);
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  return names;
}

}  // namespace lockstep::tool::bench
