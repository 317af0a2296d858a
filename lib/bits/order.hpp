// order.hpp - order id 1: the fixed order of every sum, square, norm, comparison
// and stencil tap, as code. Backends include it. Kernels that join lanes across
// registers or unroll taps have their own loops; tests/check/order.cpp compares
// their bits with this file.
//
// A float sum is computed in double over a tree that does not depend on how the
// work is divided:
//   leaf   2,048 consecutive elements of a sequence, seen as 16 rows of 128
//          lanes; lane l takes elements l, l+128, l+256, ... in that order
//   lanes  join in steps d = 64, 32, 16, 8, 4, 2, 1: s[l] = s[l] + s[l+d], l < d
//   leaves join by the binary tree over the leaf index: 2i with 2i+1; an odd one
//          out moves up unchanged
// Accumulators start at -0.0 and missing elements count as -0.0, the exact
// identity of addition, so padding and skipping are the same thing. An empty sum
// is +0.0. Squares enter by fma(x, x, acc).
//
// The order of normalizations and scans is in order_rows.hpp.
//
// 128 lanes fill 16 AVX-512 registers of 8 doubles, or 32 GPU lanes with one 16-byte
// load each. With 16 rows a leaf of f32 is 8 KiB and stays in L1. Every op here is
// limited by memory, so the additions of the tree cost no time.
#pragma once

#include <stdint.h>

#if defined(__CUDACC__)
#define LOCKSTEP_HD __host__ __device__ __forceinline__
#else
#define LOCKSTEP_HD inline
#endif

namespace lockstep::order {

inline constexpr int id = 1;
inline constexpr int lanes = 128;
inline constexpr int rows = 16;
inline constexpr int64_t leaf = int64_t{lanes} * rows;

LOCKSTEP_HD int64_t leaves(int64_t n) { return n / leaf + (n % leaf != 0); }

// The value of a leaf: its lanes joined, in place.
template <class T>
LOCKSTEP_HD constexpr T join_lanes(T* lane) {
  for (int d = lanes / 2; d >= 1; d /= 2)
    for (int l = 0; l < d; ++l) lane[l] = lane[l] + lane[l + d];
  return lane[0];
}

// Joins leaves, or aligned subtrees of 2^level leaves, that arrive in index
// order: a binary counter whose digits are partial sums.
template <class T = double>
struct tree {
  T part[64];
  uint64_t count = 0;  // leaves pushed; bit k set: part[k] holds a subtree of 2^k leaves

