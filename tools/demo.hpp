// demo.hpp - the cases of lockstep demo.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "call.hpp"
#include "real_input/sources.hpp"

namespace lockstep::tool {

struct demo_case {
  std::string family;  // "transpose", "square_sum", "stencil", "reduce"
  std::string name;    // "picture, turned"
  array src;
  request what;
  // What the result says about the input, one line; "" for nothing.
  std::function<std::string(const call&, const char* result)> meaning;
};

// Four families on what was found.
std::vector<demo_case> demo_cases(const real_input& in);

}  // namespace lockstep::tool
