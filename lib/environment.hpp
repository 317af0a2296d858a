// environment.hpp - reads a setting from the environment. In a set-user-id program every setting counts as absent,
// because the user who starts it must not decide what it does with its owner's rights.
#pragma once

#include <stdlib.h>

namespace lockstep::lib {
inline const char* environment(const char* name) { return secure_getenv(name); }
}  // namespace lockstep::lib
