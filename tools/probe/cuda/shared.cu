// shared.cu - shared memory: static and dynamic, bank conflicts, element sizes, atomics.
// Idea    E3: every lane follows a chain through one table, next[w] = w + step: adding the
//         same step to all lanes rotates the banks but keeps the conflicts of the pattern
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

// warp_shift: words by which each warp's pattern lies behind the one before.
__device__ void chase_words(pattern kind, uint32_t value, uint32_t warp_shift, outcome* out) {
  __shared__ uint32_t next[table_words];
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(next));
  for (uint32_t w = threadIdx.x; w < table_words; w += threads) next[w] = base + 4 * ((w + step) % table_words);
  uint32_t at[chains];
#pragma unroll
  for (int c = 0; c < chains; ++c)
    at[c] =
        base + 4 * ((lane_word(kind, value, threadIdx.x % 32) + threadIdx.x / 32 * warp_shift + 8 * c) % table_words);
  uint32_t sum = 0;
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < steps; ++s)
#pragma unroll
    for (int c = 0; c < chains; ++c) {
      const uint32_t next = load_shared(at[c]);
      sum += next;
      at[c] = next;
    }
  watch.stop(out, sum - base * (steps * chains));
}
__global__ void __launch_bounds__(threads) e3_banks_kernel(pattern kind, uint32_t value, outcome* out) {
  chase_words(kind, value, 0, out);
}
__global__ void __launch_bounds__(threads)
    e12_warps_kernel(pattern kind, uint32_t value, uint32_t warp_shift, outcome* out) {
  chase_words(kind, value, warp_shift, out);
}

uint32_t chase_expected(pattern kind, uint32_t value, uint32_t warp_shift) {
  uint32_t sum = 0;
  for (uint32_t warp = 0; warp < threads / 32; ++warp)
    for (uint32_t lane = 0; lane < 32; ++lane)
      for (int c = 0; c < chains; ++c)
        for (int s = 1; s <= steps; ++s)
          sum += 4 * ((lane_word(kind, value, lane) + warp * warp_shift + 8 * c + step * s) % table_words);
  return sum;
}

// ---- E12: elements of 1 to 16 bytes, lanes side by side ---------------------

constexpr int element_steps = 512;

__device__ uint32_t load_element(uint32_t at, uint8_t) {
  uint32_t v;
  asm volatile("ld.shared.u8 %0, [%1];" : "=r"(v) : "r"(at));
  return v;
}
__device__ uint32_t load_element(uint32_t at, uint16_t) {
  uint16_t v;
  asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(at));
  return v;
}
__device__ uint32_t load_element(uint32_t at, uint32_t) { return load_shared(at); }
__device__ uint32_t load_element(uint32_t at, uint2) {
  uint2 v;
  asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(v.x), "=r"(v.y) : "r"(at));
  return v.x + v.y;
}
__device__ uint32_t load_element(uint32_t at, uint4) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(at));
  return v.x + v.y + v.z + v.w;
}

constexpr uint32_t element_rows = 32, group = 16;  // rows of 32 elements; loads at fixed offsets from one address

// Almost no address arithmetic, because a cycle has only two integer instructions.
template <class T>
__global__ void __launch_bounds__(threads) e12_elements_kernel(uint32_t row_step, outcome* out) {
  constexpr auto row = static_cast<uint32_t>(32 * sizeof(T));
  __shared__ alignas(16) unsigned char data[(element_rows + group) * row];
  for (uint32_t i = threadIdx.x; i < sizeof data; i += threads) data[i] = static_cast<unsigned char>(i * 7 + (i >> 8));
  const auto base =
      static_cast<uint32_t>(__cvta_generic_to_shared(data)) + threadIdx.x % 32 * static_cast<uint32_t>(sizeof(T));
  uint32_t sum = 0;
  stopwatch watch;
#pragma unroll 2
  for (uint32_t s = 0; s < element_steps / group; ++s) {
    const uint32_t at = base + s * row_step % element_rows * row;
#pragma unroll
    for (uint32_t k = 0; k < group; ++k) sum += load_element(at + k * row, T{});
  }
  watch.stop(out, sum);
}

