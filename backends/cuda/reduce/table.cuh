// table.cuh - the rows that reduce and square_sum share: each goes through a call's sequences in a way of its own.
//
// An op has run<Way>(queue, call), which calls run_fold<Way> with what the call asks for; and by_leaves_name and _idea,
// because square_sum's textbook knows that row by another name.
#pragma once

#include <array>

#include "any_type.hpp"
#include "by_fold.cuh"
#include "columns.cuh"
#include "lane_rows.cuh"
#include "lanes.cuh"
#include "segments.cuh"
#include "short_rows.cuh"
#include "split_rows.cuh"
#include "staged_rows.cuh"
#include "warps.cuh"

namespace lockstep::cuda {

template <class Way, class Fold>
lockstep_status run_fold(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
  if constexpr (Way::template takes<Fold>)
    return Way::run(queue, call, fold);
  else
    return failed(LOCKSTEP_INTERNAL, "a row that refuses dtype %d was asked to run it",
                  static_cast<int>(call.reduce.dtype));
}

// Partial results, and two words per sequence for the passes that may follow a norm.
template <class Way>
size_t workspace_of(const lockstep_call& call) {
  const bool follow = rescales(call.reduce) && Way::shares(call);
  return Way::partials(call) + (follow ? static_cast<size_t>(call.reduce.count) * 16 : 0);
}

template <class Op, class Way>
constexpr lockstep_variant reduction_row(const char* name, const char* idea, uint32_t flags = 0) {
  return {name,
          idea,
          flags,
          [](const lockstep_queue* queue, const lockstep_call* call) {
            const bool own =
                !is_for_any_type(*call) || (is_narrow_extreme(*call) && Way::template takes<extreme<half16>>);
            return own ? Way::refuses(*queue, *call) : "leaves these types to any_type";
          },
          [](const lockstep_queue* queue, const lockstep_call* call) { return int{Way::yields(*queue, *call)}; },
          [](const lockstep_queue*, const lockstep_call* call) { return workspace_of<Way>(*call); },
          on_device<Op::template run<Way>>};
}

template <class Op>
constexpr std::array ways = {
    reduction_row<Op, by_split_rows>("split_rows", "aligned rows of 8 to 128 words in registers, joined by halves"),
    reduction_row<Op, by_staged_rows>("staged_rows",
                                      "rows of up to 1,792 bytes that the copy engine puts into shared memory"),
    reduction_row<Op, by_short_columns>("short_columns", "a thread a column of up to 128 elements"),
    reduction_row<Op, by_columns<2>>("column_pairs", "as columns, two of 2-byte elements a thread by one load"),
    reduction_row<Op, by_columns<4>>("column_quads", "as columns, four of f32 a thread by one load"),
    reduction_row<Op, by_columns<1>>("columns", "sequences that lie side by side: threads run across them"),
    reduction_row<Op, by_segments<true>>("segments_staged",
                                         "as segments, 32 a warp from shared memory where all are short"),
    reduction_row<Op, by_segments<false>>(
        "segments", "sequences of lengths of their own: 8 threads, a warp or all blocks each, by its length"),
    reduction_row<Op, by_short_rows>("short_rows", "sequences of at most 128 elements, several a warp"),
    reduction_row<Op, by_row_pairs>("row_pairs", "rows of at most one leaf at any alignment, two a warp"),
    reduction_row<Op, by_warps>("warps", "a warp a sequence, leaf after leaf, whatever its stride"),
    reduction_row<Op, by_lane_rows>("lane_rows", "rows of up to 8 leaves of f32, a thread a lane of the fixed order"),
    reduction_row<Op, by_leaves<true>>(
        "streams", "long rows and whole arrays that the L2 does not hold: more loads in flight, past the L1"),
    reduction_row<Op, by_leaves<false>>(Op::by_leaves_name, Op::by_leaves_idea),
};

// A table: rows of the op's own that are faster, the ways, then its others.
template <class Op, size_t m, size_t n>
constexpr auto ways_between(const std::array<lockstep_variant, m>& first, const lockstep_variant (&others)[n]) {
  std::array<lockstep_variant, m + ways<Op>.size() + n> all{};
  std::copy(others, others + n,
            std::copy(ways<Op>.begin(), ways<Op>.end(), std::copy(first.begin(), first.end(), all.begin())));
  return all;
}
template <class Op, size_t n>
constexpr auto ways_and(const lockstep_variant (&others)[n]) {
  return ways_between<Op>(std::array<lockstep_variant, 0>{}, others);
}

}  // namespace lockstep::cuda
