// measure.cu - times launches with device events, and the limits that results are
// fractions of: of memory, of the link, of arithmetic.
// Idea    a kernel that waits for a host flag holds the stream while launches and
//         events are queued behind it, so that a sample holds no launch gap (as
//         NVBench does); cold samples overwrite four times the L2 in between
// Moves   copy: bytes / 2 read, bytes / 2 written; read: bytes; each once; fma: nothing
// Limit   the limit of a size is the best of several kernels and cudaMemcpyAsync
// Watch   a launcher that synchronises would wait for the held stream for ever:
//         the hold gives up after a second, and samples that were queued too late
//         are taken again, then refused
// Source  measured on one H200, driver 580.159: tests/results
#include <algorithm>
#include <cfenv>
#include <chrono>
#include <cmath>
#include <cstring>
#include <vector>

#include "measure.hpp"

namespace lockstep::cuda {
namespace {

constexpr int block = 256;

__global__ void measure_hold(const volatile unsigned* go) {
  const auto clock = [] {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  };
  for (const unsigned long long begin = clock(); *go == 0 && clock() - begin < 1000000000ull;) __nanosleep(1000);
}

__global__ void measure_empty() {}

// unroll independent 16-byte loads per thread in flight before the first store.
template <int unroll>
__global__ void __launch_bounds__(block)
    measure_copy(const uint4* __restrict__ src, uint4* __restrict__ dst, size_t n) {
  const size_t step = static_cast<size_t>(gridDim.x) * block * unroll;
  for (size_t base = (static_cast<size_t>(blockIdx.x) * unroll) * block + threadIdx.x; base < n; base += step) {
    uint4 v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (base + k * block < n) v[k] = src[base + k * block];
#pragma unroll
    for (int k = 0; k < unroll; ++k)
      if (base + k * block < n) dst[base + k * block] = v[k];
  }
}

template <int unroll>
__global__ void __launch_bounds__(block) measure_read(const uint4* __restrict__ src, size_t n, unsigned* sink) {
  unsigned total = 0;
  const size_t step = static_cast<size_t>(gridDim.x) * block * unroll;
  for (size_t base = (static_cast<size_t>(blockIdx.x) * unroll) * block + threadIdx.x; base < n; base += step) {
    uint4 v[unroll];
#pragma unroll
    for (int k = 0; k < unroll; ++k) v[k] = base + k * block < n ? src[base + k * block] : uint4{};
#pragma unroll
    for (int k = 0; k < unroll; ++k) total ^= v[k].x ^ v[k].y ^ v[k].z ^ v[k].w;
  }
  if (total == 0x9e3779b9u) *sink = total;  // never (almost): keeps the loads
}

// Chains of x = fma(x, factor, addend) that the host has followed too, fma_steps a round,
// every round from the same start. Inline PTX would be no shorter: the empty asm hides
// from the compiler that x is what it was a round ago.
constexpr int fma_steps = 512;
constexpr double fma_factor = 0.9995, fma_addend = 0.3;
template <class T, int chains>
struct fma_values {
  T start[chains], want[chains];
};
__device__ __forceinline__ void hide(float& x) { asm volatile("" : "+f"(x)); }
__device__ __forceinline__ void hide(double& x) { asm volatile("" : "+d"(x)); }
__device__ __forceinline__ float fused(float x, float a, float c) { return __fmaf_rn(x, a, c); }
__device__ __forceinline__ double fused(double x, double a, double c) { return __fma_rn(x, a, c); }

template <class T, int chains>
__global__ void __launch_bounds__(block)
    measure_fma(const __grid_constant__ fma_values<T, chains> values, T a, T c, int64_t rounds, unsigned* wrong) {
  bool right = true;
  for (; rounds > 0; --rounds) {
    T x[chains];
#pragma unroll
    for (int k = 0; k < chains; ++k) hide(x[k] = values.start[k]);
#pragma unroll 32
    for (int step = 0; step < fma_steps; ++step)
#pragma unroll
      for (int k = 0; k < chains; ++k) x[k] = fused(x[k], a, c);
#pragma unroll
    for (int k = 0; k < chains; ++k) right &= x[k] == values.want[k];
  }
  if (!right) atomicAdd(wrong, 1u);
}

// What one measurement holds; everything goes back at its end.
class session {
 public:
  explicit session(lockstep_queue& queue) : queue_(queue) {}
  ~session() {
    if (go_ != nullptr) *go_ = 1;
    (void)cudaStreamSynchronize(queue_.stream);
    for (cudaEvent_t e : {begin_, end_})
      if (e != nullptr) (void)cudaEventDestroy(e);
    for (void* p : device_) (void)cudaFree(p);
    for (void* p : pinned_) (void)cudaFreeHost(p);
    if (side_ != nullptr) (void)cudaStreamDestroy(side_);
    (void)cudaGetLastError();
  }
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  lockstep_status open(uint32_t flags) {
    // Another program's kernels (torch.compile's do) may have asked the L2 to keep lines, which leaves less of it.
    if (queue_.facts->major >= 8) LOCKSTEP_CUDA(cudaCtxResetPersistingL2Cache());
    LOCKSTEP_CUDA(cudaHostAlloc(reinterpret_cast<void**>(&go_), sizeof *go_, cudaHostAllocMapped));
    pinned_.push_back(go_);
    LOCKSTEP_CUDA(cudaHostGetDevicePointer(reinterpret_cast<void**>(&go_device_), go_, 0));
    LOCKSTEP_CUDA(cudaEventCreate(&begin_));
    LOCKSTEP_CUDA(cudaEventCreate(&end_));
    if ((flags & LOCKSTEP_COLD) != 0) {
      evict_bytes_ = static_cast<size_t>(queue_.facts->l2_bytes) * 4;
      if (const lockstep_status s = device(evict_bytes_, &evict_); s != LOCKSTEP_OK) return s;
    }
    return LOCKSTEP_OK;
  }
  lockstep_status device(size_t bytes, void** pointer) {
    LOCKSTEP_CUDA(cudaMalloc(pointer, bytes));
    device_.push_back(*pointer);
    return LOCKSTEP_OK;
  }
  lockstep_status pinned(size_t bytes, void** pointer) {
    LOCKSTEP_CUDA(cudaHostAlloc(pointer, bytes, cudaHostAllocDefault));
    pinned_.push_back(*pointer);
    return LOCKSTEP_OK;
  }
  lockstep_status side_stream(cudaStream_t* stream) {
    if (side_ == nullptr) LOCKSTEP_CUDA(cudaStreamCreateWithFlags(&side_, cudaStreamNonBlocking));
    *stream = side_;
    return LOCKSTEP_OK;
  }

