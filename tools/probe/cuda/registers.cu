// registers.cu - E1: registers against local memory; E13: registers against occupancy.
// Idea    E1: one text, once with indices that the compiler knows and once with the same
//         indices as an argument: an array in registers, and one in local memory
//         E13: warps that each wait for one load at a time; speed goes with their number
// Moves   E1: nothing beyond L1; E13: one sector a load, from L2
// Limit   E1: the latency of the array's memory; E13: latency over resident warps
// Watch   an index that is unrolled to a constant goes back to registers
#include "../../../backends/cuda/kernel/resident.cuh"
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

// ---- E1 -----------------------------------------------------------------------

constexpr int e1_rounds = 64;

// The value that every access hands to the next; the store depends on it too.
__host__ __device__ inline void touch(uint32_t& cell, uint32_t& x, uint32_t i) {
  x += cell;
  cell = x ^ i;
}

template <int n>
__device__ void known_indices(uint32_t seed, outcome* out) {
  uint32_t cells[n], x = seed + threadIdx.x;
#pragma unroll
  for (int i = 0; i < n; ++i) cells[i] = seed * i + threadIdx.x;
  stopwatch watch;
#pragma unroll 1
  for (int r = 0; r < e1_rounds; ++r)
#pragma unroll
    for (int i = 0; i < n; ++i) touch(cells[i * 7 % n], x, i);
  watch.stop(out, x);
}
__global__ void __launch_bounds__(32) e1_registers_kernel(uint32_t seed, outcome* out) { known_indices<32>(seed, out); }
__global__ void __launch_bounds__(32) e1_too_large_kernel(uint32_t seed, outcome* out) {
  known_indices<320>(seed, out);
}

__global__ void __launch_bounds__(32) e1_local_kernel(uint32_t seed, int stride, outcome* out) {
  uint32_t cells[32], x = seed + threadIdx.x;
  for (int i = 0; i < 32; ++i) cells[i] = seed * i + threadIdx.x;
  stopwatch watch;
#pragma unroll 1
  for (int r = 0; r < e1_rounds; ++r)
#pragma unroll
    for (int i = 0; i < 32; ++i) touch(cells[i * stride % 32], x, i);
  watch.stop(out, x);
}

uint32_t e1_expected(uint32_t seed, uint32_t n) {
  uint32_t sum = 0;
  for (uint32_t thread = 0; thread < 32; ++thread) {
    std::vector<uint32_t> cells(n);
    uint32_t x = seed + thread;
    for (uint32_t i = 0; i < n; ++i) cells[i] = seed * i + thread;
    for (int r = 0; r < e1_rounds; ++r)
      for (uint32_t i = 0; i < n; ++i) touch(cells[i * 7 % n], x, i);
    sum += x;
  }
  return sum;
}

// ---- E13 ----------------------------------------------------------------------

constexpr int block = 256, e13_steps = 960;  // a multiple of every `live`
constexpr uint32_t lines = 1u << 16;         // of 128 bytes: 8 MiB, in L2

__global__ void setup_chain(uint32_t* next) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
    next[i * 32] = next_line(i, lines);
}

// One chain a warp; `live` values stay in registers to the end.
template <int live>
__global__ void __launch_bounds__(block) e13_occupancy_kernel(const uint32_t* next, outcome* out) {
  uint32_t at = (blockIdx.x * (block / 32) + threadIdx.x / 32) * 37 % lines, kept[live] = {};
  stopwatch watch;
#pragma unroll 1
  for (int s = 0; s < e13_steps; s += live)
#pragma unroll
    for (int k = 0; k < live; ++k) {
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(next + size_t{at} * 32));
      kept[k] = kept[k] * 3 + at;
    }
  uint32_t sum = 0;
#pragma unroll
  for (int k = 0; k < live; ++k) sum += kept[k];
  watch.stop(out, threadIdx.x % 32 == 0 ? sum : 0);
}

uint32_t e13_expected(int live, int blocks) {
  uint32_t sum = 0;
  for (uint32_t warp = 0; warp < static_cast<uint32_t>(blocks) * (block / 32); ++warp) {
    std::vector<uint32_t> kept(static_cast<size_t>(live));
    uint32_t at = warp * 37 % lines;
    for (int s = 0; s < e13_steps; ++s) {
      at = next_line(at, lines);
      kept[static_cast<size_t>(s % live)] = kept[static_cast<size_t>(s % live)] * 3 + at;
    }
    for (const uint32_t k : kept) sum += k;
  }
  return sum;
}

// 96 values that all live through the loop, with the registers for it and without.
constexpr int spill_live = 96, spill_rounds = 256;
__device__ void many_values(uint32_t seed, outcome* out) {
  uint32_t v[spill_live];
#pragma unroll
  for (int k = 0; k < spill_live; ++k) v[k] = seed * k + threadIdx.x;
  stopwatch watch;
#pragma unroll 1
  for (int r = 0; r < spill_rounds; ++r)
#pragma unroll
    for (int k = 0; k < spill_live; ++k) v[k] = v[k] * seed + v[(k + 1) % spill_live];
  uint32_t sum = 0;
#pragma unroll
  for (int k = 0; k < spill_live; ++k) sum += v[k];
  watch.stop(out, sum);
}
__global__ void __launch_bounds__(block) e13_roomy_kernel(uint32_t seed, outcome* out) { many_values(seed, out); }
__global__ void __launch_bounds__(block, cuda::resident_threads / block)
    e13_spilling_kernel(uint32_t seed, outcome* out) {
  many_values(seed, out);
}

