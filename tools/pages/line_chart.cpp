// line_chart.cpp - lines and dots over two axes, and the roofline, which is one.
#include <algorithm>
#include <cmath>
#include <map>

#include "draw.hpp"
#include "ruler.hpp"
#include "svg.hpp"

namespace lockstep::tool::pages {
namespace {

struct frame {
  double left, top, right, bottom;
  const ruler &x, &y;
  double at_x(double v) const { return left + x.place(v) * (right - left); }
  double at_y(double v) const { return bottom - y.place(v) * (bottom - top); }
  bool shows(const point& p) const { return x.shows(p.x) && y.shows(p.y); }
};

std::string grid(const frame& f, const line_chart& c) {
  std::string out;
  for (const tick& t : f.y.ticks()) {
    const double at = f.at_y(t.at);
    out += svg_line(f.left, at, f.right, at, t.label.empty() ? "gm" : "g");
    if (!t.label.empty()) out += svg_text(f.left - 7, at + 4, "end", "t", t.label);
  }
  for (const tick& t : f.x.ticks()) {
    const double at = f.at_x(t.at);
    out += svg_line(at, f.top, at, f.bottom, t.label.empty() ? "gm" : "g");
    if (!t.label.empty()) out += svg_text(at, f.bottom + 17, "middle", "t", t.label);
  }
  out += svg_line(f.left, f.bottom, f.right, f.bottom, "ax");
  out += svg_text((f.left + f.right) / 2, f.bottom + 36, "middle", "al", label_of(c.x));
  out += svg_text(2, 14, "start", "al", label_of(c.y));
  return out;
}

// Their labels are at the right end above the line, or below it at the top of the plot, and
// do not overlap.
std::string levels(const frame& f, const line_chart& c) {
  std::vector<mark> shown;
  for (const mark& m : c.levels)
    if (f.y.shows(m.at)) shown.push_back(m);
  std::sort(shown.begin(), shown.end(), [](const mark& a, const mark& b) { return a.at < b.at; });
  std::string out;
  double above = f.bottom + 20;
  for (const mark& m : shown) {
    const double at = f.at_y(m.at);
    double label = std::min(at - 5, above - 13);
    if (label < f.top + 10 && above > at + 26) label = at + 14;
    above = label;
    out += svg_line(f.left, at, f.right, at, "lv") + svg_text(f.right - 2, label, "end", "ml", m.label);
  }
  return out;
}

// A border's label is above the plot, in the first row that has room.
struct label {
  double at = 0;
  bool left = false;  // of the border: no room on its right
  size_t row = 0;
  std::string text = {};
};

std::vector<label> border_labels(const line_chart& c, const ruler& x, double left, double right) {
  std::vector<label> labels;
  for (const mark& m : c.borders)
    if (x.shows(m.at)) labels.push_back({.at = left + x.place(m.at) * (right - left), .text = m.label});
  std::sort(labels.begin(), labels.end(), [](const label& a, const label& b) { return a.at < b.at; });
  std::vector<double> ends;  // of what stands in each row
  for (label& l : labels) {
    const double width = text_width(l.text, 11.5);
    l.left = l.at + width > right + 12;
    const double begin = l.left ? l.at - width : l.at;
    while (l.row < ends.size() && ends[l.row] > begin) ++l.row;
    if (l.row == ends.size()) ends.push_back(0);
    ends[l.row] = begin + width + 10;
  }
  return labels;
}

std::string borders(const frame& f, const std::vector<label>& labels) {
  std::string out;
  for (const label& l : labels) {
    const double y = f.top - 5 - 13 * static_cast<double>(l.row);
    out += svg_line(l.at, y, l.at, f.bottom, "bd") +
           svg_text(l.left ? l.at - 4 : l.at + 4, y, l.left ? "end" : "start", "ml", l.text);
  }
  return out;
}

// A straight line with its name along it; neighbours have their names at opposite ends.
std::string roof_line(const frame& f, const series& s, int n) {
  if (s.points.size() < 2) return "";
  const double x1 = f.at_x(s.points.front().x), y1 = f.at_y(s.points.front().y);
  const double x2 = f.at_x(s.points.back().x), y2 = f.at_y(s.points.back().y), dx = x2 - x1, dy = y2 - y1;
  const double length = std::sqrt(dx * dx + dy * dy);  // hypot's present version came with glibc 2.35
  const bool ceiling = y1 == y2;                       // their right ends are free, and slopes cross their left ones
  const double width = text_width(s.name, 11.5);
  const double from = n % 2 == 0 && !ceiling ? 12 : std::max(12.0, length - width - 12);
  const double x = x1 + from * (x2 - x1) / length, y = y1 + from * (y2 - y1) / length;
  std::string out = svg_line(x1, y1, x2, y2, "rf");
  // Slopes may lie close: a name at the far end needs room for the neighbour's at the near one.
  if (width < length && (ceiling || n % 2 == 0 || 2 * width + 40 < length))
    out += format_text("<text transform=\"translate({:.1f} {:.1f}) rotate({:.2f})\" y=\"-5\" class=\"ml\">{}</text>", x,
                       y, std::atan2(y2 - y1, x2 - x1) * 180 / 3.14159265358979, escaped(s.name));
  return out;
}

std::string one_series(const frame& f, const line_chart& c, const series& s, int n) {
  std::string out = format_text("<g class=\"s c{}\">", s.color.value_or(n) % 8), path;
  bool pen_down = false;
  for (const point& p : s.points) {
    if (!f.shows(p)) {
      pen_down = false;
      continue;
    }
    path += format_text("{}{:.1f} {:.1f}", pen_down ? 'L' : 'M', f.at_x(p.x), f.at_y(p.y));
    pen_down = true;
  }
  if (s.look != look::dots && !path.empty())
    out += format_text("<path class=\"l{}\" d=\"{}\"/>", s.look == look::dashes ? " da" : "", path);
  for (const point& p : s.points) {
    if (!f.shows(p)) continue;
    const double x = f.at_x(p.x), y = f.at_y(p.y);
    if (p.within) {
      const auto place = [&](double v) { return f.bottom - std::clamp(f.y.place(v), 0.0, 1.0) * (f.bottom - f.top); };
      out += svg_bracket(place(p.within->low), place(p.within->high), x, 4, false);
    }
    out +=
        format_text("<g class=\"p\"><title>{}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"9\" class=\"hit\"/>{}</g>",
                    escaped(format_text("{}: {}, {}{}{}", s.name, text_of(p.x, c.x.unit), text_of(p.y, c.y.unit),
                                        p.note.empty() ? "" : "; ", p.note)),
                    x, y,
                    s.look == look::line || s.look == look::dots
                        ? svg_marker(s.marker.value_or(n), x, y, s.look == look::dots ? 4.6 : 3.6)
                        : "");
  }
  return out + "</g>";
}

}  // namespace

std::string draw(const line_chart& c, double width, const std::string& id) {
  const double height = width < 500 ? 300 : 380;
  std::vector<double> xs, ys;
  for (const series& s : c.series)
    for (const point& p : s.points) {
      xs.push_back(p.x), ys.push_back(p.y);
      if (p.within) ys.push_back(p.within->low), ys.push_back(p.within->high);
    }
  for (const mark& m : c.levels) ys.push_back(m.at);
  for (const mark& m : c.borders) xs.push_back(m.at);
  if (xs.empty()) xs.push_back(0);
  const double bottom = height - 44;
  const ruler y(c.y, ys, bottom - 30, false);
  double left = 24;
  for (const tick& t : y.ticks()) left = std::max(left, text_width(t.label) + 14);
  const double right =
      width - std::max(16.0, text_width(text_of(*std::max_element(xs.begin(), xs.end()), c.x.unit)) / 2 +
                                 3);  // digits are wide
  const ruler x(c.x, xs, right - left, true);
  const std::vector<label> labels = border_labels(c, x, left, right);
  size_t rows = 0;
  for (const label& l : labels) rows = std::max(rows, l.row + 1);
  const frame f{left, 28 + 13 * static_cast<double>(rows), right, bottom, x, y};
  std::string out = grid(f, c) + borders(f, labels) + levels(f, c);
  int n = 0, roofs = 0;
  for (const series& s : c.series)
    if (s.look == look::roof) out += roof_line(f, s, roofs++);
  for (const series& s : c.series) {
    if (s.look != look::roof) out += one_series(f, c, s, n);
    ++n;
  }
  std::string names;
  for (const series& s : c.series) names += (names.empty() ? "" : ", ") + s.name;
  return svg_open(width, height, "chart", id, c.title,
                  format_text("{} from {} to {} over {} from {} to {}. Series: {}. The numbers are in the table below.",
                              c.y.label, text_of(y.low(), c.y.unit), text_of(y.high(), c.y.unit), c.x.label,
                              text_of(x.low(), c.x.unit), text_of(x.high(), c.x.unit), names)) +
         out + "</svg>";
}

std::string legend(const line_chart& c) {
  std::string out;
  int n = 0;
  bool intervals = false;
  for (const series& s : c.series) {
    for (const point& p : s.points) intervals = intervals || p.within;
    const int color = s.color.value_or(n) % 8;
    if (s.look == look::roof) continue;
    out += format_text("<li><svg class=\"key\" viewBox=\"0 0 34 14\" aria-hidden=\"true\"><g class=\"s c{}\">", color);
    if (s.look != look::dots)
      out += format_text("<path class=\"l{}\" d=\"M1 7H33\"/>", s.look == look::dashes ? " da" : "");
    if (s.look == look::line || s.look == look::dots)
      out += "<g class=\"p\">" + svg_marker(s.marker.value_or(n), 17, 7, 4.4) + "</g>";
    out += "</g></svg>" + escaped(s.name) + "</li>";
    ++n;
  }
  if (intervals) out += interval_key();
  return c.series.size() < 2 && c.levels.empty() && !intervals ? "" : "<ul class=\"legend\">" + out + "</ul>";
}

// Series over the same x beside one another; dots, each a thing of its own, one below the other.
table numbers(const line_chart& c) {
  table t;
  const bool dots = std::none_of(c.series.begin(), c.series.end(),
                                 [](const series& s) { return s.look == look::line || s.look == look::plain; });
  if (dots) {
    t.columns = {{"series"}, {"point"}, {c.x.label, true}, {c.y.label, true}};
    for (const series& s : c.series)
      if (s.look == look::dots)
        for (const point& p : s.points) t.rows.push_back({s.name, p.note, cell(p.x, c.x.unit), cell(p.y, c.y.unit)});
  } else {
    t.columns = {{c.x.label, true}};
    std::map<double, std::vector<cell>> rows;
    for (size_t i = 0; i < c.series.size(); ++i) {
      t.columns.push_back({c.series[i].name, true});
      for (const point& p : c.series[i].points) {
        auto& row = rows.try_emplace(p.x, c.series.size() + 1, cell("")).first->second;
        row[0] = cell(p.x, c.x.unit);
        row[i + 1] = cell(p.y, c.y.unit);
      }
    }
    for (auto& [x, row] : rows) t.rows.push_back(std::move(row));
  }
  for (const series& s : c.series)
    if (s.look == look::roof) t.caption += (t.caption.empty() ? "Lines: " : "; ") + s.name;
  for (const auto* marks : {&c.levels, &c.borders})
    for (const mark& m : *marks) {
      const std::string text = format_text("{}: {}", m.label, text_of(m.at, marks == &c.levels ? c.y.unit : c.x.unit));
      t.caption += (t.caption.empty() ? "Lines: " : "; ") + text;
    }
  return t;
}

line_chart chart_of(const roofline& r) {
  line_chart c;
  c.title = r.title, c.caption = r.caption;
  c.x = {.label = "operations a byte", .scale = scale::log10};
  c.y = {.label = "10⁹ operations a second", .scale = scale::log10};
  c.series = r.series;
  for (series& s : c.series) s.look = look::dots;
  double low = INFINITY, high = 0;
  for (const series& s : r.series)
    for (const point& p : s.points)
      if (p.x > 0) low = std::min(low, p.x), high = std::max(high, p.x);
  if (!(low < INFINITY)) low = 0.1, high = 1;
  low /= 2, high *= 2;
  // Slopes end where they meet the highest ceiling; ceilings begin where the highest slope meets them.
  double ceiling = INFINITY, slope = 0, slowest = INFINITY;
  for (const roof& one : r.roofs) {
    if (one.giga_ops > 0) ceiling = ceiling == INFINITY ? one.giga_ops : std::max(ceiling, one.giga_ops);
    slope = std::max(slope, one.gb_s);
    if (one.gb_s > 0) slowest = std::min(slowest, one.gb_s);
  }
  // Room for the ceilings' names beyond the last slope's end.
  if (ceiling < INFINITY && slope > 0) high = std::max(high, 20 * ceiling / slowest);
  c.x.low = low, c.x.high = high;
  std::vector<roof> roofs = r.roofs;
  std::sort(roofs.begin(), roofs.end(), [](const roof& a, const roof& b) { return a.gb_s < b.gb_s; });
  for (const roof& one : roofs) {
    const bool slopes = one.gb_s > 0;
    const double begin = slopes || slope == 0 ? low : std::max(low, one.giga_ops / slope);
    const double end = slopes ? std::min(high, ceiling / one.gb_s) : high;
    const double rate = slopes ? one.gb_s : one.giga_ops;
    c.series.push_back({format_text("{}: {}{}", one.name, text_of(rate, unit::number), slopes ? " GB/s" : "·10⁹/s"),
                        {{begin, slopes ? begin * rate : rate}, {end, slopes ? end * rate : rate}},
                        look::roof,
                        6});
  }
  return c;
}

}  // namespace lockstep::tool::pages
