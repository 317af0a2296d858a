// reduce.cu - dst[s] = sum, min, max, argmin or argmax of sequence s.
// Idea    square_sum.cu's kernels with another fold: floats keep the fixed order,
//         exact folds (integer sums; comparisons by integer keys) join only once
// Moves   n elements read once; 1 to 10 instructions an element
// Limit   memory reads (0.96 to 0.99 of them on an H200 for long rows and whole arrays, 0.94
//         to 0.97 for whole rows of split_rows.cuh, 0.82 to 0.90 for those of staged_rows.cuh)
// Watch   NaN wins, -0.0 < +0.0, the lowest index wins a tie; an array whose keys are
//         all the smallest possible still has an argmax
// Source  lib/bits/order.hpp.
#include "../ops.hpp"
#include "extreme.cuh"
#include "few_rows.hpp"
#include "library.hpp"
#include "table.cuh"

namespace lockstep::cuda {
namespace {

template <class Way, class T>
lockstep_status run_type(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_reduce_desc& d = call.reduce;
  using key = typename key_of<T>::type;
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  const key turn = kind.by == lib::join::smallest ? -1 : 0;
  if (kind.extreme() && kind.to == lib::finish::index)
    return run_fold<Way>(queue, call, arg_extreme<T>{static_cast<int64_t*>(call.dst), turn, queue.report});
  if (kind.extreme()) return run_fold<Way>(queue, call, extreme<T>{static_cast<T*>(call.dst), turn, queue.report});
  if constexpr (std::is_floating_point_v<T>)
    return run_fold<Way>(queue, call, float_sum<T, false>{call.dst, d.result == LOCKSTEP_F32, false});
  else
    return run_fold<Way>(queue, call, integer_sum<T>{static_cast<int64_t*>(call.dst), queue.report});
}

struct reduce_op {
  static constexpr const char* by_leaves_name = "lanes";
  static constexpr const char* by_leaves_idea =
      "a warp's lanes over a leaf by 16-byte loads, aligned subtrees shared among blocks, one launch";

  template <class Way>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
    const auto sum = [&]<class T>(T) {
      return run_fold<Way>(queue, call, float_sum<T, false>{call.dst, call.reduce.result == LOCKSTEP_F32, false});
    };
    switch (call.reduce.dtype) {
      case LOCKSTEP_F16: return sum(half16{});  // their extremes are any_type's
      case LOCKSTEP_BF16: return sum(bfloat16{});
      case LOCKSTEP_I32: return run_type<Way, int32_t>(queue, call);
      case LOCKSTEP_I64: return run_type<Way, int64_t>(queue, call);
      case LOCKSTEP_F32: return run_type<Way, float>(queue, call);
      case LOCKSTEP_F64: return run_type<Way, double>(queue, call);
      default:
        return failed(LOCKSTEP_INTERNAL, "reduce of dtype %d reached the CUDA backend",
                      static_cast<int>(call.reduce.dtype));
    }
  }
};

constexpr lockstep_variant others[] = {
    any_type_row,
    {"cub", "CUB's DeviceReduce::TransformReduce over the same fold", LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY,
     refuses_library, nullptr, workspace_library, launch_cub},
    {"thrust", "Thrust's transform_reduce over the same fold; blocks", LOCKSTEP_OWN_ORDER | LOCKSTEP_LIBRARY,
     refuses_library, nullptr, workspace_library, launch_thrust},
    reduction_row<reduce_op, by_threads>(
        "alone", "a thread a sequence, in the fixed order: what the order costs without the memory hierarchy",
        LOCKSTEP_LESSON),
};

constexpr auto rows = ways_between<reduce_op>(std::array{few_rows_row}, others);

}  // namespace

const lockstep_table reduce_table = {rows.data(), rows.size()};

}  // namespace lockstep::cuda