template <class T>
uint32_t elements_expected(uint32_t row_step) {
  std::vector<unsigned char> data((element_rows + group) * 32 * sizeof(T));
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + (i >> 8));
  uint32_t sum = 0;
  for (uint32_t s = 0; s < element_steps / group; ++s)
    for (uint32_t k = 0; k < group; ++k)
      for (size_t lane = 0; lane < 32; ++lane) {
        const unsigned char* at = data.data() + ((s * row_step % element_rows + k) * 32 + lane) * sizeof(T);
        for (size_t w = 0; w < sizeof(T); w += 4)  // words, or the one narrower element
          for (size_t b = 0; b < std::min<size_t>(4, sizeof(T)); ++b)
            sum += static_cast<uint32_t>(at[w + b]) << (8 * b);
      }
  return sum * (threads / 32);
}

// ---- E12: shared atomics ------------------------------------------------------

constexpr int atomic_steps = 256;

// add == 1, known to the compiler: an increment; otherwise a value of the lane's own,
// whose old value is used.
template <bool increment>
__global__ void __launch_bounds__(threads) e12_atomics_kernel(pattern kind, uint32_t value, outcome* out) {
  __shared__ uint32_t counters[64];
  if (threadIdx.x < 64) counters[threadIdx.x] = 0;
  uint32_t* mine = &counters[lane_word(kind, value, threadIdx.x % 32)];
  uint32_t most = 0;
  stopwatch watch;
#pragma unroll 4
  for (int s = 0; s < atomic_steps; ++s) {
    if constexpr (increment)
      atomicAdd(mine, 1u);
    else
      most = max(most, atomicAdd(mine, threadIdx.x % 32));
  }
  __syncthreads();                                 // the whole block: every count is in
  const uint32_t impossible = most > 0xF0000000u;  // keeps the old values in use
  watch.stop(out, impossible + (threadIdx.x < 64 ? counters[threadIdx.x] * (threadIdx.x + 1) : 0));
}

uint32_t atomics_expected(bool increment, pattern kind, uint32_t value) {
  uint32_t sum = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) sum += (increment ? 1 : lane) * (lane_word(kind, value, lane) + 1);
  return sum * (threads / 32) * atomic_steps;
}

// ---- E2: the size known when compiled, and the third launch parameter ----------

constexpr uint32_t e2_words = 8192;

// Writes the words, reads them in reverse order, as often as there are steps.
__device__ void reverse_words(uint32_t* words, int rounds, outcome* out) {
  uint32_t sum = 0;
  stopwatch watch;
  for (int r = 0; r < rounds; ++r) {
    for (uint32_t w = threadIdx.x; w < e2_words; w += threads) words[w] = word_value(w + r);
    __syncthreads();  // the whole block: read what others wrote
    for (uint32_t w = threadIdx.x; w < e2_words; w += threads) sum += words[e2_words - 1 - w] * (w + 1);
    __syncthreads();  // the whole block: all have read before the next round
  }
  watch.stop(out, sum);
}
__global__ void __launch_bounds__(threads) e2_static_kernel(int rounds, outcome* out) {
  __shared__ uint32_t words[e2_words];
  reverse_words(words, rounds, out);
}
__global__ void __launch_bounds__(threads) e2_dynamic_kernel(int rounds, outcome* out) {
  extern __shared__ uint32_t words_of_launch[];
  reverse_words(words_of_launch, rounds, out);
}

}  // namespace

void e3_banks(bench& b) {
  const auto measure = [&](const std::string& name, double x, pattern kind, uint32_t value) {
    const auto t = b.cycles(1, [&](outcome* out) { e3_banks_kernel<<<1, threads>>>(kind, value, out); });
    b.report(name, "e3_banks_kernel", "cycles a request", x, t.cycles.scaled(1.0 / (threads / 32 * chains * steps)),
             t.sum, chase_expected(kind, value, 0));
  };
  measure("permuted in a row", NAN, pattern::permuted, 0);
  measure("all lanes one word", NAN, pattern::broadcast, 0);
  measure("groups of 4 lanes one word", NAN, pattern::multicast, 4);
  for (uint32_t s = 1; s <= 34; ++s) measure("stride", s, pattern::stride, s);
}

