// sample_new.cpp - the second distribution of a sample: the ops that came after the first (sample.hpp has the shares).
#include "draws.hpp"

namespace lockstep::tool::bench {
namespace {

// f32 and f64, or what networks use.
constexpr const char* of_networks[] = {"f32", "f32", "bf16", "bf16", "bf16", "f16", "f16"};
constexpr const char* of_sums[] = {"f32", "f32", "f32", "f32", "f64", "bf16", "f16"};

std::string normalize(dice& d, int64_t most) {
  constexpr const char* kinds[] = {"rms", "rms", "rms", "layer", "layer", "l2"};
  for (;;) {
    const int64_t rows = d.size(1, 65536), cols = d.size(64, 16384);
    if (!fits(rows * cols, most, least_reduced)) continue;
    const std::string kind = d.one_of(kinds);
    return format_text("normalize/{}/{}/{}x{}{}", kind, d.one_of(of_networks), rows, cols,
                       kind == "rms"     ? "/weight"
                       : kind == "layer" ? "/weight/bias"
                                         : "");
  }
}

// "full/N", "rows/RxC" or "columns/RxC", as reductions of the first distribution have them.
std::string layout(dice& d, int64_t most) {
  for (;;) {
    const bool whole = d.chance(0.3);
    const int64_t rows = whole ? 1 : d.size(2, 200000),
                  cols = whole ? d.size(1000, static_cast<double>(most)) : d.size(2, 200000);
    if (!fits(rows * cols, most, least_reduced)) continue;
    if (rows == 1) return format_text("full/{}", cols);
    return format_text("{}/{}x{}", d.chance(0.35) ? "columns" : "rows", rows, cols);
  }
}

std::string scan(dice& d, int64_t most) {
  constexpr const char* kinds[] = {"sum", "sum", "sum", "max"};
  constexpr const char* dtypes[] = {"f32", "f32", "f32", "f32", "f64", "i32", "bf16"};
  const char* kind = d.one_of(kinds);
  const char* dtype = d.one_of(dtypes);
  return format_text("scan/{}/{}/{}", kind, dtype, layout(d, most));
}

std::string sums(dice& d, int64_t most) {
  constexpr const char* kinds[] = {"dot", "dot", "dot", "meanvar", "meanvar", "meanvar", "sqdiff", "abs"};
  const char* kind = d.one_of(kinds);
  const char* dtype = d.one_of(of_sums);
  return format_text("sums/{}/{}/{}", kind, dtype, layout(d, most));
}

std::string reduce_axes(dice& d, int64_t most) {
  constexpr const char* kinds[] = {"sum", "sum", "sum", "sum", "max", "norm2"};
  constexpr const char* of_three[] = {"0,2", "0,2", "1", "0,1"};
  constexpr const char* of_four[] = {"0,2,3", "0,2,3", "1", "0,2", "0,1"};
  for (;;) {
    std::vector<int64_t> shape;
    const int rank = d.chance(0.5) ? 3 : 4;
    for (int k = 0; k < rank; ++k) shape.push_back(d.size(2, rank == 3 ? 3000 : 300));
    if (!fits(product(shape), most, least_reduced)) continue;
    const char* kind = d.one_of(kinds);
    const char* dtype = d.one_of(of_sums);
    return format_text("reduce_axes/{}/{}/{}/axes{}", kind, dtype, listed(shape, "x"),
                       rank == 3 ? d.one_of(of_three) : d.one_of(of_four));
  }
}

std::string convert(dice& d, int64_t most) {
  constexpr const char* pairs[] = {"f32/bf16", "f32/bf16", "f32/f16", "bf16/f32", "bf16/f32", "f16/f32"};
  const std::string pair = d.one_of(pairs);
  for (;;) {
    const double how = d.unit();
    if (how < 0.3) return format_text("convert/{}/{}/perm0", pair, d.size(65536, static_cast<double>(most)));
    if (how < 0.5) {
      const int64_t rows = d.size(3, 30000), cols = d.size(3, 30000);
      if (fits(rows * cols, most)) return format_text("convert/{}/{}x{}/perm1,0", pair, rows, cols);
      continue;
    }
    const drawn_move move = how < 0.8 ? attention_move(d) : image_move(d);
    if (fits(product(move.shape), most))
      return format_text("convert/{}/{}/perm{}", pair, listed(move.shape, "x"), move.order);
  }
}

// The sizes of the arrays of a varied group spread over a factor of 256 below the largest.
std::string group(dice& d, int64_t most) {
  constexpr int bytes[] = {4, 2};
  constexpr const char* of_gradients[] = {"f32", "f32", "bf16"};
  for (;;) {
    const double how = d.unit();
    const int64_t count = d.size(10, 2000);
    if (how < 0.6) {
      const int64_t largest = d.size(256, 262144);
      if (count * largest > most) continue;
      const char* varied = d.chance(0.7) ? "/varied" : "";
      return format_text("group/{}{}/square_sum/norm2/{}/full/{}", count, varied, d.one_of(of_gradients), largest);
    }
    const int64_t rows = how < 0.8 ? d.size(4, 512) : d.size(1, 64),
                  cols = how < 0.8 ? d.size(4, 512) : d.size(64, 2048);
    if (count * rows * cols > most) continue;
    if (how < 0.8) return format_text("group/{}/transpose/b{}/{}x{}", count, d.one_of(bytes), rows, cols);
    return format_text("group/{}/normalize/rms/{}/{}x{}", count, d.one_of(of_gradients), rows, cols);
  }
}
}  // namespace

std::string drawn_new_case(dice& d, int64_t most) {
  const double kind = d.unit();
  if (kind < 0.24) return normalize(d, most);
  if (kind < 0.44) return scan(d, most);
  if (kind < 0.62) return sums(d, most);
  if (kind < 0.76) return reduce_axes(d, most);
  if (kind < 0.90) return convert(d, most);
  return group(d, most);
}

}  // namespace lockstep::tool::bench
