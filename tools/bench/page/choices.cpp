// choices.cpp - whole calls on CPU, on the GPU and as auto chooses (bench --preset crossover):
// each case is a dot, since its cases differ in more than size.
#include <algorithm>
#include <cmath>
#include <map>

#include "../../cli.hpp"
#include "rows.hpp"

namespace lockstep::tool::bench {
namespace {

using nlohmann::ordered_json;

// The series of a name, made where there is none yet.
pages::series& series_of(std::vector<pages::series>& all, const std::string& name) {
  for (pages::series& s : all)
    if (s.name == name) return s;
  all.push_back({.name = name});
  all.back().look = pages::look::dots;
  return all.back();
}

pages::line_chart empty_chart(const std::string& title, const std::string& y, pages::scale scale) {
  pages::line_chart c;
  c.title = title;
  c.x.label = "compulsory bytes", c.x.scale = pages::scale::log2, c.x.unit = pages::unit::bytes;
  c.y.label = y, c.y.scale = scale;
  return c;
}

// A case's results on CPU and GPU, by memory and name.
using results = std::map<std::pair<std::string, std::string>, std::pair<const ordered_json*, const ordered_json*>>;

// Of the cases of an op, the sizes between which the GPU overtakes: below, no case is faster there; above, every one.
std::string crossing(const results& pairs, const std::string& op, const std::string& memory) {
  double first = INFINITY, last = 0, least = INFINITY, most = 0;  // bytes: the first faster one, the last slower one
  for (const auto& [key, both] : pairs) {
    const auto& [cpu, gpu] = both;
    if (key.first != memory || cpu == nullptr || gpu == nullptr || cpu->at("op") != op) continue;
    const double bytes = cpu->at("bytes"), on_cpu = cpu->at("median_ms"), on_gpu = gpu->at("median_ms");
    least = std::min(least, bytes), most = std::max(most, bytes);
    if (on_gpu < on_cpu)
      first = std::min(first, bytes);
    else
      last = std::max(last, bytes);
  }
  const auto text = [](double bytes) { return pages::text_of(bytes, pages::unit::bytes); };
  if (least > most) return "";
  if (std::isinf(first)) return "nowhere measured";
  if (last == 0) return "everywhere measured";
  if (first > last) return "from " + text(first);
  return last >= most ? format_text("some from {}", text(first))
                      : format_text("some from {}, all beyond {}", text(first), text(last));
}

void crossings(pages::page& p, const results& pairs, const std::vector<std::string>& memories) {
  pages::table t{.title = "Where the GPU is faster than the CPU, by operation"};
  t.columns = {{"operation"}};
  for (const std::string& memory : memories) t.columns.push_back({memory + " memory"});
  for (const std::string& op : op_names()) {
    std::vector<pages::cell> row = {op};
    for (const std::string& memory : memories) row.emplace_back(crossing(pairs, op, memory));
    if (std::any_of(row.begin() + 1, row.end(), [](const pages::cell& c) { return !c.text.empty(); }))
      t.rows.push_back(std::move(row));
  }
  if (!t.rows.empty()) p.add(t);
}

// GPU over CPU by size: a chart a kind of memory, a series an op.
void speeds(pages::page& p, const ordered_json& run) {
  results pairs;
  std::vector<std::string> memories;
  for (const ordered_json& r : run.at("benchmarks")) {
    if (!r.contains("memory") || r.at("backend") == "auto") continue;
    const std::string memory = r.at("memory");
    if (std::find(memories.begin(), memories.end(), memory) == memories.end()) memories.push_back(memory);
    auto& [cpu, gpu] = pairs[{memory, r.at("name")}];
    (r.at("backend") == "cpu" ? cpu : gpu) = &r;
  }
  crossings(p, pairs, memories);
  for (const std::string& memory : memories) {
    pages::line_chart c = empty_chart(format_text("{} memory", memory == "device"   ? "Device"
                                                               : memory == "pinned" ? "Pinned host"
                                                                                    : "Pageable host"),
                                      "time on the CPU over time on the GPU", pages::scale::log10);
    c.levels = {{1, "as fast"}};
    for (const auto& [key, both] : pairs) {
      const auto& [cpu, gpu] = both;
      if (key.first != memory || cpu == nullptr || gpu == nullptr) continue;
      const double on_cpu = cpu->at("median_ms"), on_gpu = gpu->at("median_ms");
      series_of(c.series, cpu->at("op")).points.push_back({cpu->at("bytes"), on_cpu / on_gpu, key.second});
    }
    if (!c.series.empty()) p.add(c);
  }
}

// What auto chose over the better of the two, by size: a series a kind of memory.
void choices(pages::page& p, const ordered_json& run) {
  pages::line_chart c = empty_chart("auto", "its time over that of the better", pages::scale::linear);
  c.y.low = 0.8;
  c.levels = {{1.1, "1.1"}};
  size_t cases = 0, worse = 0;
  for (const ordered_json& r : run.at("benchmarks")) {
    if (!r.contains("over_better")) continue;
    const double over = r.at("over_better");
    ++cases, worse += over > 1.1;
    series_of(c.series, r.at("memory").get<std::string>() + " memory")
        .points.push_back(
            {r.at("bytes"), std::max(over, 0.8),
             format_text("{}, ran on {}", r.at("name").get<std::string>(), r.at("variant").get<std::string>())});
  }
  c.caption = format_text(
      "{} of {} calls took more than 1.1 times the time of the better of CPU and GPU. What is below 0.8 stands at 0.8.",
      worse, cases);
  if (cases > 0) p.add(c);
}

}  // namespace

void add_choices(pages::page& p, const material& all) {
  bool begun = false;
  for (const ordered_json& run : all.runs) {
    const auto& rows = run.at("benchmarks");
    if (std::none_of(rows.begin(), rows.end(), [](const ordered_json& r) { return r.contains("memory"); })) continue;
    if (!begun)
      p.section("CPU, GPU and auto",
                "Whole calls, transfers included and results not compared, on data in three kinds of memory; above the "
                "line the GPU is the faster. "
                "Last, what auto chose.");
    begun = true;
    std::string where;
    for (const auto& [backend, device] : run.at("meta").at("devices").items())
      where += (where.empty() ? "" : " and ") + device.value("name", backend);
    p.heading(where);
    speeds(p, run);
    choices(p, run);
  }
}

}  // namespace lockstep::tool::bench
