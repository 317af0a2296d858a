// scan.cpp - cases
// scan/<reduction>/<dtype>/<layout>/<sizes>[/ld<src>,<dst>][/stride<src>,<dst>][/exclusive][/to_<result>][/behind<n>]:
// layouts full/<n>, rows/<r>x<c>, columns/<r>x<c> and the segments of sequences.cpp. behind: sequences are the ends of
// longer ones, behind n elements of each.
#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* reductions[] = {"sum", "min", "max"};
constexpr const char* scan_dtypes[] = {"", "f16", "bf16", "f32", "f64", "i32", "i64"};
constexpr const char* scan_results[] = {"to_f32", "to_f64"};

std::vector<unsigned char> draw_prefix(const test_case& c) {
  if (c.bare) return {0};
  test_case other;
  other.dtype = c.dtype;
  other.what = c.what == fill::over || c.what == fill::under || c.what == fill::cross ? fill::small : c.what;
  other.seed = mix(c.seed + 5);
  other.src.element_bytes = c.src.element_bytes;
  other.src.axis(c.scan.count * c.scan.first, 1);
  std::vector<unsigned char> bytes(other.src.span_bytes());
  if (!bytes.empty()) fill_src(other, bytes.data());
  return bytes;
}
}  // namespace

void parse_scan(tokens& in, test_case& c) {
  c.op = LOCKSTEP_SCAN;
  const int reduction = in.one_of(reductions), dtype = in.one_of(scan_dtypes), layout = in.one_of(usual_layouts);
  if (reduction < 0 || dtype < 1 || layout < 0) in.refuse("say reduction/dtype/layout");
  const auto what = static_cast<lockstep_reduction>(reduction);
  const auto type = static_cast<lockstep_dtype>(dtype);
  const bool exclusive = in.flag("exclusive");
  const int result = in.one_of(scan_results);
  const int64_t behind = in.number("behind", 0, 1, 1 << 20);
  const auto ld = in.numbers("ld", 1), stride = in.numbers("stride", 1);
  const auto size = in.sizes();
  if (size.size() != (layout == 0 ? 1u : 2u)) in.refuse(layout == 0 ? "give one size" : "give two sizes");
  lockstep_scan_desc& d = c.scan;
  const int64_t apart = ld.empty() ? layout == 0 ? 0 : size[1] : ld.front();
  if (layout == 0) d = lockstep_scan_full(what, type, size[0]);
  if (layout == 1) d = lockstep_scan_rows(what, type, size[0], size[1], apart);
  if (layout == 2) d = lockstep_scan_columns(what, type, size[0], size[1], apart);
  if (layout == 1 && !ld.empty()) d.dst_sequence_stride = ld.back();
  if (layout == 2 && !ld.empty()) d.dst_element_stride = ld.back();
  if (layout > 2) {
    d = lockstep_scan_segments(what, type, size[0], nullptr);
    draw_offsets(in, c, layout - 3, size[0], size[1]);
  }
  if (!stride.empty()) {
    if (layout == 2) in.refuse("columns have their stride from the rows");
    d.element_stride = stride.front(), d.dst_element_stride = stride.back();
    if (layout == 1)
      d.sequence_stride = in.times(size[1], stride.front()), d.dst_sequence_stride = in.times(size[1], stride.back());
  }
  d.exclusive = exclusive ? 1 : 0;
  if (result >= 0) d.result = result == 0 ? LOCKSTEP_F32 : LOCKSTEP_F64;
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(type);
  c.dst.element_bytes = lockstep_dtype_bytes(d.result);
  if (layout > 2) {
    c.src.axis(c.offsets.back(), d.element_stride);
    c.dst.axis(c.offsets.back(), d.dst_element_stride);
  } else {
    c.src.axis(d.count, d.sequence_stride);
    c.src.axis(d.length, d.element_stride);
    c.dst.axis(d.count, d.dst_sequence_stride);
    c.dst.axis(d.length, d.dst_element_stride);
  }
  if (behind != 0) {
    if (layout > 2) in.refuse("segments are whole sequences");
    if (what == LOCKSTEP_SUM && type <= LOCKSTEP_F64 && behind % 2048 != 0)
      in.refuse("sums of floats begin at a multiple of 2048");
    d.first = behind;
    if (in.times(d.count, behind) > 1 << 24) in.too_large();
    c.prefix = draw_prefix(c);
    if (!c.bare) c.before = state_of_prefix(c);
  }
  c.cell = std::string("scan ") + reductions[reduction] + " " + scan_dtypes[dtype] + " " +
           (layout > 2 ? "segments" : usual_layouts[layout]) + " " +
           (result >= 0  ? scan_results[result]
            : c.in_place ? "in_place"
            : behind > 0 ? "behind"
            : exclusive  ? "exclusive"
                         : "inclusive");
}

