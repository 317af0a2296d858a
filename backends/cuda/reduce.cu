// reduce.cu - dst[s] = sum, min, max, argmin or argmax of sequence s.
// Idea    square_sum.cu's kernels with another fold: floats keep the fixed order,
//         exact folds (integer sums; comparisons by integer keys) join only once
// Moves   n elements read once; 1 to 10 instructions an element
// Limit   memory reads (0.96 to 0.99 of them on an H200 for long rows and whole arrays, 0.94
//         to 0.97 for whole rows of split_rows.cuh, 0.82 to 0.90 for those of rows.cuh)
// Watch   NaN wins, -0.0 < +0.0, the lowest index wins a tie; an array whose keys are
//         all the smallest possible still has an argmax
// Source  lib/order.hpp.
#include "library.hpp"
#include "ops.hpp"
#include "shapes.cuh"

namespace lockstep::cuda {
namespace {

template <bool alone, class Fold>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
  if constexpr (alone)
    return run_alone(queue, call, fold);
  else
    return run_sequences(queue, call, fold);
}

template <bool alone, class T>
lockstep_status run_type(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  using key = typename key_of<T>::type;
  const key turn = d.reduction == LOCKSTEP_MIN || d.reduction == LOCKSTEP_ARGMIN ? -1 : 0;
  if (d.reduction == LOCKSTEP_MIN || d.reduction == LOCKSTEP_MAX)
    return run<alone>(queue, call, extreme<T>{static_cast<T*>(call.dst), turn, queue.report});
  if (d.reduction != LOCKSTEP_SUM)
    return run<alone>(queue, call, arg_extreme<T>{static_cast<int64_t*>(call.dst), turn, queue.report});
  if constexpr (std::is_floating_point_v<T>)
    return run<alone>(queue, call, float_sum<T, false>{call.dst, d.result == LOCKSTEP_F32, false});
  else
    return run<alone>(queue, call, integer_sum<T>{static_cast<int64_t*>(call.dst), queue.report});
}

template <bool alone>
lockstep_status launch_any(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.reduce.dtype) {
    case LOCKSTEP_I32: return run_type<alone, int32_t>(queue, call);
    case LOCKSTEP_I64: return run_type<alone, int64_t>(queue, call);
    case LOCKSTEP_F32: return run_type<alone, float>(queue, call);
    case LOCKSTEP_F64: return run_type<alone, double>(queue, call);
    default:
      return failed(LOCKSTEP_INTERNAL, "reduce of dtype %d reached the CUDA backend",
                    static_cast<int>(call.reduce.dtype));
  }
}

const lockstep_variant rows[] = {
    {"shuffle", "a warp a leaf, 16-byte loads, shuffles, one launch; short rows several a warp; columns across threads",
     0, nullptr, nullptr, sequence_workspace, on_device<launch_any<false>>},
    {"cub", "CUB's DeviceReduce::TransformReduce over the same fold", LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY,
     refuses_library, nullptr, workspace_library, launch_cub},
    {"thrust", "Thrust's transform_reduce over the same fold; blocks", LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY,
     refuses_library, nullptr, workspace_library, launch_thrust},
    {"alone", "a thread a sequence, in the fixed order: what the order costs without the memory hierarchy",
     LOCKSTEP_LESSON, nullptr, nullptr, nullptr, on_device<launch_any<true>>},
};

}  // namespace

const lockstep_table reduce_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
