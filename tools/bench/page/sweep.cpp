// sweep.cpp - speed by size, and where the GPU overtakes the CPU.
#include <algorithm>
#include <cmath>
#include <map>

#include "../../cli.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {
namespace {

// A family at a place: rows by bytes.
using curve = std::map<double, best>;

// family -> place -> curve, in order of appearance.
std::vector<std::pair<std::string, std::vector<std::pair<std::string, curve>>>> curves(const material& all) {
  std::vector<std::pair<std::string, std::vector<std::pair<std::string, curve>>>> found;
  for (const std::string& place : all.places)
    for (const best& one : best_rows(all, place)) {
      const std::string& family = one.ours->family;
      if (family.empty()) continue;
      auto at = std::find_if(found.begin(), found.end(), [&](const auto& f) { return f.first == family; });
      if (at == found.end()) at = found.insert(found.end(), {family, {}});
      if (at->second.empty() || at->second.back().first != place) at->second.emplace_back(place, curve{});
      at->second.back().second.emplace(one.ours->bytes, one);
    }
  return found;
}

constexpr size_t few = 3;  // sizes that make a sweep

void one_sweep(pages::page& p, const material& all, const std::string& family, const std::string& place,
               const curve& rows) {
  const row& any = *rows.begin()->second.ours;
  pages::line_chart speed{.title = format_text("{}, {}", family, place)},
      fraction{.title = "The same as a fraction of the limit"};
  speed.x = fraction.x = {.label = "compulsory bytes", .scale = pages::scale::log2, .unit = pages::unit::bytes};
  speed.y = {.label = "GB/s", .scale = pages::scale::log10};
  fraction.y = {.label = "% of the limit of that size", .unit = pages::unit::percent, .low = 0.0};
  speed.borders = fraction.borders = caches_of(all, any.run, any.backend);
  // Borders outside of what was swept would only stretch the axis.
  for (auto* c : {&speed, &fraction})
    std::erase_if(c->borders,
                  [&](const pages::mark& m) { return m.at < rows.begin()->first || m.at > rows.rbegin()->first; });
  fraction.levels = {{1, "limit"}};
  pages::series ours{.name = "lockstep"}, limit{.name = any.limit + " limit", .look = pages::look::dashes, .color = 6},
      part = ours;
  std::map<std::string, pages::series> peers, parts;
  for (const auto& [bytes, one] : rows) {
    const row& r = *one.ours;
    ours.points.push_back({bytes, r.gb_s, format_text("{}, {}", r.name, r.variant)});
    part.points.push_back({bytes, r.fraction, format_text("{}, {}", r.name, r.variant)});
    limit.points.push_back({bytes, r.limit_gb_s});
    for (const row* peer : one.peers) {
      peers[peer->source].points.push_back({bytes, peer->gb_s, peer->name});
      parts[peer->source].points.push_back({bytes, peer->fraction, peer->name});
    }
  }
  speed.series = {std::move(ours)};
  fraction.series = {std::move(part)};
  for (auto& [name, s] : peers) {
    s.name = parts[name].name = name;
    s.color = parts[name].color = s.marker = parts[name].marker = look_of_peer(name);
    speed.series.push_back(std::move(s));
    fraction.series.push_back(std::move(parts[name]));
  }
  speed.series.push_back(std::move(limit));
  p.add(speed);
  p.add(fraction);
}

// Time at a size between those that were measured, by a line through the logarithms.
double time_at(const curve& rows, double bytes) {
  const auto above = rows.lower_bound(bytes);
  if (above == rows.end()) return NAN;
  if (above->first == bytes || above == rows.begin()) return above->first == bytes ? above->second.ours->ms : NAN;
  const auto below = std::prev(above);
  const double t = std::log(bytes / below->first) / std::log(above->first / below->first);
  return std::exp(std::log(below->second.ours->ms) * (1 - t) + std::log(above->second.ours->ms) * t);
}

// The size from which the GPU stays the faster: 0 where it always is, infinity where it never is.
double crossing(const curve& cpu, const curve& gpu) {
  std::vector<std::pair<double, double>> ratios;  // size, log of CPU time over GPU time
  for (const curve* c : {&cpu, &gpu})
    for (const auto& [bytes, unused] : *c)
      if (const double ratio = std::log(time_at(cpu, bytes) / time_at(gpu, bytes)); std::isfinite(ratio))
        ratios.emplace_back(bytes, ratio);
  std::sort(ratios.begin(), ratios.end());
  if (ratios.empty()) return NAN;
  if (ratios.back().second <= 0) return INFINITY;
  size_t i = ratios.size() - 1;
  while (i > 0 && ratios[i - 1].second > 0) --i;
  if (i == 0) return 0;
  const auto [x1, r1] = ratios[i - 1];
  const auto [x2, r2] = ratios[i];
  return std::exp(std::log(x1) + std::log(x2 / x1) * -r1 / (r2 - r1));
}

}  // namespace

void add_sweep(pages::page& p, const material& all) {
  bool begun = false;
  for (const auto& [family, places] : curves(all))
    for (const auto& [place, rows] : places) {
      if (rows.size() < few) continue;
      if (!begun)
        p.section(
            "Speed by size",
            "The same operation from small to large, beside the limit of each size. Vertical lines are cache sizes.");
      begun = true;
      one_sweep(p, all, family, place, rows);
    }
}

void add_crossover(pages::page& p, const material& all) {
  pages::table t{.title = "Where the GPU overtakes"};
  t.columns = {{"case"}, {"CPU"}, {"GPU"}, {"GPU is faster from"}};
  bool begun = false;
  for (const auto& [family, places] : curves(all)) {
    pages::line_chart c{.title = family};
    c.x = {.label = "compulsory bytes", .scale = pages::scale::log2, .unit = pages::unit::bytes};
    c.y = {.label = "time", .scale = pages::scale::log10, .unit = pages::unit::seconds};
    bool any = false;
    for (const auto& [cpu_place, cpu] : places)
      for (const auto& [gpu_place, gpu] : places) {
        if (!cpu.begin()->second.ours->on_cpu || gpu.begin()->second.ours->on_cpu || cpu.size() < 2 || gpu.size() < 2)
          continue;
        const double from = crossing(cpu, gpu);
        if (std::isnan(from)) continue;  // no size in common
        any = true;
        const std::string text = from == 0          ? "everywhere measured"
                                 : std::isinf(from) ? "nowhere measured"
                                                    : pages::text_of(from, pages::unit::bytes);
        t.rows.push_back({family, cpu_place, gpu_place, text});
        if (from > 0 && std::isfinite(from)) c.borders.push_back({from, text});
      }
    if (!any) continue;
    for (const auto& [place, rows] : places) {
      pages::series s{.name = place};
      for (const auto& [bytes, one] : rows)
        s.points.push_back({bytes, one.ours->ms * 1e-3, format_text("{}, {}", one.ours->name, one.ours->variant)});
      c.series.push_back(std::move(s));
    }
    if (!begun)
      p.section("CPU or GPU",
                "Times of the same case on both, lower is better; a vertical line stands where the GPU overtakes. Its "
                "time on device "
                "memory leaves out the way there; on host memory it is all in.");
    begun = true;
    p.add(c);
  }
  if (begun) p.add(t);
}

}  // namespace lockstep::tool::bench
