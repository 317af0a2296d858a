// mutant.hpp - planted bugs, to prove that the tests can fail. A build with
// -Dmutants=true compiles every LOCKSTEP_MUTANT("name") in the shipped code into
// a switch that the environment variable LOCKSTEP_MUTANT=name turns on; in any
// other build the macro is the constant false and the bug does not exist.
// tests/mutants/ lists them, with the case that kills each.
//
//   const int64_t end = LOCKSTEP_MUTANT("transpose_tail") ? tiles : tiles + 1;
//
// Nothing here has external linkage, so that the objects of instruction sets may use
// it. Each place reads the variable once. Device code: backends/cuda/kernel/mutant.cuh.
#pragma once

#if defined(LOCKSTEP_MUTANTS)
#include <stdlib.h>
#include <string.h>

namespace lockstep::lib {
[[maybe_unused]] static bool mutant(const char* name) {
  const char* planted = getenv("LOCKSTEP_MUTANT");
  return planted != nullptr && strcmp(planted, name) == 0;
}
}  // namespace lockstep::lib
#define LOCKSTEP_MUTANT(name)                                  \
  ([]() -> bool {                                              \
    static const bool planted = ::lockstep::lib::mutant(name); \
    return planted;                                            \
  }())
#else
#define LOCKSTEP_MUTANT(name) false
#endif
