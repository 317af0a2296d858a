// normalize.cpp - cases normalize/<kind>/<dtype>/<rows>x<cols>[/ld<src>,<dst>][/to_<result>][/weight][/bias]
// [/residual][/f32weight][/eps<k>][/by_<scale>]; eps is 10^-k, or 0 where k is 0. Gradients, of
// the kinds *_backward: [/of_weight][/of_bias]. Of exponentials also
// normalize/<kind>/<dtype>/<layout>/<segments>x<length>[/first<k>], the segments of sequences.cpp.
// <outer>x<cols>x<inner>: along the axis in the middle; ld is then from one block of cols x inner to the next. given:
// rows are parts of longer ones.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* kinds[] = {"l2",        "rms",    "layer",        "softmax",       "log_softmax",
                                 "logsumexp", "picked", "rms_backward", "layer_backward"};
constexpr const char* dtypes[] = {"", "f16", "bf16", "f32", "f64"};
constexpr const char* results[] = {"", "to_f16", "to_bf16", "to_f32", "to_f64"};
constexpr const char* segment_layouts[] = {"even", "mixed", "nonempty", "lopsided"};
constexpr const char* scales[] = {"by_1", "by_third", "by_minus_7", "by_2p9"};
constexpr double scale_of[] = {1, 1 / 3.0, -0.7, 512};

// Rows of other draws than src's.
std::vector<unsigned char> side(const test_case& c, int dtype, int64_t rows, int64_t cols, int64_t ld, uint64_t salt) {
  if (c.bare) return {0};
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

std::vector<unsigned char> labels(const test_case& c, int64_t rows, int64_t length) {
  std::vector<unsigned char> bytes(static_cast<size_t>(rows) * sizeof(int64_t));
  for (int64_t r = 0; r < rows; ++r) {
    const auto u = static_cast<size_t>(r);
    const int64_t cols = c.offsets.empty() ? length : c.offsets[u + 1] - c.offsets[u];
    if (cols == 0) continue;
    const auto label = static_cast<int64_t>(mix(c.seed + static_cast<uint64_t>(r)) % static_cast<uint64_t>(cols));
    std::memcpy(bytes.data() + r * 8, &label, sizeof label);
  }
  return bytes;
}

int64_t place_of(const lockstep_normalize_desc& d, int64_t stride, int64_t row, int64_t i) {
  const int64_t inner = std::max<int64_t>(d.inner, 1);
  return row / inner * stride + i * inner + row % inner;
}

// Statistics that are given: of exponentials an extreme that no element is beyond.
std::vector<double> statistics(const test_case& c) {
  if (c.bare) return {0};
  const lockstep_normalize_desc& d = c.normalize;
  std::vector<unsigned char> src(c.src.span_bytes());
  if (!src.empty()) fill_src(c, src.data());
  std::vector<double> pairs;
  for (int64_t r = 0; r < d.count; ++r) {
    const uint64_t drawn = mix(c.seed * 31 + static_cast<uint64_t>(r));
    double m = d.kind == LOCKSTEP_NORMALIZE_LAYER ? static_cast<double>(drawn % 1000) / 8 - 60 : 0;
    if (d.kind > LOCKSTEP_NORMALIZE_LAYER) {
      m = d.scale > 0 ? -INFINITY : INFINITY;
      for (int64_t i = 0; i < d.length; ++i) {
        const double x = float_element(d.dtype, src.data(), place_of(d, d.src_stride, r, i));
        if (std::isnan(m) || std::isnan(x))
          m = NAN;
        else
          m = d.scale > 0 ? std::max(m, x) : std::min(m, x);
      }
    }
    pairs.push_back(m);
    pairs.push_back(std::isfinite(m) ? 1 + static_cast<double>(drawn / 1000 % 100000) / 64 : NAN);  // as S then is
  }
  return pairs;
}
}  // namespace

