// reduce.cpp (ref) - the definition: sums and products in the fixed order (floats) or exactly
// (integers), counts, extremes by comparing one element after another.
#include "../ops.hpp"
#include "../parallel.hpp"
#include "bits/reductions.hpp"
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

// The exact product; where it passes 2^64, plus or minus 2^64.
template <class At>
ref::int128 product_of(int64_t n, const At& at) {
  ref::uint128 size = 1;
  bool negative = false, zero = false;
  for (int64_t i = 0; i < n; ++i) {
    const ref::int128 x = at(i);
    zero = zero || x == 0;
    negative = negative != (x < 0);
    if (!zero) size *= static_cast<ref::uint128>(x < 0 ? -x : x);
    if (size >> 64 != 0) size = static_cast<ref::uint128>(1) << 64;
  }
  const auto value = static_cast<ref::int128>(zero ? 0 : size);
  return negative ? -value : value;
}

// at(i): element i of sequence s, as a double or as an integer that holds all of them.
template <class At>
bool reduce_one(const lockstep_reduce_desc& d, void* dst, int64_t s, int64_t n, const At& at) {
  using T = decltype(at(0));
  const lib::reduction_kind& kind = lib::kind_of(d.reduction);
  const bool numbers = kind.of == lib::term::number;
  if (kind.of == lib::term::truth) {
    int64_t truths = 0;
    for (int64_t i = 0; i < n; ++i) truths += at(i) != 0 ? 1 : 0;
    if (kind.to == lib::finish::value) return ref::store_exact(d.result, dst, s, truths);
    static_cast<uint8_t*>(dst)[s] = (kind.to == lib::finish::any ? truths != 0 : truths == n) ? 1 : 0;
    return true;
  }
  if (!kind.extreme()) {
    const bool product = kind.by == lib::join::product;
    if constexpr (std::is_floating_point_v<T>) {
      const auto add = [&](double acc, int64_t i) { return acc + (numbers && is_nan(at(i)) ? 0.0 : at(i)); };
      const auto multiply = [&](double acc, int64_t i) { return acc * at(i); };
      ref::store_float(d, dst, s, product ? ref::fixed_order_product(n, multiply) : ref::fixed_order_sum(n, add));
      return true;
    } else {
      if (product) return ref::store_exact(d.result, dst, s, product_of(n, at));
      ref::int128 sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += at(i);
      return ref::store_exact(d.result, dst, s, sum);
    }
  }
  if (n == 0) return false;
  const bool largest = kind.by == lib::join::largest;
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i)
    if (numbers ? is_nan(at(best)) || (!is_nan(at(i)) && wins(at(i), at(best), largest))
                : wins(at(i), at(best), largest))
      best = i;
  if (kind.to == lib::finish::index)
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
  if (const lib::join by = lib::kind_of(d.reduction).by; by == lib::join::sum || by == lib::join::product) {
    const bool sum = by == lib::join::sum;
    return ref::overflowed(d.result, call->dst, failed_first, sum ? "sum" : "product", sum ? "sum" : "multiply");
  }
  return failed(
      LOCKSTEP_EMPTY,
      "sequence {} is empty and has no minimum or maximum, dst[{}] is left as it was; give every sequence an element",
      failed_first, failed_first);
}

}  // namespace lockstep::cpu
