// rows_out.cu - rows of device memory to page-locked host memory, stored over the link.
//
// Idea    The copy engine sends each row of a two-dimensional copy by itself, so that rows of a
//         few KiB leave at 0.6 of the link's speed. Warps that store 16 bytes per lane
//         through the mapped address fill the link whatever the pitch.
// Moves   every byte read once from device memory, written once over the link
// Limit   the link
// Watch   More blocks (tuning.hpp) slow down an upload at the same time.
// Source  measured on an H200; figures in tests/results/tries.md.
#include "queue.hpp"
#include "rows_out.hpp"

namespace lockstep::cuda {
namespace {

constexpr int threads = row_threads, ahead = row_ahead;

__global__ void __launch_bounds__(threads)
    write_rows(const uint4* from, uint4* to, size_t width, size_t pitch, size_t rows) {
  const size_t warps = size_t{gridDim.x} * (threads / 32), t = threadIdx.x % 32;
  for (size_t row = (size_t{blockIdx.x} * threads + threadIdx.x) / 32; row < rows; row += warps)
    for (size_t k = t; k < width; k += 32 * ahead) {
      uint4 held[ahead];
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        if (k + a * 32 < width) held[a] = __ldcs(from + row * width + k + a * 32);
#pragma unroll
      for (int a = 0; a < ahead; ++a)
        if (k + a * 32 < width) to[row * pitch + k + a * 32] = held[a];
    }
}

bool whole(const void* p, size_t bytes) { return (reinterpret_cast<uintptr_t>(p) | bytes) % 16 == 0; }

}  // namespace

cudaError_t rows_to_host(void* dst, size_t pitch, const void* src, size_t width, size_t rows, cudaStream_t stream) {
  if (width < static_cast<size_t>(engine_row) && whole(dst, pitch) && whole(src, width)) {
    cudaPointerAttributes memory{};  // not of the base: dst may lie anywhere in its block
    const cudaError_t code = cudaPointerGetAttributes(&memory, dst);
    if (code == cudaSuccess && memory.type == cudaMemoryTypeHost && memory.devicePointer != nullptr) {
      write_rows<<<row_blocks, threads, 0, stream>>>(
          static_cast<const uint4*>(src), static_cast<uint4*>(memory.devicePointer), width / 16, pitch / 16, rows);
      return cudaGetLastError();
    }
    if (code != cudaSuccess) (void)cudaGetLastError();  // not mapped, or managed: the engine reaches it
  }
  return cudaMemcpy2DAsync(dst, pitch, src, width, width, rows, cudaMemcpyDeviceToHost, stream);
}

}  // namespace lockstep::cuda
