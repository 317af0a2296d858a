// lockstep.hpp - header-only C++20 over lockstep.h: RAII handles, spans, types.
//
// Every function that can fail has two forms. The plain one throws
// lockstep::exception. The one that starts with try_ is noexcept, returns a
// lockstep::failure, which is true when the call failed, and stores its result in
// the last argument before the options. For a constructor this is try_create, called
// on an object made empty with nullptr. Shapes, aliasing, exactness and errors are
// those of the C call of the same name (lockstep.h). A span may name device memory,
// because it is never dereferenced here.
#pragma once

#if __cplusplus < 202002L
#error "lockstep.hpp needs C++20: compile with -std=c++20 or later; lockstep.h, the C interface, needs no C++20"
#else

#include "lockstep/calls.hpp"
#include "lockstep/handles.hpp"
#include "lockstep/ranges.hpp"

#endif
