// text.cpp - see text.hpp.
#define FMT_HEADER_ONLY
#include "text.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string vformat_text(fmt::string_view format, fmt::format_args args) { return fmt::vformat(format, args); }

void vformat_to(char* to, size_t size, fmt::string_view format, fmt::format_args args) {
  *fmt::vformat_to_n(to, size - 1, format, args).out = '\0';
}

}  // namespace lockstep
