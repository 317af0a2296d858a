// reduce.cu - dst[s] = sum, min, max, argmin or argmax of sequence s.
// Idea    square_sum.cu's kernels with another fold: floats keep the fixed order,
//         exact folds (integer sums; comparisons by integer keys) join only once
// Moves   n elements read once; 1 to 10 instructions per element
// Limit   memory reads (0.96 to 0.99 of them on an H200 for long rows and whole arrays, 0.94
//         to 0.97 for whole rows of split_rows.cuh, 0.82 to 0.90 for those of staged_rows.cuh)
// Watch   NaN wins, -0.0 < +0.0, the lowest index wins a tie; an array whose keys are
//         all the smallest possible still has an argmax
// Source  lib/bits/order.hpp.
#include "../ops.hpp"
#include "few_rows.hpp"
#include "runs.hpp"
#include "table.cuh"

namespace lockstep::cuda {
namespace {

struct reduce_op {
  static constexpr const char* by_leaves_name = "lanes";
  static constexpr const char* by_leaves_idea =
      "a warp's lanes over a leaf by 16-byte loads, aligned subtrees shared among blocks, one launch";

  template <class Way>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    const auto go = [&](const auto& fold) { return run_fold<Way>(queue, call, fold); };
    if (!sums_floats(d)) return by_exact_fold(queue, call, go);
    return by_float(d.dtype, [&]<class T>(T) {
      const float_sum<T, false> sum{call.dst, d.result == LOCKSTEP_F32, false};
      if constexpr (sizeof(T) == 2)
        return go(rounded_sum<T>{sum, d.result});
      else
        return go(sum);
    });
  }
};

constexpr lockstep_variant others[] = {
    any_type_row,
};

constexpr auto rows = ways_between<reduce_op>(std::array{few_rows_row}, others);

}  // namespace

lockstep_status reduce_runs(lockstep_queue& queue, const lockstep_call& call, const column_runs& runs) {
  return by_exact_fold(queue, call, [&](const auto& fold) { return launch_runs(queue, fold, call, runs); });
}

const lockstep_table reduce_table = {rows.data(), rows.size()};

}  // namespace lockstep::cuda
