// wide.hpp - tiles of 16-byte accesses: many matrices, each dst[j][i] = src[i][j], placed by up to six outer axes.
#pragma once

#include "../device/queue.hpp"
#include "../kernel/divide.hpp"
#include "axes.hpp"

namespace lockstep::cuda {

// What the caller asks for: src element (o..., i, j) is at sum(o * outer.src) + i * src_ld + j, dst element (o..., j,
// i) at sum(o * outer.dst) + j * dst_ld + i.
struct wide_job {
  const unsigned char* src = nullptr;
  unsigned char* dst = nullptr;
  size_t element_bytes = 0;
  int64_t rows = 1, cols = 1, src_ld = 0, dst_ld = 0;
  int outer_axes = 0;
  axis outer[6] = {};  // outermost first
};

lockstep_status launch_wide(lockstep_queue& queue, const wide_job& job);

// The number of the shape, of wide_shapes, that wastes the least of its tiles.
int best_wide_shape(const wide_job& job);
// Its tiles; and what they cover over what the job moves: 1 where the matrices fill their tiles.
int64_t wide_tiles(const wide_job& job);
double wide_padding(const wide_job& job);
double wide_bytes(const wide_job& job);  // each way

}  // namespace lockstep::cuda
