// share.hpp - how much of a multiprocessor's memory blocks of tiles take, and how many of them are under way.
#pragma once

#include <algorithm>

#include "../queue.hpp"

namespace lockstep::cuda {

// Blocks share a part of a multiprocessor's memory (percent of what they may have) that leaves the rest to
// the L1, where loads wait; of exact tiles no more bytes than these are under way in it. 16384 square in u8
// took 133 us with 2 and 3 tiles of 32 KiB and 147 with 6; in f32 511 with 4 of 16 KiB, 511 with 6, 532 with 6 that
// took all of the memory; 0132 236.7 with 4, 238.9 with 5; 20000000x8 302 with 32 of 2 KiB and 336 with 32 of 4 KiB.
// By elements 5 of 16 KiB are faster (10000x7001 144, 152 with 4). Where memory is small, as many as it holds.
constexpr int part_for_tiles = 43;  // 100 KiB of 228 on an H200
constexpr size_t bytes_under_way = 64 << 10;
constexpr int large_memory = 160 << 10;

// moved: bytes that a block has under way; shared: what it needs, then what it asks for.
template <class Kernel>
lockstep_status share_memory(const lockstep_queue& queue, Kernel* kernel, bool exact, size_t moved, size_t* shared) {
  if (queue.facts->shared_bytes < large_memory) return allow_shared(kernel, *shared);
  const size_t part = (static_cast<size_t>(queue.facts->shared_bytes) + 1024) * part_for_tiles / 100;
  const size_t blocks = bytes_under_way / moved;
  if (exact) *shared = std::max(*shared, part / blocks / 128 * 128 - 1024);  // each takes 1 KiB for itself
  LOCKSTEP_CUDA(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, part_for_tiles));
  return allow_shared(kernel, *shared);
}

}  // namespace lockstep::cuda
