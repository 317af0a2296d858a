// reduce.cpp - sum, min, max, argmin, argmax of sequences: dst[s] = reduction of sequence s.
// Idea    sequences are cut into chunks (the leaves of the fixed order for float sums), aligned subtrees of chunks
//         are divided among threads, partial results are joined in index order: reduction_rows.hpp. SIMD:
//         isa/float_sums.cpp, isa/exact_sums.cpp, isa/extremes.cpp.
// Moves   every element once, 4 or 8 bytes for each result
// Limit   the read limit from L3 on
// Watch   the other sequences must get their results even if one fails (overflow, empty)
// Source  lib/order.hpp
#include "ops.hpp"
#include "reductions.hpp"

namespace lockstep::cpu {
namespace {

template <class Body>
lockstep_status sum_floats(const lockstep_queue& queue, const lockstep_call& call, bool cached, const Body& body) {
  body(float_sum{terms_of(call.reduce.dtype).sum_of_floats, float_sums(queue.kernels), cached},
       results{float_results{&call}, [&](int64_t s) { store_float(&call, s, 0.0); }});
  return LOCKSTEP_OK;
}

template <class Body>
lockstep_status sum_integers(const lockstep_queue& queue, const lockstep_call& call, const Body& body) {
  first_failure overflow;
  body(exact_sum{terms_of(call.reduce.dtype).sum, exact_sums(queue.kernels)},
       results{[&](int64_t s, const wide& value, const auto&) {
                 if (!store_exact(&call, s, value)) overflow.at(s);
               },
               [&](int64_t s) { store_exact(&call, s, {}); }});
  if (!overflow.any()) return LOCKSTEP_OK;
  const int64_t s = overflow.sequence();
  return failed(LOCKSTEP_OVERFLOW,
                "the exact sum of sequence {} does not fit {}, dst[{}] holds {}; sum shorter sequences or floats", s,
                exact_name(&call), s, exact_text(&call, s));
}

bool asks_index(const lockstep_reduce_desc& d) {
  return d.reduction == LOCKSTEP_ARGMIN || d.reduction == LOCKSTEP_ARGMAX;
}

template <bool Largest>
extreme_of<Largest> extreme_in(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
  return {Largest ? terms_of(d.dtype).largest : terms_of(d.dtype).smallest, asks_index(d), extremes(queue.kernels)};
}

template <bool Largest>
struct extreme_results {
  const lockstep_call& call;
  const extreme_of<Largest>& find;
  const sequences& q;
  template <class Again>
  void operator()(int64_t s, const extreme& winner, const Again&) const {
    if (find.index)
      static_cast<int64_t*>(call.dst)[s] = find.locate(q.view(s), winner);
    else
      store_key(&call, s, winner.key);
  }
  void whole(int64_t first, const char* src, int64_t ld, int64_t count) const {
    find.kernels.of[find.term].columns(src, q.d.length, ld, count, find.index, nullptr,
                                       static_cast<char*>(call.dst) + first * (find.index ? 8 : q.bytes));
  }
};

template <bool Largest, class Body>
lockstep_status find_extremes(const lockstep_queue& queue, const lockstep_call& call, const Body& body) {
  const extreme_of<Largest> find = extreme_in<Largest>(queue, call.reduce);
  const sequences q(call);
  first_failure none;
  body(find, results{extreme_results<Largest>{call, find, q}, [&](int64_t s) { none.at(s); }});
  if (!none.any()) return LOCKSTEP_OK;
  const int64_t s = none.sequence();
  return failed(
      LOCKSTEP_EMPTY,
      "sequence {} is empty and has no minimum or maximum, dst[{}] is left as it was; give every sequence an element",
      s, s);
}

template <bool Largest>
void short_rows_winners(const lockstep_queue& queue, const lockstep_call& call, bool tiny) {
  const extreme_of<Largest> find = extreme_in<Largest>(queue, call.reduce);
  const sequences q(call);
  const int64_t result_bytes = find.index ? 8 : q.bytes;
  const auto winners = tiny ? tiny_rows(queue.kernels).extremes[find.term] : find.kernels.of[find.term].winners;
  over_short_rows(queue, q, [&](int64_t first, int64_t last) {
    winners({q.begin(first), q.d.length, q.d.sequence_stride, nullptr}, last - first, find.index,
            static_cast<char*>(call.dst) + first * result_bytes);
  });
}

struct reduce_op {
  static constexpr auto reference = ref_reduce;

  template <class Body>
  static lockstep_status run(const lockstep_queue& queue, const lockstep_call& call, bool cached, const Body& body) {
    switch (call.reduce.reduction) {
      case LOCKSTEP_SUM:
        return sums_floats(call.reduce) ? sum_floats(queue, call, cached, body) : sum_integers(queue, call, body);
      case LOCKSTEP_MAX:
      case LOCKSTEP_ARGMAX: return find_extremes<true>(queue, call, body);
      default: return find_extremes<false>(queue, call, body);
    }
  }

  static lockstep_status rows(const lockstep_queue& queue, const lockstep_call& call, bool tiny) {
    const lockstep_reduce_desc& d = call.reduce;
    if (d.reduction == LOCKSTEP_SUM)
      sum_short_rows(queue, &call, sums_of_rows(queue, terms_of(d.dtype).sum_of_floats, tiny));
    else if (d.reduction == LOCKSTEP_MAX || d.reduction == LOCKSTEP_ARGMAX)
      short_rows_winners<true>(queue, call, tiny);
    else
      short_rows_winners<false>(queue, call, tiny);
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

const lockstep_table reduce_table = reduction_table<reduce_op>;
}  // namespace lockstep::cpu
