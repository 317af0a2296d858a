// global.cu - global memory: how the addresses of a warp become sectors.
// Idea    E8: one request a warp, its 32 words placed by a pattern; loads that L1 may keep
//         (ld.global.ca) and loads that pass it (ld.global.cg)
// Moves   128 bytes asked a request; sectors of 32 bytes moved, 1 to 32 of them
// Limit   L2 (16 MiB, resident) or DRAM (512 MiB, more than four times the L2)
// Watch   a neighbouring warp may find in the cache what this one had to fetch in part:
//         sectors a request and bytes from DRAM are two questions
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

constexpr int block = 256, unroll = 8;
constexpr uint32_t slack_words = 4096;  // patterns reach beyond their base

__global__ void setup_words(uint32_t* words, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    words[i] = word_value(static_cast<uint32_t>(i));
}

template <bool keep_in_l1>
__device__ uint32_t load_word(const uint32_t* at) {
  uint32_t value;
  if constexpr (keep_in_l1)
    asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(value) : "l"(at));
  else
    asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(value) : "l"(at));
  return value;
}

// words is a power of two; a request's base moves on by row words and wraps.
struct request_shape {
  pattern kind;
  uint32_t value, row, words, requests;
};

__host__ __device__ uint32_t base_word(const request_shape& s, uint32_t request) {
  return (request * s.row) & (s.words - 1);
}

template <bool keep_in_l1, bool scattered>
__device__ void read_requests(const uint32_t* src, const request_shape& s, outcome* out) {
  const uint32_t warps = gridDim.x * (block / 32), warp = blockIdx.x * (block / 32) + threadIdx.x / 32,
                 lane = threadIdx.x % 32;
  const uint32_t* mine =
      src + lane_word(s.kind, s.value, lane);  // out of the loop: address arithmetic must not be the limit
  uint32_t sum = 0;
  stopwatch watch;
  for (uint32_t first = warp; first < s.requests; first += warps * unroll) {
    uint32_t v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k) {
      const uint32_t request = first + k * warps;
      const uint32_t* at = scattered ? src + scattered_word(request, lane, s.words / 32) : mine + base_word(s, request);
      v[k] = request < s.requests ? load_word<keep_in_l1>(at) : 0;
    }
#pragma unroll
    for (int k = 0; k < unroll; ++k) sum += v[k];
  }
  watch.stop(out, sum);
}
__global__ void __launch_bounds__(block) e8_cached_kernel(const uint32_t* src, request_shape s, outcome* out) {
  read_requests<true, false>(src, s, out);
}
__global__ void __launch_bounds__(block) e8_uncached_kernel(const uint32_t* src, request_shape s, outcome* out) {
  read_requests<false, false>(src, s, out);
}
__global__ void __launch_bounds__(block)
    e8_cached_scattered_kernel(const uint32_t* src, request_shape s, outcome* out) {
  read_requests<true, true>(src, s, out);
}
__global__ void __launch_bounds__(block)
    e8_uncached_scattered_kernel(const uint32_t* src, request_shape s, outcome* out) {
  read_requests<false, true>(src, s, out);
}

uint32_t expected_sum(const request_shape& s) {
  uint32_t words = 0;
  if (s.kind == pattern::scattered) {
    for (uint32_t r = 0; r < s.requests; ++r)
      for (uint32_t lane = 0; lane < 32; ++lane) words += scattered_word(r, lane, s.words / 32);
  } else {
    for (uint32_t lane = 0; lane < 32; ++lane) words += lane_word(s.kind, s.value, lane);
    words *= s.requests;
    for (uint32_t r = 0; r < s.requests; ++r) words += 32 * base_word(s, r);
  }
  return words * (word_value(1) - word_value(0)) + s.requests * 32 * word_value(0);  // word_value is linear
}

}  // namespace

void e8_coalescing(bench& b) {
  constexpr uint32_t far_words = 1u << 27, near_words = 1u << 22;  // 512 MiB, 16 MiB
  const device_array<uint32_t> src(size_t{far_words} + slack_words);
  setup_words<<<b.processors() * 8, 256>>>(src, src.size());
  PROBE_CUDA(cudaDeviceSynchronize());
  const int blocks = b.processors() * (b.device().maxThreadsPerMultiProcessor / block);

  struct choice {
    void (*kernel)(const uint32_t*, request_shape, outcome*);
    const char* name;
  };
  const auto measure = [&](const std::string& name, double x, bool keep_in_l1, request_shape s) {
    const bool scattered = s.kind == pattern::scattered;
    const choice c = keep_in_l1  ? scattered ? choice{e8_cached_scattered_kernel, "e8_cached_scattered_kernel"}
                                             : choice{e8_cached_kernel, "e8_cached_kernel"}
                      : scattered ? choice{e8_uncached_scattered_kernel, "e8_uncached_scattered_kernel"}
                                 : choice{e8_uncached_kernel, "e8_uncached_kernel"};
    const auto t = b.milliseconds(blocks, [&](outcome* out) { c.kernel<<<blocks, block>>>(src, s, out); });
    b.report(name, c.name, "GB/s", x, t.ms.rate(128e-6 * s.requests), t.sum, expected_sum(s));
  };
  // From L2, passing L1: time goes with the sectors that L2 delivers.
  const uint32_t many = 1u << 22, few = 1u << 20;  // 512 and 128 MiB asked
  for (const bool l1 : {false, true}) {
    const std::string how = l1 ? ", L1" : ", no L1";
    measure("aligned" + how, NAN, l1, {pattern::stride, 1, 32, near_words, many});
    measure("permuted" + how, NAN, l1, {pattern::permuted, 0, 32, near_words, many});
    measure("offset 1" + how, NAN, l1, {pattern::offset, 1, 32, near_words, many});
    measure("offset 8" + how, NAN, l1, {pattern::offset, 8, 32, near_words, many});
    measure("one address" + how, NAN, l1, {pattern::broadcast, 0, 32, near_words, many});
    measure("stride 2" + how, NAN, l1, {pattern::stride, 2, 64, near_words, many});
    measure("scattered" + how, NAN, l1, {pattern::scattered, 0, 32, near_words, few});
  }
  // From DRAM: the classic curves.
  for (uint32_t k = 0; k <= 32; ++k) measure("offset", k, true, {pattern::offset, k, 32, far_words, far_words / 32});
  for (const uint32_t k : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u, 32u})
    measure("stride", k, true, {pattern::stride, k, 32 * k, far_words, far_words / (32 * k)});
}

}  // namespace lockstep::probe
