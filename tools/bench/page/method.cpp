// method.cpp - what was measured where and how; the limits; what did not run.
#include <algorithm>
#include <charconv>

#include "../../cli.hpp"
#include "legend.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {
namespace {

using nlohmann::ordered_json;

// Words in order of appearance, each once.
class words {
 public:
  bool add(const std::string& word) {  // false where it was there
    if (word.empty() || std::find(list_.begin(), list_.end(), word) != list_.end()) return false;
    list_.push_back(word);
    return true;
  }
  std::string text() const { return joined(list_, "; "); }

 private:
  std::vector<std::string> list_;
};

// Of one run and backend, by size: "copy_gb_s": {"1048576": 4100.0, ...}
pages::series by_size(const ordered_json& limits, const char* key, const std::string& name) {
  pages::series s{.name = name};
  if (limits.contains(key))
    for (const auto& [bytes, gb_s] : limits.at(key).items()) s.points.push_back({std::stod(bytes), gb_s.get<double>()});
  std::sort(s.points.begin(), s.points.end(), [](const pages::point& a, const pages::point& b) { return a.x < b.x; });
  return s;
}

pages::table links(const material& all) {
  pages::table t{
      .title = "Launches, arithmetic and links",
      .caption =
          "What an empty call costs; fused multiply-adds in independent chains, two operations each; copies between "
          "host and device, the fastest of several sizes. "
          "Pinned is page-locked host memory."};
  t.columns = {{"run"},
               {"empty call", true},
               {"f32 multiply-adds, 10⁹ op/s", true},
               {"f64 multiply-adds", true},
               {"upload, pinned", true},
               {"download, pinned", true},
               {"both at once, pinned", true},
               {"upload, pageable", true},
               {"download, pageable", true}};
  constexpr const char* keys[] = {"upload_pinned_gb_s", "download_pinned_gb_s", "both_pinned_gb_s",
                                  "upload_pageable_gb_s", "download_pageable_gb_s"};
  for (size_t i = 0; i < all.runs.size(); ++i)
    for (const auto& [backend, limits] : all.runs[i].at("limits").items()) {
      const std::string place = place_in(all, i, backend);
      if (place.empty()) continue;
      std::vector<pages::cell> cells = {place,
                                        pages::cell(limits.value("launch_us", 0.0) * 1e-6, pages::unit::seconds)};
      for (const char* key : {"fma_f32_gflop_s", "fma_f64_gflop_s"})
        cells.emplace_back(limits.contains(key) ? pages::text_of(limits.at(key), pages::unit::number) : "–");
      for (const char* key : keys) cells.emplace_back(limits.contains(key) ? gb_s_text(limits.at(key)) : "–");
      t.rows.push_back(std::move(cells));
    }
  return t;
}

}  // namespace

std::vector<pages::mark> caches_of(const material& all, size_t run, const std::string& backend) {
  std::vector<pages::mark> marks;
  const std::string detail = all.runs[run].at("meta").at("devices").at(backend).value("detail", "");
  // "L1d 32 KiB", "L3 16 MiB"
  for (size_t at = detail.find('L'); at != std::string::npos; at = detail.find('L', at + 1)) {
    const std::string_view text = std::string_view(detail).substr(at);
    const std::string name(text.substr(0, text.size() > 3 && text[2] == 'd' ? 3 : 2));
    const size_t begin = at + name.size() + 1;
    if (name.size() < 2 || name[1] < '1' || name[1] > '4' || begin >= detail.size() || detail[begin - 1] != ' ')
      continue;
    int64_t count = 0;
    const char* const end = detail.data() + detail.size();
    const auto [rest, code] = std::from_chars(detail.data() + begin, end, count);
    const std::string_view unit(rest, std::min<size_t>(4, static_cast<size_t>(end - rest)));
    if (code != std::errc{} || count < 0 || (unit != " KiB" && unit != " MiB")) continue;
    const double bytes = static_cast<double>(count) * (unit == " KiB" ? 1024 : 1048576);
    marks.push_back({bytes, format_text("{} {}", name, pages::text_of(bytes, pages::unit::bytes))});
  }
  return marks;
}

