// mutant.hpp - the switches of planted bugs. tests/mutants/plant includes this in a
// copy of the sources; the shipped ones do not know it. The environment variable
// LOCKSTEP_MUTANT=name turns one bug on.
//
// Nothing here has external linkage, so that the objects of instruction sets may use
// it. Each place reads the variable once. Device code: mutant.cuh.
#pragma once

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
