// more_types.cpp - the cases of reduce and square_sum for the dtypes that came after I64, for lockstep_reduce of F16
// and BF16, and for results of 16 bits.
#include "cases.hpp"

namespace lockstep::cases {

std::vector<std::string> list_more_types(lockstep_op op) {
  std::vector<std::string> names;
  const bool squares = op == LOCKSTEP_SQUARE_SUM;
  // Around a register of bytes at every level, a leaf, a chunk of the exact kernels, two of them.
  const int lengths[] = {0,   1,   2,   7,   8,   15,   16,   17,   31,   32,   33,   63,   64,    65,        127,
                         128, 129, 255, 256, 257, 1000, 2048, 2049, 4097, 8191, 8192, 8193, 16385, 65536 + 33};
  const char* const layouts[] = {"full/5000/off1",
                                 "full/4099/off3",
                                 "strided/1000/stride3",
                                 "strided/129/stride128",
                                 "strided/9001/stride7/off1",
                                 "rows/17x33",
                                 "rows/5x32/off1",
                                 "rows/40x31/ld37/off1",
                                 "rows/3x8193/ld8195",
                                 "rows/300x7",
                                 "rows/64x128",
                                 "rows/21x15",
                                 "rows/19x100/off5",
                                 "rows/35x63/off1",
                                 "rows/0x5",
                                 "rows/5x0",
                                 "rows/9x100/stride2",
                                 "rows/200x1",
                                 "columns/33x17",
                                 "columns/100x70/ld75/off1",
                                 "columns/8193x5",
                                 "columns/17000x3/off1",
                                 "columns/7x300",
                                 "columns/1x40",
                                 "columns/4097x19/ld21",
                                 "columns/20x257",
                                 "even/20x50",
                                 "even/7x2048",
                                 "mixed/50x4",
                                 "mixed/30x700/off1",
                                 "nonempty/200x3",
                                 "lopsided/100x9000",
                                 "nonempty/11x9000/first5",
                                 "nonempty/30x20/stride3",
                                 "even/5x0"};
  const char* const fills[] = {"full/3000/ties",        "rows/50x40/ties",   "columns/300x20/ties",
                               "nonempty/50x40/ties",   "full/9000/zeros",   "columns/50x30/zeros",
                               "rows/40x70/zeros",      "full/20000/sparse", "full/2000/special",
                               "rows/60x70/special",    "rows/37x9/special", "columns/70x60/special",
                               "nonempty/60x70/special"};
  for (const std::string dtype : {"f16", "bf16", "i8", "i16", "u8", "u16", "u32", "u64", "bool"}) {
    const bool floats = dtype.find('f') != std::string::npos;
    if (squares && floats) continue;
    const std::vector<std::string> reductions = squares
                                                    ? std::vector<std::string>{"ssq", "norm2"}
                                                    : std::vector<std::string>{"sum", "min", "max", "argmin", "argmax"};
    for (const std::string& reduction : reductions) {
      const auto add = [&](const std::string& rest) {
        names.push_back(std::string(squares ? "square_sum/" : "reduce/") + reduction + "/" + dtype + "/" + rest);
      };
      // Full-range sums of u64 overflow at once: that is a case too, but not the usual one.
      const bool sum = reduction == "sum" || reduction == "ssq";
      const std::string usual = dtype == "u64" && sum ? "/small" : "";
      for (const int n : lengths) add("full/" + std::to_string(n) + usual);
      for (const char* rest : layouts) add(rest + usual);
      for (const char* rest : fills) add(rest);
      if (floats)
        for (const char* rest : {"full/70001/zeros", "full/70001/positive", "full/70001/one_nan", "full/7000/one_nan",
                                 "rows/20x300/one_nan", "columns/300x20/one_nan", "full/4000/finite",
                                 "rows/30x33/finite", "full/3000/wide", "columns/2100x7/wide"})
          add(rest);
      if (dtype == "u64" && sum)
        for (const char* rest : {"full/1", "full/3000", "rows/30x40", "columns/40x30", "mixed/20x5", "full/5000/over",
                                 "full/2/over", "rows/5x100/over", "columns/100x5/over", "nonempty/20x30/over"})
          add(rest);
      if (floats && sum)
        for (const char* rest :
             {"full/5000/to_f32", "rows/20x33/to_f32/wide", "columns/33x20/to_f32", "mixed/20x33/to_f32/finite"})
          add(rest);
      if (reduction == "norm2")
        for (const char* rest : {"full/300/to_f32", "rows/20x33/to_f32", "columns/33x20/to_f32", "mixed/20x33/to_f32"})
          add(rest);
    }
  }
  // Results of 16 bits, ties and overflow among them.
  for (const std::string to : {"to_f16", "to_bf16"})
    for (const std::string& reduction :
         squares ? std::vector<std::string>{"ssq", "norm2"} : std::vector<std::string>{"sum"})
      for (const std::string dtype :
           {"f16", "bf16", "f32", "f64", "i32", "i64", "i8", "i16", "u8", "u16", "u32", "u64", "bool"}) {
        if (dtype.find('f') == std::string::npos && reduction != "norm2") continue;
        for (const std::string rest : {"full/1", "full/2", "full/3000", "rows/300x1", "rows/40x33", "rows/30x1500",
                                       "columns/33x20", "columns/1x90", "mixed/40x9", "rows/200x2/special"})
          names.push_back(std::string(squares ? "square_sum/" : "reduce/") + reduction + "/" + dtype + "/" + rest +
                          "/" + to);
        if (dtype.find('f') != std::string::npos)
          for (const std::string rest : {"rows/400x1/wide", "rows/300x2/finite", "full/2000/one_nan"})
            names.push_back(std::string(squares ? "square_sum/" : "reduce/") + reduction + "/" + dtype + "/" + rest +
                            "/" + to);
      }
  return names;
}

}  // namespace lockstep::cases