void parse_normalize(tokens& in, test_case& c) {
  c.op = LOCKSTEP_NORMALIZE;
  const int kind = in.one_of(kinds), dtype = in.one_of(dtypes), result = in.one_of(results);
  if (kind < 0 || dtype < 1) in.refuse("say kind/dtype");
  const bool weight = in.flag("weight"), bias = in.flag("bias"), residual = in.flag("residual");
  const bool f32_weight = in.flag("f32weight");
  const int64_t eps = in.number("eps", 5, 0, 300);
  const bool backward = kind > LOCKSTEP_NORMALIZE_PICKED, exponential = kind >= LOCKSTEP_NORMALIZE_SOFTMAX && !backward;
  const bool one_result = exponential && kind >= LOCKSTEP_NORMALIZE_LOGSUMEXP;
  const bool of_weight = backward && in.flag("of_weight"), of_bias = backward && in.flag("of_bias");
  if (backward && bias) in.refuse("gradients do not depend on a bias");
  const int scale = exponential ? in.one_of(scales) : 0;
  if (exponential && (weight || bias)) in.refuse("this kind has no weight and no bias");
  const int layout = exponential ? in.one_of(segment_layouts) : -1;
  const int64_t first_element = in.number("first", 0);
  const auto ld = in.numbers("ld", 0);
  const bool given = in.flag("given");
  auto size = in.sizes();
  const bool along = size.size() == 3;
  if (size.size() != 2 && !along) in.refuse("give two sizes, or three along the axis in the middle");
  const int64_t inner = along ? size[2] : 1, outer = size[0], block = in.times(size[1], inner);
  if (along && (layout >= 0 || backward)) in.refuse("segments and gradients have contiguous rows");
  if (along && inner < 1) in.refuse("give 1 row or more side by side");
  if (given && (layout >= 0 || backward || residual)) in.refuse("statistics are given of rows without a residual");
  size[0] = in.times(outer, inner);
  auto& d = c.normalize;
  d = lockstep_normalize_axis(static_cast<lockstep_normalization>(kind), static_cast<lockstep_dtype>(dtype), outer,
                              size[1], inner, eps == 0 ? 0.0 : std::pow(10.0, -static_cast<double>(eps)));
  if (exponential) d.scale = scale_of[std::max(scale, 0)];
  if (!ld.empty()) d.src_stride = ld.front(), d.dst_stride = ld.back();
  if (d.dst_stride < (one_result ? 1 : block)) in.refuse("rows of dst overlap");
  if (layout >= 0) {
    if (residual) in.refuse("segments have no residual");
    if (kind == LOCKSTEP_NORMALIZE_PICKED && layout != 0 && layout != 2) in.refuse("an empty segment has no label");
    if (layout == 2 && size[1] < 1) in.refuse("segments that are not empty have a length of 1 or more");
    draw_offsets(in, c, layout, size[0], size[1], first_element);
    d.length = 0;
  } else if (first_element != 0) {
    in.refuse("rows have no first element");
  }
  if (layout < 0 && one_result && size[1] == 0 && size[0] != 0) in.refuse("an empty row has no such result");
  if (result == 4 && dtype != LOCKSTEP_F64 && !one_result && !(given && exponential))
    in.refuse("rows of this type have no f64 results");
  if (result > 0) d.result = static_cast<lockstep_dtype>(result);
  if (f32_weight) d.weight_dtype = LOCKSTEP_F32;
  if (backward && d.result != d.dtype) in.refuse("gradients have the type of the rows");
  if (c.in_place && (d.result != d.dtype || d.src_stride != d.dst_stride || one_result))
    in.refuse("it cannot be in place");
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(d.dtype);
  c.dst.element_bytes = lockstep_dtype_bytes(d.result);
  if (layout >= 0) {
    c.src.first = first_element;
    c.src.axis(c.offsets.back() - first_element, 1);
  } else {
    c.src.axis(outer, d.src_stride);
    c.src.axis(block, 1);
  }
  if (layout >= 0 && !one_result) {
    c.dst.first = first_element;
    c.dst.axis(c.offsets.back() - first_element, 1);
  } else {
    c.dst.axis(one_result ? size[0] : outer, d.dst_stride);
    c.dst.axis(one_result ? 1 : block, 1);
  }
  const int64_t most = most_bytes / 64;
  if (c.src.elements() < 0 || in.times(std::max<int64_t>(size[0], 1), std::max<int64_t>(size[1], 1)) > most)
    in.too_large();
  if (weight) c.weight = side(c, d.weight_dtype, 1, size[1], size[1], 1);
  if (kind == LOCKSTEP_NORMALIZE_PICKED) c.weight = labels(c, size[0], size[1]);
  if (bias) c.bias = side(c, d.weight_dtype, 1, size[1], size[1], 2);
  if (residual) {
    d.residual_stride = block + outer % 3;
    c.residual = side(c, dtype, outer, block, d.residual_stride, 3);
  }
  if (given && size[1] != 0) c.given = statistics(c);
  if (backward) {
    d.gradient_stride = size[1] + size[0] % 2;
    c.gradient = side(c, dtype, size[0], size[1], d.gradient_stride, 4);
    const size_t column = static_cast<size_t>(size[1]) * lockstep_dtype_bytes(d.weight_dtype);
    const bool any = size[0] != 0;
    if (of_weight && any) c.weight_gradient.resize(column);
    if (of_bias && any) c.bias_gradient.resize(column);
  }
  std::string what = weight && bias ? "weight_bias" : weight ? "weight" : bias ? "bias" : "";
  if (residual) what += what.empty() ? "residual" : "_residual";
  if (of_weight || of_bias) what = of_weight && of_bias ? "of_both" : of_weight ? "of_weight" : "of_bias";
  if (scale > 0 && what.empty() && result < 1) what = "scaled";
  if (layout >= 0) what = "segments";
  if (given) what = "given";
  if (along) what = given ? "along_given" : residual ? "along_residual" : "along";
  if (what.empty()) what = result > 0 ? results[result] : c.in_place ? "in_place" : "plain";
  c.cell = std::string("normalize ") + kinds[kind] + " " + dtypes[dtype] + " " + what;
}