void e12_elements(bench& b) {
  const auto a_request = [](const stats& cycles, int requests) {
    return cycles.scaled(1.0 / (threads / 32 * requests));
  };
  const auto elements = [&]<class T>(const char* name, T) {
    const auto t = b.cycles(1, [](outcome* out) { e12_elements_kernel<T><<<1, threads>>>(3, out); });
    b.report(name, "e12_elements_kernel", "cycles a request", NAN, a_request(t.cycles, element_steps), t.sum,
             elements_expected<T>(3));
  };
  elements("elements of 1 byte", uint8_t{});
  elements("elements of 2 bytes", uint16_t{});
  elements("elements of 4 bytes", uint32_t{});
  elements("elements of 8 bytes", uint2{});
  elements("elements of 16 bytes", uint4{});
  for (const uint32_t shift : {0u, 1u, 32u}) {
    const auto t = b.cycles(1, [&](outcome* out) { e12_warps_kernel<<<1, threads>>>(pattern::stride, 1, shift, out); });
    b.report("warps shifted by words", "e12_warps_kernel", "cycles a request", shift,
             a_request(t.cycles, chains * steps), t.sum, chase_expected(pattern::stride, 1, shift));
  }
  const auto atomics = [&](const char* name, bool increment, pattern kind, uint32_t value) {
    const auto t = b.cycles(1, [&](outcome* out) {
      increment ? e12_atomics_kernel<true><<<1, threads>>>(kind, value, out)
                : e12_atomics_kernel<false><<<1, threads>>>(kind, value, out);
    });
    b.report(name, "e12_atomics_kernel", "cycles a request", NAN, a_request(t.cycles, atomic_steps), t.sum,
             atomics_expected(increment, kind, value));
  };
  atomics("increment one counter", true, pattern::broadcast, 0);
  atomics("increment a counter a lane", true, pattern::stride, 1);
  atomics("add to one counter", false, pattern::broadcast, 0);
  atomics("add to a counter a lane", false, pattern::stride, 1);
}

void e2_static_dynamic(bench& b) {
  constexpr int rounds = 64;
  uint32_t expected = 0;
  for (int r = 0; r < rounds; ++r)
    for (uint32_t w = 0; w < e2_words; ++w) expected += word_value(e2_words - 1 - w + r) * (w + 1);
  const size_t bytes = e2_words * sizeof(uint32_t);
  const auto s = b.cycles(1, [&](outcome* out) { e2_static_kernel<<<1, threads>>>(rounds, out); });
  b.report("static", "e2_static_kernel", "cycles", NAN, s.cycles, s.sum, expected);
  const auto d = b.cycles(1, [&](outcome* out) { e2_dynamic_kernel<<<1, threads, bytes>>>(rounds, out); });
  b.report("dynamic", "e2_dynamic_kernel", "cycles", NAN, d.cycles, d.sum, expected);
  cudaFuncAttributes a{};
  PROBE_CUDA(cudaFuncGetAttributes(&a, e2_static_kernel));
  b.fact("static bytes", static_cast<double>(a.sharedSizeBytes), "B");
  PROBE_CUDA(cudaFuncGetAttributes(&a, e2_dynamic_kernel));
  b.fact("static bytes of the dynamic kernel", static_cast<double>(a.sharedSizeBytes), "B");
  // Beyond 48 KiB a launch is refused until the kernel has opted in.
  const device_array<outcome> out(1);
  PROBE_CUDA(cudaMemset(out, 0, sizeof(outcome)));
  const size_t most = b.device().sharedMemPerBlockOptin;
  e2_dynamic_kernel<<<1, threads, 48 * 1024 + 4>>>(1, out);
  b.fact("48 KiB and 4 bytes without opting in", cudaGetLastError() == cudaSuccess ? 1 : 0, "launched");
  PROBE_CUDA(
      cudaFuncSetAttribute(e2_dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(most)));
  const auto optin = b.cycles(1, [&](outcome* o) { e2_dynamic_kernel<<<1, threads, most>>>(rounds, o); });
  b.report("all that a block may have", "e2_dynamic_kernel", "cycles", NAN, optin.cycles, optin.sum, expected);
  PROBE_CUDA(cudaFuncSetAttribute(e2_dynamic_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 48 * 1024));
}

}  // namespace lockstep::probe
