// cliffs.cpp - the preset that searches for slow shapes between the usual sizes: odd sizes,
// offsets, padded and power-of-two pitches, every element size, short rows. All cases move
// about the same number of bytes: on a CPU more than L2 but few enough for hundreds of
// cases, on a device more than its L2 and enough that the launch does not count.
#include <cmath>

#include "bench.hpp"

namespace lockstep::tool::bench {
namespace {
constexpr int64_t cpu_bytes = int64_t{8} << 20, device_bytes = int64_t{128} << 20;

void add_transposes(std::vector<line>& all, int64_t bytes) {
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    const int64_t elements = bytes / 2 / size;
    int64_t side = 1;
    while (4 * side * side <= elements) side *= 2;  // the largest power of two that fits
    const auto add = [&](int64_t rows, int64_t cols, const std::string& rest = "") {
      all.push_back({format_text("transpose/b{}/{}x{}{}", size, rows, cols, rest)});
    };
    add(side, side), add(side + 1, side - 1), add(side - 1, side - 1), add(side + 3, side + 3),
        add(side, side + side / 2 - 5);
    add(side, side, format_text("/ld{},{}", side + 1, side)), add(side, side, format_text("/ld{},{}", side, side + 3));
    add(side, side, "/off1,0"), add(side, side, "/off0,1");
    for (const int64_t narrow : {2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 33, 64, 100})
      add(elements / narrow, narrow), add(narrow, elements / narrow);
    for (const int64_t tile : {2, 3, 4, 8, 17, 33, 64})
      add(tile, tile, format_text("/batch{}", elements / tile / tile));
    add(side, side, "/inplace");
  }
}

void add_permutes(std::vector<line>& all, int64_t bytes) {
  for (const int64_t size : {1, 2, 4, 8, 16}) {
    const int64_t last = bytes / 2 / size / (16 * 16 * 32);
    for (const char* perm : {"0,2,3,1", "0,3,1,2", "3,2,1,0", "2,3,0,1", "0,1,3,2", "0,2,1,3", "1,0,3,2", "3,0,1,2"}) {
      all.push_back({format_text("permute/b{}/16x16x32x{}/perm{}", size, last, perm)});
      all.push_back({format_text("permute/b{}/15x17x31x{}/perm{}", size, last + 1, perm)});
      all.push_back({format_text("permute/b{}/{}x61x7x3/perm{}", size, last * 6, perm)});
    }
  }
}

void add_reductions(std::vector<line>& all, int64_t bytes) {
  constexpr struct {
    const char* name;
    int64_t size;
  } ops[] = {{"reduce/sum/f32", 4},      {"reduce/sum/f64", 8},     {"reduce/sum/i32", 4},
             {"reduce/max/f32", 4},      {"reduce/max/f64", 8},     {"reduce/max/i64", 8},
             {"reduce/argmax/f32", 4},   {"reduce/argmin/i32", 4},  {"square_sum/ssq/f16", 2},
             {"square_sum/ssq/bf16", 2}, {"square_sum/ssq/i32", 4}, {"square_sum/ssq/i64", 8},
             {"square_sum/norm2/f64", 8}};
  for (const auto& op : ops) {
    const int64_t n = bytes / op.size;
    const auto add = [&](const std::string& rest) { all.push_back({format_text("{}/{}", op.name, rest)}); };
    add(format_text("full/{}", n)), add(format_text("full/{}/off1", n - 3)),
        add(format_text("strided/{}/stride2", n / 2)), add(format_text("strided/{}/stride17", n / 17));
    for (const int64_t length : {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 100, 129, 257, 1000, 2049, 5000}) {
      add(format_text("rows/{}x{}", n / length, length));
      add(format_text("columns/{}x{}", n / length, length));
    }
    add(format_text("rows/{}x64/ld67/off1", n / 67)), add(format_text("columns/{}x512/ld515", n / 515)),
        add("columns/64x" + std::to_string(n / 64));
    add(format_text("mixed/{}x10", n / 10)), add(format_text("mixed/{}x1000", n / 1000)),
        add(format_text("lopsided/100x{}", n));
  }
}

void add_stencils(std::vector<line>& all, int64_t bytes) {
  for (const std::string dtype : {"f32", "f64"}) {
    const int64_t n = bytes / 2 / (dtype == "f32" ? 4 : 8);
    const auto square = static_cast<int64_t>(std::sqrt(n)), cube = static_cast<int64_t>(std::cbrt(n));
    const auto add = [&](const std::string& rest) { all.push_back({"stencil/" + dtype + "/" + rest}); };
    for (const int radius : {1, 2, 3, 4, 5, 8, 16}) add(format_text("general/nearest/r{}/{}", radius, n));
    for (const int radius : {1, 2, 3, 4, 5, 8}) {
      add(format_text("symmetric/nearest/r{}/{}x{}", radius, square, square));
      add(format_text("symmetric/nearest/r{}/{}x{}x{}", radius, cube, cube, cube));
    }
    for (const char* boundary : {"mirror", "reflect", "wrap", "constant", "valid"}) {
      add(format_text("symmetric/{}/r4/{}", boundary, n));
      add(format_text("symmetric/{}/r4/{}x{}x{}", boundary, cube, cube, cube));
    }
    add(format_text("antisymmetric/nearest/r4/{}", n)), add(format_text("symmetric/nearest/r4/{}/off1,0", n)),
        add(format_text("symmetric/nearest/r4/{}/off0,1", n));
    for (const int length : {9, 17, 64, 100, 1001})
      add(format_text("symmetric/nearest/r4/{}/batch{}", length, n / length));
    add(format_text("symmetric/nearest/r4/{}x10x10", n / 100)),
        add(format_text("symmetric/nearest/r4/20x20x{}", n / 400));
    add(format_text("symmetric/nearest/r4/{}x33", n / 33)), add(format_text("symmetric/nearest/r4/33x{}", n / 33));
    add(format_text("symmetric/nearest/r4/{}/sweeps8", n));
  }
}
}  // namespace

std::vector<line> cliffs(const std::string& backend) {
  const int64_t bytes = backend == "cpu" ? cpu_bytes : device_bytes;
  std::vector<line> all;
  add_transposes(all, bytes), add_permutes(all, bytes), add_reductions(all, bytes), add_stencils(all, bytes);
  for (const int size : {4, 8})
    for (const char* kind : {"idx", "up", "down", "xor"})
      for (const int width : {2, 16, 32})
        all.push_back({format_text("shuffle/b{}/{}/w{}/op1/n{}", size, kind, width, bytes / 2 / size)});
  return all;
}

}  // namespace lockstep::tool::bench
