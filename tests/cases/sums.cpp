// sums.cpp - cases
// sums/<kind>/<dtype>/<layout>/<sizes>[/ld<src>,<other>][/stride<src>,<other>][/shared][/correction<n>][/to_<dtype>]:
// layouts full/<n>, rows/<r>x<c>, columns/<r>x<c> and the segments of sequences.cpp; shared: every row meets the same
// row of other.
#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* kinds[] = {"dot", "sqdiff", "absdiff", "abs", "meanvar", "digest"};

// Elements of other: draws of their own where src's are random; a NaN stands in src alone.
std::vector<unsigned char> other_of(const test_case& c) {
  if (c.bare) return {0};
  test_case other;
  other.dtype = c.dtype;
  other.what = c.what == fill::one_nan ? fill::random : c.what;
  other.seed = mix(c.seed + 4);
  other.offsets = c.offsets;
  other.src.element_bytes = c.src.element_bytes;
  const lockstep_sums_desc& d = c.sums;
  if (!c.offsets.empty()) {
    other.src.axis(c.offsets.back(), d.other_element_stride);
  } else {
    other.src.axis(d.other_sequence_stride == 0 && d.count > 0 ? 1 : d.count, d.other_sequence_stride);
    other.src.axis(d.length, d.other_element_stride);
  }
  std::vector<unsigned char> bytes(other.src.span_bytes());
  if (!bytes.empty()) fill_src(other, bytes.data());
  return bytes;
}
}  // namespace

lockstep_sums_desc with_other(const test_case& c, const int64_t* offsets) {
  lockstep_sums_desc d = c.sums;
  d.offsets = c.offsets.empty() ? nullptr : offsets;
  d.other = c.other.empty() ? nullptr : c.other.data();
  return d;
}

void parse_sums(tokens& in, test_case& c) {
  c.op = LOCKSTEP_SUMS;
  const int kind = in.one_of(kinds), dtype = in.one_of(dtype_names()), layout = in.one_of(usual_layouts);
  if (kind < 0 || dtype < 1 || layout < 0) in.refuse("say kind/dtype/layout");
  const auto what = static_cast<lockstep_sums_kind>(kind);
  const auto type = static_cast<lockstep_dtype>(dtype);
  const auto ld = in.numbers("ld", 1), stride = in.numbers("stride", 1);
  const bool shared = in.flag("shared");
  const int to = in.one_of(roundings);
  const int64_t correction = in.number("correction", 0);
  const auto size = in.sizes();
  if (size.size() != (layout == 0 ? 1u : 2u)) in.refuse(layout == 0 ? "give one size" : "give two sizes");
  if (c.in_place) in.refuse("it cannot be in place");
  lockstep_sums_desc& d = c.sums;
  if (layout == 0) d = lockstep_sums_full(what, type, size[0], nullptr);
  if (layout == 1)
    d = lockstep_sums_rows(what, type, size[0], size[1], ld.empty() ? size[1] : ld.front(), nullptr,
                           ld.empty() ? size[1] : ld.back());
  if (layout == 2) {
    d = lockstep_sums_rows(what, type, size[1], size[0], 1, nullptr, 1);
    d.element_stride = ld.empty() ? size[1] : ld.front(), d.other_element_stride = ld.empty() ? size[1] : ld.back();
  }
  if (layout > 2) {
    d = lockstep_sums_segments(what, type, size[0], nullptr, nullptr);
    draw_offsets(in, c, layout - 3, size[0], size[1]);
  }
  if (!stride.empty()) {
    if (layout == 2) in.refuse("columns have their stride from the rows");
    d.element_stride = stride.front(), d.other_element_stride = stride.back();
    if (layout == 1)
      d.sequence_stride = in.times(size[1], stride.front()), d.other_sequence_stride = in.times(size[1], stride.back());
  }
  if (shared) d.other_sequence_stride = 0;
  d.correction = correction;
  if (to >= 0) d.result = rounded[to];
  const bool variance = what == LOCKSTEP_SUMS_MEAN_VARIANCE, digest = what == LOCKSTEP_SUMS_DIGEST;
  if (to >= 0 && digest) in.refuse("a digest is not rounded");
  if (to >= 0 && lockstep_dtype_kind(type) != 'f') in.refuse("exact sums are not rounded");
  if (variance && lockstep_dtype_kind(type) != 'f') in.refuse("means and variances are of floats");
  if (digest && correction % 8 != 0) in.refuse("a digest's correction is a multiple of 8");
  if (!variance && !digest && correction != 0) in.refuse("only a variance has a correction");
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(type);
  c.dst.element_bytes = lockstep_dtype_bytes(d.result);
  if (layout > 2) {
    c.src.axis(c.offsets.back(), d.element_stride);
  } else {
    c.src.axis(d.count, d.sequence_stride);
    c.src.axis(d.length, d.element_stride);
  }
  c.dst.axis(d.count, variance || digest ? 2 : 1);
  if (variance || digest) c.dst.axis(2, 1);
  if (what <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES) c.other = other_of(c);
  c.cell = std::string("sums ") + kinds[kind] + " " + dtype_name(dtype) + " " +
           (layout > 2 ? "segments" : usual_layouts[layout]) + (to >= 0 ? std::string(" ") + roundings[to] : "");
}

