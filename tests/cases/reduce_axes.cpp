// reduce_axes.cpp - cases reduce_axes/<reduction>/<dtype>/<shape>/axes<k,k..>[/pad<n>][/backwards][/to_<dtype>]: pad:
// rows of the last axis lie n elements farther apart; backwards: the first axis is the one whose elements are
// neighbours.
#include "cases.hpp"
#include "tokens.hpp"

namespace lockstep::cases {
namespace {
constexpr const char* reductions[] = {"sum", "min", "max", "argmin", "argmax", "ssq", "norm2"};
}  // namespace

void parse_reduce_axes(tokens& in, test_case& c) {
  c.op = LOCKSTEP_REDUCE_AXES;
  const int reduction = in.one_of(reduction_names()), dtype = in.one_of(dtype_names());
  if (reduction < 0 || dtype < 1) in.refuse("say reduction/dtype");
  const auto axes = in.numbers("axes", 0, 7);
  const int64_t pad = in.number("pad", 0);
  const bool backwards = in.flag("backwards");
  const int to = in.one_of(roundings);
  const auto shape = in.sizes();
  if (shape.size() > 8) in.refuse("give 1 to 8 sizes");
  if (axes.empty() || axes.size() > shape.size()) in.refuse("say which axes go, axes0,2");
  if (c.in_place) in.refuse("it cannot be in place");
  const std::vector<int32_t> list(axes.begin(), axes.end());
  lockstep_reduce_axes_desc& d = c.reduce_axes;
  d = lockstep_reduce_axes_packed(static_cast<lockstep_reduction>(reduction), static_cast<lockstep_dtype>(dtype),
                                  static_cast<int32_t>(shape.size()), shape.data(), static_cast<int32_t>(list.size()),
                                  list.data());
  if (to >= 0) d.result = rounded[to];
  bool goes[8] = {};
  for (const int32_t axis : list) {
    if (axis >= d.rank || goes[axis]) in.refuse("axes are 0 to the rank less one, each once");
    goes[axis] = true;
  }
  int64_t stride = 1;
  for (int32_t i = 0; i < d.rank; ++i) {
    const int32_t k = backwards ? i : d.rank - 1 - i;
    d.src_strides[k] = stride;
    stride = in.times(stride, in.plus(std::max<int64_t>(d.shape[k], 1), i == 0 ? pad : 0));
  }
  c.dtype = dtype;
  c.src.element_bytes = lockstep_dtype_bytes(d.dtype);
  c.dst.element_bytes = lockstep_dtype_bytes(d.result);
  int64_t results = 1;
  for (int32_t k = 0; k < d.rank; ++k) {
    c.src.axis(d.shape[k], d.src_strides[k]);
    if (!goes[k]) results *= d.shape[k];
  }
  c.dst.axis(results, 1);
  c.cell = std::string("reduce_axes ") + reduction_names()[static_cast<size_t>(reduction)] + " " + dtype_name(dtype) +
           " " + (axes.size() == 1 ? "one" : "many") + (to >= 0 ? std::string(" ") + roundings[to] : "");
}

std::vector<std::string> list_reduce_axes(level depth) {
  std::vector<std::string> names;
  for (const std::string reduction : reductions)
    for (const std::string dtype :
         {"f16", "bf16", "f32", "f64", "i32", "i64", "i8", "i16", "u8", "u16", "u32", "u64", "bool"}) {
      const bool floats = dtype[0] == 'f' || dtype == "bf16", wide = dtype == "i64" || dtype == "u64";
      const bool adds = reduction == "sum" || reduction == "ssq";
      const auto add = [&](const std::string& rest) {
        names.push_back("reduce_axes/" + reduction + "/" + dtype + "/" + rest);
      };
      const std::string usual = wide && adds ? "/small" : "";
      // One axis or some that lie as one; some that do not; axes of one element; broken by padding.
      for (const char* rest : {"7/axes0",
                               "5x6/axes0",
                               "5x6/axes1",
                               "5x6/axes1,0",
                               "40x33x9/axes1",
                               "3x1x9/axes0,1",
                               "5x6x7/axes0,2",
                               "5x6x7/axes2,0/pad3",
                               "31x3x70/axes0,2",
                               "4x5x6x7/axes1,3/pad1",
                               "4x5x6x7/axes0,2",
                               "4x5x6x7/axes3,1,2",
                               "4x5x6x7/axes0,1/backwards",
                               "2x3x2x5x3x2x2x3/axes1,2,4,7",
                               "2x3x1x5x3x1x2x3/axes0,2,5,6/backwards/pad2",
                               "6x2100x3/axes0,2",
                               "300x4x50/axes0,2/off1",
                               "5x0x3/axes0",
                               "9x9000/axes1/pad1",
                               "30001x2/axes0",
                               "200x3x100/axes0,2/backwards"})
        add(rest + usual);
      for (const char* rest : {"3x70x900/axes0,2/special", "9x8x30/axes0,2/ties"}) add(rest);
      if (adds || reduction == "norm2") add("4x0x5/axes1,2");
      if (reduction == "min" || reduction == "argmax") add("2x3x0/axes0,2");
      if (wide && adds)
        for (const char* rest : {"5x6x70/axes0,2/cross", "40x30/axes1/over", "7x30x20/axes0,2/over", "90x3x9/axes1"})
          add(rest);
      const bool rounds = floats ? adds || reduction == "norm2" : reduction == "norm2";
      if (rounds)
        for (const char* rest : {"5x6x7/axes0,2/to_f32", "5x6x7/axes1/to_f16", "5x6x7/axes0,2/to_bf16",
                                 "5x6x7/axes1/to_f32", "5x6x7/axes0,2/to_f16", "5x6x7/axes1/to_bf16"})
          add(rest);
      if (reduction == "norm2" && dtype == "f64")
        for (const char* rest : {"5x6x300/axes0,2/huge", "5x6x300/axes0,2/tiny", "3x2x5000/axes0,2/tiny/pad1"})
          add(rest);
      if (depth == level::full)
        for (const char* rest :
             {"100x64x900/axes0,2", "64x1000x64/axes1", "3000x7x50/axes0,2/pad1", "20x300x200/axes0,1"})
          add(rest + usual);
    }
  return names;
}

}  // namespace lockstep::cases
