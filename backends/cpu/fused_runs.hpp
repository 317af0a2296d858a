// fused_runs.hpp - used by permute: matrices whose rows and columns are runs over several axes.
#pragma once

#include <optional>

#include "axes.hpp"

namespace lockstep::cpu {

// Axes that lie without a gap in one of two arrays are one run there, fastest axis first; in the other array its
// elements are a step of each axis apart.
struct run_of_axes {
  int axes = 0;
  int64_t length = 1;  // elements
  tiles::axis axis[LOCKSTEP_MAX_RANK] = {};
};
struct fused_runs {
  run_of_axes along_src, along_dst;  // no axis is in both
  tiles rest;                        // the outer axes, and the size of an element
};

// {} if src or dst has no axis whose elements are neighbours, or both have the same one.
std::optional<fused_runs> fuse_runs(const fused_axes& all, int64_t bytes);

const char* not_fused(const fused_runs& runs);
bool fused_pays(const lockstep_queue& queue, const fused_runs& runs);
void run_fused(const lockstep_queue& queue, const fused_runs& runs, const char* src, char* dst);

}  // namespace lockstep::cpu
