// bar_chart.cpp - horizontal bars, each with its value; dots where the axis is logarithmic.
#include <algorithm>
#include <cmath>

#include "draw.hpp"
#include "ruler.hpp"
#include "svg.hpp"

namespace lockstep::tool::pages {
namespace {
std::string value_text(const bar_chart& c, const bar& b) {
  return b.text.empty() ? text_of(b.value, c.values.unit) : b.text;
}
}  // namespace

std::string label_of(const axis& a) { return a.label + (a.scale == scale::linear ? "" : " (logarithmic)"); }
std::string interval_key() {
  return "<li><svg class=\"key\" viewBox=\"0 0 34 14\" aria-hidden=\"true\">" + svg_bracket(4, 30, 7, 5, true) +
         "</svg>" + interval_name + "</li>";
}

std::string draw(const bar_chart& c, double width, const std::string& id) {
  // In a narrow column the label stands above its bar, in a wide one on its left.
  const bool stacked = width < 500;
  const bool log = c.values.scale != scale::linear;
  const double row = stacked ? 40 : 25, thick = 14;
  double label_room = 0, value_room = 0;
  std::vector<double> values;
  for (const bar& b : c.bars) {
    label_room = std::max(label_room, text_width(b.label) + 12);
    value_room = std::max(value_room, text_width(value_text(c, b)) + 20);
    values.push_back(b.value);
    if (b.within) values.push_back(b.within->low), values.push_back(b.within->high);
  }
  label_room = stacked ? 8 : std::min(label_room, width * 0.42);
  value_room = std::min(value_room, width * 0.45);
  if (c.reference) values.push_back(c.reference->at);
  const double left = label_room, right = width - value_room, top = c.reference ? 24 : 6;
  const auto lines_of = [&](const bar& b) { return wrapped(b.label, stacked ? width - 8 : label_room - 10); };
  const auto value_lines = [&](const bar& b) { return wrapped(value_text(c, b), value_room - 20); };
  // Long labels and values take more lines.
  const auto room_of = [&](const bar& b) {
    const size_t lines =
        stacked ? lines_of(b).size() + value_lines(b).size() - 1 : std::max(lines_of(b).size(), value_lines(b).size());
    return row + line_height * static_cast<double>(lines - 1);
  };
  double bottom = top;
  for (const bar& b : c.bars) bottom += room_of(b);
  const double height = bottom + 42;
  const ruler x(c.values, values, right - left, true);
  const auto at = [&](double v) { return left + std::clamp(x.place(v), 0.0, 1.0) * (right - left); };

  std::string out;
  for (const tick& t : x.ticks()) {
    out += svg_line(at(t.at), top, at(t.at), bottom, t.label.empty() ? "gm" : "g");
    const double half = text_width(t.label) / 2 + 1;
    if (!t.label.empty())
      out += svg_text(std::clamp(at(t.at), half, width - half), bottom + 16, "middle", "t", t.label);
  }
  if (!log) out += svg_line(at(0), top, at(0), bottom, "ax");
  out += svg_text(stacked ? width / 2 : (left + right) / 2, bottom + 35, "middle", "al", label_of(c.values));
  if (c.reference && x.shows(c.reference->at)) {
    const double line = at(c.reference->at), half = text_width(c.reference->label, 11.5) / 2;
    out += svg_line(line, top - 4, line, bottom, "lv");
    out += svg_text(std::clamp(line, half + 2, width - half - 2), top - 9, "middle", "ml", c.reference->label);
  }
  const double base = c.from_reference && c.reference ? at(c.reference->at)
                      : log                           ? left
                                                      : at(std::clamp(0.0, x.low(), x.high()));
  const bool column = c.reference && !c.from_reference;
  double y = top;
  for (const bar& b : c.bars) {
    const std::vector<std::string> label = lines_of(b), value = value_lines(b);
    const double room = room_of(b), end = at(b.value);
    const double middle = y + (stacked ? 27 + line_height * static_cast<double>(label.size() - 1) +
                                             line_height / 2 * static_cast<double>(value.size() - 1)
                                       : room / 2);
    // Lines are centered on the bar.
    const auto first = [&](const std::vector<std::string>& lines) {
      return middle + 4 - line_height / 2 * static_cast<double>(lines.size() - 1);
    };
    const bool drawn = std::isfinite(b.value) && (!log || b.value > 0);
    out += "<g class=\"b\"><title>" +
           escaped(b.label + ": " + value_text(c, b) + (b.note.empty() ? "" : "; " + b.note)) + "</title>";
    out += format_text("<rect x=\"0\" y=\"{:.1f}\" width=\"{:.0f}\" height=\"{:.0f}\" class=\"hit\"/>", y, width, room);
    out += stacked ? svg_lines(left + 2, y + 15, "start", "bl", label)
                   : svg_lines(left - 8, first(label), "end", "bl", label);
    if (drawn && log)
      out += svg_line(base, middle, end, middle, "st") + format_text("<g class=\"s c{} p\">", b.group % 8) +
             svg_marker(b.group, end, middle, 5.2) + "</g>";
    else if (drawn)
      out += format_text("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" class=\"s c{} f{}\"/>",
                         std::min(base, end), middle - thick / 2, std::max(std::abs(end - base), 1.0), thick,
                         b.group % 8, b.group % 4);
    if (b.within) out += svg_bracket(at(b.within->low), at(b.within->high), middle, 8, true);
    // Behind the bar; under a common limit in a column of their own, with a leader to it.
    const double far = std::max(drawn ? std::max(end, base) : base, b.within ? at(b.within->high) : 0.0);
    const double tip = far + (log ? 11 : 6);
    const double text_at = column ? right + 8 : tip;
    if (column && text_at - tip > 12) out += svg_line(tip, middle, text_at - 4, middle, "gm");
    out += svg_lines(text_at, first(value), "start", "v", value) + "</g>";
    y += room;
  }
  return svg_open(
             width, height, "chart", id, c.title,
             format_text("{} bars: {} of each. The numbers are in the table below.", c.bars.size(), c.values.label)) +
         out + "</svg>";
}

std::string legend(const bar_chart& c) {
  const bool intervals = std::any_of(c.bars.begin(), c.bars.end(), [](const bar& b) { return b.within.has_value(); });
  if (c.groups.empty()) return intervals ? "<ul class=\"legend\">" + interval_key() + "</ul>" : "";
  std::string out;
  for (size_t i = 0; i < c.groups.size(); ++i) {
    const int n = static_cast<int>(i);
    if (std::none_of(c.bars.begin(), c.bars.end(), [&](const bar& b) { return b.group == n; })) continue;
    const std::string key =
        c.values.scale != scale::linear
            ? format_text("<g class=\"s c{} p\">{}</g>", n % 8, svg_marker(n, 17, 7, 5))
            : format_text("<rect x=\"2\" y=\"1.5\" width=\"30\" height=\"11\" class=\"s c{} f{}\"/>", n % 8, n % 4);
    out += format_text("<li><svg class=\"key\" viewBox=\"0 0 34 14\" aria-hidden=\"true\">{}</svg>{}</li>", key,
                       escaped(c.groups[i]));
  }
  return "<ul class=\"legend\">" + out + (intervals ? interval_key() : "") + "</ul>";
}

table numbers(const bar_chart& c) {
  table t;
  const bool notes = std::any_of(c.bars.begin(), c.bars.end(), [](const bar& b) { return !b.note.empty(); });
  const bool texts = std::any_of(c.bars.begin(), c.bars.end(), [](const bar& b) { return !b.text.empty(); });
  t.columns = {{""}, {c.values.label, true}};
  if (texts) t.columns.push_back({"shown"});
  if (notes) t.columns.push_back({"note"});
  if (!c.groups.empty()) t.columns.push_back({"kind"});
  const bool intervals = std::any_of(c.bars.begin(), c.bars.end(), [](const bar& b) { return b.within.has_value(); });
  if (intervals) t.columns.push_back({interval_name});
  for (const bar& b : c.bars) {
    std::vector<cell> row = {b.label, cell(b.value, c.values.unit)};
    if (texts) row.emplace_back(b.text);
    if (notes) row.emplace_back(b.note);
    if (!c.groups.empty())
      row.emplace_back(static_cast<size_t>(b.group) < c.groups.size() ? c.groups[static_cast<size_t>(b.group)] : "");
    if (intervals)
      row.emplace_back(!b.within
                           ? std::string()
                           : text_of(b.within->low, c.values.unit) + " to " + text_of(b.within->high, c.values.unit));
    t.rows.push_back(std::move(row));
  }
  if (c.reference) t.caption = format_text("Line: {}, {}", c.reference->label, text_of(c.reference->at, c.values.unit));
  return t;
}

}  // namespace lockstep::tool::pages
