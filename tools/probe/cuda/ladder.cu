// ladder.cu - E10: latency and bandwidth of every space, on one scale.
// Idea    latency: one lane follows a chain whose next address is the value just read;
//         bandwidth: all SMs stream, as wide as the space allows
// Moves   a chain of 128-byte lines, 4 KiB to 1 GiB; streams of one space at a time
// Limit   latency: what the space answers in; bandwidth: its own width
// Watch   a chain that starts again at its first line finds the lines of its last run in
//         the cache, so each run continues where the last one stopped
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

constexpr int line_words = 32, chase_steps = 2048;
constexpr int shuffle_steps = 2064;  // rotations by 3 that do not end where they began

__device__ uint32_t load_cached(const uint32_t* at) {
  uint32_t v;
  asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}
__device__ uint32_t load_past_l1(const uint32_t* at) {
  uint32_t v;
  asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(v) : "l"(at));
  return v;
}
__device__ uint4 load_quad_cached(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.ca.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
  return v;
}
__device__ uint4 load_quad_past_l1(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.cg.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(at));
  return v;
}

// ---- latency ------------------------------------------------------------------

__global__ void setup_lines(uint32_t* words, uint32_t lines) {
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
    words[size_t{i} * line_words] = next_line(i, lines);
}
// Brings a set into the L2, as far as it fits.
__global__ void setup_touch(const uint32_t* words, uint32_t lines, outcome* out) {
  uint32_t sum = 0;
  for (uint32_t i = blockIdx.x * blockDim.x + threadIdx.x; i < lines; i += gridDim.x * blockDim.x)
    sum += load_past_l1(words + size_t{i} * line_words);
  if (sum == 1) out->spare = 1;
}

template <bool l1>
__device__ void follow_lines(const uint32_t* words, uint32_t* place, uint32_t warm, outcome* out) {
  uint32_t at = *place, sum = 0;
  for (uint32_t s = 0; s < warm; ++s)
    at = l1 ? load_cached(words + size_t{at} * line_words) : load_past_l1(words + size_t{at} * line_words);
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < chase_steps; ++s)
    sum += at = l1 ? load_cached(words + size_t{at} * line_words) : load_past_l1(words + size_t{at} * line_words);
  watch.stop(out, sum);
  *place = at;
}
__global__ void e10_cached_chase_kernel(const uint32_t* words, uint32_t* place, uint32_t warm, outcome* out) {
  follow_lines<true>(words, place, warm, out);
}
__global__ void e10_chase_kernel(const uint32_t* words, uint32_t* place, uint32_t warm, outcome* out) {
  follow_lines<false>(words, place, warm, out);
}

__global__ void e10_shared_chase_kernel(uint32_t step, outcome* out) {
  __shared__ uint32_t next[1024];
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(next));
  for (uint32_t w = 0; w < 1024; ++w) next[w] = base + 4 * ((w + step) % 1024);
  uint32_t at = base, sum = 0;
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < chase_steps; ++s) {
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(at) : "r"(at));
    sum += at;
  }
  watch.stop(out, sum - base * chase_steps);
}

__global__ void e10_register_chain_kernel(uint32_t x, uint32_t a, uint32_t c, outcome* out) {
  x += threadIdx.x;  // 0, so that the chain is in a lane's registers and not in uniform ones
  stopwatch watch;
#pragma unroll 32
  for (int s = 0; s < chase_steps; ++s) x = x * a + c;
  watch.stop(out, x);
}

__global__ void e10_shuffle_chain_kernel(uint32_t turn, outcome* out) {
  uint32_t x = threadIdx.x * 7;
  stopwatch watch;
#pragma unroll 16
  for (int s = 0; s < shuffle_steps; ++s) x = __shfl_sync(0xFFFFFFFFu, x, (threadIdx.x + turn) % 32);
  watch.stop(out, x * (threadIdx.x + 1));
}

__constant__ uint32_t small_table[256];  // 1 KiB
__global__ void e10_constant_chase_kernel(outcome* out) {
  uint32_t at = threadIdx.x, sum = 0;  // 0; the compiler must not know that all lanes have it
  for (int s = 0; s < 256; ++s) at = small_table[at];
  stopwatch watch;
#pragma unroll 8
  for (int s = 0; s < chase_steps; ++s) sum += at = small_table[at];
  watch.stop(out, sum);
}

