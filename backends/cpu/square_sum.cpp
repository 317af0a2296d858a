// square_sum.cpp - sums of squares and L2 norms of sequences: dst[s] = sum x^2, or its root.
// Idea    as reduce.cpp: chunks, aligned subtrees, joins in index order. Squares of f16, bf16 and f32 are exact in
//         double, so one fma (or a product and a sum) rounds once; i64 squares are exact in 192 bits.
// Moves   every element once, 4 or 8 bytes a result; the norm of f64 data out of double's comfortable range three
//         times more (largest and smallest, then the scaled sum)
// Limit   L2: conversions to double; the read limit from L3 on
// Watch   the root of an integer sum is rounded from the exact sum, not from its nearest double
// Source  lib/order.hpp
#include "exact.hpp"
#include "ops.hpp"
#include "reductions.hpp"

namespace lockstep::cpu {
namespace {

// ---- floats -----------------------------------------------------------------------
float_term term_of(lockstep_dtype dtype) {
  switch (dtype) {
    case LOCKSTEP_F16: return square_f16;
    case LOCKSTEP_BF16: return square_bf16;
    case LOCKSTEP_F32: return square_f32;
    default: return square_f64;
  }
}

// The norm of f64 elements whose plain sum of squares is `plain`. reduce(R, view)
// runs a reduction over the whole sequence, by one thread or by all.
template <class Reduce>
double norm_f64(const lockstep_queue* queue, const vector_view& v, double plain, const Reduce& reduce) {
  const bool out_of_range =
      plain == INFINITY || (plain < order::rescale_below && !LOCKSTEP_MUTANT("norm_ignores_underflow"));
  if (!out_of_range) return std::sqrt(plain);  // NaN too: an element is NaN
  const extreme_kernels& kernels = extremes(queue->level);
  const auto magnitude = [](int64_t key) {
    return std::fabs(std::bit_cast<double>(order::key_f64(static_cast<uint64_t>(key))));
  };
  const double largest = magnitude(reduce(extreme_of<true>{largest_f64, false, kernels}, v).key);
  const double smallest = magnitude(reduce(extreme_of<false>{smallest_f64, false, kernels}, v).key);
  const double max_abs = largest > smallest ? largest : smallest;
  if (!order::needs_rescale(plain, max_abs)) return std::sqrt(plain);
  const int e = order::rescale_exponent(std::bit_cast<uint64_t>(max_abs));
  vector_view scaled = v;
  scaled.scale = std::ldexp(1.0, -e);
  return std::sqrt(reduce(float_sum{square_f64, float_sums(queue->level)}, scaled)) * std::ldexp(1.0, e);
}

lockstep_status square_floats(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const sequences q(call, two);
  const float_sum sum{term_of(q.d.dtype), float_sums(queue->level), q.elements() * q.bytes};
  if (q.d.reduction != LOCKSTEP_NORM2 && sum_short_rows(*queue, call, sum)) return LOCKSTEP_OK;
  const auto finish = [&](int64_t s, double value, const auto& reduce) {
    if (q.d.reduction == LOCKSTEP_NORM2)
      value = q.d.dtype == LOCKSTEP_F64 ? norm_f64(queue, q.view(s), value, reduce) : std::sqrt(value);
    store_float(call, s, value);
  };
  const auto done = [&](int64_t s, double value) {
    finish(s, value, [](const auto& r, const vector_view& v) { return reduce_alone(r, v); });
  };
  const auto together = [&](int64_t s, double value) {
    finish(s, value,
           [&](const auto& r, const vector_view& v) { return reduce_together(*queue, r, v, call->workspace); });
  };
  reduce_sequences(
      *queue, sum, q, call->workspace, done, [&](int64_t s) { store_float(call, s, 0.0); }, together);
  return LOCKSTEP_OK;
}

// ---- integers -----------------------------------------------------------------------
lockstep_status square_integers(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const bool norm = call->reduce.reduction == LOCKSTEP_NORM2;
  const sequences q(call, two);
  const exact_sum sum{q.d.dtype == LOCKSTEP_I32 ? square_i32 : square_i64, exact_sums(queue->level)};
  auto* dst = static_cast<int64_t*>(call->dst);
  first_failure overflow;
  const auto done = [&](int64_t s, const wide& value) {
    if (norm)
      store_float(call, s, order::rounded_root(value.limb));
    else if (!fits_i64(value, dst[s]))
      overflow.at(s);
  };
  const auto together = [&](int64_t s, const wide& value) { done(s, value); };
  const auto empty = [&](int64_t s) {
    if (norm)
      store_float(call, s, 0.0);
    else
      dst[s] = 0;
  };
  reduce_sequences(*queue, sum, q, call->workspace, done, empty, together);
  if (!overflow.any()) return LOCKSTEP_OK;
  const int64_t s = overflow.sequence();
  return failed(LOCKSTEP_OVERFLOW,
                "the exact sum of squares of sequence {} does not fit I64, dst[{}] holds {}; sum shorter sequences or "
                "floats, or take NORM2",
                s, s, dst[s]);
}

lockstep_status launch(lockstep_queue* queue, const lockstep_call* call, bool two) {
  const bool integers = call->reduce.dtype == LOCKSTEP_I32 || call->reduce.dtype == LOCKSTEP_I64;
  return integers ? square_integers(queue, call, two) : square_floats(queue, call, two);
}
lockstep_status launch_streams(lockstep_queue* queue, const lockstep_call* call) { return launch(queue, call, true); }
lockstep_status launch_lanes(lockstep_queue* queue, const lockstep_call* call) { return launch(queue, call, false); }

// Of the widest value: a norm runs other reductions too.
size_t workspace(const lockstep_queue* queue, const lockstep_call* call) {
  return sequence_workspace<exact_sum>(queue, call);
}

const lockstep_variant rows[] = {
    {"streams", "as lanes, two places of a sequence read side by side; from 32 MiB on", 0, nullptr, streams_yield,
     workspace, launch_streams},
    {"lanes", "SIMD lanes over chunks (leaves of the fixed order), aligned subtrees shared among threads", 0, nullptr,
     nullptr, workspace, launch_lanes},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_square_sum},
};
}  // namespace

const lockstep_table square_sum_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
