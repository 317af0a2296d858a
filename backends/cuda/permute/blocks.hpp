// blocks.hpp - the permuting tiles for short axes: see blocks.cu, units.cu, aligned.cu and registers.cu.
#pragma once

#include "../queue.hpp"
#include "axes.hpp"

namespace lockstep::cuda {
bool blocks_fit(const axes& a);  // offsets within a tile fit 32 bits
lockstep_status launch_blocks(lockstep_queue& queue, const axes& a);

int units_chunk(const axes& a);  // the largest chunk that units.cu can take, 0: none
lockstep_status launch_units(lockstep_queue& queue, const axes& a, int chunk);

lockstep_status launch_aligned(lockstep_queue& queue, const axes& a);

bool registers_fit(const axes& a);  // but for addresses, multiples of 16 bytes
bool registers_pay(const axes& a);  // where they fit: whether a block finds the rows beside its own
lockstep_status launch_registers(lockstep_queue& queue, const axes& a);
}  // namespace lockstep::cuda
