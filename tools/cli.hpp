// cli.hpp - shared by all subcommands: how they are added, fail, choose where to run,
// and print.
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
// The reader of stdout has closed it, so the program ends silently.
struct broken_pipe {};

template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw failure(vformat_text(text, fmt::make_format_args(args...)));
}
template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> text, Args&&... args) {
  throw usage_error(vformat_text(text, fmt::make_format_args(args...)));
}
// Throws lockstep_last_error() unless status is LOCKSTEP_OK.
void check(lockstep_status status);

// A subcommand adds itself to the program. If it is the one called, it sets `chosen` to
// its action, whose result is the exit code.
using action = std::function<int()>;
void info_command(command root, action& chosen);
void run_command(command root, action& chosen);
void bench_command(command root, action& chosen);
void probe_command(command root, action& chosen);
void demo_command(command root, action& chosen);
void explain_command(command root, action& chosen);
void import_command(command root, action& chosen);  // and export
void digest_command(command root, action& chosen);
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
// The backends that --backend names: all usable ones for "auto", "all" or no name; "cpu:0" is "cpu". Throws what
// creating a context for it throws.
std::vector<std::string> named_backends(const std::vector<std::string>& names, const place& where);
// Refuses a variant that none of the backends has for any of the ops; the error lists the known ones.
void require_variant(const std::string& name, const std::vector<std::string>& backends,
                     const std::vector<lockstep_op>& ops);
std::vector<std::string> op_names();
// The syntax of case names for help, one line for each part.
std::string case_names_help();

// Prints to stdout; any error is reported immediately.
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

// "bold", "green" ... as escape sequences; "" if stdout is not a terminal, TERM is dumb or
// NO_COLOR is set.
struct style {
  const char *bold, *dim, *good, *bad, *off;
};
style stdout_style();

}  // namespace lockstep::tool
