// tiles.hpp - the engine under transpose and permute: many 2-D transposes that
// share one shape, cut into strips and walked by the queue's threads.
#pragma once

#include "queue.hpp"
#include "transpose_kernels.hpp"

namespace lockstep::cpu {

// dst[j][i] = src[i][j] for i < rows, j < cols, once for every index of the
// outer axes (axis 0 slowest). All strides are in bytes.
struct tiles {
  struct axis {
    int64_t count, src, dst;
  };
  int log2_bytes = 0;  // of an element
  int64_t rows = 1, cols = 1;
  int64_t src_ld = 0, dst_ld = 0;
  int axes = 0;
  axis outer[LOCKSTEP_MAX_RANK] = {};
};

void run_tiles(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);

// The same walk where both sides run along cols (rows is 1): dst[j] = src[j].
void run_copies(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);

inline int log2_of(size_t element_bytes) { return __builtin_ctzll(element_bytes); }

}  // namespace lockstep::cpu
