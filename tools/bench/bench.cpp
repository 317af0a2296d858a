// bench.cpp - lockstep bench: options, and what is written where.
#include "bench.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <regex>

#include "commit.hpp"

namespace lockstep::tool {
namespace {
std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    check(lockstep_backend_get(i, &info));
    if (info.usable != 0) names.push_back(info.name);
  }
  return names;
}

nlohmann::ordered_json read_result(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail("{} cannot be read: {}", path, std::strerror(errno));
  auto result = nlohmann::ordered_json::parse(file, nullptr, false);
  if (result.is_discarded() || !result.is_object() || !result.contains("benchmarks"))
    fail("{} is no result of lockstep bench --json", path);
  return result;
}

void check_pattern(const char* option, const std::string& pattern) {
  try {
    (void)std::regex(pattern);
  } catch (const std::regex_error& error) {
    refuse("{}: \"{}\" is no regular expression: {}", option, pattern, error.what());
  }
}

int page_from(const std::vector<std::string>& files, const std::string& html) {
  if (html.empty()) refuse("--from makes a page; say where with --html FILE");
  std::vector<nlohmann::ordered_json> runs;
  for (const std::string& path : files) runs.push_back(read_result(path));
  bench::write_page(std::move(runs), files, html);
  return 0;
}
}  // namespace

void bench_command(CLI::App& program, action& chosen) {
  struct settings {
    bench::options run;
    std::string json, csv, html, nvbench, before;
    std::vector<std::string> from;
    bool print_commit = false;
  };
  CLI::App* command = program.add_subcommand("bench", "Time cases, verified first, as fractions of the memory limit");
  const auto s = std::make_shared<settings>();
  add_place(*command, s->run.where);
  command
      ->add_option("--preset", s->run.preset,
                   "quick, ladder, readme, sweep, cliffs, crossover (auto beside CPU and device) or full")
      ->check(CLI::IsMember(bench::preset_names()));
  command->add_option("--case", s->run.cases,
                      "a case by name (see lockstep verify --list), instead of a preset; may be repeated");
  command->add_option("--filter", s->run.filter, "only cases that match this regular expression");
  command->add_option("--variants", s->run.variants, "\"auto\", \"all\", or a regular expression of names");
  command->add_flag("--cold", s->run.cold, "overwrite the caches before each sample");
  command->add_flag("!--no-verify", s->run.verify, "do not compare results with the oracle first");
  command->add_option("--seconds", s->run.seconds, "time that one measurement may take");
  command->add_option("--peers", s->run.peers, "folder of peer programs to run beside (build with -Dpeers=enabled)");
  command->add_option("--json", s->json, "write the results here");
  command->add_option("--csv", s->csv, "write the table here");
  command->add_option("--nvbench", s->nvbench, "write the results here as NVBench does, for its scripts");
  command->add_option("--html", s->html, "write a page of charts here: one file, offline");
  command->add_option("--from", s->from, "make the page of these --json files and measure nothing; may be repeated");
  command->add_option("--compare", s->before,
                      "an earlier --json file: FAST, SLOW, SAME or unclear; exit code 1 when slower");
  command
      ->add_option("--memory", s->run.memory,
                   "where src and dst of a GPU's cases lie; host memory is timed with its transfers")
      ->check(CLI::IsMember({"device", "pinned", "pageable"}));
  command->add_option("--note", s->run.note, "a line for the results file: the driver's version, say");
  command->add_flag("--print-commit", s->print_commit,
                    "print the commit that this program was built from, and do nothing else");
  command->callback([s, &chosen] {
    chosen = [s] {
      if (s->print_commit) return print("{}\n", LOCKSTEP_COMMIT), 0;
      if (!s->from.empty()) return page_from(s->from, s->html);
      bench::options& run = s->run;
      check_pattern("--filter", run.filter);
      check_pattern("--variants", run.variants);
      if (!run.where.backend.empty() && run.where.backend != "auto") run.backends = {run.where.backend};
      else run.backends = usable_backends();
      run.where.backend = "auto";
      run.where.variant.clear();
      // Written after every case, so that a run that is cut short leaves what it has.
      const auto save = [json = s->json](const bench::report& so_far) {
        if (json.empty()) return;
        std::ofstream file(json);
        file << bench::to_json(so_far).dump(1) << '\n';
        file.flush();
        if (!file) fail("{} cannot be written; check the folder and the space left", json);
      };
      run.progress = save;
      const auto before =
          s->before.empty() ? nlohmann::ordered_json() : read_result(s->before);  // a bad file fails now
      const bench::report all = bench::measure_all(run);
      bench::print_table(all);
      if (!s->csv.empty()) bench::write_csv(all, s->csv);
      save(all);
      if (!s->nvbench.empty()) bench::write_nvbench(all, s->nvbench);
      if (!s->html.empty()) bench::write_page({bench::to_json(all)}, {}, s->html);
      if (s->before.empty()) return all.results.empty() ? 1 : 0;
      return bench::compare(before, all);
    };
  });
}

}  // namespace lockstep::tool
