// walk.cuh - where a thread's elements lie: its number taken apart along the axes.
#pragma once

#include "../kernel/divide.hpp"
#include "axes.hpp"

namespace lockstep::cuda {

struct walked_axis {
  divider count;
  int64_t src, dst;  // bytes from one to the next
};
struct move_walk {
  const unsigned char* src;
  unsigned char* dst;
  int rank;
  uint32_t units;                       // threads
  walked_axis axis[LOCKSTEP_MAX_RANK];  // dst's fastest first
};

struct move_place {
  int64_t from, to;  // bytes
};
__device__ __forceinline__ move_place place_of(const move_walk& walk, uint32_t unit) {
  move_place at{0, 0};
#pragma unroll
  for (int k = 0; k < LOCKSTEP_MAX_RANK; ++k) {
    if (k >= walk.rank) break;
    uint32_t index = unit;
    unit = walk.axis[k].count.split(index);
    at.from += index * walk.axis[k].src;
    at.to += index * walk.axis[k].dst;
  }
  return at;
}

}  // namespace lockstep::cuda