  // body() enqueues one run on the queue's stream.
  template <class Body>
  lockstep_status samples(int32_t count, double* ms, const Body& body) {
    if (const lockstep_status s = body(); s != LOCKSTEP_OK) return s;  // warm-up: modules load here
    LOCKSTEP_CUDA(cudaEventRecord(begin_, queue_.stream));
    if (const lockstep_status s = body(); s != LOCKSTEP_OK) return s;
    LOCKSTEP_CUDA(cudaEventRecord(end_, queue_.stream));
    LOCKSTEP_CUDA(cudaStreamSynchronize(queue_.stream));
    float once = 0;
    LOCKSTEP_CUDA(cudaEventElapsedTime(&once, begin_, end_));
    // Hot: runs back to back for 0.2 ms, so that the events' own time vanishes. Each sample is queued behind a kernel
    // that holds the stream, and waited for, as peers' samples are: without pauses the device becomes slower.
    const int runs = evict_ != nullptr ? 1 : std::clamp(static_cast<int>(0.2 / std::max(once, 1e-3f)), 1, 50);
    for (int32_t i = 0, tries = 0; i < count;) {
      *static_cast<volatile unsigned*>(go_) = 0;
      lockstep_status status = launch(queue_, "measure_hold", measure_hold, dim3(1), dim3(1), 0, go_device_);
      cudaError_t code = cudaSuccess;
      if (evict_ != nullptr) code = cudaMemsetAsync(evict_, i, evict_bytes_, queue_.stream);
      if (code == cudaSuccess) code = cudaEventRecord(begin_, queue_.stream);
      for (int run = 0; run < runs && status == LOCKSTEP_OK && code == cudaSuccess; ++run) status = body();
      if (code == cudaSuccess) code = cudaEventRecord(end_, queue_.stream);
      if (status == LOCKSTEP_OK && code != cudaSuccess) status = failed(code, "a sample's events");
      // While the stream is held no event of it has passed: then everything was queued in time.
      const cudaError_t passed = status == LOCKSTEP_OK ? cudaEventQuery(begin_) : cudaErrorNotReady;
      *static_cast<volatile unsigned*>(go_) = 1;
      LOCKSTEP_CUDA(cudaStreamSynchronize(queue_.stream));
      if (status != LOCKSTEP_OK) return status;
      if (passed == cudaSuccess) {
        if (++tries == 3)
          return failed(LOCKSTEP_BACKEND_FAILED,
                        "queueing %d calls took the host more than a second, three times: their times would hold its "
                        "waits; measure again when the machine is less busy",
                        runs);
        continue;
      }
      if (passed != cudaErrorNotReady) return failed(passed, "a sample's first event");
      float t = 0;
      LOCKSTEP_CUDA(cudaEventElapsedTime(&t, begin_, end_));
      ms[i] = t / runs;
      ++i, tries = 0;
    }
    return LOCKSTEP_OK;
  }

