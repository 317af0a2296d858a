// axes.hpp - a permutation as a list of axes, each with its stride on both sides;
// simplified on the host so that kernels see as few axes and as large elements as
// the memory allows.
#pragma once

#include <algorithm>
#include <cstdint>

#include "lockstep/backend.h"

namespace lockstep::cuda {

struct axis {
  int64_t count, src, dst;  // strides in elements
};

// Element (i_0, i_1, ...) moves from src + sum(i * src) to dst + sum(i * dst).
// Axes are sorted by dst stride, the largest first.
struct axes {
  const unsigned char* src;
  unsigned char* dst;
  int element_bytes;
  int rank;
  axis at[LOCKSTEP_MAX_RANK];

  int64_t elements() const;
  int fastest_src() const;  // the axis with the smallest src stride
  int fastest_dst() const { return rank - 1; }
};

// The call as it stands, without axes of one element.
axes axes_of(const lockstep_call& call);
// Fuses axes that run on into each other on both sides; takes neighbours that stay
// neighbours as one larger element, up to 16 bytes, where strides allow it and, for a
// launch, the pointers too (a variant is chosen before a plan knows its pointers).
enum class pointers { as_given, assumed_aligned };
axes simplified(axes a, pointers which);
axes simplified(const lockstep_call& call, pointers which);

// Whether a plan of one is the other's too, but for its pointers: the bytes of those within a sector count.
bool alike(const axes& a, const axes& b);

// Whether src's and dst's fastest axes are two, contiguous, and they and every stride hold whole chunks of V
// elements; addresses are the caller's.
bool whole_chunks(const axes& a, int64_t V);

// Whether both pointers are multiples of 16 bytes; a plan's, NULL, are.
inline bool in_chunks(const lockstep_call& call) {
  return (reinterpret_cast<uintptr_t>(call.src) | reinterpret_cast<uintptr_t>(call.dst)) % 16 == 0;
}

// Runs body on parts of all whose measure(part) is at most 2^31-1, cutting the
// axis that reaches farthest.
template <class Measure, class Body>
lockstep_status in_parts(const axes& all, const Measure& measure, const Body& body) {
  if (measure(all) < (int64_t{1} << 31)) return body(all);
  int longest = 0;
  const auto reach = [&](int k) { return (all.at[k].count - 1) * std::max(all.at[k].src, all.at[k].dst); };
  for (int k = 1; k < all.rank; ++k)
    if (reach(k) > reach(longest)) longest = k;
  axes half = all;
  axis& cut = half.at[longest];
  const int64_t first = cut.count / 2;
  cut.count = first;
  if (const lockstep_status status = in_parts(half, measure, body); status != LOCKSTEP_OK) return status;
  cut.count = all.at[longest].count - first;
  half.src += first * cut.src * all.element_bytes;
  half.dst += first * cut.dst * all.element_bytes;
  return in_parts(half, measure, body);
}

}  // namespace lockstep::cuda
