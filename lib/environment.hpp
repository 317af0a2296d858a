// environment.hpp - a setting of the environment. Who starts a set-user-id program chooses its environment, but not
// what it does with its owner's rights: there every setting counts as absent.
#pragma once

#include <stdlib.h>

#include "mutant.hpp"

namespace lockstep::lib {
inline const char* environment(const char* name) {
  return LOCKSTEP_MUTANT("environment_honoured_under_setuid") ? getenv(name) : secure_getenv(name);
}
}  // namespace lockstep::lib
