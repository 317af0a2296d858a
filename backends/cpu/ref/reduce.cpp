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

void store_value(void* dst, int64_t s, int32_t x) { static_cast<int32_t*>(dst)[s] = x; }
void store_value(void* dst, int64_t s, int64_t x) { static_cast<int64_t*>(dst)[s] = x; }
void store_value(void* dst, int64_t s, float x) {
  static_cast<uint32_t*>(dst)[s] = is_nan(x) ? 0x7FC00000u : std::bit_cast<uint32_t>(x);
}
void store_value(void* dst, int64_t s, double x) {
  static_cast<uint64_t*>(dst)[s] = is_nan(x) ? 0x7FF8000000000000u : std::bit_cast<uint64_t>(x);
}

template <class T>
lockstep_status reduce(const lockstep_reduce_desc& d, const T* src, void* dst) {
  int64_t first_failed = -1;
  for (int64_t s = 0; s < d.count; ++s) {
    const int64_t n = ref::length_of(d, s);
    const auto at = [&](int64_t i) { return src[ref::position(d, s, i)]; };
    if (d.reduction == LOCKSTEP_SUM) {
      if constexpr (std::is_floating_point_v<T>) {
        ref::store_float(d, dst, s, ref::fixed_order_sum(n, [&](double acc, int64_t i) {
                           return acc + static_cast<double>(at(i));
                         }));
      } else {
        ref::int128 sum = 0;
        for (int64_t i = 0; i < n; ++i) sum += at(i);
        const bool fits = sum >= INT64_MIN && sum <= INT64_MAX;
        static_cast<int64_t*>(dst)[s] = fits ? static_cast<int64_t>(sum) : sum < 0 ? INT64_MIN : INT64_MAX;
        if (!fits && first_failed < 0) first_failed = s;
      }
      continue;
    }
    if (n == 0) {
      if (first_failed < 0) first_failed = s;
      continue;
    }
    const bool largest = d.reduction == LOCKSTEP_MAX || d.reduction == LOCKSTEP_ARGMAX;
    int64_t best = 0;
    for (int64_t i = 1; i < n; ++i)
      if (wins(at(i), at(best), largest)) best = i;
    if (d.reduction == LOCKSTEP_ARGMIN || d.reduction == LOCKSTEP_ARGMAX)
      static_cast<int64_t*>(dst)[s] = best;
    else
      store_value(dst, s, at(best));
  }
  if (first_failed < 0) return LOCKSTEP_OK;
  if (d.reduction == LOCKSTEP_SUM)
    return failed(LOCKSTEP_OVERFLOW,
                  "the exact sum of sequence {} does not fit I64, dst[{}] holds {}; sum shorter sequences or floats",
                  first_failed, first_failed, static_cast<int64_t*>(dst)[first_failed]);
  return failed(
      LOCKSTEP_EMPTY,
      "sequence {} is empty and has no minimum or maximum, dst[{}] is left as it was; give every sequence an element",
      first_failed, first_failed);
}

}  // namespace

lockstep_status ref_reduce(lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  switch (d.dtype) {
    case LOCKSTEP_I32: return reduce(d, static_cast<const int32_t*>(call->src), call->dst);
    case LOCKSTEP_I64: return reduce(d, static_cast<const int64_t*>(call->src), call->dst);
    case LOCKSTEP_F32: return reduce(d, static_cast<const float*>(call->src), call->dst);
    case LOCKSTEP_F64: return reduce(d, static_cast<const double*>(call->src), call->dst);
    default: return failed(LOCKSTEP_INTERNAL, "reduce of dtype {} reached the CPU backend", static_cast<int>(d.dtype));
  }
}

}  // namespace lockstep::cpu
