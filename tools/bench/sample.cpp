// sample.cpp - see sample.hpp.
#include "sample.hpp"

#include <algorithm>

#include "draws.hpp"

namespace lockstep::tool::bench {
namespace {

// Bytes of f32 (4 in 12), bf16 and f16 (5), f64 (2) and u8 (1).
constexpr int moved[] = {4, 4, 4, 4, 2, 2, 2, 2, 2, 8, 8, 1};
constexpr int moved_wide[] = {4, 4, 4, 4, 2, 2, 2, 2, 2, 8, 8};
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
  constexpr int bytes[] = {2, 2, 4};  // bf16, f16, f32
  const drawn_move move = attention_move(d);
  const int size = d.one_of(bytes);
  return product(move.shape) > most ? ""
                                    : format_text("permute/b{}/{}/perm{}", size, listed(move.shape, "x"), move.order);
}

std::string image(dice& d, int64_t most) {
  constexpr int bytes[] = {4, 2, 1};  // f32, bf16, u8
  const drawn_move move = image_move(d);
  const int size = d.one_of(bytes);
  return fits(product(move.shape), most)
             ? format_text("permute/b{}/{}/perm{}", size, listed(move.shape, "x"), move.order)
             : "";
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

std::string drawn_case(uint64_t seed, uint64_t draw, int64_t most, sampled_ops of) {
  dice d(seed, draw);
  if (of == sampled_ops::new_ones) return drawn_new_case(d, most);
  for (;;) {
    const double kind = d.unit();
    if (kind < 0.22) return transpose(d, most);
    if (kind >= 0.85) return stencil(d, most);
    if (kind >= 0.55) return reduction(d, most);
    if (kind >= 0.44) return any_permute(d, most);
    if (const std::string name = kind < 0.34 ? attention(d, most) : image(d, most); !name.empty()) return name;
  }
}

std::vector<std::string> drawn_cases(uint64_t seed, int64_t first, int64_t count, int64_t most, sampled_ops of) {
  std::vector<std::string> names;
  for (int64_t draw = first; draw < count; ++draw)
    if (std::string name = drawn_case(seed, static_cast<uint64_t>(draw), most, of);
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(std::move(name));
  return names;
}

}  // namespace lockstep::tool::bench