// ---- bandwidth ----------------------------------------------------------------

constexpr int block = 512, unroll = 4;

enum class space { l1, beyond };
// Thread t of all reads quads t, t + threads, ... of `quads` (a power of two) in turn.
template <space where>
__device__ void stream_quads(const uint4* src, uint32_t quads, uint32_t rounds, uint32_t first, uint32_t stride,
                             outcome* out) {
  uint32_t sum = 0;
  stopwatch watch;
  for (uint32_t r = 0; r < rounds; r += unroll) {
    uint4 v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k) {
      const uint4* at = src + ((first + (r + k) * stride) & (quads - 1));
      v[k] = where == space::l1 ? load_quad_cached(at) : load_quad_past_l1(at);
    }
#pragma unroll
    for (int k = 0; k < unroll; ++k) sum += v[k].x + v[k].y + v[k].z + v[k].w;
  }
  watch.stop(out, sum);
}
// Each block goes through the whole small set by itself.
__global__ void __launch_bounds__(block)
    e10_l1_stream_kernel(const uint4* src, uint32_t quads, uint32_t rounds, outcome* out) {
  stream_quads<space::l1>(src, quads, rounds, threadIdx.x, block, out);
}
// All blocks together go through the set.
__global__ void __launch_bounds__(block)
    e10_stream_kernel(const uint4* src, uint32_t quads, uint32_t rounds, outcome* out) {
  stream_quads<space::beyond>(src, quads, rounds, blockIdx.x * block + threadIdx.x, gridDim.x * block, out);
}

__global__ void __launch_bounds__(block) e10_shared_stream_kernel(uint32_t rounds, uint32_t row_step, outcome* out) {
  __shared__ uint4 quads[1024];  // 16 KiB
  for (uint32_t i = threadIdx.x; i < 1024; i += block)
    quads[i] = uint4{word_value(4 * i), word_value(4 * i + 1), word_value(4 * i + 2), word_value(4 * i + 3)};
  const auto base = static_cast<uint32_t>(__cvta_generic_to_shared(quads));
  uint32_t sum = 0;
  stopwatch watch;
#pragma unroll 8
  for (uint32_t r = 0; r < rounds; ++r) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(base + 16 * ((threadIdx.x + r * row_step) & 1023)));
    sum += v.x + v.y + v.z + v.w;
  }
  watch.stop(out, sum);
}

// Eight chains of multiply-adds: three words read a lane and step.
__global__ void __launch_bounds__(1024) e10_register_stream_kernel(float a, float c, uint32_t rounds, outcome* out) {
  float x[8];
#pragma unroll
  for (int k = 0; k < 8; ++k) x[k] = k;
  stopwatch watch;
#pragma unroll 4
  for (uint32_t r = 0; r < rounds; ++r)
#pragma unroll
    for (int k = 0; k < 8; ++k) x[k] = __fmaf_rn(x[k], a, c);
  float sum = 0;
#pragma unroll
  for (int k = 0; k < 8; ++k) sum += x[k];
  watch.stop(out, static_cast<uint32_t>(sum));
}

// The sum of all words of `accesses` reads that go through `quads` quads in turn.
uint32_t stream_expected(uint64_t accesses, uint32_t quads) {
  uint32_t once = 0, rest = 0;
  for (uint32_t i = 0; i < quads; ++i) {
    uint32_t q = 0;
    for (uint32_t w = 0; w < 4; ++w) q += word_value(4 * i + w);
    once += q;
    if (i < accesses % quads) rest += q;
  }
  return static_cast<uint32_t>(accesses / quads) * once + rest;
}

__global__ void setup_values(uint32_t* words, size_t n) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < n; i += size_t{gridDim.x} * blockDim.x)
    words[i] = word_value(static_cast<uint32_t>(i));
}

struct mapped {
  uint32_t *host = nullptr, *device = nullptr;
  explicit mapped(size_t bytes) {
    PROBE_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&host), bytes, cudaHostAllocMapped));
    PROBE_CUDA(cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), host, 0));
  }
  ~mapped() {
    if (cudaFreeHost(host) != cudaSuccess) (void)cudaGetLastError();
  }
  mapped(const mapped&) = delete;
  mapped& operator=(const mapped&) = delete;
};

