// text.hpp - texts by fmt, whose own code only text.cpp compiles: in every file it would cost
// more than the rest of the file. Header-only there, so the library needs no libfmt.so.
#pragma once

#if __has_include(<fmt/base.h>)
#include <fmt/base.h>
#else
#include <fmt/core.h>
#endif

#include <cstddef>
#include <string>

namespace lockstep {

std::string vformat_text(fmt::string_view format, fmt::format_args args);
// Cuts what does not fit, ends with '\0', allocates nothing.
void vformat_to(char* to, size_t size, fmt::string_view format, fmt::format_args args);

template <class... Args>
std::string format_text(fmt::format_string<Args...> format, Args&&... args) {
  return vformat_text(format, fmt::make_format_args(args...));
}
template <size_t size, class... Args>
void format_to(char (&to)[size], fmt::format_string<Args...> format, Args&&... args) {
  vformat_to(to, size, format, fmt::make_format_args(args...));
}

// '?' for each control character: a name that a caller or the environment gave must not steer a terminal.
// kept, one of them, stays.
void make_printable(char* text, size_t length, char kept = '\0') noexcept;
inline std::string printable(std::string text, char kept = '\0') {
  make_printable(text.data(), text.size(), kept);
  return text;
}

// "a, b, c"
template <class Items>
std::string joined(const Items& items, const char* separator) {
  std::string all;
  const char* before = "";
  for (const auto& item : items) {
    all += format_text("{}{}", before, item);
    before = separator;
  }
  return all;
}

}  // namespace lockstep
