// bench.cpp - lockstep bench: the options, and the files that it writes.
#include "bench.hpp"

#include <algorithm>
#include <cmath>
#include <memory>

#include "../file.hpp"
#include "../limits.hpp"
#include "../pattern.hpp"
#include "cases.hpp"
#include "commit.hpp"
#include "judge.hpp"
#include "sample_report.hpp"

namespace lockstep::tool {
namespace {
nlohmann::ordered_json read_result(const std::string& path) {
  const input_file file(path);
  auto result = read_json(file.bytes());
  if (result.is_discarded() || !result.is_object() || !result.contains("benchmarks") ||
      !result["benchmarks"].is_array())
    fail("{} is no result of lockstep bench --json{}", path,
         result.is_object() && result.contains("readings") ? "; it is one of lockstep probe: give it to probe --from"
                                                           : "");
  for (const auto& row : result["benchmarks"]) {
    for (const char* key : {"name", "backend", "source", "variant"})
      if (!row.is_object() || !row.contains(key) || !row[key].is_string())
        fail("{} is no result of lockstep bench --json: a row has no {}", path, key);
    for (const char* key : {"median_ms", "noise"})
      if (!row.contains(key) || !row[key].is_number())
        fail("{} is no result of lockstep bench --json: {} has no {}", path, row["name"].get<std::string>(), key);
  }
  return result;
}

bool is_sample(const nlohmann::ordered_json& run) { return run.contains("meta") && run["meta"].contains("sample"); }

void check_pattern(const char* option, const std::string& text) { (void)pattern(option, text); }

// --variant is an exact name, so it becomes a pattern that matches only that name.
void choose_variant(bench::options& run) {
  std::string& name = run.where.variant;
  if (name.empty()) return;
  if (!run.variants.empty()) refuse("--variant and --variants both choose what is timed; give one of them");
  std::vector<lockstep_op> ops;
  for (const std::string& one : run.cases) ops.push_back(cases::parse_timed(one, true).op);
  for (int op = 0; op < LOCKSTEP_OP_COUNT && run.cases.empty(); ++op) ops.push_back(static_cast<lockstep_op>(op));
  if (name != "auto") require_variant(name, run.backends, ops);
  run.variants = name == "auto" ? name : "^" + name + "$";
  name.clear();
}

// Works on existing files (--from).
int work_on(const std::vector<std::string>& files, const std::string& html, const std::string& json,
            const std::string& before, const std::string& against, bool piped) {
  if (!json.empty() && files.size() > 1) refuse("--json takes one file of --from, not {}", files.size());
  if (!before.empty() && files.size() > 1) refuse("--compare takes one file of --from, not {}", files.size());
  std::vector<nlohmann::ordered_json> runs;
  for (const std::string& path : files) runs.push_back(read_result(path));
  const bool samples = std::all_of(runs.begin(), runs.end(), is_sample);
  if (!against.empty() && !samples) refuse("--against is for samples, and not all files of --from are one");
  if (!samples && html.empty() && json.empty() && before.empty())
    refuse(
        "--from makes a page of earlier results, judges them again or compares them: add --html FILE, --json FILE or "
        "--compare FILE");
  for (nlohmann::ordered_json& run : runs)
    if (!against.empty()) run["meta"]["sample"]["against"] = against;
  const int code = before.empty() ? 0 : bench::compare(read_result(before), runs.front());
  for (nlohmann::ordered_json& run : runs) bench::judge(run);
  if (samples && !piped && before.empty()) bench::print_sample(runs);
  if (!json.empty()) write_file(json, one_a_line(runs.front()));
  if (!html.empty()) bench::write_page(std::move(runs), files, html);
  return code;
}
// What a row or the heading holds beside what read_result asks for is found out by its use.
int from_files(const std::vector<std::string>& files, const std::string& html, const std::string& json,
               const std::string& before, const std::string& against, bool piped) {
  try {
    return work_on(files, html, json, before, against, piped);
  } catch (const nlohmann::ordered_json::exception& error) {
    const std::string text = error.what();  // "[json.exception.type_error.302] type must be ..."
    std::string names = before;
    for (const std::string& file : files) names += (names.empty() ? "" : ", ") + file;
    fail("{} cannot be used, for a value has another type than lockstep bench --json gives it: {}", names,
         text.substr(std::min(text.size(), text.find("] ") == std::string::npos ? 0 : text.find("] ") + 2)));
  }
}
}  // namespace

void bench_command(command root, action& chosen) {
  struct settings {
    bench::options run;
    std::string json, csv, html, nvbench, before;
    std::vector<std::string> from;
    bool print_commit = false, list = false;
  };
  auto command = root.add_command("bench", "Time cases, verified first, as fractions of the memory limit");
  const auto s = std::make_shared<settings>();
  add_place(command, s->run.where);
  auto preset = command.add("--preset", s->run.preset,
                            "quick, ladder, readme, sweep, cliffs, crossover (auto beside CPU and device) or full");
  preset.one_of(bench::preset_names());
  const option named = command.add("--case", s->run.cases,
                                   "a case by name (see lockstep verify --list), instead of a preset; may be repeated");
  option sample = command.add("--sample", s->run.sample,
                              "a seed: random shapes of typical use, instead of a preset; each is compared with its "
                              "best peer");
  sample.type_name("SEED").between(int64_t{0}, INT64_MAX).excludes(preset).excludes(named);
  option count = command.add("--count", s->run.count, "of a sample: how many shapes are drawn (110)");
  count.between(int64_t{1}, int64_t{1000000});
  option first = command.add("--first", s->run.first, "of a sample: leave out the shapes drawn before this one (0)");
  first.between(int64_t{0}, int64_t{999999});
  option ops = command.add("--sample-ops", s->run.sample_ops,
                           "of a sample: which distribution it draws from: old (moves, reductions, stencils) or new "
                           "(normalize, scan, sums, reduce_axes, convert, groups)");
  ops.one_of({"old", "new"});
  const option against = command.add(
      "--against", s->run.against, "of a sample: compare it only with peers that match this regular expression (all)");
  command.add("--filter", s->run.filter, "only cases that match this regular expression");
  command.add("--variants", s->run.variants, "\"auto\", \"all\", or a regular expression of names");
  command.add("--cold", s->run.cold, "overwrite the caches before each sample");
  command.add("!--no-verify", s->run.verify, "do not compare results with the oracle first");
  command.add("--seconds", s->run.seconds, "time that one measurement may take").between(0.0, 3600.0);
  command.add("--peers", s->run.peers, "folder of peer programs to run beside (build with -Dpeers=enabled)");
  command.add_json(s->json, "write the results, one a line,");
  command.add("--csv", s->csv, "write the table here; - for stdout");
  command.add("--nvbench", s->nvbench, "write the results here as NVBench does, for its scripts; - for stdout");
  command.add("--html", s->html, "write a page of charts here: one file, offline; - for stdout");
  command.add("--from", s->from,
              "make the page (--html) of these --json files, judge one again (--json), or --compare one, and measure "
              "nothing; may "
              "be repeated");
  command.add("--compare", s->before, "an earlier --json file: FAST, SLOW, SAME or unclear; exit code 1 when slower");
  command.add("--memory", s->run.memory, "place of a GPU's src and dst; host memory is timed with its transfers")
      .one_of({"device", "pinned", "pageable"});
  command.add("--note", s->run.note, "a line for the results file: the driver's version, say");
  command.add("--list", s->list, "print the names of the cases that would be timed, and time nothing");
  command.add("--print-commit", s->print_commit,
              "print the commit that this program was built from, and do nothing else");
  command.add_footer(case_names_help() +
                     format_text("  {:<42} {}\n", "group/200/square_sum/norm2/f32/full/1000",
                                 "bench alone: 200 calls of a case at once; group/200/varied/...: of "
                                 "its length down to a 256th of it"));
  command.when_called([s, sample, count, first, ops, against, &chosen] {
    chosen = [s, sample, count, first, ops, against] {
      for (const option& one : {count, first, ops, against})
        if (one.given() && !sample.given() && (one.name() != "--against" || s->from.empty()))
          refuse("{} is of a sample; give --sample SEED too", one.name());
      if (s->print_commit) return print("{}\n", LOCKSTEP_COMMIT), 0;
      const bool piped =
          take_stdout({{"--json", s->json}, {"--csv", s->csv}, {"--html", s->html}, {"--nvbench", s->nvbench}});
      if (piped && !s->before.empty())
        refuse("--compare prints on stdout, which another option has taken; give that one a file");
      if (!s->from.empty()) {
        for (const auto& [option, path] : {std::pair("--csv", &s->csv), std::pair("--nvbench", &s->nvbench)})
          if (!path->empty())
            refuse("{} is for what is measured, and --from measures nothing; leave one of them out", option);
        check_pattern("--against", s->run.against);
        return from_files(s->from, s->html, s->json, s->before, s->run.against, piped);
      }
      bench::options& run = s->run;
      if (std::isnan(run.seconds)) refuse("--seconds is nan; give 0 to 3600");
      check_pattern("--filter", run.filter);
      check_pattern("--variants", run.variants);
      check_pattern("--against", run.against);
      if (run.first >= run.count)
        refuse("--first {} leaves none of --count {} draws; give a smaller one", run.first, run.count);
      if (run.sample >= 0 && !run.variants.empty() && run.variants != "auto")
        refuse("--sample times what auto chooses, or one --variant; leave --variants out");
      if (run.where.backend.empty()) run.where.backend = "auto";
      run.backends = named_backends({run.where.backend}, run.where);
      run.where.backend = "auto";
      choose_variant(run);
      if (s->list) {
        for (const std::string& backend : run.backends)
          for (const bench::line& one : bench::lines_of(run, backend))
            print("{}{}\n", one.name, run.backends.size() > 1 ? " on " + backend : "");
        return 0;
      }
      if (run.preset == "crossover" && run.cases.empty() && !run.variants.empty() && run.variants != "auto")
        refuse("--preset crossover times what auto chooses; leave the choice of variants out, or name --case");
      // Written after every case, so that a run that is cut short leaves what it has.
      const auto save = [json = s->json](const bench::report& so_far) {
        if (!json.empty()) write_file(json, one_a_line(bench::to_json(so_far)));
      };
      if (s->json != "-") run.progress = save;
      const auto before =
          s->before.empty() ? nlohmann::ordered_json() : read_result(s->before);  // a bad file fails now
      if (const std::string busy = busy_machine(); !busy.empty() && !piped)
        print("{}{}{}\n", stdout_style().bad, busy, stdout_style().off), flush();
      const bench::report all = bench::measure_all(run);
      if (all.results.empty() && all.skipped.empty() && all.wrong.empty())
        fail("nothing to measure on {}: {}{}; lockstep verify --list names cases, lockstep info variants",
             joined(run.backends, " and "),
             run.filter.empty() ? "there is no row" : format_text("no case matches --filter \"{}\"", run.filter),
             run.variants.empty() ? "" : format_text(" of a variant that matches --variants \"{}\"", run.variants));
      if (!piped) {
        if (run.sample >= 0)
          bench::print_sample({bench::to_json(all)});
        else
          bench::print_table(all);
      }
      if (!s->csv.empty()) bench::write_csv(all, s->csv);
      save(all);
      if (!s->nvbench.empty()) bench::write_nvbench(all, s->nvbench);
      if (!s->html.empty()) bench::write_page({bench::to_json(all)}, {}, s->html);
      const int code = all.results.empty() || !all.wrong.empty() ? 1 : 0;
      return s->before.empty() ? code : std::max(code, bench::compare(before, bench::to_json(all)));
    };
  });
}

}  // namespace lockstep::tool
