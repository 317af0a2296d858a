// fixed_order.hpp - rules 3 and 6 of order id 1 written out for the references:
// lanes, leaves and tree as the definition words them, one element at a time.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "lockstep/backend.h"

namespace lockstep::cpu::ref {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

// Where element i of sequence s lies, in elements from src.
inline int64_t position(const lockstep_reduce_desc& d, int64_t s, int64_t i) {
  return d.offsets != nullptr ? (d.offsets[s] + i) * d.element_stride : s * d.sequence_stride + i * d.element_stride;
}
inline int64_t length_of(const lockstep_reduce_desc& d, int64_t s) {
  return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length;
}

// A leaf: elements [first, last) of a sequence, at most 2,048 of them.
// add(acc, i) is acc with element i entered.
template <class Add>
double leaf_sum(int64_t first, int64_t last, const Add& add) {
  double lane[128];
  for (double& value : lane) value = -0.0;
  for (int64_t i = first; i < last; ++i) lane[(i - first) % 128] = add(lane[(i - first) % 128], i);
  for (int d = 64; d >= 1; d /= 2)
    for (int l = 0; l < d; ++l) lane[l] = lane[l] + lane[l + d];
  return lane[0];
}

// Leaves [first, last) of n elements: the left half of a pair holds the largest
// power of two of leaves, which is what joining 2i with 2i+1 level by level gives.
template <class Add>
double tree_sum(int64_t first, int64_t last, int64_t n, const Add& add) {
  if (last - first == 1) return leaf_sum(first * 2048, n < last * 2048 ? n : last * 2048, add);
  int64_t left = 1;
  while (2 * left < last - first) left *= 2;
  const double a = tree_sum(first, first + left, n, add), b = tree_sum(first + left, last, n, add);
  return a + b;
}

template <class Add>
double fixed_order_sum(int64_t n, const Add& add) {
  return n == 0 ? 0.0 : tree_sum(0, (n - 1) / 2048 + 1, n, add);
}

// A float result: F64, or F32 by one more rounding; NaN is the canonical one.
inline void store_float(const lockstep_reduce_desc& d, void* dst, int64_t s, double value) {
  if (d.result == LOCKSTEP_F32)
    static_cast<uint32_t*>(dst)[s] =
        std::isnan(value) ? 0x7FC00000u : std::bit_cast<uint32_t>(static_cast<float>(value));
  else
    static_cast<uint64_t*>(dst)[s] = std::isnan(value) ? 0x7FF8000000000000u : std::bit_cast<uint64_t>(value);
}

}  // namespace lockstep::cpu::ref
