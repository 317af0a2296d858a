// judge.cpp - compares predictions with measurements.

#include <algorithm>
#include <cstdlib>

#include "probe.hpp"
#include "text.hpp"

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

namespace {
std::string short_text(double v) { return std::abs(v) >= 1000 ? format_text("{:.0f}", v) : format_text("{:.3g}", v); }
}  // namespace

range about(double v, double tolerance) {
  return {v * (1 - tolerance), v * (1 + tolerance), format_text("{} +-{:.0f}%", short_text(v), 100 * tolerance)};
}
range exactly(double v) { return {v, v, short_text(v)}; }
range between(double low, double high) {
  return {low, high, format_text("{} to {}", short_text(low), short_text(high))};
}
range at_least(double v) { return {v, INFINITY, ">= " + short_text(v)}; }
range no_rule() { return {INFINITY, -INFINITY, "no rule"}; }
range at_most(double v) { return {-INFINITY, v, "<= " + short_text(v)}; }

const char* text(verdict v) {
  switch (v) {
    case verdict::agrees: return "agrees";
    case verdict::moved_on: return "moved on";
    case verdict::fitted: return "fitted";
    case verdict::differs: return "differs";
    case verdict::wrong: return "WRONG";
  }
  return "";
}

namespace {
verdict verdict_of(double value, bool right, const range& now, const std::optional<range>& taught,
                   const std::optional<fit>& after) {
  if (!right) return verdict::wrong;
  if (!now.holds(value)) return after && after->seen.holds(value) ? verdict::fitted : verdict::differs;
  return taught && !taught->holds(value) ? verdict::moved_on : verdict::agrees;
}
}  // namespace

std::string line::figure() const {
  for (const int digits : {3, 4, 5}) {
    const std::string text = std::abs(value) >= 1000  ? format_text("{:.0f}", value)
                             : std::abs(value) >= 100 ? format_text("{:.{}f}", value, digits - 2)
                                                      : format_text("{:.{}g}", value, digits);
    if (now.holds(std::stod(text)) == now.holds(value)) return text;
  }
  return format_text("{}", value);
}

verdict row::said() const {
  verdict worst = verdict::agrees;
  for (const line& l : lines) worst = std::max(worst, l.said);
  return worst;
}

namespace {

// Lines of the same text under one remark, which names about `most` of them; text_of gives an
// empty text for lines without.
template <class Text>
std::vector<row::remark> remarks(const std::vector<line>& lines, size_t most, const Text& text_of) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const line& l : lines) {
    const std::string text = text_of(l);
    if (text.empty()) continue;
    const auto same = std::find_if(groups.begin(), groups.end(), [&](const auto& one) { return one.first == text; });
    (same == groups.end() ? groups.emplace_back(text, std::vector<std::string>()) : *same).second.push_back(l.name);
  }
  std::vector<row::remark> out;
  for (const auto& [text, names] : groups) {
    std::string all;
    for (size_t k = 0; k < names.size(); ++k) {
      if (k + 1 == most && k + 2 < names.size()) {
        all += format_text(" and {} more", names.size() - k);
        break;
      }
      all += (k == 0 ? "" : k + 1 == names.size() ? " and " : "; ") + names[k];
    }
    out.push_back({text, all});
  }
  return out;
}

}  // namespace

std::vector<row::remark> row::rules() const {
  return remarks(lines, 3, [](const line& l) { return l.now.rule; });
}
std::vector<row::remark> row::fitted() const {
  return remarks(lines, lines.size(),
                 [](const line& l) { return l.said == verdict::fitted ? l.after->why : std::string(); });
}

void row::bar(const std::string& title, const readings& all, const std::vector<const char*>& names) {
  bars chart{title, "", {}};
  for (const char* name : names)
    if (const measured* m = all.find(id, name); m != nullptr) {
      chart.unit = m->unit;
      chart.values.emplace_back(name, m->value);
    }
  if (!chart.values.empty()) columns.push_back(std::move(chart));
}

std::string tally(const std::vector<row>& rows) {
  int count[2][5] = {}, all[2] = {}, wrong = 0;  // of intervals, of bounds
  for (const row& r : rows)
    for (const line& l : r.lines) {
      const int kind = l.now.is_bound() ? 1 : 0;
      ++count[kind][static_cast<int>(l.said)], ++all[kind];
      wrong += l.said == verdict::wrong;
    }
  const auto of = [&](int kind, verdict v) { return count[kind][static_cast<int>(v)]; };
  const auto story = [&](int kind) {
    return format_text("{}, in {} of them where the taught one fails; {} fitted after measuring; {} differ",
                       of(kind, verdict::agrees) + of(kind, verdict::moved_on), of(kind, verdict::moved_on),
                       of(kind, verdict::fitted), of(kind, verdict::differs));
  };
  std::string out = format_text("{} predictions: the rule of today holds in {}", all[0], story(0));
  if (all[1] > 0)
    out += format_text(". Beside them {} bounds, of one end or a factor of three and more between two: held by {}",
                       all[1], story(1));
  if (wrong > 0) out += format_text("; {} WRONG", wrong);
  return out;
}

void row::judge(const measured* m, const range& now, const std::optional<range>& taught,
                const std::optional<fit>& after) {
  if (m == nullptr) return;
  const std::string name = std::isnan(m->x) ? m->name : format_text("{} {:g}", m->name, m->x);
  lines.push_back({name, m->unit, m->kernel, taught, now, m->value, m->low, m->high, m->right(),
                   verdict_of(m->value, m->right(), now, taught, after), after});
}

void row::judge(const std::string& name, const std::string& unit, double value, const range& now,
                const std::optional<range>& taught, const std::optional<fit>& after) {
  if (std::isnan(value)) return;
  lines.push_back(
      {name, unit, "", taught, now, value, value, value, true, verdict_of(value, true, now, taught, after), after});
}

row judged(const kind& k, const readings& all) {
  row out{k.id, k.counterpart, k.backend, k.title, "", "", "", {}, {}, {}, {}};
  k.judge(out, all);
  // Also counts points of a curve that read wrong values, which no line shows.
  for (const measured& m : all.all())
    if (m.row == k.measures.front() && !m.right()) out.judge(&m, {-INFINITY, INFINITY, "right values"});
  return out;
}

std::vector<kind> kinds() {
  std::vector<kind> all;
  for (auto* part : {shared_kinds, global_kinds, cached_kinds, chip_kinds, host_kinds})
    for (kind& k : part()) all.push_back(std::move(k));
  const auto order = [](const kind& k) { return std::pair(k.id[0], std::atoi(k.id + 1)); };
  std::sort(all.begin(), all.end(), [&](const kind& a, const kind& b) { return order(a) < order(b); });
  return all;
}

}  // namespace lockstep::tool::probe
