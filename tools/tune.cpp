// tune.cpp - lockstep tune: times the variants that can take a call and remembers the fastest for plans of such calls.
#include <memory>

#include "cases.hpp"
#include "cli.hpp"

namespace lockstep::tool {
namespace {

struct tune_options {
  std::vector<std::string> cases;
  place where;  // backend, isa, threads
  bool known = false, list = false;
};

lockstep_tuning_info tuning_of(const context& c) {
  lockstep_tuning_info info{};
  info.size = sizeof info;
  check(lockstep_tuning_get(c, &info));
  return info;
}

int print_list() {
  const context c;
  const lockstep_tuning_info now = tuning_of(c);
  if (now.count > 0) print("{}\n", now.choices);
  if (*now.reason != '\0') print_error("lockstep: {}{}{}\n", now.path, *now.path != '\0' ? ": " : "", now.reason);
  return 0;
}

// False if the choice could not be written to the file.
bool tune_case(const context& c, const std::string& backend, const cases::test_case& t, bool known) {
  lockstep_options o = lockstep_options_defaults();
  o.flags = (known ? unsigned{LOCKSTEP_TUNE} : unsigned{LOCKSTEP_RETUNE}) |
            (backend == "cpu" ? 0 : unsigned{LOCKSTEP_DEVICE_DATA});
  lockstep_plan* plan = nullptr;
  check(cases::plan(c, t, t.offsets.data(), &o, &plan));
  const std::unique_ptr<lockstep_plan, decltype(&lockstep_plan_destroy)> ends(plan, lockstep_plan_destroy);
  lockstep_run_info info{};
  info.size = sizeof info;
  check(lockstep_plan_get(plan, &info));
  print("{} on {}: {}\n", t.name, backend, *info.variant != '\0' ? info.why : "empty, nothing runs");
  return std::string(info.why).find("(not written down: ") == std::string::npos;
}

int tune(const tune_options& options) {
  if (options.list) return print_list();
  if (options.cases.empty())
    refuse("name a case, as lockstep verify --list prints them: lockstep tune reduce/sum/f32/rows/1000x5000");
  std::vector<cases::test_case> all;
  for (const std::string& name : options.cases) try {
      all.push_back(cases::parse(name));
    } catch (const std::invalid_argument& e) {
      refuse("{}", e.what());
    }
  bool written = true;
  place anywhere = options.where;
  anywhere.backend.clear();
  std::vector<std::string> names;
  if (!options.where.backend.empty()) names.push_back(options.where.backend);
  for (const std::string& backend : named_backends(names, anywhere)) {
    place there = options.where;
    there.backend = backend;
    const context c(there);
    for (const cases::test_case& t : all) written = tune_case(c, backend, t, options.known) && written;
  }
  const context c;
  const lockstep_tuning_info now = tuning_of(c);
  if (!written) fail("{}{}{}", now.path, *now.path != '\0' ? ": " : "", now.reason);
  print("{} remembered in {}; plans made from now on take them\n", now.count, now.path);
  return 0;
}

}  // namespace

void tune_command(command root, action& chosen) {
  auto command = root.add_command("tune", "Time the rows that can take a call, and remember the fastest for plans");
  auto options = std::make_shared<tune_options>();
  command
      .add("CASE", options->cases, "a call, written as lockstep verify --list prints it; its class of calls is tuned")
      .type_name("CASE");
  command.add("--backend", options->where.backend, "cpu, cuda, cuda:1 ... (default: all usable)").type_name("NAME");
  command
      .add("--threads", options->where.threads, "threads of the CPU, 0 for the default; a choice holds for one count")
      .type_name("N")
      .between(0, 4096);
  command.add("--isa", options->where.isa, "instruction set of the CPU: baseline, avx2 or avx512").type_name("NAME");
  command.add("--known", options->known, "measure only what is not remembered yet");
  auto list = command.add("--list", options->list, "print the choices in force here, and measure nothing");
  for (const char* other : {"CASE", "--backend", "--threads", "--isa", "--known"}) list.excludes(command.find(other));
  command.when_called([&chosen, options] { chosen = [options] { return tune(*options); }; });
}

}  // namespace lockstep::tool
