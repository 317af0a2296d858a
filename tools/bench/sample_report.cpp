// sample_report.cpp - see sample_report.hpp.
#include "sample_report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "bench.hpp"
#include "page/rows.hpp"

namespace lockstep::tool::bench {
namespace {
using nlohmann::ordered_json;

// Ratios and times of the runs that have a shape, as logarithms.
struct totals {
  double ms = 0, ratio = 0;
  int runs = 0, judged = 0, behind = 0;
};

std::string kind_of(const std::string& op, const std::string& name) {
  if (name.starts_with("group/")) return "group";
  return op == "reduce" || op == "square_sum" ? "reduction" : op;
}

std::string ratio_text(double ratio) {
  return ratio < 0.1 ? format_text("{:.3f}", ratio) : format_text("{:.2f}", ratio);
}
std::string us_text(double ms) { return ms < 0.1 ? format_text("{:.2f}", ms * 1e3) : format_text("{:.0f}", ms * 1e3); }
}  // namespace

std::vector<sampled> sampled_shapes(const std::vector<ordered_json>& runs) {
  std::vector<sampled> all;
  std::map<std::pair<std::string, std::string>, size_t> known;  // by place and name
  std::vector<totals> of;
  for (const ordered_json& run : runs) {
    if (!run.at("meta").contains("sample")) continue;
    std::map<std::pair<std::string, std::string>, std::string> peers;  // by backend and name
    for (const ordered_json& row : run.at("benchmarks"))
      if (row.contains("ratio")) {
        std::string& text = peers[{row.at("backend"), row.at("name")}];
        text += format_text("{}{} {}", text.empty() ? "" : "; ", row.at("source").get<std::string>(),
                            ratio_text(row.at("ratio")));
      }
    for (const ordered_json& row : run.at("benchmarks")) {
      if (row.at("source") != "lockstep") continue;
      const std::string place = place_of(run, row), name = row.at("name");
      const auto [at, fresh] = known.emplace(std::pair(place, name), all.size());
      if (fresh) all.emplace_back(), of.emplace_back();
      sampled& one = all[at->second];
      one.others = peers[{row.at("backend"), name}];
      one.name = name, one.place = place, one.kind = kind_of(row.at("op"), name);
      totals& sum = of[at->second];
      one.variant = row.at("variant"), one.bytes = row.at("bytes"), one.fraction = row.at("fraction");
      one.runs = ++sum.runs;
      sum.ms += std::log(row.value("sample_ms", row.at("median_ms").get<double>()));
      one.ms = std::exp(sum.ms / sum.runs), one.gb_s = one.bytes / one.ms * 1e-6;
      if (!row.contains("sample_ratio")) continue;
      one.peer = row.at("sample_peer");
      sum.ratio += std::log(row.at("sample_ratio").get<double>());
      sum.behind += row.at("behind").get<bool>();
      one.ratio = std::exp(sum.ratio / ++sum.judged);
      one.behind = sum.behind == sum.judged;
    }
  }
  return all;
}

std::vector<std::string> places_of(const std::vector<sampled>& all) {
  std::vector<std::string> places;
  for (const sampled& one : all)
    if (std::find(places.begin(), places.end(), one.place) == places.end()) places.push_back(one.place);
  return places;
}

std::vector<const sampled*> worst_first(const std::vector<sampled>& all,
                                        const std::function<bool(const sampled&)>& fits) {
  std::vector<const sampled*> found;
  for (const sampled& one : all)
    if (one.ratio > 0 && fits(one)) found.push_back(&one);
  std::stable_sort(found.begin(), found.end(), [](const sampled* a, const sampled* b) { return a->ratio < b->ratio; });
  return found;
}

spread spread_of(const std::vector<const sampled*>& shapes) {
  spread s;
  s.count = shapes.size();
  if (shapes.empty()) return s;
  for (const sampled* one : shapes) s.behind += one->behind, s.mean += std::log(one->ratio);
  s.mean = std::exp(s.mean / static_cast<double>(shapes.size()));
  const auto at = [&](double q) {
    return shapes[static_cast<size_t>(q * static_cast<double>(shapes.size() - 1) + 0.5)]->ratio;
  };
  s.worst = at(0), s.tenth = at(0.1), s.quarter = at(0.25), s.median = at(0.5), s.upper_quarter = at(0.75),
  s.upper_tenth = at(0.9);
  return s;
}

size_t byte_class(double bytes) { return bytes < 1e6 ? 0 : bytes < 8e6 ? 1 : bytes < 64e6 ? 2 : 3; }

namespace {
void print_spread(const std::string& what, const spread& s, size_t width) {
  if (s.count == 0) return;
  print("{:<{}} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}\n", what, width, s.count, s.behind,
        ratio_text(s.worst), ratio_text(s.tenth), ratio_text(s.quarter), ratio_text(s.median),
        ratio_text(s.upper_quarter), ratio_text(s.upper_tenth), ratio_text(s.mean));
}

void print_shape(const sampled& one, size_t name_width, size_t variant_width) {
  print("{:<{}}  {:>9}  {:<{}} {:>9} {:>8.1f} {:>8.2f} {:>6}{} {}\n", one.name, name_width, bytes_text(one.bytes),
        one.variant, variant_width, us_text(one.ms), one.gb_s, one.fraction,
        one.ratio > 0 ? ratio_text(one.ratio) : "-", one.behind ? "*" : " ", one.peer);
}

// What a call costs where the bytes hardly count.
void print_small(const std::vector<sampled>& all, const std::string& place) {
  constexpr double small = 1 << 20;
  std::string text;
  std::vector<std::string_view> kinds = {""};
  kinds.insert(kinds.end(), std::begin(sampled_kinds), std::end(sampled_kinds));
  for (const std::string_view kind : kinds) {
    std::vector<double> ms;
    for (const sampled& one : all)
      if (one.place == place && one.bytes <= small && (kind.empty() || one.kind == kind)) ms.push_back(one.ms);
    if (ms.empty()) continue;
    const size_t count = ms.size();
    text += format_text("{}{} us of {}", kind.empty() ? "" : format_text(", {} ", kind),
                        us_text(summarise(std::move(ms)).median), count);
  }
  if (!text.empty()) print("calls that move at most 1 MiB, median: {}\n", text);
}

// A place's shapes, what they say together, and the worst.
void print_place(const std::vector<sampled>& all, const std::string& place) {
  const style s = stdout_style();
  size_t name_width = 5, variant_width = 7, of_place = 0;
  for (const sampled& one : all)
    if (one.place == place)
      name_width = std::max(name_width, one.name.size()), variant_width = std::max(variant_width, one.variant.size()),
      ++of_place;
  const auto head = [&] {
    print("{}{:<{}}  {:>9}  {:<{}} {:>9} {:>8} {:>8} {:>6}  {}{}\n", s.bold, "shape", name_width, "moves", "variant",
          variant_width, "us", "GB/s", "of limit", "ratio", "beside", s.off);
  };
  print("{}{}{}\n", s.bold, place, s.off);
  head();
  for (const sampled& one : all)
    if (one.place == place) print_shape(one, name_width, variant_width);
  const auto here = worst_first(all, [&](const sampled& one) { return one.place == place; });
  if (here.empty()) return print("{}no peer timed any of these; name peer programs by --peers{}\n", s.dim, s.off);
  if (here.size() < of_place) print("{}{} of {} have no peer{}\n", s.dim, of_place - here.size(), of_place, s.off);

  std::vector<std::pair<std::string, spread>> lines;
  const auto add = [&](const std::string& what, const std::function<bool(const sampled&)>& fits) {
    lines.emplace_back(what,
                       spread_of(worst_first(all, [&](const sampled& o) { return o.place == place && fits(o); })));
  };
  add("all", [](const sampled&) { return true; });
  for (const char* kind : sampled_kinds) {
    add(kind, [&](const sampled& o) { return o.kind == kind; });
    for (size_t k = 0; k < std::size(byte_classes); ++k)
      add(format_text("  {}", byte_classes[k]),
          [&](const sampled& o) { return o.kind == kind && byte_class(o.bytes) == k; });
  }
  std::vector<std::string> ran;
  for (const sampled* one : here)
    if (const std::string what = format_text("{} {}", one->kind, one->variant);
        std::find(ran.begin(), ran.end(), what) == ran.end())
      ran.push_back(what);
  for (const std::string& what : ran)
    add(what, [&](const sampled& o) { return format_text("{} {}", o.kind, o.variant) == what; });
  size_t width = 0;
  for (const auto& [what, unused] : lines) width = std::max(width, what.size());
  print("\n{}{:<{}} {:>6} {:>7} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6} {:>6}{}\n", s.bold, "ratio", width, "shapes",
        "behind", "worst", "10 %", "25 %", "50 %", "75 %", "90 %", "mean", s.off);
  for (const auto& [what, spread] : lines) print_spread(what, spread, width);
  const auto in_float =
      std::count_if(here.begin(), here.end(), [](const sampled* o) { return o->behind && adds_in_float(o->peer); });
  if (in_float > 0)
    print("{} of those behind are behind a peer that adds in float, where we add in double\n", in_float);
  print_small(all, place);

  print("\n{}the worst{}\n", s.bold, s.off);
  head();
  for (size_t k = 0; k < std::min<size_t>(10, here.size()); ++k) print_shape(*here[k], name_width, variant_width);
}
}  // namespace

void print_sample(const std::vector<ordered_json>& runs) {
  const style s = stdout_style();
  const std::vector<sampled> all = sampled_shapes(runs);
  for (const std::string& place : places_of(all)) print_place(all, place), print("\n");
  std::string which;
  for (const ordered_json& run : runs) {
    const ordered_json& of = run.at("meta").at("sample");
    which += format_text("{}seed {}, draws {} to {}", which.empty() ? "" : "; ", of.value("seed", int64_t{0}),
                         of.value("first", int64_t{0}), of.value("count", int64_t{0}) - 1);
  }
  print(
      "{}{}. ratio: the best peer's time over ours, the median of {} rounds in which both took turns (without turns, "
      "of "
      "the medians); "
      "*: behind, below {}{}; mean: geometric{}\n",
      s.dim, which, sample_rounds, behind_below, runs.size() > 1 ? " in every run that has the shape" : "", s.off);
  for (const ordered_json& run : runs) {
    for (const ordered_json& text : run.value("skipped", ordered_json::array()))
      print("{}skipped: {}{}\n", s.dim, text.get<std::string>(), s.off);
    for (const ordered_json& text : run.value("wrong", ordered_json::array()))
      print("{}not timed: {}{}\n", s.bad, text.get<std::string>(), s.off);
  }
}

}  // namespace lockstep::tool::bench
