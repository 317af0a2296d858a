// transpose.hpp - transpose's rows for groups.
#pragma once

#include "group.hpp"

namespace lockstep::cuda {
extern const lockstep_variant grouped_transpose_row;
extern const lockstep_group_row transpose_group;
}  // namespace lockstep::cuda