  // Times body and keeps the samples, times scale, when their median is the best so far.
  template <class Body>
  lockstep_status consider(int32_t count, double* ms, double scale, const Body& body) {
    std::vector<double> taken(static_cast<size_t>(count));
    if (const lockstep_status s = samples(count, taken.data(), body); s != LOCKSTEP_OK) return s;
    for (double& one : taken) one *= scale;
    std::vector<double> sorted = taken;
    std::nth_element(sorted.begin(), sorted.begin() + count / 2, sorted.end());
    const double median = sorted[static_cast<size_t>(count / 2)];
    if (best_ >= 0 && median >= best_) return LOCKSTEP_OK;
    best_ = median;
    std::copy(taken.begin(), taken.end(), ms);
    return LOCKSTEP_OK;
  }

 private:
  lockstep_queue& queue_;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  std::vector<void*> device_, pinned_;
  cudaStream_t side_ = nullptr;
  unsigned *go_ = nullptr, *go_device_ = nullptr;
  void* evict_ = nullptr;
  size_t evict_bytes_ = 0;
  double best_ = -1;
};

lockstep_status limit_copy(lockstep_queue& queue, session& s, size_t bytes, int32_t samples, double* ms) {
  void *src = nullptr, *dst = nullptr;
  const size_t half = std::max<size_t>(bytes / 2 / 16, 1) * 16, n = half / 16;
  if (const lockstep_status e = s.device(half, &src); e != LOCKSTEP_OK) return e;
  if (const lockstep_status e = s.device(half, &dst); e != LOCKSTEP_OK) return e;
  LOCKSTEP_CUDA(cudaMemsetAsync(src, 0x5a, half, queue.stream));
  const auto by_kernel = [&](auto* kernel, int unroll, int waves) {
    const size_t tiles = (n + static_cast<size_t>(block) * unroll - 1) / (static_cast<size_t>(block) * unroll);
    const auto full = static_cast<size_t>(queue.facts->processors) * (queue.facts->resident_threads / block) * waves;
    const auto grid = static_cast<unsigned>(waves == 0 ? std::min<size_t>(tiles, 0x7fffffff) : std::min(tiles, full));
    return s.consider(samples, ms, 1, [&, kernel, grid] {
      return launch(queue, "measure_copy", kernel, dim3(grid), dim3(block), 0, static_cast<const uint4*>(src),
                    static_cast<uint4*>(dst), n);
    });
  };
  if (const lockstep_status e =
          s.consider(samples, ms, 1,
                     [&]() -> lockstep_status {
                       LOCKSTEP_CUDA(cudaMemcpyAsync(dst, src, half, cudaMemcpyDeviceToDevice, queue.stream));
                       return LOCKSTEP_OK;
                     });
      e != LOCKSTEP_OK)
    return e;
  for (const int waves : {0, 1, 4}) {
    if (const lockstep_status e = by_kernel(measure_copy<1>, 1, waves); e != LOCKSTEP_OK) return e;
    if (const lockstep_status e = by_kernel(measure_copy<4>, 4, waves); e != LOCKSTEP_OK) return e;
  }
  return LOCKSTEP_OK;
}

lockstep_status limit_read(lockstep_queue& queue, session& s, size_t bytes, int32_t samples, double* ms) {
  void *src = nullptr, *sink = nullptr;
  const size_t whole = std::max<size_t>(bytes / 16, 1) * 16, n = whole / 16;
  if (const lockstep_status e = s.device(whole, &src); e != LOCKSTEP_OK) return e;
  if (const lockstep_status e = s.device(16, &sink); e != LOCKSTEP_OK) return e;
  LOCKSTEP_CUDA(cudaMemsetAsync(src, 0x5a, whole, queue.stream));
  const auto by_kernel = [&](auto* kernel, int unroll, int waves) {
    const size_t tiles = (n + static_cast<size_t>(block) * unroll - 1) / (static_cast<size_t>(block) * unroll);
    const auto full = static_cast<size_t>(queue.facts->processors) * (queue.facts->resident_threads / block) * waves;
    const auto grid = static_cast<unsigned>(std::min(tiles, full));
    return s.consider(samples, ms, 1, [&, kernel, grid] {
      return launch(queue, "measure_read", kernel, dim3(grid), dim3(block), 0, static_cast<const uint4*>(src), n,
                    static_cast<unsigned*>(sink));
    });
  };
  for (const int waves : {1, 2, 8}) {
    if (const lockstep_status e = by_kernel(measure_read<4>, 4, waves); e != LOCKSTEP_OK) return e;
    if (const lockstep_status e = by_kernel(measure_read<8>, 8, waves); e != LOCKSTEP_OK) return e;
  }
  return LOCKSTEP_OK;
}

// So many operations: whole rounds of a chip full of threads, scaled to what was asked for.
template <class T>
lockstep_status limit_fma(lockstep_queue& queue, session& s, double operations, int32_t samples, double* ms) {
  void* wrong = nullptr;
  if (const lockstep_status e = s.device(sizeof(unsigned), &wrong); e != LOCKSTEP_OK) return e;
  LOCKSTEP_CUDA(cudaMemsetAsync(wrong, 0, sizeof(unsigned), queue.stream));
  const T a = static_cast<T>(fma_factor), c = static_cast<T>(fma_addend);
  const auto with_chains = [&](auto count, int blocks_each) -> lockstep_status {
    constexpr int chains = decltype(count)::value;
    fma_values<T, chains> values;
    std::fenv_t callers;
    std::feholdexcept(&callers);
    std::fesetround(FE_TONEAREST);
    for (int k = 0; k < chains; ++k) {
      values.start[k] = values.want[k] = static_cast<T>(1 + k);
      for (int step = 0; step < fma_steps; ++step) values.want[k] = std::fma(values.want[k], a, c);
    }
    std::fesetenv(&callers);
    const int grid = queue.facts->processors * blocks_each;
    const double of_round = 2.0 * chains * fma_steps * block * grid;
    const auto rounds = std::max<int64_t>(1, std::llround(operations / of_round));
    const auto body = [&] {
      return launch(queue, "measure_fma", measure_fma<T, chains>, dim3(grid), dim3(block), 0, values, a, c, rounds,
                    static_cast<unsigned*>(wrong));
    };
    return s.consider(samples, ms, operations / (of_round * static_cast<double>(rounds)), body);
  };
  const int most = queue.facts->resident_threads / block;
  for (const int blocks_each : {std::max(most / 2, 1), most}) {
    if (const lockstep_status e = with_chains(std::integral_constant<int, 4>(), blocks_each); e != LOCKSTEP_OK)
      return e;
    if (const lockstep_status e = with_chains(std::integral_constant<int, 8>(), blocks_each); e != LOCKSTEP_OK)
      return e;
  }
  unsigned threads = 0;
  LOCKSTEP_CUDA(cudaMemcpyAsync(&threads, wrong, sizeof threads, cudaMemcpyDeviceToHost, queue.stream));
  LOCKSTEP_CUDA(cudaStreamSynchronize(queue.stream));
  if (threads != 0)
    return failed(LOCKSTEP_BACKEND_FAILED, "fused multiply-adds of %u threads differ from the host's", threads);
  return LOCKSTEP_OK;
}

// Copies over the link. Host time for pageable memory: the driver's copy holds the
// calling thread, and events would miss what it does before the transfer.
lockstep_status limit_link(lockstep_queue& queue, session& s, lockstep_limit kind, size_t bytes, int32_t samples,
                           double* ms) {
  void *up_host = nullptr, *down_host = nullptr, *up_device = nullptr, *down_device = nullptr;
  const bool pageable = kind == LOCKSTEP_LIMIT_UPLOAD_PAGEABLE || kind == LOCKSTEP_LIMIT_DOWNLOAD_PAGEABLE;
  const bool up = kind == LOCKSTEP_LIMIT_UPLOAD_PINNED || kind == LOCKSTEP_LIMIT_UPLOAD_PAGEABLE ||
                  kind == LOCKSTEP_LIMIT_BOTH_PINNED;
  const bool down = kind == LOCKSTEP_LIMIT_DOWNLOAD_PINNED || kind == LOCKSTEP_LIMIT_DOWNLOAD_PAGEABLE ||
                    kind == LOCKSTEP_LIMIT_BOTH_PINNED;
  const size_t one_way = up && down ? bytes / 2 : bytes;
  std::vector<unsigned char> pageable_block;
  const auto host_block = [&](void** p) -> lockstep_status {
    if (!pageable) return s.pinned(one_way, p);
    pageable_block.assign(one_way, 1);
    *p = pageable_block.data();
    return LOCKSTEP_OK;
  };
  if (up) {
    if (const lockstep_status e = host_block(&up_host); e != LOCKSTEP_OK) return e;
    if (const lockstep_status e = s.device(one_way, &up_device); e != LOCKSTEP_OK) return e;
    std::memset(up_host, 1, one_way);
  }
  if (down) {
    if (const lockstep_status e = host_block(&down_host); e != LOCKSTEP_OK) return e;
    if (const lockstep_status e = s.device(one_way, &down_device); e != LOCKSTEP_OK) return e;
  }
  cudaStream_t other = nullptr;
  if (const lockstep_status e = s.side_stream(&other); e != LOCKSTEP_OK) return e;
  const auto run = [&]() -> lockstep_status {
    if (up) LOCKSTEP_CUDA(cudaMemcpyAsync(up_device, up_host, one_way, cudaMemcpyHostToDevice, queue.stream));
    if (down) LOCKSTEP_CUDA(cudaMemcpyAsync(down_host, down_device, one_way, cudaMemcpyDeviceToHost, other));
    LOCKSTEP_CUDA(cudaStreamSynchronize(queue.stream));
    LOCKSTEP_CUDA(cudaStreamSynchronize(other));
    return LOCKSTEP_OK;
  };
  if (const lockstep_status e = run(); e != LOCKSTEP_OK) return e;
  for (int32_t i = 0; i < samples; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (const lockstep_status e = run(); e != LOCKSTEP_OK) return e;
    ms[i] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  }
  return LOCKSTEP_OK;
}

}  // namespace

lockstep_status measure(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_call* call,
                        uint32_t flags, int32_t samples, double* ms) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  session s(*queue);
  if (const lockstep_status e = s.open(flags); e != LOCKSTEP_OK) return e;
  return s.samples(samples, ms, [&] { return variant->launch(queue, call); });
}

