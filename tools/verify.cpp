// verify.cpp - `lockstep verify`: every backend x variant x case against the
// oracle, bit by bit (rows of an order of their own: within the error bound); and
// the digest that two strangers can compare.
#include "cli.hpp"

#include <algorithm>
#include <memory>

#include "runner.hpp"

namespace lockstep::tool {
namespace {

struct verify_options {
  std::vector<std::string> backends, ops, cases;
  std::string variant, isa, level = "quick", memory, way = "direct";
  int threads = 0, arithmetic = 0;
  uint64_t seed = 1;
  int64_t most = 0;
  bool digest = false, all = false;
};

struct tally {
  size_t equal = 0, run = 0, refused = 0;
};

using cases::place;
constexpr std::pair<const char*, place> memories[] = {
    {"front", place::host_front}, {"back", place::host_back}, {"device", place::device}, {"mixed", place::mixed}};

std::vector<place> places_of(const verify_options& options, const std::string& backend, const cases::test_case& c) {
  for (const auto& [name, where] : memories)
    if (options.memory == name) return {where};
  const place host = cases::mix(c.seed ^ c.src.span_bytes()) % 2 == 0 ? place::host_back : place::host_front;
  if (backend == "cpu") return {host};
  return {place::device, host};
}

void print_digest(const std::vector<std::string>& backends) {
  std::string first;
  for (const std::string& backend : backends) {
    const std::string line = cases::digest(backend);
    if (!first.empty() && line != first) fail("{} gives {}, but {} gives {}", backends.front(), first, backend, line);
    first = line;
  }
  print("{}\n", first);
}

class verification {
 public:
  explicit verification(const verify_options& options) : options_(options) {}

  void run_op(const std::string& backend, lockstep_op op, const std::vector<std::string>& names) {
    std::vector<cases::row> rows = cases::rows_of(backend, op);
    if (rows.empty()) {
      print("  {:<6} {:<11} not supported\n", backend, lockstep_op_name(op));
      return;
    }
    rows.insert(rows.begin(), {backend, op, "", 0});  // what auto picks
    if (!options_.variant.empty())
      rows.erase(
          std::remove_if(rows.begin(), rows.end(),
                         [&](const auto& r) { return r.name != (options_.variant == "auto" ? "" : options_.variant); }),
          rows.end());
    std::vector<tally> tallies(rows.size());
    for (const std::string& name : names) {
      const cases::subject s(cases::parse(name));
      for (size_t i = 0; i < rows.size(); ++i)
        for (const place where : places_of(options_, backend, s.c)) run_one(s, rows[i], where, tallies[i]);
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const tally& t = tallies[i];
      const style colour = stdout_style();
      const bool idle = t.run == 0 && options_.cases.empty() && options_.most == 0;  // a cut list may miss rows
      const bool good = t.equal == t.run && !idle;
      print("  {:<6} {:<11} {:<22} {}{:>7} of {:>7} equal{}{}{}{}\n", backend, lockstep_op_name(op),
            rows[i].name.empty() ? "(auto)" : rows[i].name, good ? colour.good : colour.bad, t.equal, t.run, colour.off,
            (rows[i].flags & LOCKSTEP_OWN_ORDER) != 0 ? ", own order" : "",
            t.refused != 0 ? fmt::format(", {} refused", t.refused) : "", idle ? ": no case ran on this row" : "");
      total_.equal += t.equal;
      total_.run += t.run;
      failed_ = failed_ || !good;
    }
    if (!whole()) return;
    const std::vector<std::string> idle = seen_.idle_cells(backend, op);
    const size_t cells = cases::matrix(op).size();
    print("  {:<6} {:<11} {} of {} cells of the matrix ran on auto and were equal\n", backend, lockstep_op_name(op),
          cells - idle.size(), cells);
    for (const std::string& cell : idle) print("    not run, or not equal: {}\n", cell);
    failed_ = failed_ || !idle.empty();
  }

  int finish() const {
    print("{} of {} runs equal\n", total_.equal, total_.run);
    return failed_ || total_.run == 0 ? 1 : 0;
  }

 private:
  bool whole() const {
    return options_.cases.empty() && options_.most == 0 && (options_.variant.empty() || options_.variant == "auto");
  }

