// permute.hpp - an array from one grid to another, its axes in another order: boxes between pairs of ranks.
#pragma once

#include "plan.hpp"

namespace lockstep::ranks {

struct permute_plan {};

}  // namespace lockstep::ranks
