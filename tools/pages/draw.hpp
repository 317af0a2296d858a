// draw.hpp - what page.cpp asks of each kind of chart.
#pragma once

#include "page.hpp"

namespace lockstep::tool::pages {

// An <svg> of a width; ids that begin with id.
std::string draw(const line_chart& c, double width, const std::string& id);
std::string draw(const bar_chart& c, double width, const std::string& id);

// An axis's label, which says so where the axis is logarithmic.
std::string label_of(const axis& a);
// What the bracket of an interval is called in legends.
inline constexpr const char* interval_name = "predicted interval";
std::string interval_key();

// What the series look like, as HTML; "" where there is but one.
std::string legend(const line_chart& c);
std::string legend(const bar_chart& c);

// The same numbers as a table.
table numbers(const line_chart& c);
table numbers(const bar_chart& c);

// The style sheet and the fills that every page carries.
extern const char* const style_sheet;
extern const char* const fills;

}  // namespace lockstep::tool::pages