lockstep_status measure_group(lockstep_queue* queue, const lockstep_group_row* row, const lockstep_group* group,
                              uint32_t flags, int32_t samples, double* ms) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  session s(*queue);
  if (const lockstep_status e = s.open(flags); e != LOCKSTEP_OK) return e;
  size_t failed = 0;
  return s.samples(samples, ms, [&] { return row->launch(queue, group, &failed); });
}

lockstep_status limit(lockstep_queue* queue, lockstep_limit kind, size_t bytes, uint32_t flags, int32_t samples,
                      double* ms) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  session s(*queue);
  if (const lockstep_status e = s.open(flags); e != LOCKSTEP_OK) return e;
  switch (kind) {
    case LOCKSTEP_LIMIT_COPY: return limit_copy(*queue, s, bytes, samples, ms);
    case LOCKSTEP_LIMIT_READ: return limit_read(*queue, s, bytes, samples, ms);
    case LOCKSTEP_LIMIT_LAUNCH:
      return s.samples(samples, ms,
                       [&] { return launch(*queue, "measure_empty", measure_empty, dim3(1), dim3(32), 0); });
    case LOCKSTEP_LIMIT_FMA_F32: return limit_fma<float>(*queue, s, static_cast<double>(bytes), samples, ms);
    case LOCKSTEP_LIMIT_FMA_F64: return limit_fma<double>(*queue, s, static_cast<double>(bytes), samples, ms);
    default: return limit_link(*queue, s, kind, bytes, samples, ms);
  }
}

}  // namespace lockstep::cuda
