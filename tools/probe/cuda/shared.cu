// shared.cu - shared memory: static and dynamic, bank conflicts, element sizes, atomics.
// Idea    E3: every lane follows a chain through one table, next[w] = w + step: adding the
//         same step to all lanes turns the banks but keeps the conflicts of the pattern
// Moves   nothing but shared memory; 32 warps x 4 chains hide the latency, so that the
//         requests a cycle are what is measured
// Limit   one wavefront a cycle: 32 banks of 4 bytes
// Watch   loads whose addresses do not depend on loads may be merged or hoisted
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

constexpr int threads = 1024, chains = 4, steps = 256, step = 37;
constexpr uint32_t table_words = 2048;

__device__ uint32_t load_shared(uint32_t address) {
  uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(address));
  return value;
}

__global__ void __launch_bounds__(threads) e3_banks_kernel(pattern kind, uint32_t value, outcome* out) {
  __shared__ uint32_t next[table_words];
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(next));
  for (uint32_t w = threadIdx.x; w < table_words; w += threads) next[w] = base + 4 * ((w + step) % table_words);
  uint32_t at[chains];
#pragma unroll
  for (int c = 0; c < chains; ++c) at[c] = base + 4 * ((lane_word(kind, value, threadIdx.x % 32) + 8 * c) % table_words);
  uint32_t sum = 0;
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int c = 0; c < chains; ++c) sum += at[c] = load_shared(at[c]);
  watch.stop(out, sum - base * (steps * chains));
}

uint32_t e3_expected(pattern kind, uint32_t value) {
  uint32_t sum = 0;
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (int c = 0; c < chains; ++c)
      for (int s = 1; s <= steps; ++s) sum += 4 * ((lane_word(kind, value, lane) + 8 * c + step * s) % table_words);
  return sum * (threads / 32);
}

}  // namespace

void e3_banks(bench& b) {
  const auto measure = [&](const std::string& name, double x, pattern kind, uint32_t value) {
    const auto t = b.cycles(1, [&](outcome* out) { e3_banks_kernel<<<1, threads>>>(kind, value, out); });
    b.report(name, "e3_banks_kernel", "cycles a request", x, t.cycles.scaled(1.0 / (threads / 32 * chains * steps)), t.sum,
             e3_expected(kind, value));
  };
  measure("permuted in a row", NAN, pattern::permuted, 0);
  measure("all lanes one word", NAN, pattern::broadcast, 0);
  measure("groups of 4 lanes one word", NAN, pattern::multicast, 4);
  for (uint32_t s = 1; s <= 34; ++s) measure("stride", s, pattern::stride, s);
}

}  // namespace lockstep::probe
