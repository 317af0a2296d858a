// page.hpp - one self-contained HTML page: text, tables, and charts as inline SVG.
// Nothing is fetched and no script runs, so a page can be mailed, archived and printed.
//
//   pages::page p("What a warp pays for a stride", "NVIDIA H200, 2026-11-20");
//   p.section("Strided loads", "Each lane reads a word, stride words apart.");
//   pages::line_chart c;
//   c.title = "Loads by stride";
//   c.x = {.label = "stride", .scale = pages::scale::log2};
//   c.y = {.label = "GB/s of words asked for", .low = 0};
//   c.series = {{.name = "measured", .points = {{1, 4100}, {2, 2080}, {4, 1040}}},
//               {.name = "predicted", .points = {{1, 4100}, {2, 2050}, {4, 1025}}, .look = pages::look::dashes}};
//   c.levels = {{4150, "read limit"}};
//   p.add(c);
//   p.write("stride.html");
//
// Each chart is drawn twice, for wide and for narrow columns (style.cpp shows one of the
// two). Series differ in marker shapes, dashes and hatching as well as in colour. Each chart
// has a table of the same numbers under it. All text is escaped here; pass it unescaped.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::tool::pages {

enum class scale { linear, log10, log2 };

// How a value is written: 1234.5 as "1230", 65536 as "64 KiB", 1.5e-6 seconds as
// "1.5 µs", 0.97 as "97 %", 1.25 as "1.25 ×".
enum class unit { number, bytes, seconds, percent, factor };
std::string text_of(double value, unit u);

struct axis {
  std::string label = {};
  pages::scale scale = pages::scale::linear;
  pages::unit unit = pages::unit::number;
  std::optional<double> low = {}, high = {};  // default: what the values need; linear axes begin at 0
};

// A line across the plot at one value of an axis: a limit, a cache's size, a target.
struct mark {
  double at = 0;
  std::string label = {};
};

struct interval {
  double low = 0, high = 0;
};

struct point {
  double x = 0, y = 0;
  std::string note = {};                // shown when the pointer rests on it, and in the table
  std::optional<interval> within = {};  // the interval that a rule predicts, drawn as a bracket
};

enum class look {
  line,    // with a marker at each point
  plain,   // line without markers
  dashes,  // dashed line without markers: a prediction, a limit by size
  dots,    // markers alone
  roof     // grey line with its name written along it
};

struct series {
  std::string name = {};
  std::vector<point> points = {};
  pages::look look = pages::look::line;
  std::optional<int> color = {};   // 0 to 7; default: the series' position. Give dashes the colour of what they predict
  std::optional<int> marker = {};  // 0 to 7; default: the series' position
};

struct line_chart {
  std::string title = {}, caption = {};
  axis x = {}, y = {};
  std::vector<pages::series> series = {};
  std::vector<mark> levels = {};   // horizontal: at values of y
  std::vector<mark> borders = {};  // vertical: at values of x
};

// A horizontal bar. On a logarithmic axis it is drawn as a dot on a thin line, since the
// length of a bar would mean nothing there.
struct bar {
  std::string label = {};
  double value = 0;
  std::string text = {};                // written after the bar; default: the value
  std::string note = {};                // shown when the pointer rests on it, and in the table
  int group = 0;                        // 0 to 3: filled, hatched, outlined, dotted
  std::optional<interval> within = {};  // as of a point
};

struct bar_chart {
  std::string title = {}, caption = {};
  axis values = {};
  std::vector<pages::bar> bars = {};
  std::vector<std::string> groups = {};  // their names, for the legend; none: no legend
  std::optional<mark> reference = {};
  bool from_reference = false;  // bars begin there: factors, above and below 1
};

// Rates by arithmetic intensity, both logarithmic, under the limits that were measured.
struct roof {
  std::string name = {};
  double gb_s = 0;      // a slope: bytes a second times operations a byte ...
  double giga_ops = 0;  // ... or a ceiling; the other is 0
};
struct roofline {
  std::string title = {}, caption = {};
  std::vector<roof> roofs = {};
  std::vector<pages::series> series = {};  // x: operations a byte, y: 10^9 operations a second; drawn as dots
};
line_chart chart_of(const roofline& r);

enum class tone { plain, good, bad, dim };  // good and bad get a sign of their own too: ✓ and ✗
struct cell {
  std::string text;
  pages::tone tone = pages::tone::plain;
  cell(const char* t, pages::tone how = pages::tone::plain) : text(t), tone(how) {}
  cell(std::string t, pages::tone how = pages::tone::plain) : text(std::move(t)), tone(how) {}
  cell(double value, pages::unit u = pages::unit::number) : text(text_of(value, u)) {}
};
struct column {
  std::string title;
  bool number = false;  // right-aligned
  bool prose = false;   // wraps; other columns do not
};
struct table {
  std::string title = {}, caption = {};
  std::vector<column> columns = {};
  std::vector<std::vector<cell>> rows = {};
  bool folded = false;  // shown when its title is asked for
};

class page {
 public:
  explicit page(std::string title, std::string lead = {});
  void verdict(const std::string& text);                         // a sentence before all else: what was found
  void fact(const std::string& name, const std::string& value);  // the header's list: device, driver, commit, date
  void section(const std::string& title, const std::string& text = {});  // a heading, listed in the contents
  void heading(const std::string& title, const std::string& text = {});  // one level below, not listed
  void text(const std::string& text);                                    // a paragraph
  void list(const std::vector<std::string>& items);
  void add(const line_chart& chart);
  void add(const bar_chart& chart);
  void add(const roofline& chart) { add(chart_of(chart)); }
  void add(const table& t);
  void picture(const std::string& title, const std::string& caption, const std::string& svg,
               bool folded = false);     // an <svg> drawn elsewhere
  void style(const std::string& rules);  // for its classes, whose names no page has: x-...
  std::string html() const;
  void write(const std::string& path) const;  // throws std::runtime_error with the path and the reason

 private:
  void figure(const std::string& title, const std::string& caption, const std::string& inside, bool folded = false);
  void close_figures();  // figures that follow one another share a grid
  void close_section();
  std::string title_, lead_, verdicts_, facts_, contents_, body_, style_;
  int sections_ = 0, figures_ = 0;
  bool in_section_ = false, in_figures_ = false;
};

}  // namespace lockstep::tool::pages
