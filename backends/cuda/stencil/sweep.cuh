// sweep.cuh - what every stencil kernel shares: one sweep as a plain struct, the
// arithmetic of order id 1, the boundaries, and the walk over several sweeps.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "../index/stencil.hpp"
#include "../kernel/record.cuh"
#include "bits/order.hpp"
#include "lockstep/backend.h"

namespace lockstep::cuda::stencil {

// One sweep, or a pass of several, over batch x z x y x x elements; axes that the rank lacks have length
// one. Output i of an axis lies over source element i + origin.
template <class T>
struct sweep {
  const T* src;
  T* dst;
  int64_t batch, n[3], out[3];             // z, y, x of src and of dst
  int64_t src_batch, dst_batch;            // strides in elements; x has stride 1
  int64_t src_stride[2], dst_stride[2];    // z, y
  int32_t rank, radius, origin, boundary;  // origin: radius times sweeps under VALID, else 0
  T value;                                 // CONSTANT
};

// Taps in increasing memory address, rounded once to T; rides in the kernel's
// parameters, which the hardware keeps in constant memory: a private copy a launch.
constexpr int most_taps_1d = 33, most_taps = 49;
template <class T, int N>
struct taps {
  T c[N];
};
template <class T, int N>
taps<T, N> rounded(const lockstep_stencil_desc& d) {
  taps<T, N> t{};
  for (int k = 0; k < d.coefficient_count && k < N; ++k) t.c[k] = static_cast<T>(d.coefficients[k]);
  return t;
}

#ifdef __CUDACC__
__device__ __forceinline__ float fma_rn(float a, float b, float c) { return __fmaf_rn(a, b, c); }
__device__ __forceinline__ double fma_rn(double a, double b, double c) { return __fma_rn(a, b, c); }
__device__ __forceinline__ float mul_rn(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double mul_rn(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ float canonical(float x) { return x == x ? x : __uint_as_float(order::nan_f32); }
__device__ __forceinline__ double canonical(double x) {
  return x == x ? x : __longlong_as_double(static_cast<long long>(order::nan_f64));
}

// line[i], or what the boundary puts there; elements of the line are stride apart.
template <class T>
__device__ __forceinline__ T tap(const T* line, int64_t stride, int64_t i, int64_t n, int32_t boundary, T value) {
  const int64_t j = source_index(i, n, boundary);
  if (j < 0) return value;
  LOCKSTEP_SEEN(read_src, line, line + j * stride);
  return __ldg(line + j * stride);
}

// i = q * d + r. Hardware has no 64-bit division, and nearly every call fits 32 bits.
__device__ __forceinline__ int64_t divide(int64_t i, int64_t d, int64_t& rest) {
  if (((i | d) >> 32) == 0) {
    const uint32_t q = static_cast<uint32_t>(i) / static_cast<uint32_t>(d);
    rest = static_cast<uint32_t>(i) - q * static_cast<uint32_t>(d);
    return q;
  }
  const int64_t q = i / d;
  rest = i - q * d;
  return q;
}
#endif

inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
// Chunks along a streamed axis: as many as fill whole waves of `slots`, weighed against the planes that each chunk
// reads again.
inline int64_t best_chunk(int64_t planes, int64_t tiles_a_plane, int64_t slots, int64_t most_chunks, double again) {
  int64_t best = planes;
  double least = 0;
  for (int64_t chunks = 1; chunks <= planes && chunks <= most_chunks; ++chunks) {
    const int64_t chunk = ceil_div(planes, chunks);
    const double cost = static_cast<double>(ceil_div(tiles_a_plane * ceil_div(planes, chunk), slots)) *
                        (static_cast<double>(chunk) + again);
    if (chunks == 1 || cost < least) least = cost, best = chunk;
  }
  return std::min<int64_t>(best, 1 << 30);
}
// One grid dimension reaches 2^31 - 1 blocks; kernels stride over what is beyond.
inline unsigned grid_of(int64_t blocks) { return static_cast<unsigned>(std::clamp<int64_t>(blocks, 1, 2147483647)); }

// A pass is one launch: at most `depth` sweeps of a call, which are dealt out evenly. Results between the first and the
// last pass live in dst where it is large enough (every second one, so that the last lands there) and in one buffer of
// the workspace; under VALID dst is too small and there are two buffers. Their rows start on 128 bytes.
inline int32_t passes_of(int32_t sweeps, int32_t depth) { return (sweeps - 1) / depth + 1; }
inline int32_t sweeps_of_pass(int32_t sweeps, int32_t passes, int32_t k) {
  return sweeps / passes + (k < sweeps % passes);
}
struct buffers {
  int count = 0;
  size_t bytes[2] = {0, 0};
};
inline int64_t pitch_of(int64_t x, size_t element_bytes) {
  const int64_t line = static_cast<int64_t>(128 / element_bytes);
  return (x + line - 1) / line * line;
}
inline buffers needed(const lockstep_stencil_desc& d, int32_t depth = 1) {
  buffers b;
  const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const size_t element_bytes = d.dtype == LOCKSTEP_F32 ? 4 : 8;
  const int32_t passes = passes_of(d.sweeps, depth);
  b.count = passes == 1 ? 0 : (valid && passes > 2 ? 2 : 1);
  int64_t shrink = 0;
  for (int k = 0; k < b.count; ++k) {
    if (valid) shrink += 2 * int64_t{d.radius} * sweeps_of_pass(d.sweeps, passes, k);
    int64_t rows = d.batch;
    for (int a = 0; a < d.rank - 1; ++a) rows *= d.shape[a] - shrink;
    b.bytes[k] = static_cast<size_t>(rows * pitch_of(d.shape[d.rank - 1] - shrink, element_bytes)) * element_bytes;
  }
  return b;
}
inline size_t sweeps_workspace(const lockstep_queue*, const lockstep_call* call) {
  const buffers b = needed(call->stencil);
  return b.bytes[0] + b.bytes[1];
}

template <class T>
struct place {  // where a sweep reads or writes
  T* data;
  int64_t batch, stride[2];
};

// Calls launch(sweep, sweeps of the pass) once per pass; launch returns a status.
template <class T, class Launch>
lockstep_status for_each_pass(const lockstep_call& call, int32_t depth, Launch launch) {
  const lockstep_stencil_desc& d = call.stencil;
  const bool valid = d.boundary == LOCKSTEP_BOUNDARY_VALID;
  const buffers spare = needed(d, depth);
  sweep<T> s{};
  s.batch = d.batch;
  s.rank = d.rank;
  s.radius = d.radius;
  s.boundary = static_cast<int32_t>(d.boundary);
  s.value = static_cast<T>(d.value);
  for (int a = 0; a < 3; ++a) s.n[a] = a < 3 - d.rank ? 1 : d.shape[a - (3 - d.rank)];
  const auto given = [&](T* data, int64_t batch, const int64_t* strides) {
    place<T> p{data, batch, {0, 0}};
    for (int a = 3 - d.rank; a < 2; ++a) p.stride[a] = strides[a - (3 - d.rank)];
    return p;
  };
  const auto buffer = [&](int which) {
    const int64_t y = pitch_of(s.out[2], sizeof(T)), z = y * s.out[1];
    auto* base = static_cast<char*>(call.workspace) + (which == 1 ? spare.bytes[0] : 0);
    return place<T>{reinterpret_cast<T*>(base), z * s.out[0], {z, y}};
  };
  const place<T> dst = given(static_cast<T*>(call.dst), d.dst_batch_stride, d.dst_strides);
  place<T> from = given(static_cast<T*>(const_cast<void*>(call.src)), d.src_batch_stride, d.src_strides);
  const int32_t passes = passes_of(d.sweeps, depth);
  for (int32_t k = 0; k < passes; ++k) {
    const int32_t left = passes - 1 - k, now = sweeps_of_pass(d.sweeps, passes, k);
    s.origin = valid ? now * d.radius : 0;
    for (int a = 0; a < 3; ++a) s.out[a] = a < 3 - d.rank ? 1 : s.n[a] - 2 * s.origin;
    const place<T> to = left == 0 || (!valid && left % 2 == 0) ? dst : buffer(valid ? k % 2 : 0);
    s.src = from.data;
    s.dst = to.data;
    s.src_batch = from.batch;
    s.dst_batch = to.batch;
    for (int a = 0; a < 2; ++a) s.src_stride[a] = from.stride[a], s.dst_stride[a] = to.stride[a];
    if (const lockstep_status status = launch(s, now); status != LOCKSTEP_OK) return status;
    from = to;
    for (int a = 0; a < 3; ++a) s.n[a] = s.out[a];
  }
  return LOCKSTEP_OK;
}
template <class T, class Launch>
lockstep_status for_each_sweep(const lockstep_call& call, Launch launch) {
  return for_each_pass<T>(call, 1, [&](const sweep<T>& s, int32_t) { return launch(s); });
}

}  // namespace lockstep::cuda::stencil
