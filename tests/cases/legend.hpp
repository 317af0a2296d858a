// legend.hpp - how the names of cases are written, for people: help, the manual and pages say it in these words.
#pragma once

#include <span>

namespace lockstep::cases {

// A name, or what may be added to one (it begins with a slash), and what it says.
struct legend_line {
  const char *written, *meaning;
};
std::span<const legend_line> legend();

}  // namespace lockstep::cases
