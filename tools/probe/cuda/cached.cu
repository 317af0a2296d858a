// cached.cu - constant memory (E4) and the read-only cache (E5).
// Idea    E4: chains through a table in constant memory; d distinct words a request, for
//         d = 1 to 32; one lane's chain through ever larger tables; the same chain through
//         a kernel parameter
//         E5: the same patterns through ld.global.nc, and through plain loads that L1 keeps;
//         tables of byte offsets, which two additions make addresses
// Moves   what fits the caches of one SM
// Limit   constant cache: one word a cycle for all lanes; L1: one line's sectors a cycle
// Watch   an index that is the same for all lanes becomes a uniform load, which takes
//         another path; an index times 4 plus a base is one wide multiply-add, which is
//         slower than L1 and would be the limit (figures: tests/results/tries.md)
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

// 32 warps of 4 chains: enough requests in flight to hide the latency.
constexpr int threads = 1024, chains = 4, steps = 256;
constexpr uint32_t constant_words = 16384;  // 64 KiB, all of constant memory

__constant__ uint32_t constant_table[constant_words];

// The words a lane visits: table[w] = w + step, modulo a power of two of words.
__host__ __device__ uint32_t first_word(uint32_t lane, uint32_t distinct, uint32_t spread, uint32_t c, uint32_t words) {
  return (lane % distinct * spread + c * 8) % words;
}
uint32_t chain_expected(uint32_t lanes, uint32_t distinct, uint32_t spread, uint32_t step, uint32_t words,
                        uint32_t n_chains, uint32_t n_steps) {
  uint32_t sum = 0;
  for (uint32_t lane = 0; lane < lanes; ++lane)
    for (uint32_t c = 0; c < n_chains; ++c) {
      uint32_t at = first_word(lane, distinct, spread, c, words);
      for (uint32_t s = 0; s < n_steps; ++s) sum += at = (at + step) % words;
    }
  return sum;
}
std::vector<uint32_t> table_of(uint32_t words, uint32_t step, uint32_t unit = 1) {
  std::vector<uint32_t> table(words);
  for (uint32_t w = 0; w < words; ++w) table[w] = (w + step) % words * unit;
  return table;
}

__global__ void __launch_bounds__(threads) e4_constant_kernel(uint32_t distinct, uint32_t words, outcome* out) {
  uint32_t at[chains], sum = 0;
#pragma unroll
  for (int c = 0; c < chains; ++c) at[c] = first_word(threadIdx.x % 32, distinct, 1, c, words);
#pragma unroll 1
  for (uint32_t w = threadIdx.x; w < words; w += 32) sum += constant_table[w];  // warm
  sum = sum == 0xFFFFFFFFu;                                                     // never
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int c = 0; c < chains; ++c) {
      const uint32_t from = at[c];
      sum += at[c] = constant_table[from];
    }
  watch.stop(out, sum);
}

constexpr int latency_steps = 2048;

// One lane's chain through `words` words, 64 bytes a step; the first round warms.
__global__ void e4_working_set_kernel(uint32_t words, outcome* out) {
  uint32_t at = threadIdx.x, sum = 0;  // 0; the compiler must not know that all lanes have it, or it uses uniform loads
  for (uint32_t s = 0; s < words / 16; ++s) at = constant_table[at];
  const uint32_t start = at;
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < latency_steps; ++s) sum += at = constant_table[at];
  watch.stop(out, sum + start);
}

struct parameter_table {
  uint32_t next[512];  // 2 KiB
};
__global__ void e4_parameter_kernel(const __grid_constant__ parameter_table table, outcome* out) {
  uint32_t at = threadIdx.x, sum = 0;
  for (int s = 0; s < 32; ++s) at = table.next[at];
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < latency_steps; ++s) sum += at = table.next[at];
  watch.stop(out, sum);
}

enum class path { read_only, plain };
template <path how>
__device__ uint32_t load_global(const uint32_t* at) {
  uint32_t v;
  if constexpr (how == path::read_only)
    asm volatile("ld.global.nc.u32 %0, [%1];" : "=r"(v) : "l"(at));
  else
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}

