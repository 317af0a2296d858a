// library.cu - the rows `cub` and `thrust` of square_sum and reduce: the libraries' own
// reductions with our folds, for comparison.
// Idea    what a program would call; the result waits in the workspace for a last
//         one-thread kernel that rounds, saturates and reports as every row does
// Moves   n elements read once
// Limit   memory reads
// Watch   their order depends on library, version and chip (own order); integers are
//         exact all the same. Thrust returns the sum to the host and so blocks
// Source  CUB DeviceReduce::TransformReduce, Thrust transform_reduce.
#include <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform_reduce.h>

#include <cub/device/device_reduce.cuh>

#include "any_type.hpp"
#include "extreme.cuh"
#include "library.hpp"

namespace lockstep::cuda {
namespace {

constexpr size_t library_bytes = size_t{1} << 20;  // CUB asks for some 130 KB on 132 SMs

template <class Fold>
struct to_partial {
  Fold fold;
  __device__ typename Fold::partial operator()(typename Fold::element x) const {
    typename Fold::lane lane = fold.empty_lane();
    fold.take(lane, x, 0);
    return fold.close(lane, 0);
  }
};
template <class Fold>
struct join_partial {
  Fold fold;
  __device__ typename Fold::partial operator()(typename Fold::partial a, typename Fold::partial b) const {
    return fold.join(a, b);
  }
};

template <class Fold>
__global__ void store_library(Fold fold, const typename Fold::partial* value) {
  fold.store(*value, 0);
}

}  // namespace

const char* refuses_library(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (d.offsets != nullptr || d.count != 1 || d.element_stride != 1 || d.length < 1)
    return "the library rows take one contiguous sequence of one element or more";
  if (is_for_any_type(*call) || is_half(d.result) || (d.dtype != LOCKSTEP_F32 && d.dtype != LOCKSTEP_I32))
    return "the library rows take F32 and I32, and give no 16-bit results";
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  if (kind.to != lib::finish::value || kind.by == lib::join::smallest)
    return "the library rows do SUM, MAX and SUM_OF_SQUARES";
  return nullptr;
}
size_t workspace_library(const lockstep_queue*, const lockstep_call*) { return library_bytes; }

namespace {

// The result comes first in the workspace, the library's own scratch after it.
template <class Fold>
lockstep_status run_cub(lockstep_queue& queue, const lockstep_call& call, Fold fold, typename Fold::partial none) {
  using P = typename Fold::partial;
  auto* value = static_cast<P*>(call.workspace);
  const auto* src = static_cast<const typename Fold::element*>(call.src);
  size_t bytes = 0;
  LOCKSTEP_CUDA(cub::DeviceReduce::TransformReduce(nullptr, bytes, src, value, call.reduce.length,
                                                   join_partial<Fold>{fold}, to_partial<Fold>{fold}, none,
                                                   queue.stream));
  if (bytes > library_bytes - 256) return failed(LOCKSTEP_INTERNAL, "CUB asks for %zu bytes of scratch", bytes);
  LOCKSTEP_CUDA(cub::DeviceReduce::TransformReduce(static_cast<char*>(call.workspace) + 256, bytes, src, value,
                                                   call.reduce.length, join_partial<Fold>{fold}, to_partial<Fold>{fold},
                                                   none, queue.stream));
  return launch(queue, "store_library", store_library<Fold>, 1, 1, 0, fold, static_cast<const P*>(value));
}

// Hands Thrust the workspace behind the result, once.
struct workspace_allocator {
  using value_type = char;
  char* begin;
  char* allocate(std::ptrdiff_t bytes) {
    if (static_cast<size_t>(bytes) > library_bytes - 256) throw std::bad_alloc();
    return begin;
  }
  void deallocate(char*, size_t) {}
};

template <class Fold>
lockstep_status run_thrust(lockstep_queue& queue, const lockstep_call& call, Fold fold, typename Fold::partial none) {
  using P = typename Fold::partial;
  auto* value = static_cast<P*>(call.workspace);
  const auto* src = static_cast<const typename Fold::element*>(call.src);
  workspace_allocator memory{static_cast<char*>(call.workspace) + 256};
  try {
    const P sum = thrust::transform_reduce(thrust::cuda::par(memory).on(queue.stream), src, src + call.reduce.length,
                                           to_partial<Fold>{fold}, none, join_partial<Fold>{fold});
    LOCKSTEP_CUDA(cudaMemcpyAsync(value, &sum, sizeof sum, cudaMemcpyHostToDevice, queue.stream));
  } catch (const std::exception& e) {
    (void)cudaGetLastError();
    return failed(LOCKSTEP_BACKEND_FAILED, "Thrust failed: %s", e.what());
  }
  return launch(queue, "store_library", store_library<Fold>, 1, 1, 0, fold, static_cast<const P*>(value));
}

template <bool cub, class Fold>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call, Fold fold, typename Fold::partial none) {
  if constexpr (cub)
    return run_cub(queue, call, fold, none);
  else
    return run_thrust(queue, call, fold, none);
}

template <bool cub>
lockstep_status run_any(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const bool as_f32 = d.result == LOCKSTEP_F32, integer = d.dtype == LOCKSTEP_I32;
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  if (kind.of == lib::term::square)
    return integer ? run<cub>(queue, call, integer_squares<int32_t>{call.dst, as_f32, false, queue.report}, {})
                   : run<cub>(queue, call, float_sum<float, true>{call.dst, as_f32, false}, -0.0);
  if (kind.by == lib::join::sum)
    return integer ? run<cub>(queue, call, integer_sum<int32_t>{static_cast<int64_t*>(call.dst), queue.report}, 0)
                   : run<cub>(queue, call, float_sum<float, false>{call.dst, as_f32, false}, -0.0);
  return integer ? run<cub>(queue, call, extreme<int32_t>{static_cast<int32_t*>(call.dst), 0, queue.report}, INT32_MIN)
                 : run<cub>(queue, call, extreme<float>{static_cast<float*>(call.dst), 0, queue.report}, INT32_MIN);
}

}  // namespace

lockstep_status launch_cub(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<run_any<true>>(queue, call);
}
lockstep_status launch_thrust(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<run_any<false>>(queue, call);
}

}  // namespace lockstep::cuda
