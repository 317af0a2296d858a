// spans.cuh - short sequences without gaps between them: spans of whole sequences through shared memory.
//
// Idea    A warp brings 32 sequences or more as one span of whole 16 bytes, whatever their length. Then a thread goes
//         along a sequence, without shuffles, and the results leave as they came
// Moves   every element once in and once out
// Limit   memory; of few sequences the walk along one
// Watch   Threads stand a sequence apart: an odd number of 4 bytes meets each bank once, a multiple of 8 elements
//         few of them. A span's first and last 16 bytes may be shared with the neighbours', whose elements are read but
//         not used, and not written
// Source  lib/bits/order_rows.hpp
#pragma once

#include "../kernel/chunk.cuh"
#include "look_back.cuh"

namespace lockstep::cuda {

constexpr int span_warps = 4;                   // a block, unless their room is more than span_block_bytes
constexpr int64_t span_block_bytes = 32 << 10;  // shared memory that leaves room for other blocks
constexpr int64_t span_bytes = 4 << 10;         // spans grow up to here while span_warps_wanted are left
constexpr int64_t span_warps_wanted = 32;       // per SM: they hide what each of them waits for

struct span_plan {
  int rows;                // sequences of a warp
  int src_skew, dst_skew;  // bytes from a multiple of 16 to each warp's first element
  int results, bytes;      // of a warp's room: where results lie, 0 for the elements' places, and all of it
};

// Elements i to i + 7 of n, of a kind without an order, after `run`.
template <bool whole, class K>
__device__ __forceinline__ void scan_group(const K& kind, const quad<typename K::element> (&x)[2], int here,
                                           bool exclusive, int64_t s, typename K::local& run, typename K::result* out) {
  const auto put = [&](int j) { out[j] = kind.put(static_cast<typename K::partial>(run), s); };
#pragma unroll
  for (int j = 0; j < order::scan_group; ++j) {
    if (!whole && j >= here) break;
    if (exclusive) put(j);
    run = kind.join(run, kind.of(x[j / 4], j % 4));
    if (!exclusive) put(j);
  }
}
// Of float sums: run is what stands before the group in its row, entering the result before it.
template <bool whole, class K>
__device__ __forceinline__ void sum_group(const K& kind, const quad<typename K::element> (&x)[2], int here,
                                          bool exclusive, int64_t s, double& run, double& entering,
                                          typename K::result* out) {
  double y[order::scan_group];
#pragma unroll
  for (int j = 0; j < order::scan_group; ++j) y[j] = whole || j < here ? value(x[j / 4], j % 4) : -0.0;
#pragma unroll
  for (int d = 1; d < order::scan_group; d *= 2)
#pragma unroll
    for (int j = order::scan_group - 1; j >= d; --j) y[j] = __dadd_rn(y[j - d], y[j]);
#pragma unroll
  for (int j = 0; j < order::scan_group; ++j) {
    y[j] = __dadd_rn(run, y[j]);
    if (whole || j < here) out[j] = kind.put(exclusive ? (j == 0 ? entering : y[(j + 7) % 8]) : y[j], s);
  }
  run = entering = y[order::scan_group - 1];
}

template <class K>
__device__ __forceinline__ void scan_row(const K& kind, const typename K::element* x, typename K::result* out, int n,
                                         bool exclusive, int64_t s) {
  typename K::local run = static_cast<typename K::local>(kind.none());
  [[maybe_unused]] double entering = 0;
  const auto group = [&](auto whole, int first) {
    const int here = n - first;
    quad<typename K::element> q[2]{};
#pragma unroll
    for (int j = 0; j < order::scan_group; ++j)
      if (whole || j < here) set_element(q[j / 4], j % 4, x[first + j]);
    if constexpr (K::ordered)
      sum_group<whole>(kind, q, here, exclusive, s, run, entering, out + first);
    else
      scan_group<whole>(kind, q, here, exclusive, s, run, out + first);
  };
  int first = 0;
#pragma unroll 1
  for (; first + order::scan_group <= n; first += order::scan_group) group(std::true_type{}, first);
  if (first < n) group(std::false_type{}, first);
}

template <class K>
__global__ __launch_bounds__(span_warps * 32) void scan_spans(const K kind, const scanned d, const span_plan plan) {
  using E = typename K::element;
  using T = typename K::result;
  extern __shared__ uint4 room[];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, n = static_cast<int>(d.length);
  const int64_t s = (int64_t{blockIdx.x} * (blockDim.x / 32) + warp) * plan.rows;
  if (s >= d.count) return;
  const auto rows = static_cast<int>(min(int64_t{plan.rows}, d.count - s));
  uint4* const staged = room + warp * (plan.bytes / 16);
  uint4* const results = staged + plan.results / 16;
  follow_on();
  const auto* const begin = static_cast<const unsigned char*>(d.src);
  const unsigned char* const end = begin + d.count * n * static_cast<int64_t>(sizeof(E));
  const unsigned char* const from = begin + s * n * static_cast<int64_t>(sizeof(E)) - plan.src_skew;
  const int used = plan.src_skew + rows * n * static_cast<int>(sizeof(E));
#pragma unroll 4
  for (int c = t; c * 16 < used; c += 32) stage_chunk(staged + c, from + c * 16, begin, end);
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncwarp();  // threads read what others have brought
  const auto* const x = reinterpret_cast<const E*>(reinterpret_cast<const char*>(staged) + plan.src_skew);
  auto* const y = reinterpret_cast<T*>(reinterpret_cast<char*>(results) + plan.dst_skew);
#pragma unroll 1
  for (int r = t; r < rows; r += 32) scan_row(kind, x + r * n, y + r * n, n, d.exclusive, s + r);
  __syncwarp();  // threads store what others have put
  const int elements = rows * n, skew = plan.dst_skew, all = skew + elements * static_cast<int>(sizeof(T));
  T* const dst = static_cast<T*>(d.dst) + s * n;
  auto* const to = reinterpret_cast<uint4*>(reinterpret_cast<char*>(dst) - skew);
#pragma unroll 4
  for (int c = t; c * 16 < all; c += 32) {
    if (c * 16 >= skew && c * 16 + 16 <= all) {
      to[c] = results[c];
    } else {
      constexpr int unit = 16 / static_cast<int>(sizeof(T));
      const int first = c * unit - skew / static_cast<int>(sizeof(T));
      for (int i = max(first, 0); i < min(first + unit, elements); ++i) dst[i] = y[i];
    }
  }
}

}  // namespace lockstep::cuda
