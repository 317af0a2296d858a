// output.cpp - prints a report as a table, JSON or CSV, or compares it with an earlier one.
#include <algorithm>
#include <map>
#include <set>

#include "../file.hpp"
#include "bench.hpp"
#include "fingerprint.hpp"
#include "judge.hpp"

namespace lockstep::tool::bench {
namespace {

using nlohmann::ordered_json;

// A sample as a file keeps it: five digits say more than a clock knows.
double rounded(double ms) { return std::stod(format_text("{:.5g}", ms)); }

std::string time_of(double ms) {
  return ms < 0.1  ? format_text("{:.2f} us", ms * 1e3)
         : ms < 10 ? format_text("{:.3f} ms", ms)
                   : format_text("{:.1f} ms", ms);
}

}  // namespace

std::string idea_of(const std::string& backend, const std::string& op, const std::string& variant) {
  const std::string name = backend.substr(0, backend.find(':'));
  for (int i = 0; i < LOCKSTEP_OP_COUNT; ++i) {
    const auto one = static_cast<lockstep_op>(i);
    for (int32_t k = 0; op == lockstep_op_name(one) && k < lockstep_variant_count(name.c_str(), one); ++k) {
      lockstep_variant_info row{};
      row.size = sizeof row;
      check(lockstep_variant_get(name.c_str(), one, k, &row));
      if (variant == row.name) return row.idea;
    }
  }
  return "";
}

ordered_json to_json(const report& all) {
  ordered_json j;
  j["meta"] = all.machine;
  j["limits"] = ordered_json::object();
  for (const auto& [backend, limits] : all.limits) j["limits"][backend] = limits;
  j["benchmarks"] = ordered_json::array();
  for (const result& r : all.results) {
    ordered_json row = {{"name", r.name},
                        {"op", r.op},
                        {"backend", r.backend},
                        {"device", r.device},
                        {"source", r.source},
                        {"variant", r.variant},
                        {"cold", r.cold},
                        {"bytes", r.bytes},
                        {"samples", r.time.ms.size()},
                        {"median_ms", r.time.median},
                        {"low_ms", r.time.low},
                        {"high_ms", r.time.high},
                        {"noise", r.time.noise},
                        {"stopped", r.time.stopped},
                        {"gb_s", r.gb_s()},
                        {"limit", r.limit},
                        {"limit_gb_s", r.limit_gb_s},
                        {"fraction", r.fraction()},
                        {"checked", r.checked}};
    if (r.source == "lockstep") {
      row["idea"] = idea_of(r.backend, r.op, r.variant), row["auto"] = r.by_auto;
      const auto devices = all.machine.value("devices", ordered_json::object());
      const std::string detail = devices.value(r.backend, ordered_json::object()).value("detail", "");
      if (const std::string of = fingerprint_of(r.backend, detail, r.op, r.name); !of.empty()) row["fingerprint"] = of;
    }
    if (!r.memory.empty()) row["memory"] = r.memory;
    if (r.over_better > 0) row["over_better"] = r.over_better;
    if (r.beside.rounds > 0) {
      row["rounds"] = r.beside.rounds, row["against"] = r.beside.against, row["ratio"] = r.beside.ratio;
      row["ratio_low"] = r.beside.low, row["ratio_high"] = r.beside.high, row["verdict"] = r.beside.verdict();
      auto& rounds = row["rounds_ms"] = ordered_json::array();
      for (const auto& [ours, peers] : r.rounds_ms) rounds.push_back({rounded(ours), rounded(peers)});
    } else if (r.memory.empty()) {
      for (const double ms : r.time.ms) row["samples_ms"].push_back(rounded(ms));
    }
    for (const double ms : r.round_ms) row["round_ms"].push_back(rounded(ms));
    j["benchmarks"].push_back(std::move(row));
  }
  j["skipped"] = all.skipped;
  j["wrong"] = all.wrong;
  judge(j);
  return j;
}

// The limits of the machine.
void print_limits(const report& all, const style& s) {
  constexpr std::pair<const char*, const char*> named[] = {
      {"launch_us", "an empty call {:.2f} us"},
      {"fma_f32_gflop_s", "fused multiply-adds {:.4g} GFLOP/s in f32"},
      {"fma_f64_gflop_s", "{:.4g} in f64"},
      {"upload_pinned_gb_s", "link {:.1f} GB/s up"},
      {"download_pinned_gb_s", "{:.1f} down"},
      {"both_pinned_gb_s", "{:.1f} both at once (pinned)"},
      {"upload_pageable_gb_s", "{:.1f} up"},
      {"download_pageable_gb_s", "{:.1f} down (pageable)"},
      {"host_copies_gb_s", "host copies to and from page-locked memory {:.1f} GB/s"}};
  for (const auto& [backend, limits] : all.limits) {
    std::string text;
    for (const auto& [key, format] : named)
      if (limits.contains(key)) {
        const double value = limits.at(key).get<double>();
        text += (text.empty() ? "" : ", ") + vformat_text(format, fmt::make_format_args(value));
      }
    print("{}limits of {}: {}{}\n", s.dim, backend, text, s.off);
  }
}

void print_table(const report& all) {
  if (!all.results.empty() && !all.results.front().memory.empty()) return print_crossover(all);
  const style s = stdout_style();
  print_limits(all, s);
  size_t name_width = 4, variant_width = 7;
  for (const result& r : all.results) {
    name_width = std::max(name_width, r.name.size());
    variant_width = std::max(variant_width, r.variant.size());
  }
  print("{}{:<{}}  {:<6} {:<{}} {:>10} {:>6} {:>8} {:>8} {:>11}  {}{}\n", s.bold, "case", name_width, "on", "variant",
        variant_width, "time", "+-", "GB/s", "of limit", "x peer", "checked", s.off);
  const ordered_json judged = to_json(all);
  for (size_t k = 0; k < all.results.size(); ++k) {
    const result& r = all.results[k];
    const ordered_json& row = judged.at("benchmarks").at(k);
    print("{:<{}}  {:<6} {}{:<{}}{} {:>10} {:>5.1f}% {:>8.1f} {:>7.2f}{} {:>11}  {}\n", r.name, name_width, r.backend,
          r.source == "lockstep" ? "" : s.dim, r.variant, variant_width, r.source == "lockstep" ? "" : s.off,
          time_of(r.time.median), 100 * r.time.noise, r.gb_s(), r.fraction(), r.limit.substr(0, 1),
          row.contains("best_peer")
              ? format_text("{:.2f} {:<6}", row.at("over_best_peer").get<double>(), row.value("verdict", ""))
              : "",
          r.checked);
  }
  print(
      "{}time: median; +-: middle half; GB/s: compulsory bytes, each once; of limit: fraction of the best copy (c) or "
      "read (r), or of the pinned link (l), of "
      "the same size in this run; x peer: the best peer's time over ours, of those that add as we do: the median of "
      "the "
      "rounds in which both took turns, ahead or behind where 1 lies outside its 99.9 % interval, else level; without "
      "turns by the medians, level where the middle halves overlap; {}{}\n",
      s.dim, all.machine.value("cache", ""), s.off);
  for (const std::string& text : all.skipped) print("{}skipped: {}{}\n", s.dim, text, s.off);
  for (const std::string& text : all.wrong) print("{}not timed: {}{}\n", s.bad, text, s.off);
}

namespace {
std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}
}  // namespace

