// demo_cases.cpp - the four families on real input: transpose and permute, sums of
// squares, stencils, reductions and shuffles.
#include <cmath>
#include <cstring>
#include <optional>

#include "demo.hpp"

namespace lockstep::tool {
namespace {

template <class Number>
Number at(const char* data, int64_t i) {
  Number value;
  std::memcpy(&value, data + static_cast<size_t>(i) * sizeof value, sizeof value);
  return value;
}

request make(lockstep_op op) {
  request r;
  r.op = op;
  return r;
}
request squares(const char* reduction) {
  request r = make(LOCKSTEP_SQUARE_SUM);
  r.reduction = reduction;
  return r;
}
request reduced(const char* reduction, std::optional<int64_t> axis) {
  request r = make(LOCKSTEP_REDUCE);
  r.reduction = reduction;
  r.axis = axis;
  return r;
}
request filtered(int rank, int radius, std::vector<double> coefficients, const char* form) {
  request r = make(LOCKSTEP_STENCIL);
  r.rank = rank;
  r.radius = radius;
  r.coefficients = std::move(coefficients);
  r.form = form;
  r.boundary = "mirror";
  return r;
}

std::string nothing(const call&, const char*) { return ""; }

// Shuffles need whole warps.
array whole_warps(array a) {
  a.header.shape[0] -= a.header.shape[0] % 32;
  return a;
}

}  // namespace

std::vector<demo_case> demo_cases(const real_input& in) {
  std::vector<demo_case> cases;
  const auto pixels = static_cast<double>(in.picture.header.elements());
  const auto samples = static_cast<double>(in.signal.header.elements());
  const auto add = [&](const char* family, const char* name, const array& src, request what,
                       decltype(demo_case::meaning) meaning) {
    cases.push_back({family, name, src, std::move(what), std::move(meaning)});
  };

  add("transpose", "picture on its side", in.picture, make(LOCKSTEP_TRANSPOSE), nothing);
  if (in.color.header.shape.size() == 3) {
    request planes = make(LOCKSTEP_PERMUTE);
    planes.axes = {2, 0, 1};
    add("transpose", "pixels to color planes", in.color, planes, nothing);
  }

  add("square_sum", "energy of the picture", in.picture, squares("sum_of_squares"),
      [pixels](const call&, const char* r) {
        return format_text("root mean square {:.4f} of 255", std::sqrt(at<double>(r, 0) / pixels));
      });
  add("square_sum", "norm of the signal", in.signal, squares("norm2"), [samples](const call&, const char* r) {
    return format_text("loudness {:.2f} dB of full scale", 20 * std::log10(at<double>(r, 0) / std::sqrt(samples)));
  });

  // The eighth-order central second difference, as in wave equations: edges.
  add("stencil", "edges of the picture", in.picture,
      filtered(2, 4,
               {-2 * 205.0 / 72, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560, 8.0 / 5, -1.0 / 5, 8.0 / 315, -1.0 / 560},
               "symmetric"),
      nothing);
  // Each weight is at most a ninth: a moving average, applied three times.
  request smooth = filtered(1, 4, {0.2, 0.16, 0.12, 0.08, 0.04}, "symmetric");
  smooth.sweeps = 3;
  add("stencil", "signal without hiss", in.signal, smooth, nothing);

  const int64_t columns = in.table.header.shape[1];
  const bool geoid = in.table_from.path.ends_with(".gtx");
  add("reduce", "highest of the table", in.table, reduced("argmax", {}),
      [=, table = in.table](const call&, const char* r) {
        const auto i = at<int64_t>(r, 0);
        if (!geoid) return format_text("{} in row {}, column {}", at<float>(table.data, i), i / columns, i % columns);
        return format_text("{:.2f} m at latitude {:.2f}, longitude {:.2f}",
                           static_cast<double>(at<float>(table.data, i)), -90 + 0.25 * static_cast<double>(i / columns),
                           -180 + 0.25 * static_cast<double>(i % columns));
      });
  add("reduce", "sum of each table row", in.table, reduced("sum", -1), nothing);
  add("reduce", "sum of each picture column", in.picture, reduced("sum", 0), nothing);
  // Segments are lines; their offsets are a second array.
  request lines = reduced("sum", {});
  lines.segments = std::make_shared<array>(in.lines);
  add("reduce", "sum of each text line", in.text, lines,
      [](const call& c, const char*) { return format_text("{} lines", c.result.elements()); });
  request butterfly = make(LOCKSTEP_SHUFFLE);
  butterfly.kind = "xor";
  butterfly.operand = 16;
  add("reduce", "picture row, warp butterfly", whole_warps([&] {
        array a = in.picture;
        a.header.shape = {a.header.elements()};
        return a;
      }()),
      butterfly, nothing);
  return cases;
}

}  // namespace lockstep::tool
