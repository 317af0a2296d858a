// output.cpp - a report as a table and as JSON.
#include <algorithm>

#include "../cli.hpp"
#include "../json.hpp"
#include "probe.hpp"

namespace lockstep::tool::probe {
namespace {

using nlohmann::ordered_json;

// JSON has no infinity: an open end is left out.
ordered_json json_of(const range& r) {
  ordered_json j = {{"text", r.text}};
  if (std::isfinite(r.low)) j["low"] = r.low;
  if (std::isfinite(r.high)) j["high"] = r.high;
  if (!r.rule.empty()) j["rule"] = r.rule;
  return j;
}

ordered_json json_of(const series& s) {
  ordered_json j = {{"name", s.name}, {"x", s.x_name}, {"y", s.y_name}, {"x_log", s.x_log}, {"y_log", s.y_log}};
  j["points"] = ordered_json::array();
  for (const point& p : s.points) {
    ordered_json one = {{"x", p.x}, {"y", p.y}};
    if (p.predicted) one["predicted"] = *p.predicted;
    if (p.fitted) one["fitted"] = *p.fitted;
    j["points"].push_back(std::move(one));
  }
  j["marks"] = ordered_json::array();
  for (const mark& m : s.marks) j["marks"].push_back({{"x", m.x}, {"label", m.label}});
  return j;
}

ordered_json json_of(const row& r) {
  ordered_json j = {{"id", r.id},       {"counterpart", r.counterpart}, {"backend", r.backend},
                    {"title", r.title}, {"verdict", text(r.said())},    {"taught", r.taught},
                    {"today", r.today}, {"lesson", r.lesson},           {"fitted", ordered_json::array()}};
  for (const row::remark& one : r.fitted()) j["fitted"].push_back(one.lines + ": " + one.what);
  j["lines"] = ordered_json::array();
  for (const line& l : r.lines) {
    ordered_json one = {{"name", l.name}, {"unit", l.unit}, {"kernel", l.kernel}, {"predicted", json_of(l.now)}};
    if (l.taught) one["taught"] = json_of(*l.taught);
    if (l.after) {
      one["fitted"] = json_of(l.after->seen);
      one["fitted"]["why"] = l.after->why;
    }
    if (l.now.is_bound()) one["bound"] = true;
    one.update({{"measured", l.value},
                {"low", l.low},
                {"high", l.high},
                {"values_right", l.right},
                {"witness", l.witness()},
                {"verdict", text(l.said)}});
    j["lines"].push_back(std::move(one));
  }
  j["series"] = ordered_json::array();
  for (const series& s : r.plots) j["series"].push_back(json_of(s));
  for (const bars& b : r.columns) {
    ordered_json one = {{"title", b.title}, {"unit", b.unit}, {"values", ordered_json::object()}};
    for (const auto& [name, value] : b.values) one["values"][name] = value;
    j["bars"].push_back(std::move(one));
  }
  for (const memory& m : r.picture) {
    ordered_json one = {
        {"memory", m.name}, {"where", m.where}, {"seen_by", m.seen_by}, {"lives", m.lives}, {"cached", m.cached}};
    if (!m.size.empty()) one["size"] = m.size;
    if (!std::isnan(m.latency_cycles)) one["latency_cycles"] = m.latency_cycles;
    if (!std::isnan(m.gb_s)) one["bandwidth_gb_s"] = m.gb_s;
    j["picture"].push_back(std::move(one));
  }
  return j;
}

// Words of text in lines of at most width columns, each after indent.
std::string folded(const std::string& text, const std::string& indent, size_t width) {
  std::string out, line;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!line.empty() && line.size() + 1 + word.size() > width) {
      out += line + "\n" + indent;
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
    begin = end + 1;
  }
  return out + line;
}

std::string number(double v) {
  return std::abs(v) >= 1000  ? format_text("{:.0f}", v)
         : std::abs(v) >= 100 ? format_text("{:.1f}", v)
                              : format_text("{:.3g}", v);
}

const char* color(verdict v, const style& s) {
  return v == verdict::wrong || v == verdict::differs ? s.bad : v == verdict::agrees ? s.good : s.bold;
}

void print_picture(const std::vector<memory>& picture, const style& s) {
  print("     {}{:<14} {:<8} {:<16} {:<13} {:<16} {:>24} {:>9} {:>8}{}\n", s.dim, "memory", "where", "seen by", "lives",
        "cached", "size here", "cycles", "GB/s", s.off);
  for (const memory& m : picture)
    print("     {:<14} {:<8} {:<16} {:<13} {:<16} {:>24} {:>9} {:>8}\n", m.name, m.where, m.seen_by, m.lives, m.cached,
          m.size, std::isnan(m.latency_cycles) ? "" : number(m.latency_cycles),
          std::isnan(m.gb_s) ? "" : number(m.gb_s));
}

void print_row(const row& r, const style& s) {
  print("{}{:<4} {}{}  {}{}{}\n", s.bold, r.id, r.title, s.off, color(r.said(), s), text(r.said()), s.off);
  const std::string indent(13, ' ');
  if (!r.taught.empty()) print("     taught  {}\n", folded(r.taught, indent, 104));
  if (!r.today.empty()) print("     today   {}\n", folded(r.today, indent, 104));
  size_t width = 10;
  for (const line& l : r.lines) width = std::max(width, l.name.size());
  const bool fits = !r.fitted().empty();  // a column more
  const auto after = [&](const std::string& text) { return fits ? format_text(" {:>14}", text) : ""; };
  print("     {}{:<{}} {:>14} {:>14}{} {:>11} {:>7}  {:<17} verdict{}\n", s.dim, "", width, "taught", "predicted",
        after("fitted"), "measured", "+-", "unit", s.off);
  for (const line& l : r.lines) {
    const double spread = l.value != 0 ? 100 * (l.high - l.low) / std::abs(l.value) : 0;
    print("     {:<{}} {:>14} {:>14}{} {:>11} {:>6.1f}%  {:<17} {}{}{}\n", l.name, width,
          l.taught ? l.taught->text : "", l.now.text, after(l.said == verdict::fitted ? l.after->seen.text : ""),
          l.figure(), spread, l.unit, color(l.said, s), text(l.said), s.off);
  }
  if (!r.picture.empty()) print_picture(r.picture, s);
  const char* head = "rules ";
  for (const row::remark& one : r.rules()) {
    print("     {}  {}\n", head, folded(one.lines + ": " + one.what, indent, 104));
    head = "      ";
  }
  for (const row::remark& one : r.fitted())
    print("     fitted  {}\n", folded(one.lines + ": " + one.what, indent, 104));
  if (!r.lesson.empty()) print("     lesson  {}\n", folded(r.lesson, indent, 104));
  put("\n");
}

}  // namespace

