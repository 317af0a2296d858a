// square_sum.cpp - the cases of square_sum; how they are written: sequences.cpp.
#include "cases.hpp"

namespace lockstep::cases {

std::vector<std::string> list_square_sum(level depth) {
  std::vector<std::string> names;
  // Around a lane row, a leaf, several leaves, subtrees with an odd one out.
  const int lengths[] = {0,   1,    2,    31,   32,   33,   63,   65,   127,   128,       129,
                         255, 1000, 2047, 2048, 2049, 4095, 4097, 6144, 10241, 65536 + 77};
  for (const std::string dtype : {"f16", "bf16", "f32", "f64", "i32", "i64"})
    for (const std::string reduction : {"ssq", "norm2"}) {
      const bool integer = dtype[0] == 'i';
      const auto add = [&](const std::string& rest) {
        names.push_back("square_sum/" + reduction + "/" + dtype + "/" + rest);
      };
      // Full-range i64 squares overflow at once: that is a case too, but not the usual one.
      const std::string usual = dtype == "i64" ? "/small" : "";
      for (const int n : lengths) add("full/" + std::to_string(n) + usual);
      for (const char* rest : {"full/5000/off1",
                               "full/4099/off3",
                               "strided/1000/stride3",
                               "strided/5003/stride7/off1",
                               "strided/129/stride128",
                               "rows/17x33",
                               "rows/5x32",
                               "rows/40x31/ld37/off1",
                               "rows/3x2049/ld2051",
                               "rows/2x6000",
                               "rows/9x6144",
                               "rows/12x9000",
                               "rows/5x20002/ld20004",
                               "rows/300x7",
                               "rows/64x128",
                               "rows/0x5",
                               "rows/5x0",
                               "rows/9x100/stride2",
                               "columns/33x17",
                               "columns/100x70/ld75/off1",
                               "columns/2049x5",
                               "columns/5000x3",
                               "columns/7x300",
                               "columns/1x40",
                               "columns/4097x19/ld21",
                               "columns/5000x6",
                               "columns/300x34/ld36",
                               "columns/100x70/ld74/off2",
                               "even/20x50",
                               "even/7x2048",
                               "mixed/50x40",
                               "mixed/30x700/off1",
                               "nonempty/200x3",
                               "lopsided/100x9000",
                               "mixed/11x3000/first5",
                               "nonempty/30x20/stride3",
                               "even/5x0",
                               "full/3000/sparse",
                               "full/9000/zeros",
                               "rows/4x40/zeros"})
        add(rest + (std::string(rest).find("sparse") == std::string::npos &&
                            std::string(rest).find("zeros") == std::string::npos
                        ? usual
                        : ""));
      if (!integer)
        for (const char* rest : {"full/1000/special", "full/5000/finite", "rows/20x50/special", "rows/9x4097/finite",
                                 "columns/60x20/special", "columns/3000x5/one_nan", "nonempty/60x30/special",
                                 "full/7000/one_nan", "full/5000/wide", "rows/40x33/wide", "full/5000/to_f32",
                                 "rows/20x33/to_f32/wide", "columns/33x20/to_f32", "mixed/20x33/to_f32/finite"})
          add(rest);
      // Rows of a few elements, of every length, close together and apart.
      for (int n = 1; n <= 4 && !integer; ++n) {
        add("rows/" + std::to_string(40 + n) + "x" + std::to_string(n) + "/special");
        add("rows/37x" + std::to_string(n) + "/ld" + std::to_string(n + 2) + "/off1/wide");
      }
      if (!integer) add("rows/600x3/to_f32/wide");
      if (dtype == "f64")
        for (const char* rest :
             {"rows/30x3/huge", "rows/30x3/tiny", "full/1/huge", "full/5000/huge", "full/1/tiny", "full/3/tiny",
              "full/5000/tiny", "rows/30x40/huge", "rows/30x40/tiny", "columns/40x30/huge", "columns/40x30/tiny",
              "nonempty/40x50/huge", "lopsided/40x5000/tiny", "full/4097/tiny/to_f32"})
          add(rest);
      if (dtype == "f64")  // rows of a warp or a block that leave the range and rows that do not, every kernel's
        for (const char* rest :
             {"rows/900x3/wide", "rows/300x1/wide", "rows/64x5/sparse", "rows/50x300/huge", "rows/51x300/tiny",
              "rows/9x300/stride2/tiny", "rows/9x3000/huge", "rows/7x5000/tiny", "rows/5x2100/sparse",
              "rows/900x3/wide/to_f32", "mixed/40x20/wide", "nonempty/300x60/huge", "nonempty/204000x2/wide",
              "columns/40x34000/huge", "mixed/20x40000/tiny"})
          add(rest);
      if (integer) {
        for (const char* rest : {"full/1", "full/4", "full/3000", "rows/10x20", "columns/20x10", "mixed/20x5"})
          add(rest);
        for (const char* rest : {"full/1000/special", "rows/30x3/special", "columns/3x30/special", "full/2500/ties"})
          add(rest);
        if (reduction == "norm2") add("full/3000/to_f32" + usual);
        if (reduction == "norm2") add("rows/30x20/to_f32" + usual);
        if (reduction == "norm2") add("columns/20x30/to_f32" + usual);
        if (reduction == "norm2") add("mixed/20x30/to_f32" + usual);
      }
      // Segments enough for several a warp of a GPU, all short or not, some of them empty; columns enough for a
      // thread each.
      if (reduction == "ssq" && (dtype == "f16" || dtype == "f32" || dtype == "f64" || dtype == "i64"))
        for (const char* rest : {"mixed/204000x5/off1", "nonempty/204000x9", "mixed/300x60", "columns/7x34000",
                                 "columns/50x34001/ld34003"})
          add(rest + usual);
      if (reduction == "ssq" && dtype == "f32")
        for (const char* rest : {"nonempty/204000x17", "columns/100x34001"}) add(rest);
      if (dtype == "f16" || dtype == "bf16")  // the same rows of 2 bytes
        for (const char* rest :
             {"rows/8300x32", "rows/16500x16/off1", "rows/24000x11/off3", "rows/9300x29/ld32/off1", "rows/4200x64/off3",
              "rows/8300x33", "rows/2100x128/ld132", "rows/1030x257/off1", "rows/330x800/off5", "rows/300x896/special"})
          add(rest);
      if (dtype[1] == '3')  // enough short rows that a GPU stages them
        for (const char* rest : {"rows/8300x32", "rows/16500x16", "rows/4200x64", "rows/2100x128/ld132", "rows/33000x8",
                                 "rows/4400x60", "rows/9300x29/ld32/off1", "rows/4200x64/off3", "rows/1030x257/off1",
                                 "rows/7x16383", "rows/5x8192/ld8195/off3"})  // rows of leaves that begin anywhere
          add(rest);
      if (depth == level::full) {
        for (const char* rest :
             {"full/1000003", "full/524288", "full/300000/off1", "strided/200001/stride5", "rows/3000x257",
              "rows/70x20000", "rows/100000x8", "columns/20000x33", "columns/300x2001/ld2007", "columns/100000x4",
              "mixed/2000x300", "lopsided/50000x300000", "nonempty/100000x4", "even/300x2049", "rows/2200x4097"})
          add(rest + usual);
        if (reduction == "ssq" && dtype[1] != '3') add("columns/2100001x4" + usual);  // more leaves than a warp joins
        if (!integer)
          for (const char* rest : {"full/500001/wide", "rows/500x501/special", "columns/5001x60/finite"}) add(rest);
      }
    }
  return names;
}

}  // namespace lockstep::cases
