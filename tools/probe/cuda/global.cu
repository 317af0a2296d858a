// global.cu - global memory: how the addresses of a warp become sectors.
// Idea    E8: one request a warp, its 32 words placed by a pattern; loads that L1 may keep
//         (ld.global.ca) and loads that pass it (ld.global.cg)
// Moves   128 bytes asked a request; sectors of 32 bytes moved, 1 to 32 of them
// Limit   L2 (16 MiB, resident) or DRAM (512 MiB, more than four times the L2)
// Watch   a neighbouring warp may find in the cache what this one had to fetch in part:
//         sectors a request and bytes from DRAM are two questions. Addresses advance by
//         additions of 32 bits, because longer code would be the limit in place of the L2
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

// words is a power of two; a request's base moves on by row words and wraps. Each warp
// makes `rounds` requests, a multiple of `unroll`.
struct request_shape {
  pattern kind;
  uint32_t value, row, words, rounds;
};

__host__ __device__ uint32_t base_word(const request_shape& s, uint32_t request) {
  return (request * s.row) & (s.words - 1);
}

template <bool keep_in_l1, bool scattered>
__device__ void read_requests(const uint32_t* src, const request_shape& s, outcome* out) {
  const uint32_t warps = gridDim.x * (block / 32), warp = blockIdx.x * (block / 32) + threadIdx.x / 32,
                 lane = threadIdx.x % 32;
  const uint32_t first = lane_word(s.kind, s.value, lane);
  const auto* mine = reinterpret_cast<const unsigned char*>(src + first);
  const uint32_t mask = s.words * 4 - 1, step = warps * s.row * 4, lines = s.words / 32, group = s.value;
  uint32_t sum = 0, at = base_word(s, warp) * 4, request = warp;  // at: bytes from mine
  stopwatch watch;
#pragma unroll 1
  for (uint32_t r = 0; r < s.rounds; r += unroll) {
    uint32_t v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k) {
      v[k] = load_word<keep_in_l1>(scattered ? src + scattered_word(request, lane, lines, group)
                                             : reinterpret_cast<const uint32_t*>(mine + at));
      at = (at + step) & mask;
      request += warps;
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

uint32_t expected_sum(const request_shape& s, uint32_t requests) {
  uint32_t words = 0;
  if (s.kind == pattern::scattered) {
    for (uint32_t r = 0; r < requests; ++r)
      for (uint32_t lane = 0; lane < 32; ++lane) words += scattered_word(r, lane, s.words / 32, s.value);
  } else {
    for (uint32_t lane = 0; lane < 32; ++lane) words += lane_word(s.kind, s.value, lane);
    words *= requests;
    for (uint32_t r = 0; r < requests; ++r) words += 32 * base_word(s, r);
  }
  return words * (word_value(1) - word_value(0)) + requests * 32 * word_value(0);  // word_value is linear
}

// Bytes that the L2 fetches from DRAM at once, as this process asks for; back to what it was at the end.
class fetches {
 public:
  fetches() { PROBE_CUDA(cudaDeviceGetLimit(&before_, cudaLimitMaxL2FetchGranularity)); }
  ~fetches() {
    if (cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, before_) != cudaSuccess) (void)cudaGetLastError();
  }
  fetches(const fetches&) = delete;
  fetches& operator=(const fetches&) = delete;
  size_t before() const { return before_; }
  bool ask(size_t bytes) const {  // it is a hint: true where the device takes it
    size_t now = 0;
    if (cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, bytes) != cudaSuccess)
      return (void)cudaGetLastError(), false;
    return cudaDeviceGetLimit(&now, cudaLimitMaxL2FetchGranularity) == cudaSuccess && now == bytes;
  }

 private:
  size_t before_ = 0;
};

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
  const uint32_t warps = static_cast<uint32_t>(blocks) * (block / 32);
  // About `requests` of them: each warp makes the same number.
  const auto measure = [&](const std::string& name, double x, bool keep_in_l1, request_shape s, uint32_t requests) {
    const uint32_t once = warps * unroll;
    s.rounds = std::max<uint32_t>(1, (requests + once / 2) / once) * unroll;
    const bool scattered = s.kind == pattern::scattered;
    const choice c = keep_in_l1  ? scattered ? choice{e8_cached_scattered_kernel, "e8_cached_scattered_kernel"}
                                             : choice{e8_cached_kernel, "e8_cached_kernel"}
                      : scattered ? choice{e8_uncached_scattered_kernel, "e8_uncached_scattered_kernel"}
                                 : choice{e8_uncached_kernel, "e8_uncached_kernel"};
    const auto t = b.milliseconds(blocks, [&](outcome* out) { c.kernel<<<blocks, block>>>(src, s, out); });
    b.report(name, c.name, "GB/s", x, t.ms.rate(128e-6 * s.rounds * warps), t.sum, expected_sum(s, s.rounds * warps));
  };
  // From L2, passing L1: time goes with the sectors that L2 delivers.
  const uint32_t many = 1u << 22, few = 1u << 20;  // 512 and 128 MiB asked
  for (const bool l1 : {false, true}) {
    const std::string how = l1 ? ", L1" : ", no L1";
    const auto near = [&](const char* name, pattern kind, uint32_t value, uint32_t row, uint32_t requests) {
      measure(name + how, NAN, l1, {kind, value, row, near_words, 0}, requests);
    };
    near("aligned", pattern::stride, 1, 32, many);
    near("permuted", pattern::permuted, 0, 32, many);
    near("offset 1", pattern::offset, 1, 32, many);
    near("offset 8", pattern::offset, 8, 32, many);
    near("one address", pattern::broadcast, 0, 32, many);
    near("stride 2", pattern::stride, 2, 64, many);
    near("scattered", pattern::scattered, 1, 32, few);
    near("scattered pairs of sectors", pattern::scattered, 2, 32, few);
    near("scattered whole lines", pattern::scattered, 4, 32, few);
  }
  // From DRAM: the classic curves.
  const fetches l2;
  b.fact("l2_fetch_bytes", static_cast<double>(l2.before()), "B");
  const auto offset = [&](const std::string& name, uint32_t k) {
    measure(name, k, true, {pattern::offset, k, 32, far_words, 0}, far_words / 32);
  };
  const auto stride = [&](const std::string& name, uint32_t k) {
    measure(name, k, true, {pattern::stride, k, 32 * k, far_words, 0}, far_words / (32 * k));
  };
  for (uint32_t k = 0; k <= 32; ++k) offset("offset", k);
  for (const uint32_t k : {1u, 2u, 3u, 4u, 6u, 8u, 12u, 16u, 24u, 32u, 64u}) stride("stride", k);
  for (const size_t bytes : {size_t{32}, size_t{128}}) {
    if (!l2.ask(bytes)) continue;
    const std::string how = ", fetches of " + std::to_string(bytes) + " bytes";
    for (const uint32_t k : {0u, 1u, 8u, 16u, 24u, 31u}) offset("offset" + how, k);
    for (const uint32_t k : {1u, 8u, 16u, 32u, 64u}) stride("stride" + how, k);
  }
}

}  // namespace lockstep::probe
