// gpu.cuh - what the files of peer_gpu share: a case on the device, and how a call is timed there.
#pragma once

#include <cublas_v2.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/version.h>

#include <cub/cub.cuh>
#include <memory>

#include "peer.hpp"

namespace {

using namespace lockstep;

void must(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(code));
  std::exit(1);
}

struct device_memory {
  void* p = nullptr;
  explicit device_memory(size_t bytes) { must(cudaMalloc(&p, bytes > 0 ? bytes : 1), "cudaMalloc"); }
  ~device_memory() { cudaFree(p); }
  device_memory(const device_memory&) = delete;
};

// Keeps the stream busy until the host has queued a sample behind it, so that no gap between launches is measured;
// backends/cuda/device/measure.cu does the same. Gives up after 0.1 s.
__global__ void hold(const volatile unsigned* go) {
  const auto clock = [] {
    unsigned long long ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
  };
  for (const unsigned long long begin = clock(); *go == 0 && clock() - begin < 100000000ull;) __nanosleep(1000);
}

struct device_timing {
  std::vector<double> ms;
  bool held;  // false: the calls wait for the device themselves, so their times include the gaps
};

// Hot samples: runs back to back for 0.2 ms between two events, behind a hold. If two samples in a row were not queued
// before the hold gave up, the call waits for the device. Then a sample has ten runs or more, with their gaps.
template <class Body>
device_timing time_device(const peers::arguments& a, const Body& body) {
  unsigned *go = nullptr, *go_device = nullptr;
  must(cudaHostAlloc(&go, sizeof *go, cudaHostAllocMapped), "cudaHostAlloc");
  must(cudaHostGetDevicePointer(&go_device, go, 0), "cudaHostGetDevicePointer");
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  int runs = 1, late = 0;
  bool held = true;
  const auto sample = [&] {  // milliseconds of a run; late: samples in a row that were not queued in time
    *static_cast<volatile unsigned*>(go) = held ? 0 : 1;
    hold<<<1, 1>>>(go_device);
    cudaEventRecord(begin);
    for (int r = 0; r < runs; ++r) body();
    cudaEventRecord(end);
    late = held && cudaEventQuery(begin) == cudaSuccess ? late + 1 : 0;
    *static_cast<volatile unsigned*>(go) = 1;
    must(cudaEventSynchronize(end), "timing");
    float t = 0;
    cudaEventElapsedTime(&t, begin, end);
    return static_cast<double>(t) / runs;
  };
  (void)sample();
  const double once = sample();
  held = late < 2;
  runs = std::clamp(static_cast<int>(0.2 / std::max(once, 1e-3)), held ? 1 : 10, 50);
  std::vector<double> ms;
  const double start = peers::now_ms();
  while (ms.size() < 15 || (peers::now_ms() - start < a.seconds * 1e3 && ms.size() < 400)) {
    const double one = sample();
    if (late == 0)
      ms.push_back(one);
    else if (late == 3)
      std::fprintf(stderr, "samples are queued too late: is the host busy?\n"), std::exit(1);
  }
  must(cudaGetLastError(), "timing");
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaFreeHost(go);
  return {std::move(ms), held};
}

struct row_start {
  int64_t stride;
  __host__ __device__ int64_t operator()(int64_t row) const { return row * stride; }
};
// A case on the device.
struct on_device {
  const peers::arguments& a;
  peers::subject& s;
  device_memory src, dst;
  on_device(const peers::arguments& how, peers::subject& what)
      : a(how), s(what), src(what.c.src.span_bytes()), dst(what.c.dst.span_bytes() + 16) {
    must(cudaMemcpy(src.p, s.src(), s.c.src.span_bytes(), cudaMemcpyHostToDevice), "upload");
  }
  template <class T>
  const T* x() const {
    return static_cast<const T*>(src.p);
  }
  template <class T>
  T* y() const {
    return static_cast<T*>(dst.p);
  }

  // n results of type Got; the right values have type Want.
  template <class Want, class Got>
  std::string check(const void* at, int64_t n) {
    std::vector<Got> got(static_cast<size_t>(n));
    must(cudaMemcpy(got.data(), at, got.size() * sizeof(Got), cudaMemcpyDeviceToHost), "download");
    return s.values<Want>(got.data(), n);
  }
  // Runs once on a poisoned dst, checks, times.
  template <class Body, class Check>
  void time(const std::string& peer, const Body& body, const Check& check) {
    must(cudaMemset(dst.p, 0xA5, s.c.dst.span_bytes()), "poison");
    body();
    must(cudaDeviceSynchronize(), peer.c_str());
    std::string checked = check();
    s.report(peer, checked, [&] {
      device_timing timing = time_device(a, body);
      if (!timing.held) checked += ", waits for each";
      return std::move(timing.ms);
    });
  }
  // A CUB call: first for the size of its workspace, then as above.
  template <class Call, class Check>
  void time_cub(const std::string& peer, const Call& call, const Check& check) {
    size_t bytes = 0;
    must(call(nullptr, bytes), "CUB");
    device_memory workspace(bytes);
    time(
        peer, [&] { call(workspace.p, bytes); }, check);
  }
};

const std::string cub_name =
    "CUB " + std::to_string(CUB_VERSION / 100000) + "." + std::to_string(CUB_VERSION / 100 % 1000);
const std::string thrust_name =
    "Thrust " + std::to_string(THRUST_MAJOR_VERSION) + "." + std::to_string(THRUST_MINOR_VERSION);

}  // namespace
