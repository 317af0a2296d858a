// html.cpp - a report as one page: each row with its table and charts, and the picture of the memories.
#include <algorithm>

#include "../file.hpp"
#include "../pages/page.hpp"
#include "probe.hpp"
#include "text.hpp"

namespace lockstep::tool::probe {
namespace {

std::string on_page(double v) { return pages::text_of(v, pages::unit::number); }

// A terminal's ">= 1.2" and "80 +-15%" as print has them.
std::string symbols(std::string text) {
  for (const auto& [from, to] : {std::pair(">=", "\u2265"), {"<=", "\u2264"}, {"+-", "\u00b1 "}, {"%", " %"}})
    if (const size_t at = text.find(from); at != std::string::npos) text.replace(at, std::string(from).size(), to);
  return text;
}

// The names of a file's facts, in words.
std::string fact_name(const std::string& name) {
  if (name == "cuda" || name == "cpu") return name == "cuda" ? "GPU" : "CPU";
  if (name == "seconds") return "seconds a measurement";
  if (name == "judged") return "judged by the rules of commit";
  return name;
}

pages::tone tone_of(verdict v) {
  return v == verdict::agrees                             ? pages::tone::good
         : v == verdict::moved_on || v == verdict::fitted ? pages::tone::plain
                                                          : pages::tone::bad;
}

pages::table table_of(const row& r) {
  pages::table t;
  t.columns = {{"what"},
               {"taught"},
               {"predicted"},
               {.title = "measured", .number = true},
               {.title = "middle half", .number = true},
               {"unit"},
               {"verdict"}};
  const bool fits = !r.fitted().empty();  // a column more
  if (fits) t.columns.insert(t.columns.begin() + 3, {"fitted"});
  for (const line& l : r.lines) {
    t.rows.push_back({{l.name},
                      {l.taught ? symbols(l.taught->text) : ""},
                      {symbols(l.now.text)},
                      {l.figure()},
                      {on_page(l.low) == on_page(l.high) ? "" : on_page(l.low) + " to " + on_page(l.high)},
                      {l.unit},
                      {text(l.said), tone_of(l.said)}});
    if (fits)
      t.rows.back().insert(t.rows.back().begin() + 3, l.said == verdict::fitted ? symbols(l.after->seen.text) : "");
  }
  return t;
}

pages::axis axis_of(const std::string& label, bool log, bool bytes) {
  pages::axis a;
  a.label = label;
  a.scale = !log ? pages::scale::linear : bytes ? pages::scale::log2 : pages::scale::log10;
  if (bytes) a.unit = pages::unit::bytes;
  return a;
}

// Series whose names agree up to ": " are lines of one chart.
std::string chart_name(const series& s) { return s.name.substr(0, s.name.find(": ")); }
std::string line_name(const series& s) {
  const size_t at = s.name.find(": ");
  return at == std::string::npos ? "measured" : s.name.substr(at + 2);
}

// Of a prediction with two ends.
std::optional<pages::interval> shown(const std::optional<range>& r) {
  if (!r || !std::isfinite(r->low) || !std::isfinite(r->high)) return {};
  return pages::interval{r->low, r->high};
}

void add_charts(pages::page& page, const std::vector<series>& plots) {
  for (size_t first = 0; first < plots.size();) {
    size_t last = first;
    while (last < plots.size() && chart_name(plots[last]) == chart_name(plots[first])) ++last;
    const series& head = plots[first];
    pages::line_chart c;
    c.title = chart_name(head);
    c.x = axis_of(head.x_name, head.x_log, head.x_name == "bytes");
    if (head.x_log) c.x.scale = pages::scale::log2;
    c.y = axis_of(head.y_name, head.y_log, false);
    for (const mark& m : head.marks)
      if (std::isfinite(m.x) && m.x > 0) c.borders.push_back({m.x, m.label});
    for (size_t i = first; i < last; ++i) {
      const auto color = static_cast<int>(i - first);
      pages::series lines, dashes, afterwards;
      lines.name = line_name(plots[i]);
      lines.color = dashes.color = color;
      afterwards.color = color + static_cast<int>(last - first);
      afterwards.name = last - first > 1 ? "fitted, " + lines.name : "fitted";
      afterwards.look = pages::look::dashes;
      dashes.name = last - first > 1 ? "predicted, " + lines.name : "predicted";
      dashes.look = pages::look::dashes;
      for (const point& p : plots[i].points) {
        lines.points.push_back({p.x, p.y});
        if (p.predicted) dashes.points.push_back({.x = p.x, .y = *p.predicted, .within = shown(p.within)});
        if (p.fitted) afterwards.points.push_back({p.x, *p.fitted});
      }
      for (pages::series* one : {&lines, &dashes, &afterwards}) {
        std::sort(one->points.begin(), one->points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
        if (one == &lines || !one->points.empty()) c.series.push_back(std::move(*one));
      }
    }
    if (!c.series.front().points.empty()) page.add(c);
    first = last;
  }
}

void add_bars(pages::page& page, const row& r) {
  for (const bars& one : r.columns) {
    pages::bar_chart c;
    c.title = one.title;
    c.values.label = one.unit;
    for (const auto& [name, value] : one.values) {
      c.bars.push_back({.label = name, .value = value});
      for (const line& l : r.lines)
        if (l.name == name && l.unit == one.unit) c.bars.back().within = shown(l.now);
    }
    page.add(c);
  }
}

void add_picture(pages::page& page, const std::vector<memory>& picture) {
  pages::table t;
  t.columns = {{"memory"},
               {"where"},
               {"seen by"},
               {"lives"},
               {"cached"},
               {"size here"},
               {.title = "latency, cycles", .number = true},
               {.title = "GB/s", .number = true}};
  pages::bar_chart latency, bandwidth;
  latency.title = "Latency of each memory";
  latency.values = {.label = "cycles", .scale = pages::scale::log10};
  bandwidth.title = "Bandwidth of each memory";
  bandwidth.values = {.label = "GB/s, whole chip", .scale = pages::scale::log10};
  for (const memory& m : picture) {
    const auto text_of = [](double v) { return std::isnan(v) ? std::string() : on_page(v); };
    t.rows.push_back({{m.name},
                      {m.where},
                      {m.seen_by},
                      {m.lives},
                      {m.cached},
                      {m.size},
                      {text_of(m.latency_cycles)},
                      {text_of(m.gb_s)}});
    if (!std::isnan(m.latency_cycles)) latency.bars.push_back({.label = m.name, .value = m.latency_cycles});
    if (!std::isnan(m.gb_s)) bandwidth.bars.push_back({.label = m.name, .value = m.gb_s});
  }
  page.picture("", "", picture_svg(picture));
  page.add(t);
  if (!latency.bars.empty()) page.add(latency);
  if (!bandwidth.bars.empty()) page.add(bandwidth);
}

void add_row(pages::page& page, const row& r) {
  page.section(r.id + " " + r.title + ": " + text(r.said()));
  page.text("Taught: " + r.taught);
  if (!r.today.empty()) page.text("Today: " + r.today);
  page.text("Lesson: " + r.lesson);
  for (const row::remark& one : r.fitted()) page.text("Fitted, for " + one.lines + ": " + one.what + ".");
  page.add(table_of(r));
  page.text("What the predictions rest on:");
  std::vector<std::string> rules;
  for (const row::remark& one : r.rules()) rules.push_back(one.lines + ": " + one.what);
  page.list(rules);
  add_charts(page, r.plots);
  add_bars(page, r);
  if (!r.picture.empty()) add_picture(page, r.picture);
}

}  // namespace

void write_html(const report& all, const std::string& path) {
  pages::page page("The memory hierarchy, measured",
                   "What is taught, what the rules that hold today predict, and what this machine does.");
  page.style(picture_style());
  for (const report::device& d : all.devices) page.fact(fact_name(d.backend), d.name + ", " + d.detail);
  for (const auto& [name, value] : all.machine) page.fact(fact_name(name), value);
  page.verdict(tally(all.rows) + ".");
  page.section("The verdicts", "A row's verdict is that of its worst line.");
  pages::table verdicts;
  verdicts.columns = {{"row"}, {"what", false, true}, {"verdict"}, {"lines that agree", true}};
  for (const row& r : all.rows) {
    const auto agree = std::count_if(r.lines.begin(), r.lines.end(), [](const line& l) {
      return l.said == verdict::agrees || l.said == verdict::moved_on;
    });
    verdicts.rows.push_back(
        {r.id, r.title, {text(r.said()), tone_of(r.said())}, format_text("{} of {}", agree, r.lines.size())});
  }
  page.add(verdicts);
  for (const row& r : all.rows) add_row(page, r);
  if (!all.missing.empty()) {
    page.section("Not measured here");
    page.list(all.missing);
  }
  page.section("How to read it");
  page.text(
      "Each row says what is taught, then predicts from that rule, and from the rule of today where it has changed, "
      "what this machine should do, and measures it: the median of many runs, with the middle half of them beside it. "
      "The values that a probe reads are compared with what the host expects.");
  page.list({"agrees: the measurement lies in the predicted interval.",
             "moved on: it does, and not in the one that is taught: hardware has changed since.",
             "fitted: the rule failed, and only an interval holds that was set after such a device had been measured. "
             "The reason is given, but nothing foretold it: no agreement with a rule.",
             "differs: nothing that was said holds.", "WRONG: the probe read other values than it must."});
  write_file(path, page.html());
}

}  // namespace lockstep::tool::probe
