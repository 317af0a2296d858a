// text.cpp - see text.hpp.
#define FMT_HEADER_ONLY
#include "text.hpp"

#include <fmt/format.h>

#include <cstring>

#include "shown.hpp"

namespace lockstep {

std::string vformat_text(fmt::string_view format, fmt::format_args args) { return fmt::vformat(format, args); }

void vformat_to(char* to, size_t size, fmt::string_view format, fmt::format_args args) {
  const auto written = fmt::vformat_to_n(to, size - 1, format, args);
  const auto length = static_cast<size_t>(written.out - to);
  to[written.size > length ? whole_characters({to, length}, length) : length] = '\0';
}

namespace {
// Bytes of the UTF-8 character that a text begins with; 0: it begins with none.
size_t character_bytes(std::string_view text) {
  const auto at = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto follows = [&](size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
    return at(i) >= least && at(i) <= most;
  };
  const unsigned first = at(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF)  // neither longer than need be nor half of a pair
    return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  if (first >= 0xF0 && first <= 0xF4)
    return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
  return 0;
}

// Gives put(bytes, count) each character as it may be shown; ends early if that returns false.
template <class Put>
void each_shown(std::string_view text, char kept, const Put& put) {
  while (!text.empty()) {
    const size_t bytes = character_bytes(text);
    const auto first = static_cast<unsigned char>(text[0]);
    const bool control = ((first < 0x20 && text[0] != kept) || first == 0x7F ||
                          (bytes == 2 && first == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0));
    constexpr const char* digits = "0123456789abcdef";
    const char escaped[] = {'\\', 'x', digits[first >> 4], digits[first & 15]};
    char shown[4] = {'?'};
    if (!control && bytes != 0) std::memcpy(shown, text.data(), bytes);
    if (!(bytes == 0 ? put(escaped, sizeof escaped) : put(shown, control ? 1 : bytes))) return;
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
}
}  // namespace

// In place, so that bytes that are not UTF-8 have no room to be written out.
void make_printable(char* text, size_t length, char kept) noexcept {
  size_t at = 0;
  each_shown({text, length}, kept, [&](const char* bytes, size_t count) {
    const bool written_out = count == 4 && bytes[0] == '\\' && text[at] != '\\';
    if (written_out) text[at] = '?';
    const bool control = count == 1 && bytes[0] == '?' && text[at] != '?';
    const bool two = control && text[at] == '\xC2';
    if (control) text[at] = '?';
    if (two) text[at + 1] = '?';
    at += written_out ? 1 : two ? 2 : count;
    return true;
  });
}

size_t whole_characters(std::string_view text, size_t most) noexcept {
  size_t length = most < text.size() ? most : text.size();
  // A character's first byte is among the last three of what is left of it.
  for (size_t back = 1; back <= 3 && back <= length; ++back) {
    const auto byte = static_cast<unsigned char>(text[length - back]);
    if (byte < 0x80) return length;
    if (byte < 0xC0) continue;
    const size_t wanted = byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
    return wanted > back ? length - back : length;
  }
  return length;
}

size_t copy_shown(char* to, size_t size, std::string_view from, char kept) noexcept {
  size_t length = 0;
  each_shown(from, kept, [&](const char* bytes, size_t count) {
    if (count > size - 1 - length) return false;
    std::memcpy(to + length, bytes, count);
    length += count;
    return true;
  });
  to[length] = '\0';
  return length;
}

std::string shown(std::string_view text, char kept) {
  std::string all;
  all.reserve(text.size());
  each_shown(text, kept, [&](const char* bytes, size_t count) { return all.append(bytes, count), true; });
  return all;
}

}  // namespace lockstep
