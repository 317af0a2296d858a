// warp.cuh - device helpers that several ops share.
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda {

// Tells the host that sequence has this fault; the first one is what finish()
// returns. Mapped memory has no atomics over every link, a plain store will do
// for the flag: whoever stores, stores 1, and the end of the kernel publishes it.
__device__ inline void report(report_word word, fault what, int64_t sequence) {
  const auto at = static_cast<unsigned long long>(sequence);
  atomicMin(word.first,
            word.call << (sequence_bits + fault_bits) | at << fault_bits | static_cast<unsigned long long>(what));
  *static_cast<volatile unsigned*>(word.raised) = 1;
}

}  // namespace lockstep::cuda
