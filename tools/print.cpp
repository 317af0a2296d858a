// print.cpp - what the program prints: stdout, colors, and numbers as people read them, see cli.hpp and format.hpp.
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "cli.hpp"

namespace lockstep::tool {

namespace {
[[noreturn]] void stdout_failed() {
  if (errno == EPIPE) throw broken_pipe{};
  fail("stdout: {}; nothing more was written", std::strerror(errno));
}
}  // namespace

void put(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) stdout_failed();
}
void flush() {
  if (std::fflush(stdout) != 0) stdout_failed();
}

style stdout_style() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  const bool plain = !isatty(STDOUT_FILENO) || (no_color != nullptr && *no_color != '\0') || term == nullptr ||
                     std::string_view(term) == "dumb";
  return plain ? style{"", "", "", "", ""} : style{"\033[1m", "\033[2m", "\033[32m", "\033[31m", "\033[0m"};
}

std::string bytes_text(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  int unit = 0;
  while (bytes >= 1024 && unit < 5) {
    bytes /= 1024;
    ++unit;
  }
  return unit == 0 ? format_text("{:.0f} B", bytes)
                   : format_text("{:.3g} {}", bytes >= 1000 ? std::round(bytes) : bytes, units[unit]);
}

std::string time_text(double seconds) {
  if (seconds >= 1) return format_text("{:.2f} s", seconds);
  if (seconds >= 1e-3) return format_text("{:.2f} ms", seconds * 1e3);
  return format_text("{:.2f} us", seconds * 1e6);
}

std::string shape_text(const std::vector<int64_t>& shape) {
  if (shape.size() == 1) return format_text("({},)", shape[0]);
  return format_text("({})", joined(shape, ", "));
}

}  // namespace lockstep::tool
