// joinables.cpp - joins the partial results of two neighbouring ranges of members (join.hpp): forests by the fixed
// tree, integer sums exactly, extremes by comparison. Every sum made here is one of the fixed order.
#include <cmath>
#include <cstring>

#include "../bits/exact.hpp"
#include "reduce.hpp"

namespace lockstep::ranks {

joinable reduce_plan::magnitude_values() const {
  joinable j;
  j.bytes = sizeof(double);
  j.values = [](int32_t, int32_t) -> size_t { return 1; };
  j.join = [](const joinable::part& low, const joinable::part& high, int64_t n, char* out) {
    for (int64_t q = 0; q < n; ++q)
      reinterpret_cast<double*>(out)[q] =
          std::fmax(reinterpret_cast<const double*>(low.data)[q], reinterpret_cast<const double*>(high.data)[q]);
  };
  return j;
}

joinable reduce_plan::partial_values() const {
  const auto any = [this](int32_t a, int32_t b) {
    if (cut_axis < 0) return length != 0;
    return range_of(a).first < range_of(b - 1).second;
  };
  joinable j;
  j.bytes = partial_bytes;
  if (how == family::tree) {
    j.values = [this](int32_t a, int32_t b) { return tiles_of(a, b).size(); };
    j.join = [this](const joinable::part& low, const joinable::part& high, int64_t n, char* out) {
      forest f(n, reinterpret_cast<double*>(out));
      for (const joinable::part* p : {&low, &high}) {
        const char* from = p->data;
        for (const subtree& t : tiles_of(p->first, p->last)) {
          std::memcpy(f.top(), from, static_cast<size_t>(n) * sizeof(double));
          from += p->pitch;
          f.push({t.level, t.index});
        }
      }
    };
    return j;
  }
  j.values = [any](int32_t a, int32_t b) -> size_t { return any(a, b) ? 1 : 0; };
  const bool exact = how == family::exact, largest = reduction == LOCKSTEP_MAX || reduction == LOCKSTEP_ARGMAX;
  j.join = [any, exact, largest](const joinable::part& low, const joinable::part& high, int64_t n, char* out) {
    const bool left = any(low.first, low.last), right = any(high.first, high.last);
    const size_t bytes = static_cast<size_t>(n) * (exact ? sizeof(wide_sum) : sizeof(winner));
    if (!left || !right) {
      if (left || right) std::memcpy(out, (left ? low : high).data, bytes);
      return;
    }
    for (int64_t q = 0; q < n; ++q) {
      if (exact) {
        wide_sum a = reinterpret_cast<const wide_sum*>(low.data)[q];
        const wide_sum& b = reinterpret_cast<const wide_sum*>(high.data)[q];
        uint64_t carry = 0;
        for (int k = 0; k < 3; ++k) {
          const order::uint128 digit = static_cast<order::uint128>(a.limb[k]) + b.limb[k] + carry;
          a.limb[k] = static_cast<uint64_t>(digit);
          carry = static_cast<uint64_t>(digit >> 64);
        }
        reinterpret_cast<wide_sum*>(out)[q] = a;
        continue;
      }
      // The later members' element is taken only if it is better, so that a tie keeps the earlier index.
      const winner &a = reinterpret_cast<const winner*>(low.data)[q],
                   &b = reinterpret_cast<const winner*>(high.data)[q];
      const bool better = largest ? b.key > a.key : b.key < a.key;
      reinterpret_cast<winner*>(out)[q] = better ? b : a;
    }
  };
  return j;
}

}  // namespace lockstep::ranks