void write_csv(const report& all, const std::string& path) {
  std::string file =
      "name,backend,device,source,variant,memory,cold,bytes,samples,median_ms,low_ms,high_ms,noise,gb_s,limit,"
      "limit_gb_s,"
      "fraction,over_best_peer,verdict,over_better,checked\n";
  const ordered_json judged = to_json(all);
  for (size_t k = 0; k < all.results.size(); ++k) {
    const result& r = all.results[k];
    const ordered_json& row = judged.at("benchmarks").at(k);
    file += format_text("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", quoted(r.name), r.backend,
                        quoted(r.device), quoted(r.source), quoted(r.variant), r.memory, r.cold ? 1 : 0, r.bytes,
                        r.time.ms.size(), r.time.median, r.time.low, r.time.high, r.time.noise, r.gb_s(), r.limit,
                        r.limit_gb_s, r.fraction(),
                        row.contains("best_peer") ? format_text("{}", row.at("over_best_peer").get<double>()) : "",
                        row.contains("best_peer") ? row.value("verdict", "") : "",
                        r.over_better > 0 ? format_text("{}", r.over_better) : "", quoted(r.checked));
  }
  write_file(path, file);
}

namespace {
// The key for comparing rows: auto's row of a case counts as the same whichever variant ran. Crossovers also have a
// kind of memory.
std::string identity(const ordered_json& row, bool by_auto) {
  const auto word = [&](const char* key) { return row.value(key, std::string()); };
  const std::string variant = row.contains("memory") ? word("memory") : by_auto ? "auto" : word("variant");
  return format_text("{} {} {} {} {}", word("name"), word("backend"), variant, word("source"),
                     row.value("cold", false));
}

// Rows of a file by what they are the same by. Files of before auto was noted: a case's only row is auto's.
std::map<std::string, const ordered_json*> rows_of(const ordered_json& run) {
  std::map<std::string, const ordered_json*> known;
  std::map<std::string, int> of_case;
  const auto without_variant = [](const ordered_json& row) { return identity(row, true); };
  for (const auto& row : run.at("benchmarks")) ++of_case[without_variant(row)];
  for (const auto& row : run.at("benchmarks")) {
    known[identity(row, false)] = &row;
    const std::string any = without_variant(row);
    if (row.value("auto", of_case[any] == 1)) known[any] = &row;
  }
  return known;
}

// Reported, not refused, because comparing machines may be the purpose.
void say_other_machine(const ordered_json& before, const ordered_json& after, const style& s) {
  const ordered_json none = ordered_json::object();
  const auto meta = [&](const ordered_json& run) -> const ordered_json& {
    return run.contains("meta") ? run.at("meta") : none;
  };
  const auto say = [&](const std::string& what, const std::string& was, const std::string& now) {
    if (was != now) print("{}--compare: {} was \"{}\", now it is \"{}\"{}\n", s.bad, what, was, now, s.off);
  };
  const ordered_json then = meta(before).value("devices", none), now = meta(after).value("devices", none);
  for (const auto& [backend, device] : now.items()) {
    if (!then.contains(backend)) continue;
    for (const char* key : {"name", "detail"})
      say(format_text("the {} of {}", key, backend), then.at(backend).value(key, ""), device.value(key, ""));
  }
  say("--threads", format_text("{}", meta(before).value("threads", 0)),
      format_text("{}", meta(after).value("threads", 0)));
  say("--memory", meta(before).value("memory", ""), meta(after).value("memory", ""));
}
}  // namespace

