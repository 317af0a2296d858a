// chunk.cuh - aligned chunks of 16 bytes from rows that begin anywhere.
#pragma once

#include <cuda_pipeline.h>

namespace lockstep::cuda {

// Copies the aligned 16 bytes at from that lie in [begin, end) to shared memory:
// in the background (cp.async) where the whole chunk may be read.
__device__ inline void stage_chunk(uint4* to, const unsigned char* from, const unsigned char* begin,
                                   const unsigned char* end) {
  if (from >= begin && from + 16 <= end) {
    __pipeline_memcpy_async(to, from, 16);
    return;
  }
  for (int b = 0; b < 16; ++b)
    if (from + b >= begin && from + b < end) reinterpret_cast<unsigned char*>(to)[b] = from[b];
}

}  // namespace lockstep::cuda
