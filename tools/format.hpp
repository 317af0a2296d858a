// format.hpp - numbers as people read them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text.hpp"

namespace lockstep::tool {

std::string bytes_text(double bytes);                       // "68.2 MiB"
std::string time_text(double seconds);                      // "12.3 ms"
std::string shape_text(const std::vector<int64_t>& shape);  // "(3172, 5640)"

}  // namespace lockstep::tool
