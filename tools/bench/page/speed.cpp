// speed.cpp - every case as a fraction of its limit, the roofline, and the peers.
#include <algorithm>
#include <map>

#include "../../cli.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {
namespace {
// Whether a peer's result was what was asked for: float accumulation and the like count,
// since its speed is what a user would get.
bool wrong(const row& r) { return r.checked.find("WRONG") != std::string::npos; }

// The case without its op, which is the chart's title.
std::string short_name(const row& r) { return r.name.substr(r.op.size() + 1); }

// The chart of an op among charts; made by make where there is none yet.
template <class Make>
pages::bar_chart& chart_of_op(std::vector<pages::bar_chart>& charts, const std::string& op, const Make& make) {
  for (pages::bar_chart& c : charts)
    if (c.title == op) return c;
  charts.push_back(make());
  charts.back().title = op;
  return charts.back();
}
}  // namespace

// What a reader wants to know first.
void add_verdict(pages::page& p, const material& all) {
  if (all.rows.empty()) return;
  p.section("The verdict",
            "The median of the fraction of the limit, and the cases beside their best peer that adds as we do: ahead, "
            "level or behind by the rule of tools/bench/verdict.hpp. Faster peers that add in float, where we add in "
            "double, are named beside them.");
  pages::table t;
  t.columns = {{"where"},       {"cases", true},  {"of the limit, median", true}, {"ahead", true},
               {"level", true}, {"behind", true}, {"behind which", false, true}};
  for (const std::string& place : all.places) {
    std::vector<double> fractions;
    std::map<std::string, int> count;
    std::vector<std::string> names;
    for (const best& one : best_rows(all, place)) {
      const row& r = *one.ours;
      fractions.push_back(r.fraction);
      if (!r.best_peer.empty()) ++count[r.verdict];
      if (r.verdict == "behind") names.push_back(format_text("{}: {:.2f} × {}", r.name, r.over_best, r.best_peer));
      if (r.float_verdict == "behind")
        names.push_back(format_text("{}: {:.2f} × {}, which adds in float", r.name, r.over_float, r.float_peer));
    }
    if (fractions.empty()) continue;
    std::sort(fractions.begin(), fractions.end());
    const auto number = [&](const char* key) { return pages::cell(std::to_string(count[key])); };
    const bool judged = count["ahead"] + count["level"] + count["behind"] > 0;
    p.verdict(format_text("{}: median {} of the limit over {} cases{}.", place,
                          percent(fractions[fractions.size() / 2]), fractions.size(),
                          !judged ? ""
                                  : format_text("; beside the best peer {} ahead, {} level, {} behind", count["ahead"],
                                                count["level"], count["behind"])));
    t.rows.push_back({place, std::to_string(fractions.size()), percent(fractions[fractions.size() / 2]),
                      number("ahead"), number("level"), number("behind"), joined(names, "; ")});
  }
  p.add(t);
}

void add_fractions(pages::page& p, const material& all) {
  if (all.rows.empty()) return;
  p.section(
      "Fraction of the limit",
      "The fastest variant that keeps the fixed order, case by case. 100 % is a plain copy, or for reductions a plain "
      "read, of as many bytes. Of a case in many sizes the largest stands here.");
  for (const std::string& place : all.places) {
    std::vector<pages::bar_chart> charts;
    for (const best& one : headline_rows(all, place)) {
      const row& r = *one.ours;
      pages::bar_chart& c = chart_of_op(charts, r.op, [] {
        pages::bar_chart fresh;
        fresh.values = {
            .label = "% of the limit of the same run", .unit = pages::unit::percent, .low = 0.0, .high = 1.0};
        fresh.reference = pages::mark{1, "limit"};
        return fresh;
      });
      c.bars.push_back({short_name(r), r.fraction, format_text("{}, {}", percent(r.fraction), gb_s_text(r.gb_s)),
                        format_text("{}, {}, noise {:.1f} %, {}", r.variant,
                                    pages::text_of(r.ms * 1e-3, pages::unit::seconds), 100 * r.noise, r.checked)});
    }
    p.heading(place);
    for (const pages::bar_chart& c : charts) p.add(c);
  }
}

// The arithmetic of f32 and f64 that the runs at a place reached, in 10^9 operations a second; 0 where none measured
// it.
std::pair<double, double> arithmetic_of(const material& all, const std::string& place) {
  double f32 = 0, f64 = 0;
  for (size_t i = 0; i < all.runs.size(); ++i)
    for (const auto& [backend, limits] : all.runs[i].at("limits").items()) {
      if (place_in(all, i, backend) != place) continue;
      f32 = std::max(f32, limits.value("fma_f32_gflop_s", 0.0));
      f64 = std::max(f64, limits.value("fma_f64_gflop_s", 0.0));
    }
  return {f32, f64};
}

// f32 in 10^9 operations a second, a multiply-add two, as NVIDIA's data sheets state them; 0 where none is known. For
// files of before it was measured.
double stated_giga_ops(const std::string& place) {
  constexpr std::pair<const char*, double> stated[] = {
      {"H200", 67e3}, {"H100 NVL", 60e3}, {"H100 PCIe", 51e3}, {"H100", 67e3}, {"A100", 19.5e3}};
  for (const auto& [device, giga_ops] : stated)
    if (place.find(device) != std::string::npos) return giga_ops;
  return 0;
}

