// square_sum.cpp - sums of squares and L2 norms of sequences: dst[s] = sum x^2, or its root.
// Idea    as reduce.cpp: chunks, aligned subtrees, joins in index order. Squares of f16, bf16 and f32 are exact in
//         double, so one fma (or a product and a sum) rounds once; i64 squares are exact in 192 bits.
// Moves   every element once, 4 or 8 bytes for each result; for the norm of very large or small f64 three times more
//         (largest and smallest, then the scaled sum)
// Limit   L2: conversions to double; the read limit from L3 on
// Watch   the root of an integer sum is rounded from the exact sum, not from the nearest double
// Source  lib/order.hpp
#include "exact.hpp"
#include "ops.hpp"
#include "reductions.hpp"

namespace lockstep::cpu {
namespace {

// ---- floats -----------------------------------------------------------------------
// The norm of sequence s of f64 elements, whose plain sum of squares is `plain`. reduce(R, view) runs a reduction over
// the whole sequence.
template <class Reduce>
double norm_f64(const lockstep_queue& queue, const lockstep_call& call, int64_t s, double plain, const Reduce& reduce) {
  const bool out_of_range = plain == INFINITY || plain < order::rescale_below;
  if (!out_of_range) return std::sqrt(plain);  // NaN too: an element is NaN
  const vector_view v = sequences(call).view(s);
  const extreme_kernels& kernels = extremes(queue.kernels);
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
  return std::sqrt(reduce(float_sum{square_f64, float_sums(queue.kernels)}, scaled)) * std::ldexp(1.0, e);
}

struct square_results {
  const lockstep_queue& queue;
  const lockstep_call& call;

  template <class Again>
  double finished(int64_t s, double value, const Again& again) const {
    const lockstep_reduce_desc& d = call.reduce;
    if (d.reduction != LOCKSTEP_NORM2) return value;
    return d.dtype == LOCKSTEP_F64 ? norm_f64(queue, call, s, value, again) : std::sqrt(value);
  }
  template <class Again>
  void operator()(int64_t s, double value, const Again& again) const {
    store_float(&call, s, finished(s, value, again));
  }
  void all(int64_t first, double* values, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) values[k] = finished(first + k, values[k], alone_again<pass::straight>{queue});
    store_floats(&call, first, values, count);
  }
};

template <class Body>
lockstep_status square_floats(const lockstep_queue& queue, const lockstep_call& call, bool cached, const Body& body) {
  body(float_sum{terms_of(call.reduce.dtype).squares_of_floats, float_sums(queue.kernels), cached},
       results{square_results{queue, call}, [&](int64_t s) { store_float(&call, s, 0.0); }});
  return LOCKSTEP_OK;
}

// ---- integers -----------------------------------------------------------------------
template <class Body>
lockstep_status square_integers(const lockstep_queue& queue, const lockstep_call& call, const Body& body) {
  const bool norm = call.reduce.reduction == LOCKSTEP_NORM2;
  first_failure overflow;
  const auto done = [&](int64_t s, const wide& value, const auto&) {
    if (norm)
      store_float(&call, s, order::rounded_root(value.limb));
    else if (!store_exact(&call, s, value))
      overflow.at(s);
  };
  const auto empty = [&](int64_t s) {
    if (norm)
      store_float(&call, s, 0.0);
    else
      store_exact(&call, s, {});
  };
  body(exact_sum{terms_of(call.reduce.dtype).squares, exact_sums(queue.kernels)}, results{done, empty});
  if (!overflow.any()) return LOCKSTEP_OK;
  const int64_t s = overflow.sequence();
  return failed(LOCKSTEP_OVERFLOW,
                "the exact sum of squares of sequence {} does not fit {}, dst[{}] holds {}; sum shorter sequences or "
                "floats, or take NORM2",
                s, exact_name(&call), s, exact_text(&call, s));
}

struct square_sum_op {
  static constexpr auto reference = ref_square_sum;

  template <class Body>
  static lockstep_status run(const lockstep_queue& queue, const lockstep_call& call, bool cached, const Body& body) {
    return sums_floats(call.reduce) ? square_floats(queue, call, cached, body) : square_integers(queue, call, body);
  }

  static lockstep_status rows(const lockstep_queue& queue, const lockstep_call& call, bool tiny) {
    const lockstep_reduce_desc& d = call.reduce;
    const auto sums = sums_of_rows(queue, terms_of(d.dtype).squares_of_floats, tiny);
    const auto roots = cpu::tiny_rows(queue.kernels).roots;
    if (d.reduction != LOCKSTEP_NORM2)
      sum_short_rows(queue, &call, sums);
    else if (d.dtype != LOCKSTEP_F64)
      sum_short_rows(queue, &call, sums, [&](int64_t, int64_t count, double* values) { roots(values, count); });
    else
      sum_short_rows(queue, &call, sums, [&](int64_t first, int64_t count, double* values) {
        for (int64_t k = 0; k < count; ++k)
          values[k] = norm_f64(queue, call, first + k, values[k], alone_again<pass::straight>{queue});
      });
    return LOCKSTEP_OK;
  }
  static lockstep_status tiny_rows(lockstep_queue* queue, const lockstep_call* call) {
    return rows(*queue, *call, true);
  }
  static lockstep_status short_rows(lockstep_queue* queue, const lockstep_call* call) {
    return rows(*queue, *call, false);
  }
};
}  // namespace

const lockstep_table square_sum_table = reduction_table<square_sum_op>;
}  // namespace lockstep::cpu
