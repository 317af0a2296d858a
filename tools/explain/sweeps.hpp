// sweeps.hpp - what the lessons of several sweeps a pass share: sweeps.cpp (lines and planes), sweeps_cube.cpp.
#pragma once

#include <cstdint>

#include "lessons.hpp"

namespace lockstep::tool::explain::sweeping {

// What a kernel takes, and the lesson's defaults.
struct kernel_limits {
  int warps;  // of a block
  int most_radius, default_radius;
  int64_t most_n;
  int most_sweeps, default_sweeps;
};
// The options that all lessons have.
void begin(settings& s, const kernel_limits& limits);

// The arrays and places of all: src, dst, `held` elements of shared memory, and lanes.
trace memory_of(const settings& s, int64_t src, int64_t columns, int64_t dst, int64_t held);

// What two neighbours hold where they overlap, positions from the second one's first on.
struct overlapping {
  const char *who, *what, *holder;  // "warp", "point", "lane"
  int each;                         // positions of a holder
  int all, stale;                   // positions of a neighbour; of them useless at either end after the pass
  const char* along = "";           // " along x"
};
sketch overlap_of(const settings& s, const overlapping& o);

}  // namespace lockstep::tool::explain::sweeping
