// static.cu - E7: a static __device__ array beside memory from cudaMalloc.
// Idea    the same stream over both; the static array is filled by cudaMemcpyToSymbol
// Moves   256 MiB read, 16 bytes a load
// Limit   DRAM
// Watch   the array is part of this object's code: it exists from the first use of the
//         object's kernels to the end of the process, so it has a file of its own
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

constexpr uint32_t words = 1u << 26;  // 256 MiB, long beside the events' own time
__device__ uint4 static_quads[words / 4];

__device__ void read_quads(const uint4* src, outcome* out) {
  uint32_t sum = 0;
  stopwatch watch;
  const uint32_t stride = gridDim.x * blockDim.x;
#pragma unroll 4
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < words / 4; i += stride) {
    const uint4 q = src[i];
    sum += q.x + q.y + q.z + q.w;
  }
  watch.stop(out, sum);
}
__global__ void __launch_bounds__(512) e7_static_kernel(outcome* out) { read_quads(static_quads, out); }
__global__ void __launch_bounds__(512) e7_malloc_kernel(const uint4* src, outcome* out) { read_quads(src, out); }

}  // namespace

void e7_global(bench& b) {
  std::vector<uint32_t> host(words);
  uint32_t expected = 0;
  for (uint32_t i = 0; i < words; ++i) expected += host[i] = word_value(i);
  PROBE_CUDA(cudaMemcpyToSymbol(static_quads, host.data(), size_t{words} * 4));
  const device_array<uint32_t> allocated(host);
  const int blocks = b.processors() * 4;
  const auto s = b.milliseconds(blocks, [&](outcome* out) { e7_static_kernel<<<blocks, 512>>>(out); });
  b.report("static array", "e7_static_kernel", "GB/s", NAN, s.ms.rate(words * 4e-6), s.sum, expected);
  const auto m = b.milliseconds(blocks, [&](outcome* out) {
    e7_malloc_kernel<<<blocks, 512>>>(reinterpret_cast<const uint4*>(static_cast<uint32_t*>(allocated)), out);
  });
  b.report("cudaMalloc", "e7_malloc_kernel", "GB/s", NAN, m.ms.rate(words * 4e-6), m.sum, expected);
}

}  // namespace lockstep::probe
