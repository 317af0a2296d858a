// reduce.cpp - one result for each sequence: reduce and square_sum.
// Idea    sequences are cut into chunks (leaves of the fixed order where floats are added or multiplied), aligned
//         subtrees of chunks are divided among threads, partial results are joined in index order: reduction_rows.hpp.
//         SIMD: isa/float_sums.cpp, isa/exact_sums.cpp, isa/extremes.cpp, isa/loops.cpp.
// Moves   every element once, 1 to 8 bytes for each result; for the norm of very large or small f64 three times more
//         (largest and smallest, then the scaled sum)
// Limit   the read limit from L3 on; in L2 conversions to double
// Watch   the other sequences must get their results even if one fails (overflow, empty); the root of an integer sum
//         is rounded from the exact sum, not from the nearest double
// Source  lib/bits/order.hpp, lib/bits/reductions.hpp
#include "bits/exact.hpp"
#include "folds.hpp"
#include "ops.hpp"

namespace lockstep::cpu {
namespace {

// ---- floats in the fixed order ------------------------------------------------------
// The norm of sequence s of f64 elements, whose plain sum of squares is `plain`. reduce(R, view) runs a reduction over
// the whole sequence.
template <class Reduce>
double norm_f64(const lockstep_queue& queue, const sequences& q, int64_t s, double plain, const Reduce& reduce) {
  const bool out_of_range = plain == INFINITY || plain < order::rescale_below;
  if (!out_of_range) return std::sqrt(plain);  // NaN too: an element is NaN
  const vector_view v = q.view(s);
  const auto magnitude = [](int64_t key) {
    return std::fabs(std::bit_cast<double>(order::key_f64(static_cast<uint64_t>(key))));
  };
  const auto extreme_of_all = [&](lockstep_reduction r) -> const extreme_kernels& {
    return term_kernels(queue.kernels, extreme_term_of(lib::kind_of(r), LOCKSTEP_F64));
  };
  const double most = magnitude(reduce(extreme_of<true>{extreme_of_all(LOCKSTEP_MAX)}, v).key);
  const double least = magnitude(reduce(extreme_of<false>{extreme_of_all(LOCKSTEP_MIN)}, v).key);
  const double max_abs = most > least ? most : least;
  if (!order::needs_rescale(plain, max_abs)) return std::sqrt(plain);
  const int e = order::rescale_exponent(std::bit_cast<uint64_t>(max_abs));
  vector_view scaled = v;
  scaled.scale = std::ldexp(1.0, -e);
  return std::sqrt(reduce(float_sum{term_kernels(queue.kernels, square_f64)}, scaled)) * std::ldexp(1.0, e);
}

struct root_results {
  const lockstep_queue& queue;
  const sequences& q;