std::vector<std::string> list_sums(level depth) {
  std::vector<std::string> names;
  for (const std::string kind : kinds)
    for (const std::string dtype :
         {"f16", "bf16", "f32", "f64", "i32", "i64", "i8", "i16", "u8", "u16", "u32", "u64", "bool"}) {
      const bool floats = dtype[0] == 'f' || dtype == "bf16", variance = kind == "meanvar";
      const bool wide = dtype == "i64" || dtype == "u64";
      if (variance && !floats) continue;
      const auto add = [&](const std::string& rest) {
        if (kind == "digest" && rest.find("/to_") != std::string::npos) return;
        names.push_back("sums/" + kind + "/" + dtype + "/" + rest);
      };
      if (kind == "digest")
        for (const char* rest : {"full/5000/correction8", "rows/3x70/correction4096", "full/5/correction800"})
          add(rest);
      const std::string usual = wide ? "/small" : "";
      // Around a vector, a lane row, a leaf, a chunk and trees with odd ones out.
      for (const int n : {1, 2, 3, 7, 8, 9, 15, 33, 127, 128, 129, 1000, 2047, 2048, 2049, 4097, 8191, 8193, 10241})
        add("full/" + std::to_string(n) + (n % 2 != 0 ? "/off1,1" : "") + usual);
      for (const char* rest : {"full/0",
                               "full/70001",
                               "full/300001",
                               "full/5000/stride3,2",
                               "full/9001/stride1,4",
                               "rows/0x5",
                               "rows/5x0",
                               "rows/1x1",
                               "rows/70x33",
                               "rows/20x333/ld340,335",
                               "rows/300x5",
                               "rows/3x9001/stride2,3",
                               "rows/40x70/shared",
                               "rows/7x3000/shared/stride1,2",
                               "rows/2x70001",
                               "columns/33x70",
                               "columns/300x20/ld23,21",
                               "columns/3000x7",
                               "columns/1x40",
                               "columns/0x5",
                               "columns/70001x2",
                               "even/30x100",
                               "mixed/100x50",
                               "nonempty/40x300",
                               "lopsided/300x30000",
                               "mixed/30x90/stride2,1",
                               "mixed/9x5000"})
        add(rest + usual);
      for (const char* rest : {"full/5000/special", "rows/20x70/special", "full/3000/zeros", "full/3000/sparse"})
        add(rest);
      if (!floats) {
        if (wide)
          for (const char* rest : {"full/1001/cross", "rows/5x100/over", "full/5000", "rows/70x33", "full/9000/ties"})
            add(rest);
        else
          add("rows/5x100/over");
        if (dtype == "i64" || dtype == "i32") add("even/9x300/under");
      } else {
        for (const char* rest :
             {"full/9000/one_nan", "full/70001/positive", "full/4000/finite", "full/3000/wide", "rows/9x300/to_f32",
              "rows/9x300/wide/to_f16", "full/5000/to_bf16", "mixed/30x99/to_f32", "even/9x99/to_f16",
              "even/9x99/to_bf16", "full/77/to_f32", "full/77/to_f16", "rows/9x300/to_bf16", "columns/300x9/to_f32",
              "columns/31x9/to_f16", "columns/300x9/special/to_bf16"})
          add(rest);
        // Columns that a thread takes whole: few elements, or many columns.
        if (kind == "dot" || kind == "sqdiff" || variance)
          for (const char* rest : {"columns/2x1001", "columns/9x700/ld703,709", "columns/16x515/special",
                                   "columns/5x70/wide/to_bf16", "columns/21x34001/ld34004,34003", "columns/99x33800"})
            add(rest);
        // Columns and rows that are read 16 bytes at a time, and partial results of leaves that are joined in each way.
        if (kind == "dot" || kind == "abs" || variance)
          for (const char* rest : {"columns/300x72", "columns/700x40/ld48,56", "columns/2100x33/ld40,48/special",
                                   "columns/4200x135/ld136,136"})
            add(rest);
        if (variance)
          for (const char* rest : {"rows/60x264", "rows/60x270/ld272,1/special", "rows/55x1000",
                                   "rows/150x2051/ld2056,1", "columns/2100x1100/ld1104,1"})
            add(rest);
        if (dtype == "f64")
          for (const char* rest : {"full/5000/huge", "rows/20x300/tiny", "rows/9x3000/huge"}) add(rest);
        if (variance)
          for (const char* rest : {"full/1/correction1", "full/5000/correction1", "rows/9x70/correction1/to_f32",
                                   "mixed/60x4/correction2", "rows/4x7/correction9"})
            add(rest);
        if (variance && dtype == "f64")
          for (const char* what : {"/equal", "/nearly"})
            for (const char* shape : {"full/999", "full/70001", "rows/70x33", "rows/9x999", "rows/5x3001",
                                      "columns/33x70", "columns/3000x7", "columns/9x700", "columns/70x34001",
                                      "columns/4100x8", "mixed/30x99", "mixed/9x5000", "full/5000/stride3,1"})
              add(std::string(shape) + what);
      }
      if (depth == level::full && variance && dtype == "f32") add("full/8400003");
      if (depth == level::full)
        for (const char* rest : {"full/1000003", "full/3000001/stride1,2", "rows/20000x64", "rows/33x100001/shared",
                                 "lopsided/5000x300000"})
          add(rest + usual);
    }
  return names;
}

}  // namespace lockstep::cases
