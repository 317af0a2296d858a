// drawing.hpp - what the picture and the page share.
#pragma once

#include <fmt/format.h>

#include "view.hpp"

namespace lockstep::tool::explain {

struct drawing {
  double width, height;
  std::string content;  // SVG elements, from (0, 0)
};
drawing step_drawing(const view& v, size_t step, double width);
const char* svg_style();
std::string escaped(const std::string& text);
std::vector<std::string> broken(const std::string& text, size_t width);  // into lines

}  // namespace lockstep::tool::explain
