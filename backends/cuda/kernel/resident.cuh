// resident.cuh - how many threads an SM can hold, for launch bounds.
#pragma once

namespace lockstep::cuda {

// Most of them on the chips of data centres, which are named; of a chip that is not, the smaller number holds.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int resident_threads = 1024;
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ != 800 && __CUDA_ARCH__ != 900 && __CUDA_ARCH__ / 100 != 10
constexpr int resident_threads = 1536;
#else
constexpr int resident_threads = 2048;
#endif

}  // namespace lockstep::cuda
