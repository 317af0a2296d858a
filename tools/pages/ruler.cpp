// ruler.cpp - see ruler.hpp.
#include "ruler.hpp"

#include <algorithm>
#include <cmath>

#include "svg.hpp"

namespace lockstep::tool::pages {
namespace {

// Three significant digits, no exponent for what is read easily without one.
std::string number_text(double v) {
  if (v == 0) return "0";
  const double size = std::abs(v);
  if (size >= 1e7 || size < 1e-4) return format_text("{:.3g}", v);
  if (size >= 99.95) return format_text("{:.0f}", v);
  std::string text = format_text("{:.{}f}", v, std::max(0, 2 - static_cast<int>(std::floor(std::log10(size)))));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string bytes_text(double v) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  int n = 0;
  for (; std::abs(v) >= 1024 && n < 4; ++n) v /= 1024;
  return format_text("{} {}", number_text(v), units[n]);
}

std::string seconds_text(double v) {
  const double size = std::abs(v);
  if (size == 0) return "0 s";
  if (size < 0.9995e-6) return number_text(v * 1e9) + " ns";
  if (size < 0.9995e-3) return number_text(v * 1e6) + " µs";
  if (size < 0.9995) return number_text(v * 1e3) + " ms";
  return number_text(v) + " s";
}

double step_below(double v, scale s) {
  if (s == scale::log2) return std::exp2(std::floor(std::log2(v) + 1e-9));
  const double decade = std::pow(10, std::floor(std::log10(v) + 1e-9));
  for (const double m : {5.0, 2.0, 1.0})
    if (m * decade <= v * (1 + 1e-9)) return m * decade;
  return decade;
}
double step_above(double v, scale s) {
  if (s == scale::log2) return std::exp2(std::ceil(std::log2(v) - 1e-9));
  const double decade = std::pow(10, std::floor(std::log10(v) + 1e-9));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * decade >= v * (1 - 1e-9)) return m * decade;
  return 10 * decade;
}

}  // namespace

std::string text_of(double value, unit u) {
  if (!std::isfinite(value)) return "–";
  switch (u) {
    case unit::number: return number_text(value);
    case unit::bytes: return bytes_text(value);
    case unit::seconds: return seconds_text(value);
    case unit::percent: return number_text(value * 100) + " %";
    case unit::factor: return number_text(value) + " ×";
  }
  return {};
}

ruler::ruler(const axis& a, const std::vector<double>& values, double pixels, bool across) : axis_(a) {
  const bool log = a.scale != scale::linear;
  constexpr double largest = 1e290;  // beyond it, and below its inverse, powers of ten have no neighbours
  double least = INFINITY, most = -INFINITY;
  for (const double v : values)
    if (std::abs(v) <= largest && (!log || v >= 1 / largest)) least = std::min(least, v), most = std::max(most, v);
  if (least > most) least = log ? 1 : 0, most = log ? 10 : 1;
  if (!log) {
    low_ = a.low.value_or(std::min(0.0, least));
    high_ = a.high.value_or(most > low_ ? low_ + (most - low_) * 1.04 : low_ + 1);
    linear_ticks(pixels, across);
  } else {
    low_ = a.low.value_or(step_below(least, a.scale));
    high_ = a.high.value_or(step_above(most, a.scale));
    if (!(low_ > 0)) low_ = step_below(least, a.scale);
    if (!(high_ > low_)) high_ = low_ * (a.scale == scale::log2 ? 2 : 10);
    log_ticks(pixels, across);
  }
}

double ruler::place(double v) const {
  if (axis_.scale == scale::linear) return (v - low_) / (high_ - low_);
  return std::log(v / low_) / std::log(high_ / low_);
}

bool ruler::shows(double v) const {
  const double slack = axis_.scale == scale::linear ? 1e-9 * (high_ - low_) : 1e-9 * v;
  return std::isfinite(v) && (axis_.scale == scale::linear || v > 0) && v >= low_ - slack && v <= high_ + slack;
}

double ruler::room_of(const std::string& label, bool across) const { return across ? text_width(label) + 14 : 26; }

void ruler::linear_ticks(double pixels, bool across) {
  const double span = high_ - low_;
  const double widest =
      std::max(room_of(text_of(low_, axis_.unit), across), room_of(text_of(high_, axis_.unit), across)) +
      (across ? 10 : 0);
  const double at_most = std::clamp(pixels / widest, 2.0, 11.0);
  const double decade = std::pow(10, std::floor(std::log10(span / at_most)));
  double step = 10 * decade;
  for (const double m : {5.0, 2.5, 2.0, 1.0})
    if (span / (m * decade) <= at_most) step = m * decade;
  for (double k = std::ceil(low_ / step - 1e-9); k * step <= high_ + 1e-9 * span; ++k)
    ticks_.push_back({k * step, text_of(k == 0 ? 0.0 : k * step, axis_.unit)});
}

// Powers of two or ten, every nth where there are too many to write; 2 and 5 between
// powers of ten where there is room.
void ruler::log_ticks(double pixels, bool across) {
  const double base = axis_.scale == scale::log2 ? 2 : 10;
  const int first = static_cast<int>(std::ceil(std::log(low_) / std::log(base) - 1e-9));
  const int last = static_cast<int>(std::floor(std::log(high_) / std::log(base) + 1e-9));
  const double each = pixels * std::log(base) / std::log(high_ / low_);
  double widest = 0;
  for (int k = first; k <= last; ++k)
    widest = std::max(widest, room_of(text_of(std::pow(base, k), axis_.unit), across));
  // Every nth, counted from 1: of bytes each 5th power of two is 1 KiB, 32 KiB, 1 MiB ...
  int every = 1;
  for (const int n : {2, 3, 5, 10, 20})
    if (each * every < widest && !(n == 3 && base == 2)) every = n;
  const bool between = base == 10 && every == 1 && each > 3.4 * widest;
  for (int k = first - 1; k <= last; ++k) {
    const double power = std::pow(base, k);
    if (shows(power)) ticks_.push_back({power, k % every == 0 ? text_of(power, axis_.unit) : ""});
    if (base == 10)
      for (const double m : {2.0, 5.0})
        if (shows(m * power))
          ticks_.push_back({m * power, between || last - first < 1 ? text_of(m * power, axis_.unit) : ""});
  }
}

}  // namespace lockstep::tool::pages