  LOCKSTEP_HD void push(T value, int level = 0) {
    const uint64_t before = count;
    count += uint64_t{1} << level;
    for (; (before >> level) & 1; ++level) value = part[level] + value;
    part[level] = value;
  }
  // The sum of the whole tree: the remaining subtrees join from the smallest up.
  LOCKSTEP_HD T total() const {
    T sum{};
    bool first = true;
    int level = 0;
    for (uint64_t left = count; left != 0; left >>= 1, ++level) {
      if (!(left & 1)) continue;
      sum = first ? part[level] : part[level] + sum;
      first = false;
    }
    return sum;  // +0.0 for an empty tree
  }
};

// Any computed result that is NaN is stored as this.
inline constexpr uint32_t nan_f32 = 0x7FC00000u;
inline constexpr uint64_t nan_f64 = 0x7FF8000000000000u;

// ---- min, max, argmin, argmax: a total order on keys ---------------------
// key(x) is an integer that grows with x: -inf < ... < -0.0 < +0.0 < ... < inf.
// If there is a NaN, it is the result, so callers give it a key beyond all others: the
// largest for max, the smallest for min.
LOCKSTEP_HD int32_t key_f32(uint32_t bits) {
  return static_cast<int32_t>(bits) >= 0 ? static_cast<int32_t>(bits) : static_cast<int32_t>(~bits ^ 0x80000000u);
}
LOCKSTEP_HD int64_t key_f64(uint64_t bits) {
  return static_cast<int64_t>(bits) >= 0 ? static_cast<int64_t>(bits)
                                         : static_cast<int64_t>(~bits ^ 0x8000000000000000u);
}

// ---- norm2 of f64: when to sum again, scaled ------------------------------
// Squares of f16, bf16 and f32 are exact in double and cannot overflow a sum.
// For f64 the plain sum is kept unless it overflowed, or is so small that a
// square may have lost bits to underflow (below 2^-900 a lost 2^-1075 could
// matter within 2^100 terms). Then every element is multiplied by 2^-e, e the
// exponent of max|x|, summed in the same order, and the root by 2^e.
inline constexpr double rescale_below = 0x1p-900;
LOCKSTEP_HD bool needs_rescale(double plain_sum, double max_abs) {
  const bool finite_nonzero = max_abs > 0.0 && max_abs <= 0x1.fffffffffffffp1023;
  return finite_nonzero && !(plain_sum >= rescale_below && plain_sum <= 0x1.fffffffffffffp1023);
}
// The e of that scaling: 2^e <= x < 2^(e+1) for a normal x > 0, and -1022 for a
// denormal one (2^1022 still lifts it far from underflow).
LOCKSTEP_HD int rescale_exponent(uint64_t bits) {
  const int biased = static_cast<int>((bits >> 52) & 0x7FF);
  return biased != 0 ? biased - 1023 : -1022;
}

// ---- stencil taps ---------------------------------------------------------
// Taps are added in increasing memory address, the first as a rounded product, each
// further one by fma(c, x, sum): axis 0 (the outermost) from -radius to -1, axis 1,
// ..., the centre once, the last axis from 1 to radius, ..., axis 0. Coefficients of
// the general form have this order too.
struct tap {
  int axis, offset;
};
LOCKSTEP_HD constexpr tap tap_of(int k, int radius, int rank) {
  const int below = radius * rank;  // taps before the centre
  if (k < below) return {k / radius, k % radius - radius};
  if (k == below) return {rank - 1, 0};
  const int above = k - below - 1;
  return {rank - 1 - above / radius, above % radius + 1};
}

// ---- stencil boundaries ---------------------------------------------------
// The element that index i (any integer) stands for on an axis of n >= 1 elements.
// Folding repeats when the distance exceeds n. CONSTANT and VALID never fold.
enum class fold { nearest = 0, mirror = 1, reflect = 2, wrap = 3 };
LOCKSTEP_HD int64_t modulo(int64_t i, int64_t n) {
  const int64_t r = i % n;
  return r < 0 ? r + n : r;
}
LOCKSTEP_HD int64_t folded(int64_t i, int64_t n, fold how) {
  if (i >= 0 && i < n) return i;
  switch (how) {
    case fold::nearest: return i < 0 ? 0 : n - 1;
    case fold::wrap: return modulo(i, n);
    case fold::mirror: {
      if (n == 1) return 0;
      const int64_t period = 2 * (n - 1), m = modulo(i, period);
      return m < n ? m : period - m;
    }
    case fold::reflect: {
      const int64_t m = modulo(i, 2 * n);
      return m < n ? m : 2 * n - 1 - m;
    }
  }
  return 0;
}

// ---- shuffles --------------------------------------------------------------
// The lane of a 32-lane warp whose value lane receives (CUDA's shfl family).
enum class shuffle { idx = 0, up = 1, down = 2, exclusive_or = 3 };
LOCKSTEP_HD int source_lane(shuffle kind, int lane, int width, int32_t operand) {
  const int segment = lane & ~(width - 1), last = segment + width - 1;
  switch (kind) {
    case shuffle::idx: return segment + (operand & (width - 1));  // width is a power of two: & is modulo
    case shuffle::up: return operand <= lane - segment ? lane - operand : lane;
    case shuffle::down: return operand <= last - lane ? lane + operand : lane;
    case shuffle::exclusive_or: return (lane ^ operand) <= last ? (lane ^ operand) : lane;
  }
  return lane;
}

}  // namespace lockstep::order