namespace {
bool has_word(const std::string& name, const char* word) { return name.find(word) != std::string::npos; }
}  // namespace

std::vector<std::string> list_normalize(level depth) {
  std::vector<std::string> names;
  for (const std::string kind : kinds)
    for (const char* dtype : {"f16", "bf16", "f32", "f64"}) {
      const bool backward = kind.ends_with("_backward"), exponential = kind.size() > 5 && !backward;
      const bool one_result = kind == "logsumexp" || kind == "picked";
      const auto add = [&](const std::string& rest) {
        const std::string name = "normalize/" + kind + "/" + dtype + "/" + rest;
        const auto has = [&](const char* part) { return has_word(rest, part); };
        if (exponential && (has("weight") || has("bias") || has("eps"))) return;
        if (backward && (has("bias") || has("to_"))) return;
        if (one_result && (has("inplace") || has("x0") || has("ld"))) return;
        names.push_back(name);
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
                               "5x384/weight",
                               "3x6144/weight/bias/inplace",
                               "2x14336/residual/weight",
                               "2x16384/special/weight",
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
                               "9x305/special/to_f16",
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
      if (kind == "layer" && dtype == std::string("f64"))
        for (const char* shape : {"9x3", "70x50", "5x999", "3x3001", "1x70001", "3x2049/residual", "4x300/weight/bias"})
          for (const char* what : {"/equal", "/equal/eps0", "/nearly", "/nearly/eps0"}) add(std::string(shape) + what);
      if (backward) {
        // Rows around a lane, a leaf and trees of columns with odd ones out; columns around parts.
        for (const char* rest : {"1x1/of_weight/of_bias",
                                 "127x33/of_weight/of_bias/weight",
                                 "128x32/of_weight",
                                 "129x31/of_bias",
                                 "300x70/of_weight/of_bias/weight/off1,3",
                                 "2047x9/of_weight/weight",
                                 "2048x8/of_weight/of_bias",
                                 "2049x7/of_weight/of_bias",
                                 "4097x5/of_weight/of_bias/weight/f32weight",
                                 "10241x3/of_weight/of_bias",
                                 "5x8193/of_weight/of_bias/weight",
                                 "3x20481/of_weight/of_bias/weight/off1",
                                 "1x70001/of_weight/of_bias",
                                 "40x700/of_weight/of_bias/weight/inplace",
                                 "17x9001/of_weight/inplace/ld9003",
                                 "33x100/of_bias/ld103,107",
                                 "9x4100/residual/of_weight/of_bias/weight",
                                 "7x9001/residual/of_weight/of_bias/weight/inplace",
                                 "40x300/special/of_weight/of_bias",
                                 "200x130/wide/of_weight/of_bias/weight",
                                 "50x70/one_nan/of_weight",
                                 "150x66/zeros/eps0/of_weight/of_bias",
                                 "700x64/positive/of_weight/of_bias/f32weight",
                                 "0x5/of_weight"})
          names.push_back("normalize/" + kind + "/" + dtype + "/" + rest);
        // One row's mean is exact where its elements are equal: in a group of threads, in a block, in leaves.
        if (kind == "layer_backward" && dtype == std::string("f64"))
          for (const char* shape : {"9x3", "70x50", "9x300/weight", "5x999", "3x2049/residual", "5x3001/weight",
                                    "3x4097", "2x70001", "1x9001/residual"})
            for (const char* what : {"/equal", "/equal/eps0", "/nearly", "/nearly/eps0"})
              names.push_back("normalize/" + kind + "/" + dtype + "/" + shape + what + "/of_weight/of_bias");
        if (depth == level::full)
          for (const char* rest : {"3000x768/weight/of_weight/of_bias", "300x4096/weight/of_weight",
                                   "64x16384/residual/weight/of_weight/of_bias", "1x1000001/of_weight/of_bias",
                                   "20000x64/of_weight/of_bias/weight", "40000x9/of_weight/of_bias"})
            names.push_back("normalize/" + kind + "/" + dtype + "/" + rest);
      }
      // More rows than a GPU has places for, if a thread has few elements.
      if (depth == level::full && !backward && !exponential)
        for (const char* rest : {"300x6144/weight/special", "500x2568/residual"}) add(rest);
      if (exponential) {
        for (const char* rest : {"3x700/by_third", "9x33/by_minus_7", "5x3000/by_2p9", "4x9001/by_third", "3x8192",
                                 "2x8193", "5x700/special/by_minus_7", "7x5/special/by_third", "9x130/finite/by_third",
                                 "2x5000/residual/special", "64x9/off1,3", "1x140001/by_minus_7"})
          add(rest);
        const bool picked = kind == "picked";
        for (const char* rest : {"even/20x50",
                                 "even/0x5",
                                 "even/5x2048",
                                 "even/3x2049",
                                 "even/2x9000/by_third",
                                 "mixed/50x40",
                                 "mixed/40x7/off1,3",
                                 "mixed/30x700/special",
                                 "mixed/300x3/by_minus_7",
                                 "mixed/9x3000/first5",
                                 "nonempty/200x3",
                                 "nonempty/33x70/special/by_minus_7",
                                 "nonempty/40x300/first1000/off1",
                                 "nonempty/6x5000/by_2p9",
                                 "nonempty/2000x17",
                                 "lopsided/60x9000",
                                 "lopsided/40x70001",
                                 "lopsided/7x40000/special",
                                 "even/4x0",
                                 "nonempty/100x40/to_f32",
                                 "nonempty/9x3000/to_f16",
                                 "nonempty/50x90/to_bf16",
                                 "mixed/60x90/inplace",
                                 "lopsided/9x30000/inplace"}) {
          if (picked && (has_word(rest, "mixed") || has_word(rest, "lopsided") || has_word(rest, "x0"))) continue;
          if (one_result && has_word(rest, "inplace")) continue;
          names.push_back("normalize/" + kind + "/" + dtype + "/" + rest);
        }
        if (one_result)
          for (const char* rest : {"nonempty/50x30/to_f64", "nonempty/3x9000/to_f64/first7"})
            names.push_back("normalize/" + kind + "/" + dtype + "/" + rest);
        if (one_result)
          for (const char* rest : {"9x70/to_f64", "5x301/ld303,2", "3x2100/residual/to_f64", "4x9001/special/to_f64"})
            names.push_back("normalize/" + kind + "/" + dtype + "/" + rest);
      }
      // Along an axis: lanes, leaves and trees with odd ones out, inner around what a block has of columns.
      if (!backward)
        for (const char* rest : {"3x5x7",
                                 "1x1x5",
                                 "2x128x33",
                                 "3x129x8/off1,3",
                                 "2x1000x49",
                                 "1x2048x17",
                                 "2x2049x5/off1",
                                 "1x4097x9",
                                 "1x6145x70",
                                 "1x10241x3",
                                 "40x64x31",
                                 "5x0x3",
                                 "0x5x3",
                                 "4x300x1",
                                 "7x33x12/ld400,401",
                                 "2x700x64/weight/bias",
                                 "2x3001x10/weight",
                                 "3x90x40/bias/f32weight",
                                 "2x50x130/inplace",
                                 "2x5000x7/inplace/off1",
                                 "3x100x20/residual",
                                 "2x4100x6/residual/weight/bias",
                                 "2x3000x5/residual/inplace",
                                 "3x200x30/special",
                                 "1x5000x20/special",
                                 "2x300x16/one_nan",
                                 "2x301x16/wide/to_f16",
                                 "2x302x16/wide/to_bf16",
                                 "2x5000x3/to_f32",
                                 "2x100x5/zeros/eps0",
                                 "1x70001x2",
                                 "9x70/given",
                                 "3x5000/given/off1",
                                 "2x4097/given/special",
                                 "20x130/given/to_f16",
                                 "3x2500/given/to_f32/weight",
                                 "5x333/given/weight/bias/f32weight",
                                 "4x300x9/given",
                                 "2x5000x33/given/to_bf16/off1",
                                 "2x700x64/given/weight/bias"})
          add(rest);
      if (!backward && dtype == std::string("f64"))
        for (const char* rest : {"2x300x9/huge", "1x5000x3/tiny/eps0", "2x3000x3/huge/residual", "3x300x5/tiny/eps300"})
          add(rest);
      if (kind == "layer" && dtype == std::string("f64"))
        for (const char* rest : {"2x300x9/equal", "1x5000x3/equal", "2x300x9/nearly/eps0"}) add(rest);
      if (exponential)
        for (const char* rest : {"2x700x10/by_third", "2x90x33/by_minus_7", "1x5000x9/by_minus_7", "1x3000x5/by_2p9",
                                 "9x70/given/to_f64", "3x5000/given/by_minus_7", "2x300x7/given/to_f64"})
          add(rest);
      if (one_result) add("2x100x9/to_f64"), add("2x3000x5/residual/to_f64");
      if (depth == level::full && !backward)
        for (const char* rest : {"32x100x3136", "8x1000x784", "3x9000x700", "1x300001x9", "2000x64x16", "1x64x50000"})
          add(rest);
      if (depth == level::full)
        for (const char* rest : {"2000x768", "300x4096/weight", "64x16384/residual/weight/bias", "1x3000001",
                                 "3x400003/weight/bias/residual", "20000x64/inplace", "17000x100/weight/bias",
                                 "18000x121/off1", "9000x250/weight", "5000x500/residual", "9000x20"})
          add(rest);
      if (depth == level::full && exponential)
        for (const char* rest : {"lopsided/200x300001", "nonempty/70000x13", "nonempty/3000x900", "nonempty/40x60000",
                                 "nonempty/20000x40/off1"})
          add(rest);
    }
  return names;
}

}  // namespace lockstep::cases
