// reduce.cpp - the cases of reduce; how they are written: sequences.cpp.
#include "cases.hpp"

namespace lockstep::cases {

std::vector<std::string> list_reduce(level depth) {
  std::vector<std::string> names;
  const int lengths[] = {0,   1,   2,    15,   31,   32,   33,   64,   127,   128,
                         129, 257, 1000, 2047, 2048, 2049, 4097, 8191, 10241, 65536 + 33};
  for (const std::string dtype : {"f32", "f64", "i32", "i64"})
    for (const std::string reduction : {"sum", "min", "max", "argmin", "argmax"}) {
      const bool integer = dtype[0] == 'i', sum = reduction == "sum";
      const auto add = [&](const std::string& rest) {
        names.push_back("reduce/" + reduction + "/" + dtype + "/" + rest);
      };
      const std::string usual = dtype == "i64" && sum ? "/small" : "";
      for (const int n : lengths) add("full/" + std::to_string(n) + usual);
      for (const char* rest : {"full/5000/off1",
                               "strided/1000/stride3",
                               "strided/5003/stride7/off1",
                               "strided/129/stride128",
                               "rows/17x33",
                               "rows/5x32",
                               "rows/40x31/ld37/off1",
                               "rows/3x2049/ld2051",
                               "rows/2x6000",
                               "rows/300x7",
                               "rows/64x128",
                               "rows/21x15",
                               "rows/19x100",
                               "rows/35x63/off1",
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
                               "columns/1112x82",
                               "columns/1111x82",
                               "columns/4111x300",
                               "columns/200x70",
                               "columns/16x45/off1",
                               "even/20x50",
                               "even/7x2048",
                               "mixed/50x4",
                               "mixed/30x700/off1",
                               "nonempty/200x3",
                               "lopsided/100x9000",
                               "nonempty/11x3000/first5",
                               "nonempty/30x20/stride3",
                               "even/5x0"})
        add(rest + usual);
      for (const char* rest :
           {"full/3000/ties", "rows/50x40/ties", "columns/300x20/ties", "nonempty/50x40/ties", "full/9000/zeros",
            "columns/50x30/zeros", "full/5000/sparse", "full/2000/special", "rows/60x70/special", "rows/37x9/special",
            "rows/50x33/special", "rows/19x100/ties", "columns/70x60/special", "nonempty/50x40/special"})
        add(rest);
      // Rows of a few elements, of every length, close together and apart.
      for (int n = 1; n <= 8; ++n) {
        add("rows/" + std::to_string(40 + n) + "x" + std::to_string(n) + "/special");
        add("rows/37x" + std::to_string(n) + "/ld" + std::to_string(n + 2) + "/off1/ties");
      }
      for (const char* rest : {"rows/700x3/wide", "rows/700x2/wide"})
        if (!integer && sum) add(rest);
      // Several leaves a row, which a GPU's block shares among its warps: whole, short, and short of a whole load.
      for (const char* rest : {"rows/9x6144/ties", "rows/12x6144/special", "rows/9x5000/ties", "rows/12x9000/special",
                               "rows/9x4099/ld4100/ties", "rows/5x20002/ld20004/special"})
        add(rest);
      // Segments enough for several a warp of a GPU, all short or not; columns enough for a thread each.
      if (reduction == "sum" || reduction == "argmax")
        for (const char* rest : {"nonempty/204000x5", "nonempty/300x60", "columns/50x34001"}) add(rest + usual);
      if (reduction == "max") add("nonempty/204000x7/ties");
      // Chunks enough that two are read side by side, of one sign, with winners in both.
      for (const char* rest : {"full/70001/ties", "full/70001/sparse", "full/70001/off1/special"}) add(rest);
      // A few long rows, whose parts a CPU's threads share.
      if (dtype == "f32" || dtype == "f64" || dtype == "i32") add("rows/5x70001/ties");
      if (!integer) {
        for (const char* rest : {"full/70001/zeros", "full/70001/positive", "full/70001/one_nan", "full/7000/one_nan",
                                 "rows/20x300/one_nan", "columns/300x20/one_nan", "full/4000/finite",
                                 "rows/30x33/finite", "full/3000/wide", "columns/2100x7/wide"})
          add(rest);
        // Few rows of enough elements that a GPU adds 16 bytes of each at a time; the last elements are fewer.
        if (sum)
          for (const char* rest :
               {"columns/2x140000/special", "columns/4x280009/ld280064/wide", "columns/5x280003/ld280064",
                "columns/8x140000/finite", "columns/16x140001/ld140032/wide"})
            add(rest);
        if (sum && dtype[1] == '1')
          for (const std::string rest :
               {"columns/3x2056/special", "columns/4x60003/ld60032/wide", "columns/9x2049/ld2064"})
            add(rest + "/to_f16"), add(rest + "/to_bf16");
        if (sum)
          for (const char* rest :
               {"full/5000/to_f32", "rows/20x33/to_f32/wide", "columns/33x20/to_f32", "mixed/20x33/to_f32/finite"})
            add(rest);
      } else {
        for (const char* rest : {"full/3000/small", "rows/20x30/small", "columns/30x20/small"}) add(rest);
        if (sum && dtype == "i64")
          for (const char* rest :
               {"full/3000", "rows/30x40", "full/1001/cross", "rows/9x3000/cross", "columns/300x9/cross",
                "even/9x300/cross", "full/5000/over", "full/2/over", "rows/5x100/over", "columns/100x5/over",
                "nonempty/20x30/over", "full/5000/under", "rows/7x33/under", "columns/33x7/under"})
            add(rest);
      }
      // Enough short rows that a GPU stages them; every width of a thread's share, alignment and gap.
      if (dtype[1] == '3')
        for (const char* rest :
             {"rows/8300x32", "rows/8300x32/off1/ties", "rows/16500x16/special", "rows/24000x11/off3",
              "rows/9300x29/ld32/off1", "rows/9300x28/ld28/ties", "rows/4200x64/special", "rows/5000x57/ld60",
              "rows/2700x100/ties", "rows/2100x128/off2", "rows/2100x128", "rows/8300x32/ld40/ties",
              "rows/33000x8/ties", "rows/14000x20/special", "rows/2900x92/ld100/ties", "rows/1030x257/special",
              "rows/900x300/ld333/off1", "rows/590x448",
              // Rows of several leaves that begin anywhere.
              "rows/7x16383/wide", "rows/5x8192/ld8195/off3", "rows/6x2050/off2", "rows/4x14337/ld14400/off1"})
          add(rest);
      // And so many of them that a GPU gives each to one block: of 8 leaves, and a short last one.
      if (sum && dtype == "f32")
        for (const char* rest : {"rows/130x16384/off1", "rows/140x14500/ld14501", "rows/210x10000/off3"}) add(rest);
      if (depth == level::full)
        for (const char* rest :
             {"full/1000003", "full/524288", "full/300000/off1", "strided/200001/stride5", "rows/3000x257",
              "rows/70x20000", "rows/100000x8", "columns/20000x33", "columns/300x2001/ld2007", "columns/100000x4",
              "mixed/2000x300", "lopsided/50000x300000", "nonempty/100000x4", "even/300x2049", "rows/2200x4096",
              "rows/2200x4097"})
          add(rest + usual);
      if (depth == level::full && !sum)
        for (const char* rest : {"rows/2200x4096/ties", "rows/2200x4096/special"}) add(rest);
    }
  return names;
}

}  // namespace lockstep::cases