std::string json_text(const report& all) {
  ordered_json j;
  for (const auto& [name, value] : all.machine) j["meta"][name] = value;
  for (const report::device& d : all.devices)
    j["meta"]["devices"][d.backend] = {{"name", d.name}, {"detail", d.detail}};
  j["meta"]["tally"] = tally(all.rows);
  j["rows"] = ordered_json::array();
  for (const row& r : all.rows) j["rows"].push_back(json_of(r));
  j["missing"] = all.missing;
  // Every reading, in the order of the launches, for comparison with the counters.
  j["readings"] = ordered_json::array();
  for (const measured& m : all.all.all()) {
    ordered_json one = {{"row", m.row}, {"name", m.name}};
    if (!m.kernel.empty()) one["kernel"] = m.kernel;
    if (!std::isnan(m.x)) one["x"] = m.x;
    one.update({{"value", m.value}, {"low", m.low}, {"high", m.high}, {"unit", m.unit}, {"values_right", m.right()}});
    j["readings"].push_back(std::move(one));
  }
  return one_a_line(j);
}

void print_table(const report& all) {
  const style s = stdout_style();
  for (const report::device& d : all.devices) print("{}{}: {}, {}{}\n", s.dim, d.backend, d.name, d.detail, s.off);
  put("\n");
  for (const row& r : all.rows) print_row(r, s);
  for (const std::string& why : all.missing) print("{}missing: {}{}\n", s.dim, why, s.off);
  print(
      "{}measured: median; +-: middle half; agrees: within the prediction; moved on: the taught rule no longer holds, "
      "today's does; fitted: the rule failed, and only an interval set after measuring holds; differs: none does; "
      "WRONG: the probe read other values than it must.{}\n",
      s.dim, s.off);
  if (!all.rows.empty()) print("{}{}{}\n", s.dim, tally(all.rows), s.off);
}

}  // namespace lockstep::tool::probe