// unit: what an entry of the table counts in, bytes or words of 4.
template <path how, uint32_t unit>
__device__ void follow(const uint32_t* table, uint32_t distinct, uint32_t spread, uint32_t words, outcome* out) {
  uint32_t at[chains], sum = 0;
#pragma unroll
  for (int c = 0; c < chains; ++c)
    at[c] = first_word(threadIdx.x % 32, distinct, spread, c, words) * (sizeof(uint32_t) / unit);
#pragma unroll 1
  for (uint32_t w = threadIdx.x; w < words; w += threads) sum += load_global<how>(table + w);  // warm
  sum = sum == 0xFFFFFFFFu;                                                                    // never
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int c = 0; c < chains; ++c) {
      const auto* bytes = reinterpret_cast<const unsigned char*>(table) + size_t{at[c]} * unit;
      const uint32_t next = load_global<how>(reinterpret_cast<const uint32_t*>(bytes));
      sum += next;
      at[c] = next;
    }
  watch.stop(out, sum);
}
__global__ void __launch_bounds__(threads)
    e5_read_only_kernel(const uint32_t* table, uint32_t distinct, uint32_t spread, uint32_t words, outcome* out) {
  follow<path::read_only, 1>(table, distinct, spread, words, out);
}
__global__ void __launch_bounds__(threads)
    e5_plain_kernel(const uint32_t* table, uint32_t distinct, uint32_t spread, uint32_t words, outcome* out) {
  follow<path::plain, 1>(table, distinct, spread, words, out);
}
__global__ void __launch_bounds__(threads)
    e5_index_kernel(const uint32_t* table, uint32_t distinct, uint32_t spread, uint32_t words, outcome* out) {
  follow<path::read_only, 4>(table, distinct, spread, words, out);
}

}  // namespace

void e4_constant(bench& b) {
  // In the first constant cache. 256 steps must not be whole rounds of it, or the sum would be the same wherever a
  // chain begins.
  constexpr uint32_t words = 250, step = 9;
  auto upload = [](uint32_t n, uint32_t by) {
    const auto table = table_of(n, by);
    PROBE_CUDA(cudaMemcpyToSymbol(constant_table, table.data(), n * sizeof(uint32_t)));
  };
  upload(words, step);
  for (const uint32_t d : {1u, 2u, 4u, 8u, 16u, 32u}) {
    const auto t = b.cycles(1, [&](outcome* out) { e4_constant_kernel<<<1, threads>>>(d, words, out); });
    b.report("distinct addresses", "e4_constant_kernel", "cycles a request", d,
             t.cycles.scaled(1.0 / (threads / 32 * chains * steps)), t.sum,
             chain_expected(32, d, 1, step, words, chains, steps) * (threads / 32));
  }
  for (uint32_t n = 256; n <= constant_words; n *= 2) {
    upload(n, 16);
    const auto t = b.cycles(1, [&](outcome* out) { e4_working_set_kernel<<<1, 1>>>(n, out); });
    b.report("latency by working set", "e4_working_set_kernel", "cycles", n * 4.0, t.cycles.scaled(1.0 / latency_steps),
             t.sum, chain_expected(1, 1, 1, 16, n, 1, latency_steps));
  }
  parameter_table table{};
  for (uint32_t w = 0; w < 512; ++w) table.next[w] = (w + 16) % 512;
  const auto t = b.cycles(1, [&](outcome* out) { e4_parameter_kernel<<<1, 1>>>(table, out); });
  b.report("latency of a kernel parameter", "e4_parameter_kernel", "cycles", NAN, t.cycles.scaled(1.0 / latency_steps),
           t.sum, chain_expected(1, 1, 1, 16, 512, 1, latency_steps));
}

void e5_read_only(bench& b) {
  // 250 lines, so that 256 steps are no whole rounds here either. A step keeps a lane's place in its line.
  constexpr uint32_t words = 250 * 32, step = 32 * 9;
  const device_array<uint32_t> table(table_of(words, step, 4)), indices(table_of(words, step));
  const double requests = threads / 32 * chains * steps;
  const auto measure = [&](const char* name, uint32_t distinct, uint32_t spread) {
    const uint32_t expected = chain_expected(32, distinct, spread, step, words, chains, steps) * (threads / 32) * 4;
    const auto nc =
        b.cycles(1, [&](outcome* out) { e5_read_only_kernel<<<1, threads>>>(table, distinct, spread, words, out); });
    b.report(std::string(name) + ", read-only", "e5_read_only_kernel", "cycles a request", NAN,
             nc.cycles.scaled(1 / requests), nc.sum, expected);
    const auto ca =
        b.cycles(1, [&](outcome* out) { e5_plain_kernel<<<1, threads>>>(table, distinct, spread, words, out); });
    b.report(std::string(name) + ", plain", "e5_plain_kernel", "cycles a request", NAN, ca.cycles.scaled(1 / requests),
             ca.sum, expected);
  };
  measure("uniform", 1, 1);
  measure("neighbours", 32, 1);
  measure("a line each", 32, 32);
  const auto by_index = b.cycles(1, [&](outcome* out) { e5_index_kernel<<<1, threads>>>(indices, 32, 1, words, out); });
  b.report("neighbours, addresses by multiply-add", "e5_index_kernel", "cycles a request", NAN,
           by_index.cycles.scaled(1 / requests), by_index.sum,
           chain_expected(32, 32, 1, step, words, chains, steps) * (threads / 32));
}

}  // namespace lockstep::probe
