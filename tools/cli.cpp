// cli.cpp - see cli.hpp.
#include "cli.hpp"

#include "choose/retired.hpp"
#include "legend.hpp"
#include "option_names.hpp"

namespace lockstep::tool {

void check(lockstep_status status) {
  switch (status) {
    case LOCKSTEP_OK: return;
    // The values came from the command line.
    case LOCKSTEP_INVALID_ARGUMENT:
    case LOCKSTEP_NO_VARIANT: throw usage_error(place_in_options(lockstep_last_error()));
    default: throw failure(place_in_options(lockstep_last_error()));
  }
}

void add_place(command to, place& where) {
  to.add("--backend", where.backend,
         "auto, cpu, cuda or a device of one, cuda:1 (default: LOCKSTEP_BACKEND, else auto)")
      .type_name("NAME");
  to.add("--variant", where.variant,
         "force a variant by name; see lockstep info (default: the best that accepts the call)")
      .type_name("NAME");
  to.add("--threads", where.threads,
         "CPU threads, 0 for the default (LOCKSTEP_NUM_THREADS, else all this process may use)")
      .type_name("N")
      .between(0, 4096);
  to.add("--isa", where.isa, "CPU instruction set: baseline, avx2 or avx512 (default: LOCKSTEP_CPU_ISA, else the best)")
      .type_name("NAME");
}

namespace {
std::vector<lockstep_backend_info> all_backends() {
  std::vector<lockstep_backend_info> all(static_cast<size_t>(lockstep_backend_count()));
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].size = sizeof all[i];
    check(lockstep_backend_get(static_cast<int32_t>(i), &all[i]));
  }
  return all;
}

bool is_known(const std::string& backend) {
  const std::string name = backend.substr(0, backend.find(':'));
  for (const lockstep_backend_info& one : all_backends())
    if (name == one.name) return true;
  return name == "auto";
}
}  // namespace

context::context(const place& where) {
  lockstep_context_options options = lockstep_context_defaults();
  if (!where.backend.empty()) options.backend = where.backend.c_str();
  if (!where.isa.empty()) options.cpu_isa = where.isa.c_str();
  options.threads = where.threads;
  const lockstep_status status = lockstep_context_create(&options, &context_);
  if (status == LOCKSTEP_NO_BACKEND) {
    // An unknown name is a mistake on the command line; a backend that cannot run here is not.
    const std::string why = place_in_options(lockstep_last_error());
    if (!where.backend.empty() && !is_known(where.backend)) throw usage_error(why);
    throw failure(why);
  }
  check(status);
}

std::vector<std::string> usable_backends() {
  std::vector<std::string> names;
  for (const lockstep_backend_info& backend : all_backends())
    if (backend.usable != 0) names.emplace_back(backend.name);
  return names;
}

std::vector<std::string> named_backends(const std::vector<std::string>& names, const place& where) {
  std::vector<std::string> backends;
  for (const std::string& name : names) {
    if (name == "auto" || name == "all") return named_backends({}, where);
    place there = where;
    there.backend = name;
    const context made(there);
    backends.push_back(name == "cpu:0" ? "cpu" : name);
  }
  if (!names.empty()) return backends;
  const context made(where);  // for the instruction set and the threads
  return usable_backends();
}

void require_variant(const std::string& name, const std::vector<std::string>& backends,
                     const std::vector<lockstep_op>& ops) {
  std::string known;
  for (const std::string& full : backends) {
    const std::string backend = full.substr(0, full.find(':'));
    for (const lockstep_op op : ops)
      for (int32_t i = 0; i < lockstep_variant_count(backend.c_str(), op); ++i) {
        lockstep_variant_info row{};
        row.size = sizeof row;
        check(lockstep_variant_get(backend.c_str(), op, i, &row));
        if (row.name == name) return;
        if ((" " + known + ",").find(format_text(" {},", row.name)) == std::string::npos)
          known += (known.empty() ? "" : ", ") + std::string(row.name);
      }
  }
  for (const lockstep_op op : ops)
    if (const char* successor = lib::successor_of(op, name))
      refuse("--variant {}: {} no longer has this variant; use {}", name, lockstep_op_name(op), successor);
  refuse("--variant {}: no such variant on {}; there are auto, {}", name, joined(backends, " or "), known);
}

std::vector<std::string> op_names() {
  std::vector<std::string> names;
  for (int op = 0; op < LOCKSTEP_OP_COUNT; ++op) names.emplace_back(lockstep_op_name(static_cast<lockstep_op>(op)));
  return names;
}

std::string case_names_help() {
  std::string text = "Names of cases; entries that start with / may be added to a name:\n";
  for (const cases::legend_line& line : cases::legend())
    text += format_text("  {:<42} {}\n", line.written, line.meaning);
  return text;
}

}  // namespace lockstep::tool
