// more_reductions.cpp - the cases of reduce and reduce_axes for the reductions from COUNT_NONZERO on, every dtype.
#include "cases.hpp"

namespace lockstep::cases {

std::vector<std::string> list_more_reductions(lockstep_op op) {
  std::vector<std::string> names;
  const bool axes = op == LOCKSTEP_REDUCE_AXES;
  for (const std::string reduction : {"count", "any", "all", "prod", "nan_sum", "nan_min", "nan_max"})
    for (const std::string dtype :
         {"f16", "bf16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"}) {
      const bool floats = dtype.find('f') != std::string::npos, product = reduction == "prod";
      const bool extreme = reduction == "nan_min" || reduction == "nan_max";
      const auto add = [&](const std::string& rest) {
        names.push_back((axes ? "reduce_axes/" : "reduce/") + reduction + "/" + dtype + "/" + rest);
      };
      if (axes) {
        for (const char* rest :
             {"7x30x20/axes0,2", "31x3x70/axes1", "4x5x60x7/axes1,3/pad1", "20x30x4/axes0,1/backwards",
              "6x2100x3/axes1", "2x3x1x5x3x1x2x3/axes0,2,5,6/backwards/pad2"})
          for (const char* fill : {"/units", "/special"}) add(std::string(rest) + fill);
        if (!extreme) add("4x0x5/axes1,2");
        continue;
      }
      for (const int n : {0, 1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 1000, 2047, 2048, 2049, 8193, 10241, 65569})
        add("full/" + std::to_string(n) + "/units");
      for (const char* rest : {"full/5000/off1",
                               "strided/1003/stride3",
                               "rows/17x33",
                               "rows/40x31/ld37/off1",
                               "rows/300x7",
                               "rows/500x3",
                               "rows/64x128",
                               "rows/3x2049/ld2051",
                               "rows/2x9000",
                               "rows/9x100/stride2",
                               "columns/33x17",
                               "columns/300x7",
                               "columns/100x70/ld75/off1",
                               "columns/2049x5",
                               "columns/4097x300",
                               "columns/9000x3",
                               "even/20x50",
                               "mixed/50x4",
                               "mixed/30x700/off1",
                               "nonempty/11x3000/first5",
                               "nonempty/30x20/stride3",
                               "lopsided/100x9000"})
        for (const char* fill : {"/units", "/special", "/ties"}) add(std::string(rest) + fill);
      for (const char* rest : {"full/9000/zeros", "columns/50x30/zeros", "full/20000/sparse", "rows/30x900/sparse",
                               "full/70001/units", "rows/5x70001/units", "columns/700x90"})
        add(rest);
      if (floats)
        for (const char* rest : {"full/70001/one_nan", "full/7000/one_nan", "rows/20x300/one_nan",
                                 "columns/300x20/one_nan", "full/3000/wide", "columns/2100x7/wide"})
          add(rest);
      else if (product)
        for (const char* rest :
             {"full/70/small", "full/3", "rows/40x5", "columns/5x40", "nonempty/50x3", "full/2/cross"})
          add(rest);
      if (floats && (product || reduction == "nan_sum"))
        for (const std::string to : {"/to_f32", "/to_f16", "/to_bf16"})
          for (const char* rest :
               {"full/500/units", "rows/20x33/units", "rows/300x1/wide", "columns/33x20/units", "mixed/20x33/units"})
            add(rest + to);
    }
  return names;
}

}  // namespace lockstep::cases
