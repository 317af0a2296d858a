// main.cpp - the lockstep program: runs a subcommand and turns an exception into one line
// on stderr and an exit code.
#include <csignal>
#include <exception>
#include <new>

#include "cli.hpp"

int main(int argc, char** argv) {
  using namespace lockstep::tool;
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe then fails with EPIPE, which is handled

  program program(
      "lockstep", "Memory-bound array operations with the same bits on CPU and GPU.",
      std::string("lockstep ") + lockstep_version(),
      "Exit code: 0 success, 1 failure, 2 wrong usage.  lockstep COMMAND --help says more; so does man lockstep.");
  const command root = program.root();
  action chosen;
  info_command(root, chosen);
  run_command(root, chosen);
  verify_command(root, chosen);
  bench_command(root, chosen);
  explain_command(root, chosen);
  calibrate_command(root, chosen);
  tune_command(root, chosen);
  probe_command(root, chosen);
  demo_command(root, chosen);
  import_command(root, chosen);
  digest_command(root, chosen);
#if defined(LOCKSTEP_RANKS)
  ranks_command(root, chosen);
#endif
  completion_command(root, chosen);

  int code = 0;
  if (!program.parse(argc, argv, code)) return code;
  try {
    code = chosen();
    flush();
    return code;
  } catch (const broken_pipe&) {
    return 1;
  } catch (const usage_error& error) {
    print_error("{}: {}\n", program.called(), error.what());
    return 2;
  } catch (const failure& error) {
    print_error("lockstep: {}\n", error.what());
  } catch (const std::bad_alloc&) {
    print_error("lockstep: out of memory; close other programs or give a smaller input\n");
  } catch (const std::exception& error) {
    print_error("lockstep: {}\n", error.what());
  }
  return 1;
}
