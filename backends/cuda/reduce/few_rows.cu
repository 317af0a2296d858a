// few_rows.cu - dst[s] = the sum of element s of 2 to 16 rows: what all-reduces add.
// Idea    A thread takes the same 16 bytes of each row, all loads in flight at once, and stores its 2 to 8 results
//         together. Every row is a lane of the fixed order, and lanes that are missing are -0.0, which no sum shows
// Moves   n elements read once, results written once; an addition and a conversion per element
// Limit   memory
// Watch   rows and dst begin at multiples of 16 bytes; the last results are a thread's, one by one
// Source  lib/bits/order.hpp
#include "few_rows.hpp"
#include "rounding.cuh"
#include "way.cuh"

namespace lockstep::cuda {

constexpr int most_rows = 16;

template <int n>
__device__ __forceinline__ double join_rows(double* lane) {
  if constexpr (n == 1) {
    return lane[0];
  } else {
#pragma unroll
    for (int k = 0; k < n / 2; ++k) lane[k] = __dadd_rn(lane[k], lane[k + n / 2]);
    return join_rows<n / 2>(lane);
  }
}

// At most `most` rows, a power of two.
template <class E, class R, int most>
__global__ __launch_bounds__(block_threads) void sum_few_rows(const E* src, R* dst, const int64_t count,
                                                              const int64_t stride, const int rows) {
  constexpr int V = 16 / sizeof(E);
  const int64_t s = (int64_t{blockIdx.x} * block_threads + threadIdx.x) * V;
  follow_on();
  if (s >= count) return;
  if (s + V > count) {
    for (int64_t i = s; i < count; ++i) {
      double lane[most];
#pragma unroll
      for (int k = 0; k < most; ++k) lane[k] = k < rows ? widened(src[k * stride + i]) : -0.0;
      dst[i] = rounded_to<R>::of(join_rows<most>(lane));
    }
    return;
  }
  uint4 words[most];
#pragma unroll
  for (int k = 0; k < most; ++k) words[k] = *reinterpret_cast<const uint4*>(src + min(k, rows - 1) * stride + s);
  alignas(16) R results[V];
#pragma unroll
  for (int c = 0; c < V; ++c) {
    double lane[most];
#pragma unroll
    for (int k = 0; k < most; ++k) {
      E of_row[V];
      memcpy(of_row, &words[k], sizeof of_row);
      lane[k] = k < rows ? widened(of_row[c]) : -0.0;
    }
    results[c] = rounded_to<R>::of(join_rows<most>(lane));
  }
  constexpr int stores = sizeof results / 16;
  static_assert(sizeof results % 16 == 0 || sizeof results == 8);
  if constexpr (stores == 0) {
    *reinterpret_cast<uint2*>(dst + s) = *reinterpret_cast<const uint2*>(results);
  } else {
#pragma unroll
    for (int k = 0; k < stores; ++k) reinterpret_cast<uint4*>(dst + s)[k] = reinterpret_cast<const uint4*>(results)[k];
  }
}

namespace {
template <class E, class R>
lockstep_status launch_results(const lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const auto go = [&](auto kernel) {
    return launch_soon(queue, "sum_few_rows", kernel, blocks_for(d.count, block_threads * (16 / int64_t{sizeof(E)})),
                       block_threads, 0, static_cast<const E*>(call.src), static_cast<R*>(call.dst), d.count,
                       d.element_stride, static_cast<int>(d.length));
  };
  return d.length <= 2   ? go(sum_few_rows<E, R, 2>)
         : d.length <= 4 ? go(sum_few_rows<E, R, 4>)
         : d.length <= 8 ? go(sum_few_rows<E, R, 8>)
                         : go(sum_few_rows<E, R, most_rows>);
}

// Results of their own type, or wider.
template <class E>
lockstep_status launch_elements(const lockstep_queue& queue, const lockstep_call& call) {
  if (call.reduce.result == LOCKSTEP_F64) return launch_results<E, double>(queue, call);
  if constexpr (sizeof(E) == 2)
    if (call.reduce.result != LOCKSTEP_F32) return launch_results<E, E>(queue, call);
  if constexpr (sizeof(E) <= 4)
    return launch_results<E, float>(queue, call);
  else
    return failed(LOCKSTEP_INTERNAL, "few_rows was asked for f32 of f64");
}
}  // namespace

const char* refuses_few_rows(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (const char* why = not_of_one_length(d); why != nullptr) return why;
  const bool floats = d.dtype >= LOCKSTEP_F16 && d.dtype <= LOCKSTEP_F64;
  if (d.reduction != LOCKSTEP_SUM || !floats) return "adds floats only";
  if (d.length < 2 || d.length > most_rows || d.sequence_stride != 1)
    return "needs 2 to 16 rows whose elements are contiguous";
  const bool wider =
      d.result == d.dtype || d.result == LOCKSTEP_F64 || (d.result == LOCKSTEP_F32 && element_bytes(d.dtype) == 2);
  if (!wider) return "has results of the elements' type, or of a wider one";
  const auto at = [](const void* p) { return reinterpret_cast<uintptr_t>(p) % 16; };
  return at(call->src) != 0 || at(call->dst) != 0 || d.element_stride * element_bytes(d) % 16 != 0
             ? "needs rows and results at multiples of 16 bytes"
             : nullptr;
}

// A thread with more than 16 elements pays only where there are threads enough to fill the SMs.
int yields_few_rows(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  const int64_t a_thread = 16 / element_bytes(d), threads = d.count / a_thread;
  return d.length * a_thread > 16 && threads < int64_t{queue->facts->processors} * block_threads;
}

lockstep_status launch_few_rows(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.reduce.dtype) {
    case LOCKSTEP_F16: return launch_elements<half16>(queue, call);
    case LOCKSTEP_BF16: return launch_elements<bfloat16>(queue, call);
    case LOCKSTEP_F32: return launch_elements<float>(queue, call);
    default: return launch_elements<double>(queue, call);
  }
}

}  // namespace lockstep::cuda
