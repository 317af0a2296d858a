// thrust.cu - the row `thrust`: a library's own reduction with square_sum's folds, for comparison.
// Idea    what a program would call; the result waits in the workspace for a last
//         one-thread kernel that rounds, saturates and reports as every row does
// Moves   n elements read once
// Limit   memory reads
// Watch   its order depends on library, version and chip (own order); integers are
//         exact all the same. Thrust returns the sum to the host and so blocks
// Source  Thrust transform_reduce.
#include <thrust/execution_policy.h>
#include <thrust/system/cuda/execution_policy.h>
#include <thrust/transform_reduce.h>

#include "../reduce/any_type.hpp"
#include "../reduce/fold.cuh"
#include "rows.hpp"

namespace lockstep::cuda {
namespace {

constexpr size_t thrust_bytes = size_t{1} << 20;  // it asks for some 130 KB on 132 SMs

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
__global__ void store_thrust(Fold fold, const typename Fold::partial* value) {
  fold.store(*value, 0);
}

// Hands Thrust the workspace behind the result, once.
struct workspace_allocator {
  using value_type = char;
  char* begin;
  char* allocate(std::ptrdiff_t bytes) {
    if (static_cast<size_t>(bytes) > thrust_bytes - 256) throw std::bad_alloc();
    return begin;
  }
  void deallocate(char*, size_t) {}
};

// The result comes first in the workspace, Thrust's own scratch after it.
template <class Fold>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call, Fold fold, typename Fold::partial none) {
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
  return launch(queue, "store_thrust", store_thrust<Fold>, 1, 1, 0, fold, static_cast<const P*>(value));
}

lockstep_status run_any(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  const bool as_f32 = d.result == LOCKSTEP_F32;
  return d.dtype == LOCKSTEP_I32 ? run(queue, call, integer_squares<int32_t>{call.dst, as_f32, false, queue.report}, {})
                                 : run(queue, call, float_sum<float, true>{call.dst, as_f32, false}, -0.0);
}

}  // namespace

const char* refuses_thrust(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (d.offsets != nullptr || d.count != 1 || d.element_stride != 1 || d.length < 1)
    return "takes one contiguous sequence of one element or more";
  if (is_for_any_type(*call) || is_half(d.result) || (d.dtype != LOCKSTEP_F32 && d.dtype != LOCKSTEP_I32))
    return "takes F32 and I32, and gives no 16-bit results";
  return lib::kind_of(d.reduction).to == lib::finish::value ? nullptr : "gives sums of squares, no roots";
}
size_t workspace_thrust(const lockstep_queue*, const lockstep_call*) { return thrust_bytes; }

lockstep_status launch_thrust(lockstep_queue* queue, const lockstep_call* call) {
  return on_device<run_any>(queue, call);
}

}  // namespace lockstep::cuda
