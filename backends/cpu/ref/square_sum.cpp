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

// The exact sum of squares of up to 2^63 integers needs 189 bits.
struct sum192 {
  uint64_t limb[3] = {0, 0, 0};  // least significant first

  void add_square(ref::int128 x) {
    const auto magnitude = static_cast<ref::uint128>(x < 0 ? -x : x);
    const ref::uint128 square = magnitude * magnitude;
    const uint64_t part[3] = {static_cast<uint64_t>(square), static_cast<uint64_t>(square >> 64), 0};
    uint64_t carry = 0;
    for (int k = 0; k < 3; ++k) {
      const ref::uint128 digit = static_cast<ref::uint128>(limb[k]) + part[k] + carry;
      limb[k] = static_cast<uint64_t>(digit);
      carry = static_cast<uint64_t>(digit >> 64);
    }
  }
  bool bit(int k) const { return k >= 0 && k < 192 && ((limb[k / 64] >> (k % 64)) & 1) != 0; }
};

// The correctly rounded root: schoolbook square root, two bits at a time, up to 55 bits. The
// rest of the number becomes one sticky bit. These 56 bits round to 53 as the exact root does.
double rounded_root(const sum192& sum) {
  int top = 191;
  while (top >= 0 && !sum.bit(top)) --top;
  if (top < 0) return 0.0;
  int pair = top / 2 * 2;  // the lower bit of the leading pair
  const int root_exponent = pair / 2;
  uint64_t root = 0;
  ref::uint128 remainder = 0;
  for (int digits = 0; digits < 55; ++digits, pair -= 2) {
    remainder = (remainder << 2) | static_cast<ref::uint128>(sum.bit(pair + 1) * 2 + sum.bit(pair));
    const ref::uint128 trial = (static_cast<ref::uint128>(root) << 2) | 1;
    root <<= 1;
    if (remainder >= trial) {
      remainder -= trial;
      root |= 1;
    }
  }
  bool sticky = remainder != 0;
  for (int k = pair + 1; k >= 0; --k) sticky = sticky || sum.bit(k);
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
    sum192 sum;
    for (int64_t i = 0; i < ref::length_of(d, s); ++i)
      sum.add_square(ref::integer(call->src, d.dtype, ref::position(d, s, i)));
    if (lib::kind_of(d.reduction).to == lib::finish::root) {
      ref::store_float(d, call->dst, s, rounded_root(sum));
      continue;
    }
    const bool beyond = sum.limb[2] != 0 || sum.limb[1] != 0;
    if (!ref::store_exact(d.result, call->dst, s, sum.limb[0], beyond) && first_failed < 0) first_failed = s;
  }
  if (first_failed < 0) return LOCKSTEP_OK;
  return failed(LOCKSTEP_OVERFLOW,
                "the exact sum of squares of sequence {} does not fit {}, dst[{}] holds {}; sum shorter sequences or "
                "floats, or take NORM2",
                first_failed, ref::exact_name(d.result), first_failed,
                ref::exact_text(d.result, call->dst, first_failed));
}

}  // namespace lockstep::cpu
