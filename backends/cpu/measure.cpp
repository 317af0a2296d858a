// measure.cpp - see measure.hpp. The limit of a size is the best of several loops, each on the queue's threads: memcpy,
// plain and non-temporal vector copies; plain reads, reads with prefetches, reads of two places at once, reads in
// alternating direction. memcpy alone is not the fastest copy of 64 MiB to 1 GiB.
#include "measure.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>

#include "isa/limits.hpp"
#include "parallel.hpp"

namespace lockstep::cpu {
namespace {

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Host memory for one measurement.
class block {
 public:
  block(const lockstep_queue& queue, size_t bytes) : allocator_(*queue.allocator), bytes_(bytes) {
    data_ = static_cast<unsigned char*>(allocator_.allocate(allocator_.user, bytes, 4096));
    // Written first by the threads that will read it, so that its pages are near them (NUMA).
    if (data_ != nullptr)
      over_ranges(queue, static_cast<int64_t>(bytes), 4096, [&](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) data_[i] = static_cast<unsigned char>(i * 167 + (i >> 12));
      });
  }
  ~block() {
    if (data_ != nullptr) allocator_.release(allocator_.user, data_, bytes_, 4096);
  }
  block(const block&) = delete;
  block& operator=(const block&) = delete;
  unsigned char* data() const { return data_; }
  int64_t size() const { return static_cast<int64_t>(bytes_); }

 private:
  const lockstep_allocator& allocator_;
  size_t bytes_;
  unsigned char* data_ = nullptr;
};

size_t eviction_bytes() {
  const long l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  // Virtual machines may report the host's whole cache; 256 MiB evicts any share of it.
  return std::min(static_cast<size_t>(l3 > 0 ? l3 : 32L << 20) * 2, size_t{256} << 20);
}

// Times body. Cold: each sample is one run after the caches were evicted. Hot: the mean of
// as many runs as fill 50 us, because the clock's resolution is tens of ns. Returns false
// when there is no memory for evicting the caches.
template <class Body>
bool time_samples(const lockstep_queue& queue, uint32_t flags, int32_t samples, double* ms, const Body& body) {
  body();
  const double begin = now_ms();
  body();
  const double once = now_ms() - begin;
  if ((flags & LOCKSTEP_COLD) != 0) {
    const block evict(queue, eviction_bytes());
    if (evict.data() == nullptr) return false;
    for (int32_t i = 0; i < samples; ++i) {
      over_ranges(queue, evict.size(), 4096, [&](int64_t from, int64_t to) {
        std::memset(evict.data() + from, i, static_cast<size_t>(to - from));
      });
      const double start = now_ms();
      body();
      ms[i] = now_ms() - start;
    }
    return true;
  }
  const int runs = once > 0.05 ? 1 : static_cast<int>(std::min(1000.0, 0.05 / std::max(once, 1e-5))) + 1;
  for (int32_t i = 0; i < samples; ++i) {
    const double start = now_ms();
    for (int run = 0; run < runs; ++run) body();
    ms[i] = (now_ms() - start) / runs;
  }
  return true;
}

lockstep_status no_memory(size_t bytes) {
  return failed(LOCKSTEP_OUT_OF_MEMORY, "no host memory to measure with {} bytes; free some or ask for fewer", bytes);
}

void copy_memcpy(unsigned char* dst, const unsigned char* src, int64_t bytes) {
  std::memcpy(dst, src, static_cast<size_t>(bytes));
}

// Stops the compiler from removing the computation of a value that is not used.
void keep(uint64_t value) { asm volatile("" ::"r"(value)); }

double median(double* values, int32_t n) {
  std::nth_element(values, values + n / 2, values + n);
  return values[n / 2];
}

// Times every candidate and keeps the samples of the one with the best median.
template <class... Candidate>
lockstep_status best_of(const lockstep_queue& queue, uint32_t flags, int32_t samples, double* ms,
                        const Candidate&... candidates) {
  const block trial(queue, static_cast<size_t>(samples) * 2 * sizeof(double));
  if (trial.data() == nullptr) return no_memory(static_cast<size_t>(trial.size()));
  double best = -1;
  bool enough = true;
  const auto consider = [&](const auto& candidate) {
    auto* taken = reinterpret_cast<double*>(trial.data());
    double* sorted = taken + samples;
    enough = enough && time_samples(queue, flags, samples, taken, candidate);
    if (!enough) return;
    std::copy(taken, taken + samples, sorted);
    const double middle = median(sorted, samples);
    if (best >= 0 && middle >= best) return;
    best = middle;
    std::copy(taken, taken + samples, ms);
  };
  (consider(candidates), ...);
  return enough ? LOCKSTEP_OK : no_memory(eviction_bytes());
}

// Times that many operations by all threads: whole blocks, scaled to the requested number.
template <class T>
lockstep_status limit_fma(const lockstep_queue& queue, const fma_chains<T>& chains, double operations, int32_t samples,
                          double* ms) {
  T start[most_fma_lanes], want[most_fma_lanes];
  {
    for (int i = 0; i < chains.lanes; ++i) {
      start[i] = want[i] = static_cast<T>(1 + i);
      for (int step = 0; step < fma_steps; ++step)
        want[i] = std::fma(want[i], static_cast<T>(fma_factor), static_cast<T>(fma_addend));
    }
  }
  const double of_block = 2.0 * fma_steps * chains.lanes;
  const auto blocks = std::max<int64_t>(1, std::llround(operations / of_block / queue.threads)) * queue.threads;
  std::atomic<uint64_t> wrong{0};
  (void)time_samples(queue, 0, samples, ms, [&] {  // no data, no caches to empty
    over_ranges(queue, blocks, 1, [&](int64_t from, int64_t to) { wrong |= chains.run(to - from, start, want); });
  });
  if (wrong != 0)
    return failed(LOCKSTEP_BACKEND_FAILED, "fused multiply-adds of {} bits differ from libm's", 8 * sizeof(T));
  for (int32_t i = 0; i < samples; ++i) ms[i] *= operations / (of_block * static_cast<double>(blocks));
  return LOCKSTEP_OK;
}

}  // namespace

