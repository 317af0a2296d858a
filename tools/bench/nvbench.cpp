// nvbench.cpp - a report in the layout and under the names of NVBench's JSON (version 1.0.0),
// so that its scripts read it: a benchmark a case, a state a row. What NVBench has no name
// for stands under lockstep/. Cold samples are nv/cold; samples taken back to back are what
// NVBench calls a batch; those of the CPU are its cpu_only.
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>

#include "../file.hpp"
#include "bench.hpp"

namespace lockstep::tool::bench {
namespace {

using nlohmann::ordered_json;

ordered_json value_of(const char* name, double value) {
  return {{"name", name}, {"type", "float64"}, {"value", format_text("{}", value)}};
}
ordered_json value_of(const char* name, int64_t value) {
  return {{"name", name}, {"type", "int64"}, {"value", format_text("{}", value)}};
}
ordered_json value_of(const char* name, const std::string& value) {
  return {{"name", name}, {"type", "string"}, {"value", value}};
}

template <class Value>
ordered_json summary(const std::string& tag, const char* name, const char* hint, const Value& value) {
  return {{"tag", tag}, {"name", name}, {"hint", hint}, {"data", {value_of("value", value)}}};
}

ordered_json summaries_of(const result& r) {
  const bool cpu = r.backend == "cpu";
  const auto n = static_cast<double>(r.time.ms.size());
  const double mean = std::accumulate(r.time.ms.begin(), r.time.ms.end(), 0.0) / n;
  double squares = 0;
  for (const double ms : r.time.ms) squares += (ms - mean) * (ms - mean);
  const double deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  const std::string kind = cpu      ? "nv/cpu_only"
                           : r.cold ? "nv/cold"
                                    : "nv/batch",
                    time = kind + (cpu ? "/time/cpu/" : "/time/gpu/");
  const char* const shown = cpu ? "CPU Time" : r.cold ? "GPU Time" : "Batch GPU";
  ordered_json all = ordered_json::array();
  all.push_back(summary(kind + "/sample_size", "Samples", "sample_size", static_cast<int64_t>(r.time.ms.size())));
  all.push_back(summary(time + "mean", shown, "duration", mean * 1e-3));
  all.push_back(summary(time + "stdev/absolute", "Noise", "duration", deviation * 1e-3));
  all.push_back(summary(time + "stdev/relative", "Noise", "percentage", deviation / mean));
  all.push_back(summary(time + "median", "Median", "duration", r.time.median * 1e-3));
  all.push_back(summary(time + "q1", "Q1", "duration", r.time.low * 1e-3));
  all.push_back(summary(time + "q3", "Q3", "duration", r.time.high * 1e-3));
  all.push_back(summary(time + "iqr/relative", "IQR", "percentage", r.time.noise));
  all.push_back(summary(kind + "/bw/global/bytes_per_second", "GlobalMem BW", "byte_rate", r.gb_s() * 1e9));
  all.push_back(summary("lockstep/fraction_of_limit", "of limit", "percentage", r.fraction()));
  all.push_back(summary("lockstep/checked", "checked", "", r.checked));
  return all;
}

ordered_json axis(const char* name, const std::vector<std::string>& values) {
  ordered_json list = ordered_json::array();
  for (const std::string& value : values)
    list.push_back({{"input_string", value}, {"description", ""}, {"value", value}});
  return {{"name", name}, {"type", "string"}, {"flags", ""}, {"values", list}};
}

}  // namespace

void write_nvbench(const report& all, const std::string& path) {
  ordered_json root;
  root["meta"] = {{"argv", {"lockstep", "bench"}},
                  {"version", {{"json", {{"major", 1}, {"minor", 0}, {"patch", 0}, {"string", "1.0.0"}}}}},
                  {"lockstep", all.machine}};
  std::vector<std::string> devices, cases;
  const auto index = [](std::vector<std::string>& list, const std::string& word) {
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i] == word) return i;
    list.push_back(word);
    return list.size() - 1;
  };
  ordered_json benchmarks = ordered_json::array();
  std::vector<std::array<std::vector<std::string>, 3>> values;  // of each case's axes
  constexpr std::array<const char*, 3> axes = {"backend", "by", "variant"};
  for (const result& r : all.results) {
    const size_t device = index(devices, r.device), at = index(cases, r.name);
    if (at == benchmarks.size()) {
      benchmarks.push_back({{"name", r.name},
                            {"index", at},
                            {"devices", ordered_json::array()},
                            {"axes", nullptr},
                            {"states", ordered_json::array()}});
      values.emplace_back();
    }
    const std::array<std::string, 3> words = {r.backend, r.source, r.variant};
    ordered_json axis_values = ordered_json::array();
    std::string name = format_text("Device={}", device);
    for (size_t k = 0; k < axes.size(); ++k) {
      index(values[at][k], words[k]);
      axis_values.push_back(value_of(axes[k], words[k]));
      name += format_text(" {}={}", axes[k], words[k]);
    }
    benchmarks[at]["states"].push_back({{"name", name},
                                        {"device", device},
                                        {"type_config_index", 0},
                                        {"axis_values", axis_values},
                                        {"summaries", summaries_of(r)},
                                        {"is_skipped", false}});
  }
  for (size_t i = 0; i < benchmarks.size(); ++i) {
    benchmarks[i]["axes"] = ordered_json::array();
    for (size_t k = 0; k < axes.size(); ++k) benchmarks[i]["axes"].push_back(axis(axes[k], values[i][k]));
    for (size_t d = 0; d < devices.size(); ++d) benchmarks[i]["devices"].push_back(d);
  }
  root["devices"] = ordered_json::array();
  for (size_t d = 0; d < devices.size(); ++d) root["devices"].push_back({{"id", d}, {"name", devices[d]}});
  root["benchmarks"] = std::move(benchmarks);
  write_file(path, root.dump(1) + "\n");
}

}  // namespace lockstep::tool::bench
