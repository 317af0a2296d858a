// oracle_sums.cpp - sums a second time: whole arrays of terms, lanes and levels; exact ones digit by digit.
#include <cmath>
#include <cstring>

#include "cases.hpp"

namespace lockstep::cases {
namespace {

__extension__ using exact = __int128;
__extension__ using magnitude = unsigned __int128;

// A term enters its lane as sum + a, or as fma(a, b, sum).
struct term {
  double a, b;
  bool fused;
};
double tree_of(const std::vector<term>& terms) {
  if (terms.empty()) return 0.0;
  std::vector<double> level;
  for (size_t begin = 0; begin < terms.size(); begin += 2048) {
    std::vector<double> lane(128, -0.0);
    for (size_t i = begin; i < begin + 2048 && i < terms.size(); ++i) {
      double& sum = lane[i % 128];
      sum = terms[i].fused ? std::fma(terms[i].a, terms[i].b, sum) : sum + terms[i].a;
    }
    for (; lane.size() > 1; lane.resize(lane.size() / 2))
      for (size_t l = 0; l < lane.size() / 2; ++l) lane[l] += lane[l + lane.size() / 2];
    level.push_back(lane[0]);
  }
  while (level.size() > 1) {
    std::vector<double> above;
    for (size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level[0];
}

term term_of(lockstep_sums_kind kind, double x, double y) {
  switch (kind) {
    case LOCKSTEP_SUMS_DOT: return {x, y, true};
    case LOCKSTEP_SUMS_SQUARED_DIFFERENCES: return {x - y, x - y, true};
    case LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES: return {std::fabs(x - y), 0, false};
    default: return {std::fabs(x), 0, false};
  }
}

exact integer_at(int dtype, const unsigned char* p, int64_t i) {
  const auto bytes = static_cast<int64_t>(lockstep_dtype_bytes(static_cast<lockstep_dtype>(dtype)));
  uint64_t word = 0;
  std::memcpy(&word, p + i * bytes, static_cast<size_t>(bytes));
  const char kind = lockstep_dtype_kind(static_cast<lockstep_dtype>(dtype));
  if (kind == 'b') return word != 0;
  const exact value = word, turn = static_cast<exact>(1) << (8 * bytes);
  return kind == 'i' && value >= turn / 2 ? value - turn : value;
}

// Signed digits of 32 bits, carried only at the end.
struct digits {
  int64_t of[4] = {};
  void add(magnitude term, bool negative) {
    for (int k = 0; k < 4; ++k) {
      const auto digit = static_cast<int64_t>(static_cast<uint64_t>(term >> (32 * k)) & 0xFFFFFFFFu);
      of[k] += negative ? -digit : digit;
    }
  }
  // What fits of the sum.
  bool store(bool u64, unsigned char* out) const {
    uint64_t low = 0;
    exact carry = 0;
    bool above = false, below = false;
    uint64_t upper[2];
    for (int k = 0; k < 4; ++k) {
      const exact value = of[k] + carry;
      const auto digit = static_cast<uint64_t>(value) & 0xFFFFFFFFu;
      carry = (value - static_cast<exact>(digit)) / (exact{1} << 32);
      if (k < 2)
        low |= digit << (32 * k);
      else
        upper[k - 2] = digit;
    }
    const bool negative = carry < 0;
    const uint64_t sign = negative ? 0xFFFFFFFFu : 0;
    const bool in_64 = upper[0] == sign && upper[1] == sign && (carry == 0 || carry == -1);
    if (u64)
      above = !in_64;  // a sum of U64 terms is not negative
    else if (!in_64 || (low >> 63 != 0) != negative)
      (negative ? below : above) = true;
    const uint64_t most = u64 ? UINT64_MAX : static_cast<uint64_t>(INT64_MAX);
    const uint64_t result = above ? most : below ? static_cast<uint64_t>(INT64_MIN) : low;
    std::memcpy(out, &result, sizeof result);
    return !above && !below;
  }
};

}  // namespace

expectation oracle_sums(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const lockstep_sums_desc& d = c.sums;
  const bool floats = lockstep_dtype_kind(d.dtype) == 'f', two = d.kind <= LOCKSTEP_SUMS_ABSOLUTE_DIFFERENCES;
  expectation all;
  for (int64_t s = 0; s < d.count; ++s) {
    const auto u = static_cast<size_t>(s);
    const int64_t begin = c.offsets.empty() ? 0 : c.offsets[u];
    const int64_t n = c.offsets.empty() ? d.length : c.offsets[u + 1] - begin;
    const auto in_src = [&](int64_t i) {
      return (begin + i) * d.element_stride + (c.offsets.empty() ? s * d.sequence_stride : 0);
    };
    const auto in_other = [&](int64_t i) {
      return (begin + i) * d.other_element_stride + (c.offsets.empty() ? s * d.other_sequence_stride : 0);
    };
    if (d.kind == LOCKSTEP_SUMS_DIGEST) {
      const auto bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
      std::vector<unsigned char> packed;
      for (int64_t i = 0; i < n; ++i)
        packed.insert(packed.end(), src + in_src(i) * bytes, src + (in_src(i) + 1) * bytes);
      const uint64_t missing = (8 - packed.size() % 8) % 8;
      packed.resize(packed.size() + missing);
      uint64_t sums[2] = {};
      for (size_t w = 0; w < packed.size() / 8; ++w) {
        uint64_t x = 0;
        for (size_t k = 8; k-- > 0;) x = x << 8 | packed[8 * w + k];
        const bool last = w + 1 == packed.size() / 8;
        x += (w + 1 + static_cast<uint64_t>(d.correction * bytes / 8)) * 11400714819323198485u;
        x += (static_cast<uint64_t>(d.dtype) * 16 + (last ? missing : 0)) * 14029467366897019727u;
        x = (x ^ x / 1073741824) * 13787848793156543929u;
        x = (x ^ x / 134217728) * 10723151780598845931u;
        x ^= x / 2147483648;
        const uint64_t y = (x ^ x / 4294967296) * 15485907386658061715u;
        sums[0] += x, sums[1] += y ^ y / 4294967296;
      }
      std::memcpy(dst + 16 * s, sums, 16);
    } else if (d.kind == LOCKSTEP_SUMS_MEAN_VARIANCE) {
      std::vector<double> x;
      for (int64_t i = 0; i < n; ++i) x.push_back(float_element(d.dtype, src, in_src(i)));
      double mean = NAN, squares = NAN;
      if (n > 0) oracle_moments(x, d.dtype == LOCKSTEP_F64, mean, squares);
      store_element(d.result, dst, 2 * s, mean);
      store_element(d.result, dst, 2 * s + 1, n > d.correction ? squares / static_cast<double>(n - d.correction) : NAN);
    } else if (floats) {
      std::vector<term> terms;
      for (int64_t i = 0; i < n; ++i)
        terms.push_back(term_of(d.kind, float_element(d.dtype, src, in_src(i)),
                                two ? float_element(d.dtype, c.other.data(), in_other(i)) : 0));
      store_element(d.result, dst, s, tree_of(terms));
    } else {
      digits sum;
      for (int64_t i = 0; i < n; ++i) {
        const exact x = integer_at(d.dtype, src, in_src(i));
        const exact y = two ? integer_at(d.dtype, c.other.data(), in_other(i)) : 0;
        const exact apart = x > y ? x - y : y - x;
        if (d.kind == LOCKSTEP_SUMS_DOT)
          sum.add(static_cast<magnitude>(x < 0 ? -x : x) * static_cast<magnitude>(y < 0 ? -y : y), (x < 0) != (y < 0));
        else
          sum.add(static_cast<magnitude>(apart) *
                      (d.kind == LOCKSTEP_SUMS_SQUARED_DIFFERENCES ? static_cast<magnitude>(apart) : magnitude{1}),
                  false);
      }
      if (!sum.store(d.dtype == LOCKSTEP_U64, dst + 8 * u) && all.status == LOCKSTEP_OK) all = {LOCKSTEP_OVERFLOW, s};
    }
  }
  return all;
}

}  // namespace lockstep::cases
