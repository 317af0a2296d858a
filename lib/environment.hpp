// environment.hpp - reads a setting from the environment. In a set-user-id program every setting counts as absent,
// because the user who starts it must not decide what it does with its owner's rights.
#pragma once

#include <stdlib.h>

#include "mutant.hpp"

namespace lockstep::lib {
inline const char* environment(const char* name) {
  return LOCKSTEP_MUTANT("environment_honoured_under_setuid") ? getenv(name) : secure_getenv(name);
}
}  // namespace lockstep::lib
