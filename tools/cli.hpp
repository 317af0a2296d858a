// cli.hpp - what every subcommand shares: how it is added, how it fails, where it
// runs, how it prints.
#pragma once

#include <lockstep/lockstep.h>

#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "command.hpp"
#include "format.hpp"

namespace lockstep::tool {

// The exit code is 0 for success, 1 for a failure at run time, 2 for a mistake on
// the command line.
struct failure : std::runtime_error {
  using runtime_error::runtime_error;
};
struct usage_error : std::runtime_error {
  using runtime_error::runtime_error;
};
// The reader of stdout has gone: nothing to say and nobody to say it to.
struct broken_pipe {};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw failure(vformat_text(text, fmt::make_format_args(args...)));
}
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw usage_error(vformat_text(text, fmt::make_format_args(args...)));
}
// Throws what lockstep_last_error says unless status is LOCKSTEP_OK.
void check(lockstep_status status);

// A subcommand adds itself to the program and, when it is the one called, leaves
// in `chosen` what to do; its result is the exit code.
using action = std::function<int()>;
void info_command(command root, action& chosen);
void run_command(command root, action& chosen);
void bench_command(command root, action& chosen);
void probe_command(command root, action& chosen);
void demo_command(command root, action& chosen);
void explain_command(command root, action& chosen);
void import_command(command root, action& chosen);  // and export
void verify_command(command root, action& chosen);
void calibrate_command(command root, action& chosen);
void tune_command(command root, action& chosen);
void completion_command(command root, action& chosen);
void ranks_command(command root, action& chosen);  // in a build with -Dranks=enabled

// Where a call runs, as options of a subcommand.
struct place {
  std::string backend, variant, isa;
  int threads = 0;
};
void add_place(command to, place& where);

class context {
 public:
  context() : context(place{}) {}
  explicit context(const place& where);
  ~context() { lockstep_context_destroy(context_); }
  context(const context&) = delete;
  context& operator=(const context&) = delete;
  operator lockstep_context*() const { return context_; }

 private:
  lockstep_context* context_ = nullptr;
};

std::vector<std::string> usable_backends();
// What --backend names, as tools compare it: every usable one for "auto", "all" and nothing at all; the CPU's one
// device is the CPU. Throws what a context bound to it throws.
std::vector<std::string> named_backends(const std::vector<std::string>& names, const place& where);
// Refuses a variant that none of the backends has for any of the ops, naming those there are.
void require_variant(const std::string& name, const std::vector<std::string>& backends,
                     const std::vector<lockstep_op>& ops);
std::vector<std::string> op_names();
// How the names of cases are written, a line each, for help.
std::string case_names_help();

// To stdout, every error noticed at once.
void put(const std::string& text);
template <class... Args>
void print(fmt::format_string<Args...> text, Args&&... args) {
  put(vformat_text(text, fmt::make_format_args(args...)));
}
template <class... Args>
void print_error(fmt::format_string<Args...> text, Args&&... args) {
  std::fputs(printable(vformat_text(text, fmt::make_format_args(args...)), '\n').c_str(), stderr);
}
void flush();

// "bold", "green" ... as escape sequences, or nothing where stdout is no terminal,
// TERM is dumb or NO_COLOR is set.
struct style {
  const char *bold, *dim, *good, *bad, *off;
};
style stdout_style();

}  // namespace lockstep::tool
