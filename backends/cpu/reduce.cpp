// reduce.cpp - sum, min, max, argmin, argmax of sequences: dst[s] = reduction of sequence s.
// Idea    sequences are cut into chunks (the leaves of the fixed order for float sums), aligned subtrees of chunks
//         are shared among threads, partial results join in index order: sequences.hpp. SIMD: isa/float_sums.cpp,
//         isa/exact_sums.cpp, isa/extremes.cpp.
// Moves   every element once, 4 or 8 bytes a result
// Limit   the read limit from L3 on
// Watch   a failed sequence (overflow, empty) must not keep the others from their results
// Source  lib/order.hpp
#include "ops.hpp"
#include "reductions.hpp"

namespace lockstep::cpu {
namespace {

lockstep_status sum_floats(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const sequences q(call, two);
  const float_sum sum{q.d.dtype == LOCKSTEP_F32 ? sum_f32 : sum_f64, float_sums(queue->level), q.elements() * q.bytes};
  if (sum_short_rows(*queue, call, sum)) return LOCKSTEP_OK;
  const auto done = [&](int64_t s, double value) { store_float(call, s, value); };
  reduce_sequences(
      *queue, sum, q, call->workspace, done, [&](int64_t s) { store_float(call, s, 0.0); }, done);
  return LOCKSTEP_OK;
}

lockstep_status sum_integers(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const sequences q(call, two);
  const exact_sum sum{q.d.dtype == LOCKSTEP_I32 ? sum_i32 : sum_i64, exact_sums(queue->level)};
  auto* dst = static_cast<int64_t*>(call->dst);
  first_failure overflow;
  const auto done = [&](int64_t s, const wide& value) {
    const bool unseen = LOCKSTEP_MUTANT("overflow_of_the_last_sequence_lost") && s > 0 && s == q.d.count - 1;
    if (!fits_i64(value, dst[s]) && !unseen) overflow.at(s);
  };
  reduce_sequences(
      *queue, sum, q, call->workspace, done, [&](int64_t s) { dst[s] = 0; }, done);
  if (!overflow.any()) return LOCKSTEP_OK;
  const int64_t s = overflow.sequence();
  return failed(LOCKSTEP_OVERFLOW,
                "the exact sum of sequence {} does not fit I64, dst[{}] holds {}; sum shorter sequences or floats", s,
                s, dst[s]);
}

void store_key(const lockstep_call* call, int64_t s, int64_t key) {
  const bool nan = key == INT64_MAX || key == INT64_MIN;
  switch (call->reduce.dtype) {
    case LOCKSTEP_I32: static_cast<int32_t*>(call->dst)[s] = static_cast<int32_t>(key); break;
    case LOCKSTEP_F32:  // key_f32 is its own inverse
      static_cast<uint32_t*>(call->dst)[s] =
          nan ? order::nan_f32 : static_cast<uint32_t>(order::key_f32(static_cast<uint32_t>(key)));
      break;
    case LOCKSTEP_F64:
      static_cast<uint64_t*>(call->dst)[s] =
          nan ? order::nan_f64 : static_cast<uint64_t>(order::key_f64(static_cast<uint64_t>(key)));
      break;
    default: static_cast<int64_t*>(call->dst)[s] = key;
  }
}

template <bool Largest>
lockstep_status find_extremes(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const sequences q(call, two);
  constexpr auto of = [](extreme_term largest, extreme_term smallest) { return Largest ? largest : smallest; };
  const extreme_term term = q.d.dtype == LOCKSTEP_I32   ? of(largest_i32, smallest_i32)
                            : q.d.dtype == LOCKSTEP_I64 ? of(largest_i64, smallest_i64)
                            : q.d.dtype == LOCKSTEP_F32 ? of(largest_f32, smallest_f32)
                                                        : of(largest_f64, smallest_f64);
  const bool index = q.d.reduction == LOCKSTEP_ARGMIN || q.d.reduction == LOCKSTEP_ARGMAX;
  // Many short rows: their winners go straight to dst.
  if (q.packed() && q.d.offsets == nullptr && q.d.length > 0 && q.d.length <= 1024 && q.d.count >= 16) {
    const int64_t result_bytes = index ? 8 : q.bytes;
    over_sequences(*queue, q, 65536 / q.d.length + 1, [&](int64_t first, int64_t last) {
      extremes(queue->level)
          .of[term]
          .winners({q.begin(first), q.d.length, q.d.sequence_stride, nullptr}, last - first, index,
                   static_cast<char*>(call->dst) + first * result_bytes);
    });
    return LOCKSTEP_OK;
  }
  const extreme_of<Largest> find{term, index, extremes(queue->level)};
  first_failure none;
  const auto done = [&](int64_t s, const extreme& winner) {
    if (index)
      static_cast<int64_t*>(call->dst)[s] = find.locate({q.begin(s), q.length(s), q.d.element_stride, q.bytes}, winner);
    else
      store_key(call, s, winner.key);
  };
  reduce_sequences(
      *queue, find, q, call->workspace, done, [&](int64_t s) { none.at(s); }, done);
  if (!none.any()) return LOCKSTEP_OK;
  const int64_t s = none.sequence();
  return failed(
      LOCKSTEP_EMPTY,
      "sequence {} is empty and has no minimum or maximum, dst[{}] is left as it was; give every sequence an element",
      s, s);
}

lockstep_status launch(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const lockstep_reduce_desc& d = call->reduce;
  if (d.reduction == LOCKSTEP_SUM)
    return d.dtype == LOCKSTEP_F32 || d.dtype == LOCKSTEP_F64 ? sum_floats(queue, call, two)
                                                              : sum_integers(queue, call, two);
  if (d.reduction == LOCKSTEP_MAX || d.reduction == LOCKSTEP_ARGMAX) return find_extremes<true>(queue, call, two);
  return find_extremes<false>(queue, call, two);
}
lockstep_status launch_streams(lockstep_queue* queue, const lockstep_call* call) { return launch(queue, call, true); }
lockstep_status launch_lanes(lockstep_queue* queue, const lockstep_call* call) { return launch(queue, call, false); }

size_t workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (d.reduction != LOCKSTEP_SUM) return sequence_workspace<extreme_of<true>>(queue, call);
  return d.dtype == LOCKSTEP_F32 || d.dtype == LOCKSTEP_F64 ? sequence_workspace<float_sum>(queue, call)
                                                            : sequence_workspace<exact_sum>(queue, call);
}

const lockstep_variant rows[] = {
    {"streams",
     "as lanes, two places of a sequence read side by side; from 32 MiB on, extremes of 4 bytes on one "
     "thread from 16",
     0, nullptr, streams_yield, workspace, launch_streams},
    {"lanes", "SIMD lanes over chunks (leaves of the fixed order), aligned subtrees shared among threads", 0, nullptr,
     nullptr, workspace, launch_lanes},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_reduce},
};
}  // namespace

const lockstep_table reduce_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
