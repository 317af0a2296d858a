// pipeline.hpp - moving host memory to the device and back at the speed of the
// link: pinned rings, copy threads, upload, compute and download at once.
#pragma once

#include "queue.hpp"

namespace lockstep::cuda {

lockstep_status run_slabs(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_slab* slabs,
                          size_t count, const void* src, void* dst);

// One way, pageable host memory on one side, device memory on the other; waits.
lockstep_status copy_pageable(lockstep_queue& queue, const void* src, void* dst, size_t bytes, bool upload);

void drop_pipeline(lockstep_queue& queue);  // at the queue's end

}  // namespace lockstep::cuda
