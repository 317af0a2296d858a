// square_sum.cpp (ref) - the definition: sum of squares in the fixed order
// (floats) or exactly (integers), and its correctly rounded root.
#include "../ops.hpp"
#include "../parallel.hpp"
#include "bits/reductions.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {
namespace {

double float_result(const lockstep_reduce_desc& d, const void* src, int64_t s) {
  const int64_t n = ref::length_of(d, s);
  const auto at = [&](int64_t i) { return ref::widened(src, d.dtype, ref::position(d, s, i)); };
  const double plain = ref::fixed_order_sum(n, [&](double acc, int64_t i) { return std::fma(at(i), at(i), acc); });
  if (lib::kind_of(d.reduction).to != lib::finish::root) return plain;
  // The second pass, for data whose squares overflow or lose bits in double: scaled by the
  // power of two of the largest magnitude.
  bool finite = true;
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    finite = finite && std::isfinite(at(i));
    largest = std::fmax(largest, std::fabs(at(i)));
  }
  const bool kept = plain >= 0x1p-900 && plain < INFINITY;
  if (d.dtype != LOCKSTEP_F64 || !finite || largest == 0 || kept) return std::sqrt(plain);
  const int e = largest < 0x1p-1022 ? -1022 : std::ilogb(largest);
  const double down = std::ldexp(1.0, -e), up = std::ldexp(1.0, e);
  const double scaled =
      ref::fixed_order_sum(n, [&](double acc, int64_t i) { return std::fma(at(i) * down, at(i) * down, acc); });
  return std::sqrt(scaled) * up;
}

// The correctly rounded root: schoolbook square root, two bits at a time, up to 55 bits. The
// rest of the number becomes one sticky bit. These 56 bits round to 53 as the exact root does.
double rounded_root(const ref::sum192& sum) {
  const auto bit = [&](int k) { return k >= 0 && k < 192 && ((sum.limb[k / 64] >> (k % 64)) & 1) != 0; };
  int top = 191;
  while (top >= 0 && !bit(top)) --top;
  if (top < 0) return 0.0;
  int pair = top / 2 * 2;  // the lower bit of the leading pair
  const int root_exponent = pair / 2;
  uint64_t root = 0;
  ref::uint128 remainder = 0;
  for (int digits = 0; digits < 55; ++digits, pair -= 2) {
    remainder = (remainder << 2) | static_cast<ref::uint128>(bit(pair + 1) * 2 + bit(pair));
    const ref::uint128 trial = (static_cast<ref::uint128>(root) << 2) | 1;
    root <<= 1;
    if (remainder >= trial) {
      remainder -= trial;
      root |= 1;
    }
  }
  bool sticky = remainder != 0;
  for (int k = pair + 1; k >= 0; --k) sticky = sticky || bit(k);
  return std::ldexp(static_cast<double>((root << 1) | (sticky ? 1 : 0)), root_exponent - 55);
}

}  // namespace

lockstep_status ref_square_sum(lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  const bool integer = lockstep_dtype_kind(d.dtype) != 'f';
  int64_t first_failed = -1;
  for (int64_t s = 0; s < d.count; ++s) {
    if (!integer) {
      ref::store_float(d, call->dst, s, float_result(d, call->src, s));
      continue;
    }
    ref::sum192 sum;
    for (int64_t i = 0; i < ref::length_of(d, s); ++i) {
      const ref::uint128 x = ref::magnitude(ref::integer(call->src, d.dtype, ref::position(d, s, i)));
      sum.add(x * x);
    }
    if (lib::kind_of(d.reduction).to == lib::finish::root) {
      ref::store_float(d, call->dst, s, rounded_root(sum));
      continue;
    }
    if (!ref::store_exact(d.result, call->dst, s, sum.limb[0], !sum.one_limb()) && first_failed < 0) first_failed = s;
  }
  return ref::overflowed(d.result, call->dst, first_failed, "sum of squares", "sum", ", or take NORM2");
}

}  // namespace lockstep::cpu