void add_roofline(pages::page& p, const material& all) {
  if (all.rows.empty()) return;
  p.section(
      "Roofline",
      "Operations are the arithmetic of the definition (a multiply-add is two; an element that is only moved "
      "counts as one), bytes the compulsory ones. The slopes are the measured limits of memory, the ceilings those "
      "of arithmetic: fused multiply-adds in independent chains, measured in the same run, their results checked. "
      "Sums add in f64, so do squares.");
  for (const std::string& place : all.places) {
    pages::roofline r{.title = place};
    std::map<std::string, size_t> at;
    // The roofs: the limits of the largest cases, and the fastest of any size.
    std::map<std::string, std::pair<double, double>> roofs;  // by kind: bytes, GB/s
    double fastest = 0, slow = 0;
    for (const best& one : headline_rows(all, place)) {
      const row& b = *one.ours;
      const auto [known, fresh] = at.emplace(b.op, r.series.size());
      if (fresh) r.series.push_back({.name = b.op});
      r.series[known->second].points.push_back(
          {b.operations / b.bytes, b.operations / b.ms * 1e-6,
           format_text("{}, {}, {}, {} of its limit", b.name, b.variant, gb_s_text(b.gb_s), percent(b.fraction))});
      auto& [bytes, gb_s] = roofs[b.limit];
      if (b.bytes > bytes) bytes = b.bytes, gb_s = b.limit_gb_s;
      fastest = std::max(fastest, b.limit_gb_s);
    }
    for (const auto& [kind, limit] : roofs) {
      r.roofs.push_back({.name = kind == "link" ? "link" : "memory, " + kind, .gb_s = limit.second});
      slow = std::max(slow, limit.second);
    }
    if (fastest > 1.2 * slow) r.roofs.push_back({.name = "in cache, fastest", .gb_s = fastest});
    const auto [f32, f64] = arithmetic_of(all, place);
    if (f32 > 0) r.roofs.push_back({.name = "f32 arithmetic", .giga_ops = f32});
    if (f64 > 0) r.roofs.push_back({.name = "f64 arithmetic", .giga_ops = f64});
    if (const double giga_ops = stated_giga_ops(place); f32 == 0 && giga_ops > 0) {
      r.roofs.push_back({.name = "f32 arithmetic, stated by the maker", .giga_ops = giga_ops});
      r.caption = format_text(
          "The ceiling, {:.3g}·10¹² f32 operations a second, is the maker's figure: this run did not "
          "measure one.",
          giga_ops * 1e-3);
    }
    if (!r.series.empty()) p.add(r);
  }
}

void add_peers(pages::page& p, const material& all) {
  bool begun = false;
  for (const std::string& place : all.places) {
    std::vector<pages::bar_chart> charts;
    pages::table t{.title = format_text("Every peer at {}", place), .folded = true};
    t.columns = {{"case"},
                 {"by"},
                 {"time", true},
                 {"noise", true},
                 {"GB/s", true},
                 {"of limit", true},
                 {"our speed over its", true},
                 {"checked"}};
    for (const best& one : best_rows(all, place)) {
      if (one.peers.empty()) continue;
      const row& ours = *one.ours;
      const auto line = [&](const row& r, const std::string& by, pages::cell factor) {
        t.rows.push_back({r.name, by, pages::cell(r.ms * 1e-3, pages::unit::seconds),
                          format_text("{:.1f} %", 100 * r.noise), pages::cell(r.gb_s), percent(r.fraction),
                          std::move(factor), pages::cell(r.checked, wrong(r) ? pages::tone::bad : pages::tone::plain)});
      };
      line(ours, format_text("lockstep, {}", ours.variant), "");
      for (const row* peer : one.peers) {
        line(*peer, peer->source,
             {format_text("{} {}", factor_text(peer->over_best), peer->verdict),
              peer->verdict == "behind" ? pages::tone::bad : pages::tone::plain});
      }
      if (ours.best_peer.empty()) continue;
      const double factor = ours.over_best;
      const auto found = std::find_if(one.peers.begin(), one.peers.end(),
                                      [&](const row* peer) { return peer->source == ours.best_peer; });
      const row& first = **found;
      pages::bar_chart& c = chart_of_op(charts, ours.op, [] {
        pages::bar_chart fresh;
        fresh.groups = {"ahead", "behind", "level"};
        fresh.values = {
            .label = "our speed over that of the best peer", .scale = pages::scale::log2, .unit = pages::unit::factor};
        fresh.reference = pages::mark{1, "as fast"};
        fresh.from_reference = true;
        return fresh;
      });
      c.bars.push_back(
          {short_name(ours), factor, format_text("{:.2f} × {}, {}", factor, first.source, ours.verdict),
           format_text("{} against {}; its result: {}", gb_s_text(ours.gb_s), gb_s_text(first.gb_s), first.checked),
           ours.verdict == "behind"  ? 1
           : ours.verdict == "level" ? 2
                                     : 0});
    }
    if (charts.empty()) continue;
    if (!begun)
      p.section("Peers",
                "What one would use instead, in its best reasonable form, run on the same data in the same run; its "
                "result is checked "
                "first, and what it computes differently stands in the table.");
    begun = true;
    p.heading(place);
    for (const pages::bar_chart& c : charts) p.add(c);
    p.add(t);
  }
}

}  // namespace lockstep::tool::bench
