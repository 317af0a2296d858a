// legend.hpp - the syntax of case names, as texts for help, the manual and pages.
#pragma once

#include <span>

namespace lockstep::cases {

// A name, or what may be added to one (it begins with a slash), and what it says.
struct legend_line {
  const char *written, *meaning;
};
std::span<const legend_line> legend();

}  // namespace lockstep::cases
