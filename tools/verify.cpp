// verify.cpp - `lockstep verify`: compares every backend x variant x case with the oracle,
// bit by bit (variants with an order of their own: within the error bound). Also prints the
// digest, by which two machines can be compared.
#include <algorithm>
#include <memory>

#include "cli.hpp"
#include "progress.hpp"
#include "runner.hpp"

namespace lockstep::tool {
namespace {

struct verify_options {
  std::vector<std::string> backends, ops, cases;
  place where;  // variant, isa, threads
  std::string level = "quick", memory, way = "direct";
  int arithmetic = 0;
  int64_t seed = 1, most = 0;
  bool digest = false, all = false, list = false;
};

struct tally {
  size_t good = 0, run = 0, refused = 0, lacking = 0;
  bool beyond = false;  // the processor lacks the instructions
};

using memory = cases::place;
constexpr std::pair<const char*, memory> memories[] = {
    {"front", memory::host_front}, {"back", memory::host_back}, {"device", memory::device}, {"mixed", memory::mixed}};

std::vector<memory> places_of(const verify_options& options, const std::string& backend, const cases::test_case& c) {
  for (const auto& [name, where] : memories)
    if (options.memory == name) return {where};
  const memory host = cases::mix(c.seed ^ c.src.span_bytes()) % 2 == 0 ? memory::host_back : memory::host_front;
  if (backend == "cpu") return {host};
  return {memory::device, host};
}

void print_digest(const std::vector<std::string>& backends, const place& where) {
  std::string first;
  for (const std::string& backend : backends) {
    const std::string line = cases::digest(backend, where.isa, where.threads);
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
    if (const std::string& only = options_.where.variant; !only.empty())
      std::erase_if(rows, [&](const auto& r) { return r.name != (only == "auto" ? "" : only); });
    std::vector<tally> tallies(rows.size());
    {
      progress shown(format_text("{} on {}", lockstep_op_name(op), backend), names.size());
      size_t done = 0;
      for (const std::string& name : names) {
        const cases::subject s(cases::parse(name));
        for (size_t i = 0; i < rows.size(); ++i)
          for (const memory where : places_of(options_, backend, s.c)) run_one(s, rows[i], where, tallies[i]);
        shown.at(++done);
      }
    }
    for (size_t i = 0; i < rows.size(); ++i) {
      const tally& t = tallies[i];
      const style colour = stdout_style();
      // A shortened list of cases may not cover every row.
      const bool idle = t.run == 0 && !t.beyond && options_.cases.empty() && options_.most == 0;
      const bool good = t.good == t.run && !idle, own_order = (rows[i].flags & LOCKSTEP_OWN_ORDER) != 0;
      print("  {:<6} {:<11} {:<22} {}{:>7} of {:>7} {}{}{}{}{}\n", backend, lockstep_op_name(op),
            rows[i].name.empty() ? "(auto)" : rows[i].name, good ? colour.good : colour.bad, t.good, t.run,
            own_order ? "within the bound (own order)" : "equal", colour.off,
            t.refused != 0 ? format_text(", {} refused", t.refused) : "",
            t.lacking != 0 ? format_text(", {} of types that {} has no kernels for", t.lacking, backend) : "",
            idle       ? ": no case ran on this row"
            : t.beyond ? ": not with these instructions"
                       : "");
      tally& total = own_order ? bounded_ : equal_;
      total.good += t.good;
      total.run += t.run;
      failed_ = failed_ || !good;
    }
    if (!whole()) return;
    const std::vector<std::string> idle = seen_.idle_cells(backend, op);
    const size_t cells = cases::matrix(op, backend).size();
    print("  {:<6} {:<11} {} of {} cells of the matrix ran on auto and were equal\n", backend, lockstep_op_name(op),
          cells - idle.size(), cells);
    for (const std::string& cell : idle) print("    not run, or not equal: {}\n", cell);
    failed_ = failed_ || !idle.empty();
  }

  int finish() const {
    const bool nothing = equal_.run + bounded_.run == 0;
    print("{} of {} runs equal{}{}\n", equal_.good, equal_.run,
          bounded_.run != 0 ? format_text(", {} of {} within their bound", bounded_.good, bounded_.run) : "",
          nothing ? ": every case was left out or refused" : "");
    return failed_ || nothing ? 1 : 0;
  }

 private:
  bool whole() const {
    return options_.cases.empty() && options_.most == 0 &&
           (options_.where.variant.empty() || options_.where.variant == "auto");
  }

  void run_one(const cases::subject& s, const cases::row& r, memory where, tally& t) {
    if (where == memory::mixed && !s.c.offsets.empty()) return;  // device src needs device offsets
    cases::target on;
    on.backend = r.backend;
    on.variant = r.name;
    on.isa = options_.where.isa;
    on.threads = options_.where.threads;
    on.where = where;
    on.caller = static_cast<cases::arithmetic>(options_.arithmetic);
    on.how = options_.way == "planned"  ? cases::way::planned
             : options_.way == "queued" ? cases::way::queued
                                        : cases::way::direct;
    on.own_order = (r.flags & LOCKSTEP_OWN_ORDER) != 0;
    const cases::outcome o = runner_.run(s, on);
    seen_.add(s, on, o);
    if (o.beyond_the_backend()) {
      ++t.lacking;
      return;
    }
    if (o.what == cases::verdict::refused) {
      ++t.refused;
      t.beyond = t.beyond || o.beyond_the_processor();
      if (!options_.cases.empty()) print("{} on {}:{}: refused: {}\n", s.c.name, r.backend, r.name, o.text);
      if (!r.name.empty()) return;  // a single row may refuse a call, but auto must run it
    }
    ++t.run;
    if (o.what == cases::verdict::equal) {
      ++t.good;
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
  tally equal_, bounded_;  // rows of the fixed order, rows of their own
  size_t printed_ = 0;
  bool failed_ = false;
};

std::vector<std::string> names_of(const verify_options& options, lockstep_op op) {
  const std::string name = lockstep_op_name(op);
  if (!options.ops.empty() && std::find(options.ops.begin(), options.ops.end(), name) == options.ops.end()) return {};
  std::vector<std::string> names;
  if (options.cases.empty())
    names = cases::list(op, options.level == "full" ? cases::level::full : cases::level::quick,
                        static_cast<uint64_t>(options.seed));
  for (const std::string& c : options.cases)
    if (c.compare(0, name.size() + 1, name + "/") == 0) names.push_back(c);
  if (options.most > 0)
    std::erase_if(names, [&](const std::string& n) {
      const cases::test_case c = cases::parse(n);
      return std::max(c.src.elements(), c.dst.elements()) > options.most;
    });
  return names;
}

// Cases given by the user: refuses those that a call on the CPU would refuse.
void check_cases(const verify_options& options) {
  const context cpu(place{"cpu", "", "", 0});
  for (const std::string& name : options.cases) try {
      const cases::test_case c = cases::parse(name);
      lockstep_plan* made = nullptr;
      check(cases::plan(cpu, c, c.offsets.data(), nullptr, &made));
      lockstep_plan_destroy(made);
      const std::string op = lockstep_op_name(c.op);
      if (!options.ops.empty() && std::find(options.ops.begin(), options.ops.end(), op) == options.ops.end())
        refuse("--case {}: --op leaves it out; give one of them", name);
    } catch (const std::invalid_argument& e) {
      refuse("--case {}", e.what());
    }
}

int verify(const verify_options& options) {
  const std::vector<std::string> backends = named_backends(options.backends, options.where);
  if (options.digest) return print_digest(backends, options.where), 0;
  std::vector<lockstep_op> ops;
  for (int i = 0; i < LOCKSTEP_OP_COUNT; ++i)
    if (const auto op = static_cast<lockstep_op>(i);
        options.ops.empty() ||
        std::find(options.ops.begin(), options.ops.end(), lockstep_op_name(op)) != options.ops.end())
      ops.push_back(op);
  if (const std::string& variant = options.where.variant; !variant.empty() && variant != "auto")
    require_variant(variant, backends, ops);
  if ((options.memory == "device" || options.memory == "mixed") &&
      std::find(backends.begin(), backends.end(), "cpu") != backends.end())
    refuse("--memory {}: the CPU has host memory only; name another backend, or give front or back", options.memory);
  check_cases(options);
  if (options.list) {
    for (const lockstep_op op : ops)
      for (const std::string& name : names_of(options, op)) print("{}\n", name);
    return 0;
  }
  cases::report_crashes();
  verification all(options);
  if (options.cases.empty()) print("level {}, seed {}\n", options.level, options.seed);
  for (const std::string& backend : backends)
    for (const lockstep_op op : ops)
      if (const std::vector<std::string> names = names_of(options, op); !names.empty())
        all.run_op(backend, op, names), flush();
  return all.finish();
}

}  // namespace

void verify_command(command root, action& chosen) {
  auto command = root.add_command(
      "verify", "Compare every variant of every backend with the oracle: bits, or the bound of an order of its own");
  auto options = std::make_shared<verify_options>();
  command.add("--backend", options->backends, "cpu, cuda, cuda:1 ...; may be repeated (default: all usable)")
      .type_name("NAME");
  command
      .add("--op", options->ops,
           "transpose, permute, square_sum, reduce, stencil, shuffle, normalize, scan, sums, reduce_axes, "
           "convert, map (default: all)")
      .type_name("NAME")
      .one_of(op_names());
  command.add("--variant", options->where.variant, "one variant, or auto for what auto picks (default: all)")
      .type_name("NAME");
  command.add("--case", options->cases, "run this case only, written as verify prints it; may be repeated")
      .type_name("CASE");
  command.add("--seed", options->seed, "another seed gives other data and segment lengths")
      .type_name("N")
      .between(int64_t{0}, INT64_MAX - 1)  // CLI11 reads larger numbers as INT64_MAX
      .show_default();
  command.add("--level", options->level, "quick takes seconds, full minutes")
      .type_name("LEVEL")
      .one_of({"quick", "full"})
      .show_default();
  command.add("--most-elements", options->most, "leave out larger cases (for slow checkers such as compute-sanitizer)")
      .type_name("N")
      .between(int64_t{1}, INT64_MAX - 1);
  command.add("--isa", options->where.isa, "instruction set of the CPU: baseline, avx2 or avx512").type_name("NAME");
  command.add("--threads", options->where.threads, "threads of the CPU, 0 for the default")
      .type_name("N")
      .between(0, 4096);
  command.add("--memory", options->memory, "place of buffers: front, back (of an unmapped page), device, mixed")
      .type_name("WHERE")
      .one_of({"front", "back", "device", "mixed"});
  command.add("--way", options->way, "direct, planned, or queued and synchronised")
      .type_name("WAY")
      .one_of({"direct", "planned", "queued"})
      .show_default();
  command
      .add("--arithmetic", options->arithmetic,
           "the caller's state: 0 usual, 1 flush denormals, 2 upward, 3 downward, 4 towards zero")
      .type_name("N")
      .between(0, 4);
  command.add("--all", options->all, "print every failure, not only the first twenty");
  auto list = command.add("--list", options->list, "print the names of the cases, and run none");
  auto digest = command.add(
      "--digest", options->digest,
      "print one line that two machines with the same bits share; its calls are fixed, --backend, --isa and --threads "
      "say where they run");
  for (const char* other : {"--op", "--variant", "--case", "--seed", "--level", "--most-elements", "--memory", "--way",
                            "--arithmetic", "--all", "--list"})
    digest.excludes(command.find(other));
  list.excludes(digest);
  command.add_footer(case_names_help());
  command.when_called([&chosen, options] { chosen = [options] { return verify(*options); }; });
}

}  // namespace lockstep::tool