uint32_t many_expected(uint32_t seed, int blocks) {
  uint32_t sum = 0;
  for (uint32_t thread = 0; thread < block; ++thread) {
    uint32_t v[spill_live];
    for (uint32_t k = 0; k < spill_live; ++k) v[k] = seed * k + thread;
    for (int r = 0; r < spill_rounds; ++r)
      for (int k = 0; k < spill_live; ++k) v[k] = v[k] * seed + v[(k + 1) % spill_live];
    for (const uint32_t one : v) sum += one;
  }
  return sum * static_cast<uint32_t>(blocks);
}

template <class Kernel>
cudaFuncAttributes attributes_of(Kernel* kernel) {
  cudaFuncAttributes a{};
  PROBE_CUDA(cudaFuncGetAttributes(&a, kernel));
  return a;
}

}  // namespace

void e1_local(bench& b) {
  constexpr uint32_t seed = 12345;
  const auto r = b.cycles(1, [&](outcome* out) { e1_registers_kernel<<<1, 32>>>(seed, out); });
  b.report("known index", "e1_registers_kernel", "cycles an access", NAN, r.cycles.scaled(1.0 / (32 * e1_rounds)),
           r.sum, e1_expected(seed, 32));
  const auto l = b.cycles(1, [&](outcome* out) { e1_local_kernel<<<1, 32>>>(seed, 7, out); });
  b.report("run-time index", "e1_local_kernel", "cycles an access", NAN, l.cycles.scaled(1.0 / (32 * e1_rounds)), l.sum,
           e1_expected(seed, 32));
  const auto t = b.cycles(1, [&](outcome* out) { e1_too_large_kernel<<<1, 32>>>(seed, out); });
  b.report("too large", "e1_too_large_kernel", "cycles an access", NAN, t.cycles.scaled(1.0 / (320 * e1_rounds)), t.sum,
           e1_expected(seed, 320));
  b.fact("local bytes, known index", static_cast<double>(attributes_of(e1_registers_kernel).localSizeBytes),
         "B a thread");
  b.fact("local bytes, run-time index", static_cast<double>(attributes_of(e1_local_kernel).localSizeBytes),
         "B a thread");
  b.fact("local bytes, too large", static_cast<double>(attributes_of(e1_too_large_kernel).localSizeBytes),
         "B a thread");
}

void e13_occupancy(bench& b) {
  const device_array<uint32_t> next(size_t{lines} * 32);
  setup_chain<<<b.processors(), 256>>>(next);
  PROBE_CUDA(cudaDeviceSynchronize());
  const auto occupancy = [&]<int live>(std::integral_constant<int, live>) {
    auto* kernel = e13_occupancy_kernel<live>;
    int resident = 0;
    PROBE_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, block, 0));
    const int blocks = resident * b.processors();  // one wave
    const auto t = b.milliseconds(blocks, [&](outcome* out) { kernel<<<blocks, block>>>(next, out); });
    b.report("loads by live values", "e13_occupancy_kernel", "loads/ns", live,
             t.ms.rate(1e-6 * blocks * (block / 32) * e13_steps), t.sum, e13_expected(live, blocks));
    const double registers = attributes_of(kernel).numRegs, warps = resident * (block / 32);
    b.report("registers by live values", "", "registers", live, {registers, registers, registers}, 0, 0);
    b.report("resident warps by live values", "", "warps", live, {warps, warps, warps}, 0, 0);
  };
  occupancy(std::integral_constant<int, 8>());
  occupancy(std::integral_constant<int, 32>());
  occupancy(std::integral_constant<int, 64>());
  occupancy(std::integral_constant<int, 96>());
  occupancy(std::integral_constant<int, 120>());
  occupancy(std::integral_constant<int, 160>());
  constexpr uint32_t seed = 12345;
  const int blocks = b.processors() * 8;
  const auto roomy = b.milliseconds(blocks, [&](outcome* out) { e13_roomy_kernel<<<blocks, block>>>(seed, out); });
  b.report("roomy", "e13_roomy_kernel", "ms", NAN, roomy.ms, roomy.sum, many_expected(seed, blocks));
  const auto spilling =
      b.milliseconds(blocks, [&](outcome* out) { e13_spilling_kernel<<<blocks, block>>>(seed, out); });
  b.report("spilling", "e13_spilling_kernel", "ms", NAN, spilling.ms, spilling.sum, many_expected(seed, blocks));
  b.fact("registers, roomy", attributes_of(e13_roomy_kernel).numRegs, "registers");
  b.fact("registers, spilling", attributes_of(e13_spilling_kernel).numRegs, "registers");
  b.fact("local bytes, roomy", static_cast<double>(attributes_of(e13_roomy_kernel).localSizeBytes), "B a thread");
  b.fact("local bytes, spilling", static_cast<double>(attributes_of(e13_spilling_kernel).localSizeBytes), "B a thread");
}

}  // namespace lockstep::probe