  void run_one(const cases::subject& s, const cases::row& r, place where, tally& t) {
    if (where == place::mixed && !s.c.offsets.empty()) return;  // device src needs device offsets
    cases::target on;
    on.backend = r.backend;
    on.variant = r.name;
    on.isa = options_.isa;
    on.threads = options_.threads;
    on.where = where;
    on.caller = static_cast<cases::arithmetic>(options_.arithmetic);
    on.how = options_.way == "planned"  ? cases::way::planned
             : options_.way == "queued" ? cases::way::queued
                                        : cases::way::direct;
    on.own_order = (r.flags & LOCKSTEP_OWN_ORDER) != 0;
    const cases::outcome o = runner_.run(s, on);
    seen_.add(s, on, o);
    if (o.what == cases::verdict::refused) {
      ++t.refused;
      if (!options_.cases.empty()) print("{} on {}:{}: refused: {}\n", s.c.name, r.backend, r.name, o.text);
      if (!r.name.empty()) return;  // a row may refuse; auto may not
    }
    ++t.run;
    if (o.what == cases::verdict::equal) {
      ++t.equal;
      return;
    }
    if (++printed_ <= 20 || options_.all)
      print("FAILED {} on {}:{}: {}\n  lockstep verify --case {}{}\n", s.c.name, r.backend,
            o.variant.empty() ? "auto" : o.variant, o.text, s.c.name, on.text());
    if (printed_ == 20 && !options_.all) print("further failures are counted, not printed (--all prints them)\n");
  }

  const verify_options& options_;
  cases::runner runner_;
  cases::coverage seen_;
  tally total_;
  size_t printed_ = 0;
  bool failed_ = false;
};

int verify(const verify_options& options) {
  std::vector<std::string> backends = options.backends;
  const std::vector<std::string> usable = cases::usable_backends();
  if (backends.empty() || backends.front() == "all") backends = usable;
  for (const std::string& backend : backends)
    if (std::find(usable.begin(), usable.end(), backend.substr(0, backend.find(':'))) == usable.end())
      fail("backend {} cannot run here; lockstep info says why", backend);
  if (options.digest) return print_digest(backends), 0;
  cases::report_crashes();
  const cases::level depth = options.level == "full" ? cases::level::full : cases::level::quick;
  verification all(options);
  if (options.cases.empty()) print("level {}, seed {}\n", options.level, options.seed);
  for (const std::string& backend : backends)
    for (int i = 0; i < LOCKSTEP_OP_COUNT; ++i) {
      const auto op = static_cast<lockstep_op>(i);
      const std::string name = lockstep_op_name(op);
      if (!options.ops.empty() && std::find(options.ops.begin(), options.ops.end(), name) == options.ops.end())
        continue;
      std::vector<std::string> names;
      if (options.cases.empty()) names = cases::list(op, depth, options.seed);
      if (options.most > 0)
        std::erase_if(names, [&](const std::string& n) {
          const cases::test_case c = cases::parse(n);
          return std::max(c.src.elements(), c.dst.elements()) > options.most;
        });
      for (const std::string& c : options.cases)
        if (c.compare(0, name.size() + 1, name + "/") == 0) names.push_back(c);
      if (!names.empty()) all.run_op(backend, op, names);
    }
  return all.finish();
}

}  // namespace

void verify_command(CLI::App& program, action& chosen) {
  CLI::App& command =
      *program.add_subcommand("verify", "Compare every variant of every backend with the oracle, bit by bit");
  auto options = std::make_shared<verify_options>();
  command.add_option("--backend", options->backends,
                     "cpu, cuda, cuda:1 ...; more than one may be given (default: all usable)");
  command.add_option("--op", options->ops, "transpose, permute, square_sum, reduce, stencil, shuffle (default: all)");
  command.add_option("--variant", options->variant, "one variant, or auto for what auto picks (default: all)");
  command.add_option("--case", options->cases, "run this case only, written as verify prints it");
  command.add_option("--seed", options->seed, "another seed gives other data and segment lengths")
      ->capture_default_str();
  command.add_option("--level", options->level, "quick takes seconds, full minutes")
      ->check(CLI::IsMember({"quick", "full"}))
      ->capture_default_str();
  command.add_option("--most-elements", options->most,
                     "leave out larger cases (for slow checkers such as compute-sanitizer)");
  command.add_option("--isa", options->isa, "instruction-set level of the CPU backend");
  command.add_option("--threads", options->threads, "threads of the CPU backend");
  command.add_option("--memory", options->memory, "where buffers lie: front, back (of an unmapped page), device, mixed")
      ->check(CLI::IsMember({"front", "back", "device", "mixed"}));
  command.add_option("--way", options->way, "direct, planned, or queued and synchronised")
      ->check(CLI::IsMember({"direct", "planned", "queued"}))
      ->capture_default_str();
  command
      .add_option("--arithmetic", options->arithmetic,
                  "the caller's state: 0 usual, 1 flush denormals, 2 upward, 3 downward, 4 towards zero")
      ->check(CLI::Range(0, 4));
  command.add_flag("--all", options->all, "print every failure, not the first twenty");
  command.add_flag("--digest", options->digest, "print one line that two machines with the same bits share");
  command.callback([&chosen, options] {
    chosen = [options] {
      for (const std::string& name : options->cases) try {
          (void)cases::parse(name);
        } catch (const std::invalid_argument& e) {
          refuse("{}", e.what());
        }
      return verify(*options);
    };
  });
}

}  // namespace lockstep::tool
