// svg.hpp - SVG elements for the charts.
#pragma once

#include <string>
#include <vector>

#include "text.hpp"

namespace lockstep::tool::pages {

// For text and attributes alike. Control characters, which HTML forbids, are left out.
std::string escaped(const std::string& text);

// Room that text takes, in pixels: 0.6 em a character is the mean of the widest system
// font (DejaVu Sans), so that estimates are rather too wide.
double text_width(const std::string& text, double size = 12);

// Lines that fit, broken behind spaces and slashes, else anywhere: nothing is cut off.
std::vector<std::string> wrapped(const std::string& text, double width, double size = 12);

// Text at (x, y); anchor "start", "middle" or "end"; style a class of style.cpp.
std::string svg_text(double x, double y, const char* anchor, const std::string& style, const std::string& text);
// Lines, y the first one's.
inline constexpr double line_height = 14;
std::string svg_lines(double x, double y, const char* anchor, const std::string& style,
                      const std::vector<std::string>& lines);
std::string svg_line(double x1, double y1, double x2, double y2, const std::string& style);

// An interval's bracket, across: along x, else along y. half: of the strokes at its ends.
std::string svg_bracket(double from, double to, double at, double half, bool across);

// Marker number n at (x, y): eight shapes, so that series differ without colour.
std::string svg_marker(int n, double x, double y, double size);

// Opens <svg> of a size with its name and description for those who do not see it.
std::string svg_open(double width, double height, const std::string& style, const std::string& id,
                     const std::string& title, const std::string& description);

}  // namespace lockstep::tool::pages