uint32_t chase_expected(uint32_t from, uint32_t lines, uint32_t warm) {
  uint32_t sum = 0;
  for (uint32_t s = 0; s < warm; ++s) from = next_line(from, lines);
  for (int s = 0; s < chase_steps; ++s) sum += from = next_line(from, lines);
  return sum;
}

// Runs a chain from where it stands and reports cycles a step. The expected sum is that
// of the last launch, from its own start.
template <class Kernel>
void chase(bench& b, const char* name, const char* kernel_name, double x, Kernel* kernel, const uint32_t* words,
           uint32_t lines) {
  const device_array<uint32_t> place(std::vector<uint32_t>{0});
  const uint32_t warm = b.once() ? 0 : lines <= 4096 ? lines : 0;
  uint32_t before = 0;
  const auto t = b.cycles(1, [&](outcome* out) {
    before = place.host()[0];
    kernel<<<1, 1>>>(words, place, warm, out);
  });
  const stats cycles = t.cycles.scaled(1.0 / chase_steps);
  const uint32_t expected = chase_expected(before, lines, warm);
  b.report(name, kernel_name, "cycles", x, cycles, t.sum, expected);
  if (!std::isnan(x)) return;
  b.report(std::string(name) + ", time", "", "ns", x, cycles.scaled(t.nanoseconds_a_cycle), t.sum, expected);
}

void latencies(bench& b) {
  auto simple = [&](const char* name, const char* kernel_name, const bench::block_time& t, uint32_t expected,
                    int steps = chase_steps) {
    const stats cycles = t.cycles.scaled(1.0 / steps);
    b.report(name, kernel_name, "cycles", NAN, cycles, t.sum, expected);
    b.report(std::string(name) + ", time", "", "ns", NAN, cycles.scaled(t.nanoseconds_a_cycle), t.sum, expected);
  };
  uint32_t x = 1;
  for (int s = 0; s < chase_steps; ++s) x = x * 1664525u + 1013904223u;
  simple("latency, register", "e10_register_chain_kernel",
         b.cycles(1, [](outcome* out) { e10_register_chain_kernel<<<1, 1>>>(1, 1664525u, 1013904223u, out); }), x);
  uint32_t turned = 0;
  for (uint32_t lane = 0; lane < 32; ++lane) turned += (lane + shuffle_steps * 3u) % 32 * 7 * (lane + 1);
  simple("latency, shuffle", "e10_shuffle_chain_kernel",
         b.cycles(1, [](outcome* out) { e10_shuffle_chain_kernel<<<1, 32>>>(3, out); }), turned, shuffle_steps);
  uint32_t shared = 0;
  for (uint32_t s = 1; s <= chase_steps; ++s) shared += 4 * (s * 33 % 1024);
  simple("latency, shared", "e10_shared_chase_kernel",
         b.cycles(1, [](outcome* out) { e10_shared_chase_kernel<<<1, 1>>>(33, out); }), shared);
  std::vector<uint32_t> table(256);
  for (uint32_t w = 0; w < 256; ++w) table[w] = (w + 16) % 256;
  PROBE_CUDA(cudaMemcpyToSymbol(small_table, table.data(), sizeof small_table));
  uint32_t constant = 0;
  for (uint32_t s = 1; s <= chase_steps; ++s) constant += s * 16 % 256;
  simple("latency, constant", "e10_constant_chase_kernel",
         b.cycles(1, [](outcome* out) { e10_constant_chase_kernel<<<1, 1>>>(out); }), constant);

  constexpr uint32_t most_lines = 1u << 23;  // 1 GiB
  const device_array<uint32_t> words(size_t{most_lines} * line_words);
  const device_array<outcome> unused(1);
  const auto chain = [&](uint32_t lines) {
    setup_lines<<<b.processors() * 4, 256>>>(words, lines);
    setup_touch<<<b.processors() * 4, 256>>>(words, lines, unused);
  };
  chain(1u << 7);  // 16 KiB
  chase(b, "latency, L1", "e10_cached_chase_kernel", NAN, e10_cached_chase_kernel, words, 1u << 7);
  chain(1u << 15);  // 4 MiB
  chase(b, "latency, L2", "e10_chase_kernel", NAN, e10_chase_kernel, words, 1u << 15);
  chain(most_lines);
  chase(b, "latency, global", "e10_chase_kernel", NAN, e10_chase_kernel, words, most_lines);
  for (uint32_t lines = 32; lines <= most_lines; lines *= 2) {
    chain(lines);
    chase(b, "latency by working set", "e10_cached_chase_kernel", lines * 128.0, e10_cached_chase_kernel, words, lines);
  }
  constexpr uint32_t host_lines = 1u << 17;  // 16 MiB
  const mapped far(size_t{host_lines} * line_words * 4);
  for (uint32_t i = 0; i < host_lines; ++i) far.host[size_t{i} * line_words] = next_line(i, host_lines);
  chase(b, "latency, host", "e10_chase_kernel", NAN, e10_chase_kernel, far.device, host_lines);
}

