// share.hpp - how much of an SM's memory blocks of tiles take, and how many of them are under way.
#pragma once

#include <algorithm>

#include "../device/queue.hpp"

namespace lockstep::cuda {

// moved: bytes that a block has under way; shared: what it needs, then what it asks for.
template <class Kernel>
lockstep_status share_memory(const lockstep_queue& queue, Kernel* kernel, bool exact, size_t moved, size_t* shared) {
  if (queue.facts->shared_bytes < large_memory) return allow_shared(queue, kernel, *shared);
  const size_t part = (static_cast<size_t>(queue.facts->shared_bytes) + 1024) * part_for_tiles / 100;
  const size_t blocks = static_cast<size_t>(bytes_under_way) / moved;
  if (exact) *shared = std::max(*shared, part / blocks / 128 * 128 - 1024);  // each takes 1 KiB for itself
  if (const lockstep_status status = grow_attribute(queue.device, reinterpret_cast<const void*>(kernel),
                                                    cudaFuncAttributePreferredSharedMemoryCarveout, part_for_tiles);
      status != LOCKSTEP_OK)
    return status;
  return allow_shared(queue, kernel, *shared);
}

}  // namespace lockstep::cuda