std::vector<std::string> list_scan(level depth) {
  std::vector<std::string> names;
  for (const std::string dtype : {"f16", "bf16", "f32", "f64", "i32", "i64"})
    for (const std::string reduction : {"sum", "min", "max"}) {
      const bool sum = reduction == "sum", integer = dtype[0] == 'i';
      const std::string usual = dtype == "i64" && sum ? "/small" : "";
      const auto add = [&](const std::string& rest) {
        names.push_back("scan/" + reduction + "/" + dtype + "/" + rest);
      };
      for (const int n : {0, 1, 2, 7, 8, 9, 127, 128, 129, 257, 2047, 2048, 2049, 4097, 10241})
        for (const char* way : {"", "/exclusive"})
          add("full/" + std::to_string(n) + usual + way + (n % 2 != 0 ? "/off1,3" : ""));
      for (const char* way : {"", "/exclusive"})
        for (const char* rest : {"full/70001",
                                 "rows/7x33",
                                 "rows/40x300/ld307,301",
                                 "rows/3x5000",
                                 "rows/5x0",
                                 "rows/0x5",
                                 "rows/200x9/off1",
                                 "rows/700x1",
                                 "rows/300x14/off1,3",
                                 "rows/131x100",
                                 "rows/70x127/off3,1",
                                 "rows/6x2049/stride2,3",
                                 "columns/33x17",
                                 "columns/2049x5",
                                 "columns/5000x3/ld4,7",
                                 "columns/300x70/off1",
                                 "columns/1x40",
                                 "columns/4200x19",
                                 "even/20x50",
                                 "even/5x0",
                                 "mixed/50x40",
                                 "mixed/30x700/off1",
                                 "nonempty/200x3",
                                 "lopsided/60x9000",
                                 "lopsided/40x70001",
                                 "nonempty/30x20/stride3",
                                 "full/3000/stride2"})
          add(rest + usual + way);
      // Behind trees with few and many odd ones out, around the groups of 32 leaves that others are joined from.
      for (const char* way : {"", "/exclusive"})
        for (const char* rest :
             {"full/1/behind2048", "full/2048/behind6144", "full/2049/behind63488", "full/70001/behind65536",
              "full/9000/behind137216/off1", "rows/3x5000/behind75776", "rows/40x300/ld307,301/behind4096",
              "rows/6x2049/stride2,3/behind133120", "columns/33x17/behind2048", "columns/4200x19/behind14336/ld20,21",
              "full/200001/behind2048"})
          add(rest + usual + way);
      if (!sum || integer) add("rows/7x33/behind5" + usual), add("columns/300x9/behind1/exclusive" + usual);
      for (const char* rest : {"full/5000/special/behind4096", "rows/20x70/special/exclusive/behind2048",
                               "columns/300x20/special/behind6144", "full/5000/special", "rows/20x70/special",
                               "columns/300x20/special/exclusive", "nonempty/50x40/special", "full/3000/ties",
                               "full/5000/zeros", "full/3000/sparse/exclusive"})
        add(rest);
      // Several of the blocks that two threads take a long scan by.
      if (dtype == "f32" || dtype == "i64") add("full/300001" + usual + "/exclusive");
      if (!sum || !integer) {
        for (const char* rest :
             {"full/5000/inplace/behind4096", "columns/2100x9/inplace/exclusive/behind2048", "full/5000/inplace",
              "full/70001/inplace/exclusive", "rows/9x3000/inplace/exclusive/off1", "columns/2100x9/inplace",
              "rows/300x13/inplace/exclusive/off1", "rows/90x128/inplace", "mixed/30x300/inplace/exclusive",
              "columns/90x30/inplace/exclusive"})
          add(rest);
      } else if (dtype == "i64") {
        for (const char* rest :
             {"full/5000/inplace/small", "full/70001/inplace/exclusive/small", "columns/2100x9/inplace/small",
              "rows/9x3000/inplace/exclusive/off1/small", "mixed/30x300/inplace/exclusive/small", "full/1001/cross",
              "full/3000", "rows/9x3000/cross", "columns/300x9/cross/exclusive", "full/5000/over",
              "rows/5x100/over/exclusive", "rows/200x15/over", "rows/200x15/inplace/small", "even/9x300/under",
              "full/70001/cross"})
          add(rest);
      }
      if (!integer) {
        for (const char* rest : {"full/9000/one_nan", "full/70001/positive", "full/4000/finite", "full/3000/wide"})
          add(rest);
        if (sum)
          for (const char* rest :
               {"full/5000/to_f32", "full/70001/to_f64", "rows/20x333/to_f32/wide", "columns/2100x20/to_f32",
                "mixed/20x333/to_f32/finite", "full/3000/to_f64/exclusive/special"})
            add(rest);
      }
      if (depth == level::full)
        for (const char* rest : {"full/1000003", "full/1000003/exclusive", "rows/70x20000", "columns/20000x33",
                                 "lopsided/5000x300000", "rows/20000x64"})
          add(rest + usual);
    }
  return names;
}

}  // namespace lockstep::cases
