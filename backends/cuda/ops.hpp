// ops.hpp - the CUDA backend's tables, one a file.
#pragma once

#include "device/queue.hpp"

namespace lockstep::cuda {
extern const lockstep_table transpose_table, permute_table, square_sum_table, reduce_table, stencil_table,
    shuffle_table, normalize_table, scan_table, sums_table, reduce_axes_table, convert_table, map_table;
}  // namespace lockstep::cuda
