// shuffle.cu - E11: exchange within a warp by shuffle and through shared memory.
// Idea    the same rotation by one lane both ways: one chain for latency, 32 warps of four
//         chains for throughput
// Moves   4 bytes a lane and exchange; shared memory writes and reads them
// Limit   one warp's shuffle a cycle; a store and a load a cycle each
// Watch   lanes that read what others wrote need __syncwarp before and after
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

// Numbers of steps that do not rotate a warp all the way round. Otherwise its values would be back in their places, as
// if nothing had been exchanged.
constexpr int latency_steps = 1040, steps = 264, threads = 1024;

__device__ uint32_t by_shuffle(uint32_t x, uint32_t from) {
  return __shfl_sync(0xFFFFFFFFu, x, static_cast<int>(from));
}
__device__ uint32_t through_shared(uint32_t x, uint32_t from, uint32_t* warp_words) {
  volatile uint32_t* words = warp_words;
  words[threadIdx.x % 32] = x;
  __syncwarp();  // the warp: read what others wrote
  const uint32_t y = words[from];
  __syncwarp();  // the warp: all have read before the next exchange
  return y;
}

// Weighted, since a rotation keeps the plain sum.
__device__ uint32_t weighed(uint32_t x) { return x * (threadIdx.x + 1); }

__global__ void e11_shuffle_latency_kernel(uint32_t turn, outcome* out) {
  uint32_t x = threadIdx.x * 7;
  const uint32_t from = (threadIdx.x + turn) % 32;
  stopwatch watch;
#pragma unroll 16
  for (int s = 0; s < latency_steps; ++s) x = by_shuffle(x, from);
  watch.stop(out, weighed(x));
}
__global__ void e11_shared_latency_kernel(uint32_t turn, outcome* out) {
  __shared__ uint32_t words[32];
  uint32_t x = threadIdx.x * 7;
  const uint32_t from = (threadIdx.x + turn) % 32;
  stopwatch watch;
#pragma unroll 16
  for (int s = 0; s < latency_steps; ++s) x = through_shared(x, from, words);
  watch.stop(out, weighed(x));
}
__global__ void __launch_bounds__(threads) e11_shuffle_kernel(uint32_t turn, outcome* out) {
  uint32_t x[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) x[c] = threadIdx.x % 32 * 7 + c;
  const uint32_t from = (threadIdx.x + turn) % 32;
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int c = 0; c < 4; ++c) x[c] = by_shuffle(x[c], from);
  watch.stop(out, (x[0] + x[1] + x[2] + x[3]) * (threadIdx.x % 32 + 1));
}
__global__ void __launch_bounds__(threads) e11_shared_kernel(uint32_t turn, outcome* out) {
  __shared__ uint32_t words[4][threads];
  uint32_t x[4];
#pragma unroll
  for (int c = 0; c < 4; ++c) x[c] = threadIdx.x % 32 * 7 + c;
  const uint32_t first = threadIdx.x / 32 * 32, from = first + (threadIdx.x + turn) % 32;
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < steps; ++s) {
#pragma unroll
    for (int c = 0; c < 4; ++c) static_cast<volatile uint32_t*>(words[c])[threadIdx.x] = x[c];
    __syncwarp();  // the warp: read what others wrote
#pragma unroll
    for (int c = 0; c < 4; ++c) x[c] = static_cast<volatile uint32_t*>(words[c])[from];
    __syncwarp();  // the warp: all have read before the next exchange
  }
  watch.stop(out, (x[0] + x[1] + x[2] + x[3]) * (threadIdx.x % 32 + 1));
}

uint32_t rotated(uint32_t n_steps, uint32_t turn, uint32_t lane) { return (lane + n_steps * turn) % 32 * 7; }

template <class Kernel>
cudaFuncAttributes attributes_of(Kernel* kernel) {
  cudaFuncAttributes a{};
  PROBE_CUDA(cudaFuncGetAttributes(&a, kernel));
  return a;
}

}  // namespace

void e11_shuffle(bench& b) {
  constexpr uint32_t turn = 3;
  uint32_t latency_expected = 0, expected = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    latency_expected += rotated(latency_steps, turn, lane) * (lane + 1);
    expected += (4 * rotated(steps, turn, lane) + 0 + 1 + 2 + 3) * (lane + 1) * (threads / 32);
  }
  const auto a = b.cycles(1, [&](outcome* out) { e11_shuffle_latency_kernel<<<1, 32>>>(turn, out); });
  b.report("latency, shuffle", "e11_shuffle_latency_kernel", "cycles", NAN, a.cycles.scaled(1.0 / latency_steps), a.sum,
           latency_expected);
  const auto s = b.cycles(1, [&](outcome* out) { e11_shared_latency_kernel<<<1, 32>>>(turn, out); });
  b.report("latency, shared", "e11_shared_latency_kernel", "cycles", NAN, s.cycles.scaled(1.0 / latency_steps), s.sum,
           latency_expected);
  const double exchanges = threads / 32 * 4 * steps;
  const auto t = b.cycles(1, [&](outcome* out) { e11_shuffle_kernel<<<1, threads>>>(turn, out); });
  b.report("throughput, shuffle", "e11_shuffle_kernel", "cycles an exchange", NAN, t.cycles.scaled(1 / exchanges),
           t.sum, expected);
  const auto u = b.cycles(1, [&](outcome* out) { e11_shared_kernel<<<1, threads>>>(turn, out); });
  b.report("throughput, shared", "e11_shared_kernel", "cycles an exchange", NAN, u.cycles.scaled(1 / exchanges), u.sum,
           expected);
  b.fact("registers, shuffle", attributes_of(e11_shuffle_kernel).numRegs, "registers");
  b.fact("registers, shared", attributes_of(e11_shared_kernel).numRegs, "registers");
  b.fact("shared bytes, shuffle", static_cast<double>(attributes_of(e11_shuffle_kernel).sharedSizeBytes), "B");
  b.fact("shared bytes, shared", static_cast<double>(attributes_of(e11_shared_kernel).sharedSizeBytes), "B");
}

}  // namespace lockstep::probe