  template <class Again>
  double root(int64_t s, double value, const Again& again) const {
    return q.d.dtype == LOCKSTEP_F64 ? norm_f64(queue, q, s, value, again) : std::sqrt(value);
  }
  template <class Again>
  void operator()(int64_t s, double value, const Again& again) const {
    store_float(q, s, root(s, value, again));
  }
  void all(int64_t first, double* values, int64_t count) const {
    for (int64_t k = 0; k < count; ++k) values[k] = root(first + k, values[k], alone_again<pass::straight>{queue});
    store_floats(q, first, values, count);
  }
};

const float_kernels& float_kernels_of(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
  return term_kernels(queue.kernels, float_term_of(kind_of(d), d.dtype));
}

template <class Body>
lockstep_status add_floats(const lockstep_queue& queue, const sequences& q, bool cached, const Body& body) {
  const auto empty = [&](int64_t s) { store_float(q, s, 0.0); };
  const float_sum sum{float_kernels_of(queue, q.d), cached};
  if (kind_of(q.d).to == lib::finish::root)
    body(sum, results{root_results{queue, q}, empty});
  else
    body(sum, results{float_results{q}, empty});
  return LOCKSTEP_OK;
}
template <class Body>
lockstep_status multiply_floats(const lockstep_queue& queue, const sequences& q, const Body& body) {
  body(float_fold<factor>{float_kernels_of(queue, q.d)},
       results{[&](int64_t s, factor f, const auto&) { store_float(q, s, f.x); },
               [&](int64_t s) { store_float(q, s, 1.0); }});
  return LOCKSTEP_OK;
}

// ---- exactly --------------------------------------------------------------------------
template <class Body>
lockstep_status add_exactly(const lockstep_queue& queue, const sequences& q, const Body& body) {
  const lockstep_reduce_desc& d = q.d;
  first_failure overflow;
  const auto store = [&](int64_t s, const wide& sum) {
    const auto truth = [&](bool x) { static_cast<uint8_t*>(q.dst)[s] = x ? 1 : 0; };
    switch (kind_of(d).to) {
      case lib::finish::root: return store_float(q, s, order::rounded_root(sum.limb));
      case lib::finish::any: return truth(sum.limb[0] != 0);
      case lib::finish::all: return truth(sum.limb[0] == static_cast<uint64_t>(q.length(s)));
      case lib::finish::index:
      case lib::finish::value: break;
    }
    if (!store_exact(q, s, sum)) overflow.at(s);
  };
  body(exact_sum{term_kernels(queue.kernels, exact_term_of(kind_of(d), d.dtype))},
       results{[&](int64_t s, const wide& sum, const auto&) { store(s, sum); }, [&](int64_t s) { store(s, {}); }});
  return overflowed(q, overflow);
}
template <class Body>
lockstep_status multiply_exactly(const lockstep_queue& queue, const sequences& q, const Body& body) {
  first_failure overflow;
  body(exact_product{loops(queue.kernels).products[q.d.dtype - LOCKSTEP_I32]},
       results{[&](int64_t s, const exact_factor& product, const auto&) {
                 if (!store_exact(q, s, product)) overflow.at(s);
               },
               [&](int64_t s) {
                 store_exact(q, s, exact_factor{1, false, false});
               }});
  return overflowed(q, overflow);
}

// ---- extremes -------------------------------------------------------------------------
template <bool Largest>
extreme_of<Largest> extreme_in(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
  return {term_kernels(queue.kernels, extreme_term_of(kind_of(d), d.dtype)), kind_of(d).to == lib::finish::index};
}

template <bool Largest>
struct extreme_results {
  const extreme_of<Largest>& find;
  const sequences& q;
  template <class Again>
  void operator()(int64_t s, const extreme& winner, const Again&) const {
    if (find.index)
      static_cast<int64_t*>(q.dst)[s] = find.locate(q.view(s), winner);
    else
      store_key(q, s, winner.key);
  }
  void whole(int64_t first, const char* src, int64_t ld, int64_t count) const {
    find.kernels.columns(src, q.d.length, ld, count, find.index, nullptr,
                         static_cast<char*>(q.dst) + first * (find.index ? 8 : q.bytes));
  }
};

template <bool Largest, class Body>
lockstep_status find_extremes(const lockstep_queue& queue, const sequences& q, const Body& body) {
  const extreme_of<Largest> find = extreme_in<Largest>(queue, q.d);
  first_failure none;
  body(find, results{extreme_results<Largest>{find, q}, [&](int64_t s) { none.at(s); }});
  if (!none.any()) return LOCKSTEP_OK;
  const int64_t s = none.sequence();
  return failed(
      LOCKSTEP_EMPTY,
      "sequence {} is empty and has no minimum or maximum, dst[{}] is left as it was; give every sequence an element",
      s, s);
}

template <bool Largest>
void short_rows_winners(const lockstep_queue& queue, const sequences& q, bool tiny) {
  const extreme_of<Largest> find = extreme_in<Largest>(queue, q.d);
  const int64_t result_bytes = find.index ? 8 : q.bytes;
  const auto winners =
      tiny ? tiny_rows(queue.kernels).extremes[extreme_term_of(kind_of(q.d), q.d.dtype)] : find.kernels.winners;
  over_short_rows(queue, q, [&](int64_t first, int64_t last) {
    winners({q.begin(first), q.d.length, q.d.sequence_stride, nullptr}, last - first, find.index,
            static_cast<char*>(q.dst) + first * result_bytes);
  });
}

// ---- all of them ------------------------------------------------------------------------
struct reduction_op {
  static sequences sequences_of(const lockstep_call& call) { return sequences(call); }
  template <class Body>
  static lockstep_status run(const lockstep_queue& queue, const sequences& q, bool cached, const Body& body) {
    const bool floats = ordered(q.d);
    switch (kind_of(q.d).by) {
      case lib::join::sum: return floats ? add_floats(queue, q, cached, body) : add_exactly(queue, q, body);
      case lib::join::product: return floats ? multiply_floats(queue, q, body) : multiply_exactly(queue, q, body);
      case lib::join::smallest: return find_extremes<false>(queue, q, body);
      case lib::join::largest: return find_extremes<true>(queue, q, body);
    }
    return LOCKSTEP_INTERNAL;
  }

  // Rows whose results go straight to dst: of floats in the fixed order, or extremes.
  static lockstep_status rows(const lockstep_queue& queue, const sequences& q, bool tiny) {
    const lockstep_reduce_desc& d = q.d;
    switch (kind_of(d).by) {
      case lib::join::smallest: short_rows_winners<false>(queue, q, tiny); return LOCKSTEP_OK;
      case lib::join::largest: short_rows_winners<true>(queue, q, tiny); return LOCKSTEP_OK;
      case lib::join::sum:
      case lib::join::product: break;
    }
    const auto sums =
        tiny ? cpu::tiny_rows(queue.kernels).sums[float_term_of(kind_of(d), d.dtype)] : float_kernels_of(queue, d).rows;
    const auto roots = cpu::tiny_rows(queue.kernels).roots;
    if (kind_of(d).to != lib::finish::root)
      sum_short_rows(queue, q, sums);
    else if (d.dtype != LOCKSTEP_F64)
      sum_short_rows(queue, q, sums, [&](int64_t, int64_t count, double* values) { roots(values, count); });
    else
      sum_short_rows(queue, q, sums, [&](int64_t first, int64_t count, double* values) {
        for (int64_t k = 0; k < count; ++k)
          values[k] = norm_f64(queue, q, first + k, values[k], alone_again<pass::straight>{queue});
      });
    return LOCKSTEP_OK;
  }
  static lockstep_status tiny_rows(lockstep_queue* queue, const lockstep_call* call) {
    return rows(*queue, sequences(*call), true);
  }
  static lockstep_status short_rows(lockstep_queue* queue, const lockstep_call* call) {
    return rows(*queue, sequences(*call), false);
  }
};

typedef by_lanes<pass::straight, false> lanes_of_any;
constexpr auto reduce_rows = reduction_rows<reduction_op>(ref_reduce);
constexpr auto square_sum_rows = reduction_rows<reduction_op>(ref_square_sum);
}  // namespace

const lockstep_table reduce_table = {reduce_rows.data(), reduce_rows.size()};
const lockstep_table square_sum_table = {square_sum_rows.data(), square_sum_rows.size()};
const reduction_way by_lanes_way = {workspace_of<lanes_of_any>, reduce_by<reduction_op, lanes_of_any>};
const reduction_way by_columns_way = {workspace_of<by_columns>, reduce_by<reduction_op, by_columns>};
}  // namespace lockstep::cpu
