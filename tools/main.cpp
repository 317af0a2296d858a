// main.cpp - the lockstep program: picks a subcommand, turns what it throws into
// one line on stderr and an exit code.
#include <csignal>
#include <exception>
#include <new>

#include "cli.hpp"

namespace {
// CLI11 says of an unknown command that one is required: the stray word says more.
std::string story_of(const CLI::ParseError& error, const CLI::App& program) {
  const CLI::App* command = &program;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::string known;
  for (const CLI::App* one : command->get_subcommands([](const CLI::App*) { return true; }))
    known += (known.empty() ? "" : ", ") + one->get_name();
  if (known.empty() || error.get_name() != "RequiredError") return error.what();
  const std::string what = command == &program ? "command" : "operation of " + command->get_name();
  const std::vector<std::string> stray = command->remaining();
  return stray.empty() ? fmt::format("name {} {}: {}", command == &program ? "a" : "an", what, known)
                       : fmt::format("\"{}\" is no {}; there are {}", stray.front(), what, known);
}
}  // namespace

int main(int argc, char** argv) {
  using namespace lockstep::tool;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is EPIPE, noticed where it is written

  CLI::App program("Memory-bound array operations with the same bits on CPU and GPU.", "lockstep");
  program.set_version_flag("--version", std::string("lockstep ") + lockstep_version());
  program.require_subcommand(1);
  program.footer(
      "Exit code: 0 success, 1 failure, 2 wrong usage.  lockstep COMMAND --help says more; so does man lockstep.");
  action chosen;
  info_command(program, chosen);
  run_command(program, chosen);
  verify_command(program, chosen);
  bench_command(program, chosen);
  explain_command(program, chosen);
  calibrate_command(program, chosen);
  probe_command(program, chosen);
  demo_command(program, chosen);
  import_command(program, chosen);
  completion_command(program, chosen);

  try {
    program.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    program.exit(asked);
    return std::fflush(stdout) == 0 ? 0 : 1;
  } catch (const CLI::ParseError& error) {
    fmt::print(stderr, "lockstep: {}; see lockstep --help\n", story_of(error, program));
    return 2;
  }

  try {
    const int code = chosen();
    flush();
    return code;
  } catch (const broken_pipe&) {
    return 1;
  } catch (const usage_error& error) {
    fmt::print(stderr, "lockstep: {}\n", error.what());
    return 2;
  } catch (const failure& error) {
    fmt::print(stderr, "lockstep: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    fmt::print(stderr, "lockstep: out of memory; close other programs or give a smaller input\n");
  } catch (const std::exception& error) {
    fmt::print(stderr, "lockstep: {}\n", error.what());
  }
  return 1;
}