int compare(const ordered_json& before, const ordered_json& after) {
  int slower = 0;
  std::set<const ordered_json*> matched;
  const style s = stdout_style();
  const auto known = rows_of(before);
  say_other_machine(before, after, s);
  for (const auto& now : after.at("benchmarks")) {
    auto found = known.find(identity(now, now.value("auto", false)));
    if (found == known.end()) found = known.find(identity(now, false));
    if (found == known.end()) continue;
    const ordered_json& old = *found->second;
    matched.insert(&old);
    const double noise = std::max(old.at("noise").get<double>(), now.at("noise").get<double>());
    const double change = now.at("median_ms").get<double>() / old.at("median_ms").get<double>() - 1;
    // A change within the noise is none, or, where the noise is beyond 10 %, may be one.
    const std::string verdict = std::abs(change) <= std::max(noise, 0.02) ? (noise > 0.10 ? "unclear" : "SAME")
                                : change < 0                              ? "FAST"
                                                                          : "SLOW";
    slower += verdict == "SLOW";
    const auto word = [](const ordered_json& row, const char* key) { return row.at(key).get<std::string>(); };
    const std::string variant = word(now, "variant"), was = word(old, "variant");
    print("{}{:<8}{} {:+6.1f}%  (noise {:.1f}%)  {} {} {}{}{}\n",
          verdict == "SLOW"   ? s.bad
          : verdict == "FAST" ? s.good
                              : "",
          verdict, s.off, 100 * change, 100 * noise, word(now, "name"), word(now, "backend"), variant,
          was == variant ? "" : format_text(" (was {})", was),
          now.contains("memory") ? ", " + word(now, "memory") : "");
  }
  if (matched.empty())
    fail("--compare: the earlier file has none of these cases, variants and backends; choose the same ones");
  print(
      "{}{} compared, {} slower; {} have no earlier result; {} earlier ones were not run. Change: of the median; a "
      "change within the noise (the wider middle half of both, at least 2 %) is SAME, or unclear where the noise is "
      "beyond 10 %{}\n",
      s.dim, matched.size(), slower, after.at("benchmarks").size() - matched.size(),
      before.at("benchmarks").size() - matched.size(), s.off);
  return slower > 0 ? 1 : 0;
}

}  // namespace lockstep::tool::bench
