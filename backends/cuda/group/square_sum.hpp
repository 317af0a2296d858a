// square_sum.hpp - square_sum's rows for groups.
#pragma once

#include "group.hpp"

namespace lockstep::cuda {
extern const lockstep_variant grouped_square_sum_row;
extern const lockstep_group_row square_sum_group;
}  // namespace lockstep::cuda
