// drawing.hpp - shared by the picture and the page: requests and levels of work as SVG.
#pragma once

#include "text.hpp"
#include "view.hpp"

namespace lockstep::tool::explain {

struct drawing {
  double width, height;
  std::string content;  // SVG elements, from (0, 0)
};

// The requests of a step, side by side as far as the width allows.
drawing step_drawing(const view& v, size_t step, double width);

// Which threads of the block are at work between its barriers.
drawing work_drawing(const view& v);

// How to read the drawings of steps, in sentences.
std::string drawing_key(const view& v, const std::vector<size_t>& steps);

// Rules for the classes that the drawings use, with literal colours: many programs that show
// SVG know no variables.
const char* svg_style();

}  // namespace lockstep::tool::explain
