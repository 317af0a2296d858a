// sample.cpp - shapes drawn by seed (bench --sample): their ratio to the best peer against the bytes they move.
#include "../../cli.hpp"
#include "../sample_report.hpp"
#include "../verdict.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {
namespace {
pages::cell shape_cell(const sampled& one) {
  return {format_text("{:.2f} ×", one.ratio), one.behind ? pages::tone::bad : pages::tone::plain};
}

void add_place(pages::page& p, const std::vector<sampled>& all, const std::string& place) {
  const auto of = [&](const std::function<bool(const sampled&)>& fits) {
    return worst_first(all, [&](const sampled& one) { return one.place == place && fits(one); });
  };
  const auto here = of([](const sampled&) { return true; });
  if (here.empty()) return;
  p.heading(place);
  pages::table t;
  t.columns = {{"op"},         {"shapes", true}, {"behind", true}, {"worst", true}, {"10 %", true},
               {"25 %", true}, {"50 %", true},   {"75 %", true},   {"90 %", true},  {"geometric mean", true}};
  const auto line = [&](const std::string& what, const spread& s) {
    if (s.count == 0) return;
    std::vector<pages::cell> cells = {what, std::to_string(s.count), std::to_string(s.behind)};
    for (const double ratio : {s.worst, s.tenth, s.quarter, s.median, s.upper_quarter, s.upper_tenth, s.mean})
      cells.push_back(factor_text(ratio));
    t.rows.push_back(std::move(cells));
  };
  pages::line_chart c{.title = "Ratio by bytes moved"};
  c.x = {.label = "compulsory bytes", .scale = pages::scale::log2, .unit = pages::unit::bytes};
  c.y = {.label = "time of the best peer over ours", .scale = pages::scale::log2, .unit = pages::unit::factor};
  c.levels = {{1, "as fast"}};
  for (const char* kind : sampled_kinds) {
    const auto shapes = of([&](const sampled& one) { return one.kind == kind; });
    line(kind, spread_of(shapes));
    if (shapes.empty()) continue;
    pages::series s{.name = kind, .look = pages::look::dots};
    for (const sampled* one : shapes)
      s.points.push_back(
          {one->bytes, one->ratio, format_text("{}, {}, beside {}", one->name, one->variant, one->peer)});
    c.series.push_back(std::move(s));
  }
  line("all", spread_of(here));
  p.add(t);
  p.add(c);
  pages::table worst{.title = "The worst ten"};
  worst.columns = {{"shape"},          {"moves", true}, {"ran"},   {"time", true},
                   {"of limit", true}, {"ratio", true}, {"beside"}};
  pages::table every = worst;
  every.title = "Every shape and every peer", every.folded = true;
  every.columns.back() = {"beside", false, true};
  for (const sampled* one : here) {
    worst.rows.push_back({one->name, pages::cell(one->bytes, pages::unit::bytes), one->variant,
                          pages::cell(one->ms * 1e-3, pages::unit::seconds), percent(one->fraction), shape_cell(*one),
                          one->peer});
    every.rows.push_back(worst.rows.back());
    every.rows.back().back() = one->others;
  }
  worst.rows.resize(std::min<size_t>(worst.rows.size(), 10));
  p.add(worst);
  p.add(every);
}
}  // namespace

void add_sample(pages::page& p, const material& all) {
  const std::vector<sampled> shapes = sampled_shapes(all.runs);
  bool judged = false;
  for (const sampled& one : shapes) judged = judged || one.ratio > 0;
  if (!judged) return;
  p.section("Random shapes",
            format_text("Drawn by seed from sizes of typical use (tools/bench/sample.hpp), each compared with its best "
                        "peer: above 1 we are faster, behind is below {}{}.",
                        behind_below, all.runs.size() > 1 ? " in every run that has the shape" : ""));
  for (const std::string& place : places_of(shapes)) add_place(p, shapes, place);
}

}  // namespace lockstep::tool::bench