void add_method(pages::page& p, const material& all) {
  words devices, dates, commits, notes, caches;
  for (const ordered_json& run : all.runs) {
    const ordered_json& meta = run.at("meta");
    for (const auto& [backend, device] : meta.at("devices").items())
      if (const std::string line = device.value("name", "") + device.value("detail", ""); devices.add(line))
        p.fact(device.value("name", backend), device.value("detail", ""));
    dates.add(meta.value("date", "")), commits.add(meta.value("commit", "")), notes.add(meta.value("note", ""));
    caches.add(meta.value("cache", ""));
  }
  if (!notes.text().empty()) p.fact("Note", notes.text());
  p.fact("Commit", commits.text());
  p.fact("Date", dates.text());
  p.fact("Caches", caches.text());
  p.section("Method");
  p.list(
      {"A time is the median of samples; noise is the width of their middle half over the median. Sampling ends when "
       "that is below 1 % "
       "(after 15 samples or more), or when the time for a measurement is up.",
       "Bytes are counted once: each input byte read, each output byte written. 1 GB/s is 10⁹ bytes a second.",
       "The limit of a case is the fastest copy of as many bytes on the same memory in the same run; for reductions "
       "the fastest read; "
       "for host memory of a GPU the page-locked link; or any faster row of that case.",
       "Results are compared bit by bit with the reference before they are timed; where that could not be done, the "
       "table of numbers says so."});
  pages::table names{.title = "How the names of cases are written",
                     .caption = "Entries that start with / may be added to a name.",
                     .columns = {{"written"}, {"says", false, true}},
                     .folded = true};
  for (const cases::legend_line& line : cases::legend()) names.rows.push_back({line.written, line.meaning});
  p.add(names);
}

void add_limits(pages::page& p, const material& all) {
  if (all.places.empty()) return;
  p.section("The limits", "What the fastest of several plain copy and read kernels reached, by the bytes they moved.");
  for (const std::string& place : all.places) {
    // Of several runs at a place, the one that measured the most sizes.
    pages::line_chart chosen;
    size_t most = 0;
    for (size_t i = 0; i < all.runs.size(); ++i)
      for (const auto& [backend, limits] : all.runs[i].at("limits").items()) {
        if (place_in(all, i, backend) != place) continue;
        pages::line_chart c{.title = place};
        c.x = {.label = "bytes moved", .scale = pages::scale::log2, .unit = pages::unit::bytes};
        c.y = {.label = "GB/s", .scale = pages::scale::log10};
        size_t points = 0;
        for (pages::series s :
             {by_size(limits, "copy_gb_s", "copy (bytes read and written)"), by_size(limits, "read_gb_s", "read")}) {
          points += s.points.size();
          if (!s.points.empty()) c.series.push_back(std::move(s));
        }
        for (const pages::mark& m : caches_of(all, i, backend)) c.borders.push_back(m);
        if (points > most) most = points, chosen = std::move(c);
      }
    if (most > 1) p.add(chosen);
  }
  p.add(links(all));
}

void add_skipped(pages::page& p, const material& all) {
  std::vector<std::string> lines;
  for (const ordered_json& run : all.runs)
    if (run.contains("skipped"))
      for (const auto& text : run.at("skipped")) lines.push_back(text.get<std::string>());
  if (lines.empty()) return;
  p.section("Not measured", "What was asked for and did not run, with the reason.");
  pages::table t{.title = format_text("{} measurements", lines.size()),
                 .columns = {{"what and why", false, true}},
                 .folded = true};
  for (const std::string& line : lines) t.rows.push_back({line});
  p.add(t);
}

}  // namespace lockstep::tool::bench
