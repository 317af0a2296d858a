// blocks.hpp - the permuting tile for short axes: see blocks.cu.
#pragma once

#include "../queue.hpp"
#include "axes.hpp"

namespace lockstep::cuda {
bool blocks_fit(const axes& a);  // offsets within a tile fit 32 bits
lockstep_status launch_blocks(lockstep_queue& queue, const axes& a);
}  // namespace lockstep::cuda
