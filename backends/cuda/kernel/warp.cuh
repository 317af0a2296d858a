// warp.cuh - device helpers that several ops share.
#pragma once

#include "../device/queue.hpp"

namespace lockstep::cuda {

// Tells the host that sequence has this fault; the first one is what finish()
// returns. Mapped memory has no atomics over every link, a plain store will do
// for the flag: whoever stores, stores 1, and the end of the kernel publishes it.
__device__ inline void report(report_word word, fault what, int64_t sequence) {
  atomicMin(word.first, static_cast<unsigned long long>(sequence) * 4 + static_cast<unsigned>(what));
  *static_cast<volatile unsigned*>(word.raised) = 1;
}

}  // namespace lockstep::cuda
