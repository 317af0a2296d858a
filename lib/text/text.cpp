// text.cpp - see text.hpp.
#define FMT_HEADER_ONLY
#include "text.hpp"

#include <fmt/format.h>

namespace lockstep {

std::string vformat_text(fmt::string_view format, fmt::format_args args) { return fmt::vformat(format, args); }

void vformat_to(char* to, size_t size, fmt::string_view format, fmt::format_args args) {
  *fmt::vformat_to_n(to, size - 1, format, args).out = '\0';
}

void make_printable(char* text, size_t length, char kept) noexcept {
  for (size_t i = 0; i < length; ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && text[i] != kept) || c == 0x7F) text[i] = '?';
    // U+0080 to U+009F, the 8-bit control characters, in UTF-8.
    if (c == 0xC2 && i + 1 < length && static_cast<unsigned char>(text[i + 1]) < 0xA0) text[i] = text[i + 1] = '?';
  }
}

}  // namespace lockstep
