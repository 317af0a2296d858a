// divide.hpp - division by a number known at launch: a multiplication and a shift
// where the hardware's own 32-bit division takes some 20 instructions.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define LOCKSTEP_BOTH __host__ __device__
#else
#define LOCKSTEP_BOTH
#endif

namespace lockstep::cuda {

// n / d for n < 2^31, 1 <= d < 2^31. With l = ceil(log2 d), the multiplier
// ceil(2^(31+l) / d) fits 32 bits and its error stays below one for such n.
// Source: Granlund and Montgomery, "Division by invariant integers using
// multiplication", 1994, section 4.
struct divider {
  uint32_t d = 1, multiplier = 0, shift = 0;

  divider() = default;
  explicit divider(int64_t by) : d(static_cast<uint32_t>(by)) {
    if (d == 1) return;
    uint32_t l = 1;
    while ((uint64_t{1} << l) < d) ++l;
    multiplier = static_cast<uint32_t>(((uint64_t{1} << (31 + l)) + d - 1) / d);
    shift = l - 1;
  }
  LOCKSTEP_BOTH uint32_t quotient(uint32_t n) const {
    if (d == 1) return n;
#if defined(__CUDA_ARCH__)
    return __umulhi(n, multiplier) >> shift;
#else
    return static_cast<uint32_t>((uint64_t{n} * multiplier) >> 32) >> shift;
#endif
  }
  // n becomes n % d; returns n / d.
  LOCKSTEP_BOTH uint32_t split(uint32_t& n) const {
    const uint32_t q = quotient(n);
    n -= q * d;
    return q;
  }
};

}  // namespace lockstep::cuda
