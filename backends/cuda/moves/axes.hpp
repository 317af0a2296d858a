// axes.hpp - what transpose, permute, convert and map have in common: the axes along which elements move, each with its
// stride on both sides. They are simplified on the host, so that kernels see few axes and large elements.
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
  int64_t span() const;     // the farthest element of src or dst
  int fastest_src() const;  // the axis with the smallest src stride
  int fastest_dst() const { return rank - 1; }
  // src and dst run along one axis each, and those are two.
  bool is_matrix() const;
  // From the n-th element of axis k on.
  void skip(int k, int64_t n) { src += n * at[k].src * element_bytes, dst += n * at[k].dst * element_bytes; }
};

// The axes of a call, without those of one element; element_bytes are src's.
axes axes_of(const lockstep_call& call);
// Axes that run on into each other on both sides are one.
axes fused(axes a);
// Fused, and neighbours that stay neighbours are one larger element, up to 16 bytes, where strides allow it and, for a
// launch, the pointers too (a variant is chosen before a plan knows its pointers).
enum class pointers { as_given, assumed_aligned };
axes simplified(axes a, pointers which);
inline axes simplified(const lockstep_call& call, pointers which) { return simplified(axes_of(call), which); }

// Whether a plan of one is the other's too, but for its pointers: the bytes of those within a sector count.
bool alike(const axes& a, const axes& b);

// Whether src's and dst's fastest axes are two, contiguous, and they and every stride hold whole chunks of V
// elements; addresses are the caller's.
bool whole_chunks(const axes& a, int64_t V);

// Whether both pointers are multiples of 16 bytes; a plan's, NULL, are.
inline bool in_chunks(const lockstep_call& call) {
  return (reinterpret_cast<uintptr_t>(call.src) | reinterpret_cast<uintptr_t>(call.dst)) % 16 == 0;
}

// Whether elements are too many, or lie too far apart, for kernels that count in 31 bits.
inline bool needs_parts(const axes& a) { return a.span() + 1 >= int64_t{1} << 31; }

// Runs body on parts that do not need parts, cutting the axis that reaches farthest.
template <class Axes, class Body>
lockstep_status in_parts(const Axes& all, const Body& body) {
  if (!needs_parts(all)) return body(all);
  int longest = 0;
  const auto reach = [&](int k) { return (all.at[k].count - 1) * std::max(all.at[k].src, all.at[k].dst); };
  for (int k = 1; k < all.rank; ++k)
    if (reach(k) > reach(longest)) longest = k;
  Axes half = all;
  const int64_t first = all.at[longest].count / 2;
  half.at[longest].count = first;
  if (const lockstep_status status = in_parts(half, body); status != LOCKSTEP_OK) return status;
  half.at[longest].count = all.at[longest].count - first;
  half.skip(longest, first);
  return in_parts(half, body);
}

}  // namespace lockstep::cuda
