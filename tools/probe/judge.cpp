// judge.cpp - predictions beside measurements.
#include <algorithm>

#include "probe.hpp"

namespace lockstep::tool::probe {

const measured* readings::find(const std::string& row, const std::string& name, double x) const {
  for (const measured& m : all_)
    if (m.row == row && m.name == name && (std::isnan(x) ? std::isnan(m.x) : m.x == x)) return &m;
  return nullptr;
}

double readings::value(const std::string& row, const std::string& name, double x) const {
  const measured* m = find(row, name, x);
  return m == nullptr ? NAN : m->value;
}

std::vector<const measured*> readings::series(const std::string& row, const std::string& name) const {
  std::vector<const measured*> found;
  for (const measured& m : all_)
    if (m.row == row && m.name == name && !std::isnan(m.x)) found.push_back(&m);
  return found;
}

range about(double v, double tolerance) {
  return {v * (1 - tolerance), v * (1 + tolerance), fmt::format("{:.3g} +-{:.0f}%", v, 100 * tolerance)};
}
range exactly(double v) { return {v, v, fmt::format("{:.6g}", v)}; }
range between(double low, double high) { return {low, high, fmt::format("{:.3g} to {:.3g}", low, high)}; }
range at_least(double v) { return {v, INFINITY, fmt::format(">= {:.3g}", v)}; }
range at_most(double v) { return {-INFINITY, v, fmt::format("<= {:.3g}", v)}; }

const char* text(verdict v) {
  switch (v) {
    case verdict::agrees: return "agrees";
    case verdict::moved_on: return "moved on";
    case verdict::differs: return "differs";
    case verdict::wrong: return "WRONG";
  }
  return "";
}

namespace {
verdict verdict_of(double value, bool right, const range& now, const std::optional<range>& taught) {
  if (!right) return verdict::wrong;
  if (!now.holds(value)) return verdict::differs;
  return taught && !taught->holds(value) ? verdict::moved_on : verdict::agrees;
}
}  // namespace

verdict row::said() const {
  verdict worst = verdict::agrees;
  for (const line& l : lines) worst = std::max(worst, l.said);
  return worst;
}

void row::judge(const measured* m, const range& now, const std::optional<range>& taught) {
  if (m == nullptr) return;
  const std::string name = std::isnan(m->x) ? m->name : fmt::format("{} {:g}", m->name, m->x);
  lines.push_back({name, m->unit, m->kernel, taught, now, m->value, m->low, m->high, m->right(), verdict_of(m->value, m->right(), now, taught)});
}

void row::judge(const std::string& name, const std::string& unit, double value, const range& now, const std::optional<range>& taught) {
  if (std::isnan(value)) return;
  lines.push_back({name, unit, "", taught, now, value, value, value, true, verdict_of(value, true, now, taught)});
}

}  // namespace lockstep::tool::probe
