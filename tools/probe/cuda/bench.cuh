// bench.cuh - how the CUDA probes measure: cycles of one block by the SM's
// own clock, milliseconds of a launch by events. Every probe kernel leaves an outcome a
// block; its sum is compared with the host's.
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "../patterns.hpp"
#include "../seam.hpp"
#include "../stats.hpp"

namespace lockstep::probe {

struct failure : std::runtime_error {
  using runtime_error::runtime_error;
};
inline void require(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  (void)cudaGetLastError();
  throw failure(std::string(what) + ": " + cudaGetErrorString(code));
}
#define PROBE_CUDA(call) ::lockstep::probe::require((call), #call)

struct outcome {
  unsigned long long cycles, nanoseconds;
  unsigned sum, spare;
};

// Around the timed loop of a block. The sums are passed in before the clock is read, so
// that the compiler cannot move the loop behind it.
struct stopwatch {
  unsigned long long cycles, nanoseconds;
  __device__ static unsigned long long clock_now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
    return t;
  }
  __device__ static unsigned long long time_now() {
    unsigned long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t)::"memory");
    return t;
  }
  __device__ stopwatch() {
    __syncthreads();  // the whole block: its data are in place, all start together
    nanoseconds = time_now();
    cycles = clock_now();
  }
  __device__ void stop(outcome* out, unsigned sum) {
    asm volatile("" ::"r"(sum) : "memory");
    __syncthreads();  // the whole block: the slowest warp counts
    cycles = clock_now() - cycles;
    nanoseconds = time_now() - nanoseconds;
    atomicAdd(&out[blockIdx.x].sum, sum);
    if (threadIdx.x == 0) {
      out[blockIdx.x].cycles = cycles;
      out[blockIdx.x].nanoseconds = nanoseconds;
    }
  }
};

template <class T>
class device_array {
 public:
  explicit device_array(size_t n) : n_(n) { PROBE_CUDA(cudaMalloc(reinterpret_cast<void**>(&data_), n * sizeof(T))); }
  explicit device_array(const std::vector<T>& from) : device_array(from.size()) {
    PROBE_CUDA(cudaMemcpy(data_, from.data(), n_ * sizeof(T), cudaMemcpyHostToDevice));
  }
  ~device_array() {
    if (cudaFree(data_) != cudaSuccess) (void)cudaGetLastError();
  }
  device_array(const device_array&) = delete;
  device_array& operator=(const device_array&) = delete;
  operator T*() const { return data_; }
  size_t size() const { return n_; }
  std::vector<T> host() const {
    std::vector<T> copy(n_);
    PROBE_CUDA(cudaMemcpy(copy.data(), data_, n_ * sizeof(T), cudaMemcpyDeviceToHost));
    return copy;
  }

 private:
  T* data_ = nullptr;
  size_t n_;
};

// What every row of one run shares.
class bench {
 public:
  bench(int device, double seconds, sink to, void* user) : device_(device), seconds_(seconds), to_(to), user_(user) {
    PROBE_CUDA(cudaSetDevice(device));
    PROBE_CUDA(cudaGetDeviceProperties(&properties_, device));
    PROBE_CUDA(cudaEventCreate(&begin_));
    PROBE_CUDA(cudaEventCreate(&end_));
  }
  ~bench() {
    (void)cudaEventDestroy(begin_);
    (void)cudaEventDestroy(end_);
    (void)cudaGetLastError();
  }
  bench(const bench&) = delete;
  bench& operator=(const bench&) = delete;

  const cudaDeviceProp& device() const { return properties_; }
  int device_number() const { return device_; }
  int processors() const { return properties_.multiProcessorCount; }
  bool once() const { return seconds_ <= 0; }

  void row(const char* id) { row_ = id; }
  void report(const std::string& name, const char* kernel, const char* unit, double x, const stats& s, uint64_t got,
              uint64_t expected) const {
    const reading one = {row_, name.c_str(), kernel, unit, x, s.value, s.low, s.high, got, expected};
    to_(user_, &one);
  }
  void fact(const char* name, double value, const char* unit = "") const {
    const reading one = {row_, name, "", unit, NAN, value, value, value, 0, 0};
    to_(user_, &one);
  }

  // One block's cycles, and its sum (of the last launch). launch(out) starts a kernel
  // of `blocks` blocks; the longest block counts.
  struct block_time {
    stats cycles;
    double nanoseconds_a_cycle;
    uint32_t sum;
  };
  template <class Launch>
  block_time cycles(int blocks, const Launch& launch) const {
    const device_array<outcome> out(static_cast<size_t>(blocks));
    std::vector<double> samples;
    block_time result{};
    repeat([&](bool counts) {
      PROBE_CUDA(cudaMemset(out, 0, out.size() * sizeof(outcome)));
      launch(static_cast<outcome*>(out));
      PROBE_CUDA(cudaGetLastError());
      PROBE_CUDA(cudaDeviceSynchronize());
      double longest = 0, nanoseconds = 0;
      result.sum = 0;
      for (const outcome& o : out.host()) {
        if (static_cast<double>(o.cycles) > longest) {
          longest = static_cast<double>(o.cycles);
          nanoseconds = static_cast<double>(o.nanoseconds);
        }
        result.sum += o.sum;
      }
      result.nanoseconds_a_cycle = longest > 0 ? nanoseconds / longest : 0;
      if (counts) samples.push_back(longest);
    });
    result.cycles = stats_of(std::move(samples));
    return result;
  }

  // Milliseconds of one launch. Probes launch enough work to make the events' own time
  // negligible.
  struct launch_time {
    stats ms;
    uint32_t sum;
  };
  template <class Launch>
  launch_time milliseconds(int blocks, const Launch& launch) const {
    const device_array<outcome> out(static_cast<size_t>(blocks));
    std::vector<double> samples;
    launch_time result{};
    repeat([&](bool counts) {
      PROBE_CUDA(cudaMemset(out, 0, out.size() * sizeof(outcome)));
      PROBE_CUDA(cudaEventRecord(begin_));
      launch(static_cast<outcome*>(out));
      PROBE_CUDA(cudaGetLastError());
      PROBE_CUDA(cudaEventRecord(end_));
      PROBE_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      PROBE_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      result.sum = 0;
      for (const outcome& o : out.host()) result.sum += o.sum;
      if (counts) samples.push_back(ms);
    });
    result.ms = stats_of(std::move(samples));
    return result;
  }

  // Wall time of body, for copies that block the calling thread.
  template <class Body>
  stats host_milliseconds(const Body& body) const {
    std::vector<double> samples;
    repeat([&](bool counts) {
      const auto begin = std::chrono::steady_clock::now();
      body();
      const std::chrono::duration<double, std::milli> passed = std::chrono::steady_clock::now() - begin;
      if (counts) samples.push_back(passed.count());
    });
    return stats_of(std::move(samples));
  }

 private:
  // Two runs to warm up, then at least 5 and at most 50 until the time is used.
  template <class Body>
  void repeat(const Body& body) const {
    if (once()) return body(true);
    body(false);
    body(false);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 50; ++i) {
      body(true);
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
      if (i >= 4 && passed.count() > seconds_) break;
    }
  }

  int device_;
  double seconds_;
  sink to_;
  void* user_;
  const char* row_ = "";
  cudaDeviceProp properties_{};
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

}  // namespace lockstep::probe
