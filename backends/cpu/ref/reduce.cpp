// reduce.cpp (ref) - the definition: sum in the fixed order (floats) or exactly
// (integers); min, max, argmin, argmax by comparing one element after another.
#include "../ops.hpp"
#include "../parallel.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
bool is_nan(T x) {
  return x != x;
}

// Whether x comes before y in the order of MIN (smaller) or MAX (larger), where
// NaN is beyond everything and -0.0 < +0.0.
template <class T>
bool wins(T x, T y, bool largest) {
  if (is_nan(x) || is_nan(y)) return is_nan(x) && !is_nan(y);
  if constexpr (std::is_floating_point_v<T>)
    if (x == y) return largest ? std::signbit(y) && !std::signbit(x) : std::signbit(x) && !std::signbit(y);
  return largest ? x > y : x < y;
}

// at(i): element i of sequence s, as a double or as an integer that holds all of them.
template <class At>
bool reduce_one(const lockstep_reduce_desc& d, void* dst, int64_t s, int64_t n, const At& at) {
  using T = decltype(at(0));
  if (d.reduction == LOCKSTEP_SUM) {
    if constexpr (std::is_floating_point_v<T>) {
      ref::store_float(d, dst, s, ref::fixed_order_sum(n, [&](double acc, int64_t i) { return acc + at(i); }));
      return true;
    } else {
      ref::int128 sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += at(i);
      return ref::store_exact(d.result, dst, s, sum);
    }
  }
  if (n == 0) return false;
  const bool largest = d.reduction == LOCKSTEP_MAX || d.reduction == LOCKSTEP_ARGMAX;
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (wins(at(i), at(best), largest)) best = i;
  if (d.reduction == LOCKSTEP_ARGMIN || d.reduction == LOCKSTEP_ARGMAX)
    static_cast<int64_t*>(dst)[s] = best;
  else if constexpr (std::is_floating_point_v<T>)
    ref::store(d.dtype, dst, s, at(best));
  else
    ref::store_integer(d.dtype, dst, s, at(best));
  return true;
}

}  // namespace

lockstep_status ref_reduce(lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  int64_t failed_first = -1;
  for (int64_t s = 0; s < d.count; ++s) {
    const int64_t n = ref::length_of(d, s);
    const auto place = [&](int64_t i) { return ref::position(d, s, i); };
    const bool done =
        lockstep_dtype_kind(d.dtype) == 'f'
            ? reduce_one(d, call->dst, s, n, [&](int64_t i) { return ref::widened(call->src, d.dtype, place(i)); })
            : reduce_one(d, call->dst, s, n, [&](int64_t i) { return ref::integer(call->src, d.dtype, place(i)); });
    if (!done && failed_first < 0) failed_first = s;
  }
  if (failed_first < 0) return LOCKSTEP_OK;
  if (d.reduction == LOCKSTEP_SUM)
    return failed(LOCKSTEP_OVERFLOW,
                  "the exact sum of sequence {} does not fit {}, dst[{}] holds {}; sum shorter sequences or floats",
                  failed_first, ref::exact_name(d.result), failed_first,
                  ref::exact_text(d.result, call->dst, failed_first));
  return failed(
      LOCKSTEP_EMPTY,
      "sequence {} is empty and has no minimum or maximum, dst[{}] is left as it was; give every sequence an element",
      failed_first, failed_first);
}

}  // namespace lockstep::cpu
