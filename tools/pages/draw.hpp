// draw.hpp - the interface of each kind of chart for page.cpp.
#pragma once

#include "page.hpp"

namespace lockstep::tool::pages {

// An <svg> of a width; ids that begin with id.
std::string draw(const line_chart& c, double width, const std::string& id);
std::string draw(const bar_chart& c, double width, const std::string& id);

// An axis's label, which also says if the axis is logarithmic.
std::string label_of(const axis& a);
// The name of an interval's bracket in legends.
inline constexpr const char* interval_name = "predicted interval";
std::string interval_key();

// The legend of the series as HTML; "" if there is only one.
std::string legend(const line_chart& c);
std::string legend(const bar_chart& c);

// The same numbers as a table.
table numbers(const line_chart& c);
table numbers(const bar_chart& c);

// The style sheet and the fills of every page.
extern const char* const style_sheet;
extern const char* const fills;

}  // namespace lockstep::tool::pages
