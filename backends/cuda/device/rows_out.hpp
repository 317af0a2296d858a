// rows_out.hpp - the download of a slab whose rows lie apart in page-locked memory.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace lockstep::cuda {

// rows of width bytes, one after another at src, to dst with pitch bytes between them.
cudaError_t rows_to_host(void* dst, size_t pitch, const void* src, size_t width, size_t rows, cudaStream_t stream);

}  // namespace lockstep::cuda
