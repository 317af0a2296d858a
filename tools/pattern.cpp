// pattern.cpp - see pattern.hpp.
#include "pattern.hpp"

#include <regex.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "cli.hpp"

namespace lockstep::tool {
namespace {

constexpr size_t longest = 1000;
constexpr int64_t most_repeats = 1000;

// Counted repeats multiply, \1 takes exponential time. nullptr: neither is too much.
const char* too_much(std::string_view text) {
  if (text.size() > longest) return "it has more than 1000 characters";
  if (text.find('\0') != std::string_view::npos) return "it has a NUL byte";
  int64_t repeats = 1;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] == '\\' && text[i + 1] >= '1' && text[i + 1] <= '9') return "references like \\1 are not taken";
    if (text[i] == '\\') ++i;  // the next character stands for itself
    if (text[i] != '{') continue;
    for (const char *at = text.data() + i + 1, *end = text.data() + text.size(); at != end && *at != '}';) {
      int64_t count = 1;
      const auto [rest, code] = std::from_chars(at, end, count);
      if (code != std::errc{} && code != std::errc::invalid_argument) count = most_repeats + 1;
      repeats *= std::clamp<int64_t>(count, 1, most_repeats + 1);
      if (repeats > most_repeats) return "its repeats {n} multiply to more than 1000";
      at = rest == at ? at + 1 : rest;
    }
  }
  return nullptr;
}

}  // namespace

struct pattern::compiled {
  regex_t regex;
  ~compiled() { regfree(&regex); }
};

pattern::pattern(const char* option, const std::string& text) {
  if (const char* why = too_much(text)) refuse("{}: \"{}\" is too much: {}", option, text.substr(0, 80), why);
  auto made = std::make_unique<regex_t>();
  if (const int code = regcomp(made.get(), text.c_str(), REG_EXTENDED | REG_ICASE); code != 0) {
    char why[128] = "";
    regerror(code, made.get(), why, sizeof why);
    refuse("{}: \"{}\" is no regular expression (POSIX extended): {}", option, text, why);
  }
  self_ = std::shared_ptr<const compiled>(new compiled{*made});
}

bool pattern::is_in(const std::string& text) const {
  return text.size() <= longest && regexec(&self_->regex, text.c_str(), 0, nullptr, 0) == 0;
}

bool pattern::is(const std::string& text) const {
  regmatch_t all;  // of the matches that begin first, the longest
  return text.size() <= longest && regexec(&self_->regex, text.c_str(), 1, &all, 0) == 0 && all.rm_so == 0 &&
         static_cast<size_t>(all.rm_eo) == text.size();
}

}  // namespace lockstep::tool
