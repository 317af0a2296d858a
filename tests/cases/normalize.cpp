// normalize.cpp - cases normalize/<kind>/<dtype>/<rows>x<cols>[/ld<src>,<dst>][/to_<result>][/weight][/bias]
// [/residual][/f32weight][/eps<k>]; eps is 10^-k, or 0 where k is 0.
#include <cmath>

#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* kinds[] = {"l2", "rms", "layer"};
constexpr const char* dtypes[] = {"", "f16", "bf16", "f32", "f64"};
constexpr const char* results[] = {"", "to_f16", "to_bf16", "to_f32"};

// Rows of other draws than src's.
std::vector<unsigned char> side(const test_case& c, int dtype, int64_t rows, int64_t cols, int64_t ld, uint64_t salt) {
  test_case other;
  other.dtype = dtype;
  other.what = c.what == fill::special || c.what == fill::one_nan ? fill::random : c.what;
  other.seed = mix(c.seed + salt);
  other.src.element_bytes = lockstep_dtype_bytes(static_cast<lockstep_dtype>(dtype));
  other.src.axis(rows, ld);
  other.src.axis(cols, 1);
  std::vector<unsigned char> bytes(other.src.span_bytes());
  if (!bytes.empty()) fill_src(other, bytes.data());
  return bytes;
}
}  // namespace

void parse_normalize(tokens& in, test_case& c) {
  c.op = LOCKSTEP_NORMALIZE;
  const int kind = in.one_of(kinds), dtype = in.one_of(dtypes), result = in.one_of(results);
  if (kind < 0 || dtype < 1) in.refuse("say kind/dtype");
  const bool weight = in.flag("weight"), bias = in.flag("bias"), residual = in.flag("residual");
  const bool f32_weight = in.flag("f32weight");
  const int64_t eps = in.number("eps", 5, 0, 300);
  const auto ld = in.numbers("ld", 0);
  const auto size = in.sizes();
  if (size.size() != 2) in.refuse("give two sizes");
  auto& d = c.normalize;
  d = lockstep_normalize_rows(static_cast<lockstep_normalization>(kind), static_cast<lockstep_dtype>(dtype), size[0],
                              size[1], eps == 0 ? 0.0 : std::pow(10.0, -static_cast<double>(eps)));
  if (!ld.empty()) d.src_stride = ld.front(), d.dst_stride = ld.back();
  if (d.dst_stride < size[1]) in.refuse("rows of dst overlap");
  if (result > 0) d.result = static_cast<lockstep_dtype>(result);
  if (f32_weight) d.weight_dtype = LOCKSTEP_F32;
  if (c.in_place && (d.result != d.dtype || d.src_stride != d.dst_stride)) in.refuse("it cannot be in place");
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(d.dtype);
  c.dst.element_bytes = lockstep_dtype_bytes(d.result);
  c.src.axis(size[0], d.src_stride);
  c.src.axis(size[1], 1);
  c.dst.axis(size[0], d.dst_stride);
  c.dst.axis(size[1], 1);
  const int64_t most = most_bytes / 64;
  if (c.src.elements() < 0 || in.times(std::max<int64_t>(size[0], 1), std::max<int64_t>(size[1], 1)) > most)
    in.too_large();
  if (weight) c.weight = side(c, d.weight_dtype, 1, size[1], size[1], 1);
  if (bias) c.bias = side(c, d.weight_dtype, 1, size[1], size[1], 2);
  if (residual) {
    d.residual_stride = size[1] + size[0] % 3;
    c.residual = side(c, dtype, size[0], size[1], d.residual_stride, 3);
  }
  std::string what = weight && bias ? "weight_bias" : weight ? "weight" : bias ? "bias" : "";
  if (residual) what += what.empty() ? "residual" : "_residual";
  if (what.empty()) what = result > 0 ? results[result] : c.in_place ? "in_place" : "plain";
  c.cell = std::string("normalize ") + kinds[kind] + " " + dtypes[dtype] + " " + what;
}

std::vector<std::string> list_normalize(level depth) {
  std::vector<std::string> names;
  for (const std::string kind : kinds)
    for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
      const auto add = [&](const std::string& rest) {
        names.push_back("normalize/" + kind + "/" + dtype + "/" + rest);
      };
      // Around a vector, a lane row, a leaf and trees with odd ones out.
      for (const int n : {1, 2, 3, 7, 8, 15, 33, 127, 128, 129, 257, 1000, 2047, 2048, 2049, 4096, 4097, 6145, 10241})
        add("3x" + std::to_string(n) + (n % 2 != 0 ? "/off1,3" : ""));
      for (const char* rest : {"0x5",
                               "5x0",
                               "1x1/eps0",
                               "70x64",
                               "33x100/ld103,107",
                               "200x9",
                               "9x2048/inplace",
                               "7x5001/inplace/ld5003",
                               "300x5/inplace/off1",
                               "5x700/weight",
                               "4x3001/weight/off1",
                               "6x300/bias",
                               "3x4100/weight/bias",
                               "5x333/weight/bias/f32weight",
                               "4x2500/weight/f32weight",
                               "6x257/bias/f32weight",
                               "3x2100/residual",
                               "7x130/residual/inplace",
                               "4x5000/residual/weight/bias",
                               "2x301/residual/weight/bias/inplace/ld303",
                               "9x70/to_f16",
                               "9x70/to_bf16",
                               "9x71/to_f32",
                               "3x2500/to_f16/weight",
                               "3x2500/to_bf16/bias/off1",
                               "20x130/special",
                               "5x3000/special",
                               "20x130/special/residual",
                               "9x300/finite",
                               "9x301/wide",
                               "4x3000/wide",
                               "9x302/wide/to_f16",
                               "9x303/wide/to_bf16",
                               "9x304/wide/to_f32",
                               "40x33/ties",
                               "5x2100/zeros",
                               "5x200/zeros/eps0",
                               "9x100/one_nan",
                               "4x5000/one_nan",
                               "30x50/positive",
                               "1x70001",
                               "2x40000/weight/bias",
                               "1x300001/residual",
                               "20x200/eps300",
                               "20x64/sparse",
                               "3x9000/sparse/eps0"})
        add(rest);
      if (dtype == std::string("f64"))
        for (const char* rest : {"5x300/huge", "5x300/tiny", "3x5000/huge", "3x5000/tiny/eps0", "4x300/tiny/eps300",
                                 "3x70/huge/residual", "3x3000/tiny/eps0/residual"})
          add(rest);
      if (depth == level::full)
        for (const char* rest : {"2000x768", "300x4096/weight", "64x16384/residual/weight/bias", "1x3000001",
                                 "3x400003/weight/bias/residual", "20000x64/inplace"})
          add(rest);
    }
  return names;
}

}  // namespace lockstep::cases
