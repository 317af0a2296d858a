// memory.hpp - device, managed and page-locked memory; copies; what an address is.
#pragma once

#include "queue.hpp"

namespace lockstep::cuda {

// A function of the driver, as it was in CUDA 12.0; NULL: this driver lacks it.
void* driver_function(const char* name);

lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer);
void release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer);
// Host memory of the caller's; any device of the process may use it until it is unpinned.
lockstep_status pin(lockstep_queue* queue, void* pointer, size_t bytes);
lockstep_status unpin(lockstep_queue* queue, void* pointer);
lockstep_status copy(lockstep_queue* queue, const void* src, void* dst, size_t bytes);
void locate(const void* pointer, lockstep_memory* kind, int32_t* device);
// Lets another device use this one's memory in place, and what allocate gives, too; where that fails, the driver copies
// through host memory.
void share_pool(int device, int with);
// Whether kernels of the device can read and write that memory, if it is another device's.
int writes(int32_t device, const void* pointer);
int reachable(const lockstep_queue* queue, const void* pointer);

}  // namespace lockstep::cuda
