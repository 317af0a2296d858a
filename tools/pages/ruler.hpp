// ruler.hpp - maps values to places along an axis, and chooses its ticks.
#pragma once

#include <vector>

#include "page.hpp"

namespace lockstep::tool::pages {

struct tick {
  double at;
  std::string label;  // empty: a grid line only
};

class ruler {
 public:
  // Spans what the values need, or what the axis says; pixels: the room there is, which
  // decides how many ticks are written. across: labels stand side by side (an x axis).
  ruler(const axis& a, const std::vector<double>& values, double pixels, bool across);
  // 0 at the low end, 1 at the high end.
  double place(double value) const;
  // False for values that a logarithmic axis cannot show, and for values outside.
  bool shows(double value) const;
  double low() const { return low_; }
  double high() const { return high_; }
  const std::vector<tick>& ticks() const { return ticks_; }

 private:
  void linear_ticks(double pixels, bool across);
  void log_ticks(double pixels, bool across);
  double room_of(const std::string& label, bool across) const;
  axis axis_;
  double low_ = 0, high_ = 1;
  std::vector<tick> ticks_;
};

}  // namespace lockstep::tool::pages
