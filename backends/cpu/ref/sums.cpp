// sums.cpp (ref) - the definition: sums of terms of one array or two in the fixed order
// (floats) or exactly (integers); means and variances by pairs of leaves.
#include "../ops.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {
namespace {

struct pairs_of_sequence {
  const lockstep_sums_desc& d;
  const void* src;
  int64_t s;

  int64_t length() const { return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length; }
  int64_t in_src(int64_t i) const {
    return d.offsets != nullptr ? (d.offsets[s] + i) * d.element_stride : s * d.sequence_stride + i * d.element_stride;
  }
  int64_t in_other(int64_t i) const {
    return d.offsets != nullptr ? (d.offsets[s] + i) * d.other_element_stride
                                : s * d.other_sequence_stride + i * d.other_element_stride;
  }
  double x(int64_t i) const { return ref::widened(src, d.dtype, in_src(i)); }
  double y(int64_t i) const { return ref::widened(d.other, d.dtype, in_other(i)); }
  ref::int128 whole_x(int64_t i) const { return ref::integer(src, d.dtype, in_src(i)); }
  ref::int128 whole_y(int64_t i) const { return ref::integer(d.other, d.dtype, in_other(i)); }
};

double float_sum(const pairs_of_sequence& p) {
  return ref::fixed_order_sum(p.length(), [&](double acc, int64_t i) {
    switch (p.d.kind) {
      case LOCKSTEP_SUMS_DOT: return std::fma(p.x(i), p.y(i), acc);
      case LOCKSTEP_SUMS_SQUARED_DIFFERENCES: {
        const double apart = p.x(i) - p.y(i);
        return std::fma(apart, apart, acc);
      }
      case LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES: return acc + std::fabs(p.x(i) - p.y(i));
      default: return acc + std::fabs(p.x(i));
    }
  });
}

// Magnitudes of either sign are summed apart.
struct magnitudes : ref::sum192 {
  bool less_than(const magnitudes& other) const {
    for (int k = 2; k >= 0; --k)
      if (limb[k] != other.limb[k]) return limb[k] < other.limb[k];
    return false;
  }
  void subtract(const magnitudes& other) {
    uint64_t borrow = 0;
    for (int k = 0; k < 3; ++k) {
      const uint64_t old = limb[k], less = old - other.limb[k];
      limb[k] = less - borrow;
      borrow = old < other.limb[k] || less < borrow ? 1 : 0;
    }
  }
};
using ref::magnitude;

// The bytes of a sequence, 8 to a word, and what each word adds to the two sums.
void digest_of(const pairs_of_sequence& p, uint64_t* to) {
  const auto bytes = static_cast<int64_t>(lockstep_dtype_bytes(p.d.dtype));
  const auto byte_at = [&](int64_t b) {
    return static_cast<const unsigned char*>(p.src)[p.in_src(b / bytes) * bytes + b % bytes];
  };
  to[0] = to[1] = 0;
  const int64_t all = p.length() * bytes;
  for (int64_t begin = 0; begin < all; begin += 8) {
    uint64_t word = 0;
    int missing = 0;
    for (int k = 0; k < 8; ++k)
      if (begin + k < all)
        word |= static_cast<uint64_t>(byte_at(begin + k)) << (8 * k);
      else
        ++missing;
    const uint64_t place = static_cast<uint64_t>(p.d.correction / 8 * bytes + begin / 8);
    uint64_t x = word + (place + 1) * 0x9E3779B97F4A7C15u +
                 static_cast<uint64_t>(16 * p.d.dtype + missing) * 0xC2B2AE3D27D4EB4Fu;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    const uint64_t y = (x ^ x >> 32) * 0xD6E8FEB86659FD93u;
    to[0] += x;
    to[1] += y ^ y >> 32;
  }
}

// False where the sum does not fit, and dst has the nearest value.
bool integer_sum(const pairs_of_sequence& p, void* dst) {
  magnitudes above, below;
  for (int64_t i = 0; i < p.length(); ++i) {
    const ref::int128 x = p.whole_x(i), y = p.d.other != nullptr ? p.whole_y(i) : 0;
    switch (p.d.kind) {
      case LOCKSTEP_SUMS_DOT: ((x < 0) != (y < 0) ? below : above).add(magnitude(x) * magnitude(y)); break;
      case LOCKSTEP_SUMS_SQUARED_DIFFERENCES: above.add(magnitude(x - y) * magnitude(x - y)); break;
      case LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES: above.add(magnitude(x - y)); break;
      default: above.add(magnitude(x));
    }
  }
  const bool negative = above.less_than(below);
  magnitudes sum = negative ? below : above;
  sum.subtract(negative ? above : below);
  const bool beyond = !sum.one_limb();
  const ref::int128 value = negative ? -static_cast<ref::int128>(sum.limb[0]) : sum.limb[0];
  if (beyond && negative) {
    (void)ref::store_exact(p.d.result, dst, p.s, INT64_MIN);
    return false;
  }
  return ref::store_exact(p.d.result, dst, p.s, value, beyond);
}

struct part {
  double count, sum, squares;  // squares of what is left without the mean
};
part part_of(int64_t first, int64_t last, const pairs_of_sequence& p) {
  if (last - first == 1) {
    const int64_t begin = first * 2048, end = p.length() < last * 2048 ? p.length() : last * 2048;
    const double count = static_cast<double>(end - begin);
    const double sum = ref::leaf_of<ref::adding>(begin, end, [&](double acc, int64_t i) { return acc + p.x(i); });
    const double mean = sum / count;
    return {count, sum, ref::leaf_of<ref::adding>(begin, end, [&](double acc, int64_t i) {
              const double off = p.x(i) - mean;
              return std::fma(off, off, acc);
            })};
  }
  int64_t left = 1;
  while (2 * left < last - first) left *= 2;
  const part a = part_of(first, first + left, p), b = part_of(first + left, last, p);
  const double apart = b.sum / b.count - a.sum / a.count, count = a.count + b.count;
  const double weight = a.count * (b.count / count);
  return {count, a.sum + b.sum, (a.squares + b.squares) + (apart * apart) * weight};
}

}  // namespace

lockstep_status ref_sums(lockstep_queue*, const lockstep_call* call) {
  const lockstep_sums_desc& d = call->sums;
  int64_t first_failed = -1;
  for (int64_t s = 0; s < d.count; ++s) {
    const pairs_of_sequence p{d, call->src, s};
    const int64_t n = p.length();
    if (d.kind == LOCKSTEP_SUMS_DIGEST) {
      digest_of(p, static_cast<uint64_t*>(call->dst) + 2 * s);
    } else if (d.kind == LOCKSTEP_SUMS_MEAN_VARIANCE) {
      part all = n != 0 ? part_of(0, (n - 1) / 2048 + 1, p) : part{0, NAN, NAN};
      double mean = all.sum / static_cast<double>(n);
      if (d.dtype == LOCKSTEP_F64 && n != 0 && ref::all_equal(n, [&](int64_t i) { return p.x(i); }))
        mean = p.x(0), all.squares = 0;
      const int64_t divisor = n - d.correction;
      ref::store(d.result, call->dst, 2 * s, mean);
      ref::store(d.result, call->dst, 2 * s + 1, divisor > 0 ? all.squares / static_cast<double>(divisor) : NAN);
    } else if (lockstep_dtype_kind(d.dtype) == 'f') {
      ref::store(d.result, call->dst, s, float_sum(p));
    } else if (!integer_sum(p, call->dst) && first_failed < 0) {
      first_failed = s;
    }
  }
  return ref::overflowed(d.result, call->dst, first_failed);
}

}  // namespace lockstep::cpu
