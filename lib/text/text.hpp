// text.hpp - formatting by fmt. Only text.cpp compiles fmt's own code, because that takes longer than most files. It is
// used header-only there, so the library does not need libfmt.so.
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

// Replaces control characters by '?', so that a name from the caller or the environment cannot control a terminal. The
// character `kept` stays.
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
