// option_names.hpp - the library's errors name fields of the C structures; a user of the program knows its options.
#pragma once

#include <string>

namespace lockstep::tool {

// "options.cpu_isa is ..." as "--isa is ...".
std::string place_in_options(std::string text);
// Of run, which fills a description from its options: "coefficient_count is 1; ..." as "--coefficients: their number
// is 1; ...".
std::string call_in_options(std::string text);

}  // namespace lockstep::tool
