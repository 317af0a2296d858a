// probe.cpp - lockstep probe: chooses rows and backends, and writes the output.
#include "probe.hpp"

#include <ctime>
#include <memory>
#include <set>
#include <thread>

#include "../cli.hpp"
#include "../file.hpp"
#include "../pattern.hpp"
#include "commit.hpp"

namespace lockstep::tool {
namespace probe {

namespace {

void print_list() {
  for (const kind& k : kinds())
    print("{:<4} {:<5} {}{}\n", k.id, k.backend, k.title,
          *k.counterpart != '\0' ? format_text(" (beside {})", k.counterpart) : "");
}

struct settings {
  std::vector<std::string> rows;
  std::string backend, json, html, note, from;
  double seconds = 0.05;
  int threads = 0;
  bool list = false;
};

bool wanted(const kind& k, const settings& s) {
  if (!s.backend.empty() && s.backend != "auto" && s.backend != k.backend) return false;
  if (s.rows.empty()) return true;
  for (const std::string& row : s.rows)
    for (const char* name : {k.id, k.counterpart})
      if (*name != '\0' && pattern("--row", row).is(name)) return true;
  return false;
}

std::string today() {
  char text[16];
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::strftime(text, sizeof text, "%Y-%m-%d", &utc);
  return text;
}

// Rows of a results file: all whose own readings are there.
report judge_again(const settings& s) {
  report all = read_results(s.from);
  for (const kind& k : kinds()) {
    if (!wanted(k, s)) continue;
    row out = judged(k, all.all);
    if (!out.lines.empty()) all.rows.push_back(std::move(out));
  }
  if (all.rows.empty()) refuse("--row and --backend leave none of the rows that --from {} has", s.from);
  return all;
}

report measure(const settings& s) {
  report all;
  all.machine = {{"date", today()},
                 {"lockstep", lockstep_version()},
                 {"commit", LOCKSTEP_COMMIT},
                 {"seconds", format_text("{:g}", s.seconds)}};
  if (!s.note.empty()) all.machine.emplace_back("note", s.note);
  std::optional<cuda_module> cuda;
  std::set<std::string> measured;  // rows that have been asked for, given or not
  const host_limits limits = {
      s.seconds, s.threads > 0 ? s.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()))};
  bool any = false;
  for (const kind& k : kinds()) {
    if (!wanted(k, s)) continue;
    any = true;
    const bool on_gpu = std::string(k.backend) == "cuda";
    if (on_gpu) {
      if (!cuda) {
        cuda.emplace();
        if (cuda->usable()) all.devices.push_back({"cuda", cuda->name(), cuda->detail()});
      }
      if (!cuda->usable()) {
        all.missing.push_back(format_text("{} {}: {}", k.id, k.title, cuda->why()));
        continue;
      }
    } else if (all.devices.empty() || all.devices.back().backend != "cpu") {
      all.devices.push_back({"cpu", cpu_name(), format_text("{} threads", limits.threads)});
    }
    std::vector<std::string> missing;
    for (const char* needed : k.measures) {
      if (!measured.insert(needed).second) continue;
      std::string why;
      const bool done =
          on_gpu ? cuda->measure(needed, s.seconds, all.all, why) : measure_on_cpu(needed, limits, all.all, why);
      if (!done) missing.push_back(format_text("{}: {}", needed, why));
    }
    row out = judged(k, all.all);
    if (out.lines.empty() && missing.empty())
      missing.emplace_back("nothing is predicted for this processor; --json has what was measured");
    for (const std::string& why : missing) all.missing.push_back(format_text("{} {}: {}", k.id, k.title, why));
    if (!out.lines.empty()) all.rows.push_back(std::move(out));
  }
  if (!any) refuse("--row and --backend leave no row; lockstep probe --list shows what there is");
  return all;
}

int run(const settings& s) {
  if (s.list) return print_list(), 0;
  for (const std::string& row : s.rows) (void)pattern("--row", row);
  if (std::isnan(s.seconds)) refuse("--seconds is nan; give 0 to 60");
  if (!s.from.empty() && !s.note.empty()) refuse("--note goes with a measurement; --from {} has its own", s.from);
  const bool piped = take_stdout({{"--json", s.json}, {"--html", s.html}});  // checked before minutes of measuring
  const report all = s.from.empty() ? measure(s) : judge_again(s);
  if (!piped) print_table(all);
  if (!s.json.empty()) write_file(s.json, json_text(all));
  if (!s.html.empty()) write_html(all, s.html);
  bool wrong = all.all.all().empty();
  for (const row& r : all.rows) wrong = wrong || r.said() == verdict::wrong;
  return wrong ? 1 : 0;
}

}  // namespace
}  // namespace probe

void probe_command(command root, action& chosen) {
  auto command = root.add_command("probe", "Measure the memory hierarchy beside what is taught about it");
  const auto s = std::make_shared<probe::settings>();
  command.add("--list", s->list, "print the rows, and measure nothing");
  command.add("--row", s->rows, "a row, or a regular expression of rows: E3, 'E(3|8)'; may be repeated (default: all)");
  command.add("--backend", s->backend, "cpu or cuda (default: both; reports what is missing)")
      .type_name("NAME")
      .one_of({"auto", "cpu", "cuda"});
  command.add("--seconds", s->seconds, "most time of one measurement; 0: one launch each, for profilers")
      .between(0.0, 60.0);
  command.add("--threads", s->threads, "CPU threads of the rows that use several (default: all)").between(0, 4096);
  command.add_json(s->json, "write the results");
  command.add("--html", s->html, "write a page with charts here; - for stdout");
  command.add("--from", s->from, "judge and draw the readings of this --json file, and measure nothing");
  command.add("--note", s->note, "a line for the results: the driver's version, say");
  command.when_called([s, &chosen] { chosen = [s] { return probe::run(*s); }; });
}

}  // namespace lockstep::tool