lockstep_status measure(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_call* call,
                        uint32_t flags, int32_t samples, double* ms) {
  if (const lockstep_status s = variant->launch(queue, call); s != LOCKSTEP_OK) return s;
  const bool enough = time_samples(*queue, flags, samples, ms, [&] { (void)variant->launch(queue, call); });
  return enough ? LOCKSTEP_OK : no_memory(eviction_bytes());
}

lockstep_status limit(lockstep_queue* queue, lockstep_limit kind, size_t bytes, uint32_t flags, int32_t samples,
                      double* ms) {
  const limit_kernels& kernels = limit_kernels_of(queue->kernels);
  if (kind == LOCKSTEP_LIMIT_COPY) {
    const block src(*queue, bytes / 2), dst(*queue, bytes / 2);
    if (src.data() == nullptr || dst.data() == nullptr) return no_memory(bytes);
    const auto spread = [&](auto* copy) {
      return [&, copy] {
        over_ranges(*queue, src.size(), 4096,
                    [&](int64_t from, int64_t to) { copy(dst.data() + from, src.data() + from, to - from); });
      };
    };
    return best_of(*queue, flags, samples, ms, spread(copy_memcpy), spread(kernels.copy),
                   spread(kernels.copy_streaming));
  }
  if (kind == LOCKSTEP_LIMIT_READ) {
    const block src(*queue, bytes);
    if (src.data() == nullptr) return no_memory(bytes);
    bool back = false;
    const auto spread = [&](auto* read) {
      return [&, read] {
        over_ranges(*queue, src.size(), 4096,
                    [&](int64_t from, int64_t to) { keep(read(src.data() + from, to - from)); });
      };
    };
    // As in passes.hpp: every other pass reads the quarters of a share from the last to the first.
    const auto there_and_back = [&] {
      back = !back;
      over_ranges(*queue, src.size(), 4096, [&](int64_t from, int64_t to) {
        const auto cut = [&](int k) { return from + (to - from) * k / 4; };
        for (int k = 0; k < 4; ++k) {
          const int part = back ? 3 - k : k;
          keep(kernels.read(src.data() + cut(part), cut(part + 1) - cut(part)));
        }
      });
    };
    return best_of(*queue, flags, samples, ms, spread(kernels.read), spread(kernels.read_prefetched),
                   spread(kernels.read_two), there_and_back);
  }
  if (kind == LOCKSTEP_LIMIT_LAUNCH) {
    const bool enough = time_samples(*queue, flags, samples, ms,
                                     [&] { over_ranges(*queue, queue->threads, 1, [](int64_t, int64_t) {}); });
    return enough ? LOCKSTEP_OK : no_memory(eviction_bytes());
  }
  if (kind == LOCKSTEP_LIMIT_FMA_F32)
    return limit_fma(*queue, kernels.fma_f32, static_cast<double>(bytes), samples, ms);
  if (kind == LOCKSTEP_LIMIT_FMA_F64)
    return limit_fma(*queue, kernels.fma_f64, static_cast<double>(bytes), samples, ms);
  return failed(LOCKSTEP_UNSUPPORTED, "the CPU has no link to measure; use COPY, READ, LAUNCH, FMA_F32 or FMA_F64");
}

}  // namespace lockstep::cpu