void bandwidths(bench& b) {
  const int grid = b.processors() * (b.device().maxThreadsPerMultiProcessor / block);
  const auto chip = static_cast<double>(grid) * block;
  const auto report = [&](const char* name, const char* kernel_name, const bench::launch_time& t, double bytes,
                          uint32_t expected) {
    b.report(name, kernel_name, "GB/s", NAN, t.ms.rate(bytes * 1e-6), t.sum, expected);
  };
  {
    constexpr uint32_t rounds = 4096;
    const int blocks = b.processors() * 2;
    const auto t =
        b.milliseconds(blocks, [&](outcome* out) { e10_register_stream_kernel<<<blocks, 1024>>>(1, 1, rounds, out); });
    report("bandwidth, register", "e10_register_stream_kernel", t, 12.0 * 8 * rounds * blocks * 1024,
           (8 * rounds + 28) * static_cast<uint32_t>(blocks) * 1024);
  }
  {
    constexpr uint32_t rounds = 4096;
    const auto t =
        b.milliseconds(grid, [&](outcome* out) { e10_shared_stream_kernel<<<grid, block>>>(rounds, 32, out); });
    // Every block: thread t reads quads t, t + 32, ...: each round another 512 of the 1024.
    uint32_t once = 0;
    for (uint32_t r = 0; r < rounds; ++r)
      for (uint32_t thread = 0; thread < block; ++thread) {
        const uint32_t first = 4 * ((thread + r * 32) & 1023);
        once += 4 * word_value(first) + 6 * (word_value(1) - word_value(0));  // word_value is linear
      }
    report("bandwidth, shared", "e10_shared_stream_kernel", t, 16.0 * rounds * chip,
           once * static_cast<uint32_t>(grid));
  }
  constexpr size_t most_words = size_t{1} << 27;  // 512 MiB
  const device_array<uint32_t> words(most_words);
  setup_values<<<b.processors() * 8, 256>>>(words, most_words);
  const auto* quads = reinterpret_cast<const uint4*>(static_cast<uint32_t*>(words));
  {
    constexpr uint32_t set = 2048, rounds = 2048;  // 32 KiB
    const auto t =
        b.milliseconds(grid, [&](outcome* out) { e10_l1_stream_kernel<<<grid, block>>>(quads, set, rounds, out); });
    report("bandwidth, L1", "e10_l1_stream_kernel", t, 16.0 * rounds * chip,
           stream_expected(uint64_t{rounds} * block, set) * static_cast<uint32_t>(grid));
  }
  const auto stream = [&](const char* name, const uint4* from, uint32_t set, uint64_t quads_read) {
    const auto rounds = static_cast<uint32_t>(quads_read / static_cast<uint64_t>(chip) / unroll * unroll + unroll);
    const auto t =
        b.milliseconds(grid, [&](outcome* out) { e10_stream_kernel<<<grid, block>>>(from, set, rounds, out); });
    report(name, "e10_stream_kernel", t, 16.0 * rounds * chip,
           stream_expected(static_cast<uint64_t>(rounds) * grid * block, set));
  };
  stream("bandwidth, L2", quads, 1u << 20, 1u << 26);      // 16 MiB, 64 times
  stream("bandwidth, global", quads, 1u << 25, 1u << 26);  // 512 MiB, twice
  constexpr size_t host_words = size_t{1} << 24;           // 64 MiB
  const mapped far(host_words * 4);
  for (size_t i = 0; i < host_words; ++i) far.host[i] = word_value(static_cast<uint32_t>(i));
  stream("bandwidth, host", reinterpret_cast<const uint4*>(far.device), host_words / 4, host_words / 4);
}

}  // namespace

void e10_ladder(bench& b) {
  latencies(b);
  bandwidths(b);
}

}  // namespace lockstep::probe
