// normalize.hpp - normalize's rows for groups.
#pragma once

#include "group.hpp"

namespace lockstep::cuda {
extern const lockstep_variant grouped_normalize_row;
extern const lockstep_group_row normalize_group;
}  // namespace lockstep::cuda
