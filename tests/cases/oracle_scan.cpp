// oracle_scan.cpp - an independent implementation of scans: every level of the order is a whole array.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "cases.hpp"

namespace lockstep::cases {
namespace {

__extension__ using exact = __int128;
using row = std::vector<double>;

// What order id 1 gives for x: whole arrays of lanes, then whole levels.
double whole(const row& x) {
  row level;
  for (size_t begin = 0; begin < x.size(); begin += 2048) {
    row lane(128, -0.0);
    for (size_t i = begin; i < begin + 2048 && i < x.size(); ++i) lane[i % 128] += x[i];
    while (lane.size() > 1) {
      const size_t half = lane.size() / 2;
      for (size_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
      lane.resize(half);
    }
    level.push_back(lane[0]);
  }
  while (level.size() > 1) {
    row above;
    for (size_t i = 0; i + 1 < level.size(); i += 2) above.push_back(level[i] + level[i + 1]);
    if (level.size() % 2 == 1) above.push_back(level.back());
    level = above;
  }
  return level[0];
}

// Sums up to each element: doubling within groups, then two chains.
row running(const row& x) {
  row within = x;  // its group
  for (size_t step = 1; step < 8; step *= 2) {
    row next = within;
    for (size_t i = 0; i < x.size(); ++i)
      if (i % 8 >= step) next[i] = within[i - step] + within[i];
    within = next;
  }
  row in_row = within;  // its row: groups before it
  for (size_t i = 0; i < x.size(); ++i)
    if (i % 128 >= 8) {
      double before = within[i / 128 * 128 + 7];
      for (size_t g = i / 128 * 16 + 1; g < i / 8; ++g) before = before + within[g * 8 + 7];
      in_row[i] = before + within[i];
    }
  row sums(x.size());
  row leaves;
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t leaf = i / 2048;
    if (i % 2048 == 0) leaves.assign(1, leaf == 0 ? -0.0 : whole(row(x.begin(), x.begin() + static_cast<int64_t>(i))));
    double rows = -0.0;
    for (size_t r = leaf * 16; r < i / 128; ++r) rows = rows + in_row[r * 128 + 127];
    sums[i] = (leaves[0] + rows) + in_row[i];
  }
  return sums;
}

template <class T>
T load(const unsigned char* p, int64_t i) {
  T value;
  std::memcpy(&value, p + i * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}
template <class T>
void store(unsigned char* p, int64_t i, T value) {
  std::memcpy(p + i * static_cast<int64_t>(sizeof value), &value, sizeof value);
}

bool beats(double a, double b, bool largest) {
  if (std::isnan(a) || std::isnan(b)) return !std::isnan(b);
  if (a == b) return largest ? !std::signbit(a) && std::signbit(b) : std::signbit(a) && !std::signbit(b);
  return largest ? a > b : a < b;
}

}  // namespace

namespace {
row floats_before(const test_case& c, int64_t s) {
  row x;
  for (int64_t i = 0; i < c.scan.first; ++i) x.push_back(float_element(c.dtype, c.prefix.data(), s * c.scan.first + i));
  return x;
}
std::vector<exact> integers_before(const test_case& c, int64_t s) {
  std::vector<exact> x;
  for (int64_t i = s * c.scan.first; i < (s + 1) * c.scan.first; ++i)
    x.push_back(c.dtype == LOCKSTEP_I32 ? exact{load<int32_t>(c.prefix.data(), i)}
                                        : exact{load<int64_t>(c.prefix.data(), i)});
  return x;
}
}  // namespace

std::vector<unsigned char> state_of_prefix(const test_case& c) {
  const lockstep_scan_desc& d = c.scan;
  std::vector<unsigned char> state;
  const auto put = [&](const auto& value) {
    const auto* at = reinterpret_cast<const unsigned char*>(&value);
    state.insert(state.end(), at, at + sizeof value);
  };
  for (int64_t s = 0; s < d.count; ++s) {
    if (d.dtype <= LOCKSTEP_F64 && d.reduction == LOCKSTEP_SUM) {
      const row x = floats_before(c, s);
      put(running(x).back());
      // The largest subtrees that begin at the start and then behind each other.
      for (auto at = x.begin(); at != x.end();) {
        int64_t n = 2048;
        while (2 * n <= x.end() - at) n *= 2;
        put(whole(row(at, at + n)));
        at += n;
      }
    } else if (d.dtype <= LOCKSTEP_F64) {
      double best = d.reduction == LOCKSTEP_MAX ? -INFINITY : INFINITY;
      for (const double x : floats_before(c, s))
        if (beats(x, best, d.reduction == LOCKSTEP_MAX)) best = x;
      unsigned char element[8];
      store_element(c.dtype, element, 0, best);
      state.insert(state.end(), element, element + c.src.element_bytes);
    } else {
      const std::vector<exact> x = integers_before(c, s);
      exact all = d.reduction == LOCKSTEP_SUM ? 0 : x[0];
      for (const exact v : x)
        all = d.reduction == LOCKSTEP_SUM ? all + v : d.reduction == LOCKSTEP_MAX ? std::max(all, v) : std::min(all, v);
      if (d.reduction == LOCKSTEP_SUM)
        put(all);
      else if (d.dtype == LOCKSTEP_I32)
        put(static_cast<int32_t>(all));
      else
        put(static_cast<int64_t>(all));
    }
  }
  return state;
}

expectation oracle_scan(const test_case& c, const unsigned char* src, unsigned char* dst) {
  const lockstep_scan_desc& d = c.scan;
  const bool largest = d.reduction == LOCKSTEP_MAX, floats = d.dtype <= LOCKSTEP_F64, sum = d.reduction == LOCKSTEP_SUM;
  expectation all;
  for (int64_t s = 0; s < d.count; ++s) {
    const auto u = static_cast<size_t>(s);
    const int64_t n = c.offsets.empty() ? d.length : c.offsets[u + 1] - c.offsets[u];
    const auto from = [&](int64_t i) {
      return c.offsets.empty() ? s * d.sequence_stride + i * d.element_stride : (c.offsets[u] + i) * d.element_stride;
    };
    const auto to = [&](int64_t i) {
      return c.offsets.empty() ? s * d.dst_sequence_stride + i * d.dst_element_stride
                               : (c.offsets[u] + i) * d.dst_element_stride;
    };
    if (n == 0) continue;
    if (floats) {
      row x = floats_before(c, s), y;
      for (int64_t i = 0; i < n; ++i) x.push_back(float_element(d.dtype, src, from(i)));
      if (sum) {
        y = running(x);
      } else {
        y = x;
        for (size_t i = 1; i < y.size(); ++i)
          if (!beats(y[i], y[i - 1], largest)) y[i] = y[i - 1];
      }
      if (d.exclusive != 0) y.insert(y.begin(), sum ? 0.0 : largest ? -INFINITY : INFINITY);
      for (int64_t i = 0; i < n; ++i) store_element(d.result, dst, to(i), y[static_cast<size_t>(d.first + i)]);
      continue;
    }
    const bool narrow = d.dtype == LOCKSTEP_I32;
    std::vector<exact> all_x = integers_before(c, s), y;
    for (int64_t i = 0; i < n; ++i)
      all_x.push_back(narrow ? exact{load<int32_t>(src, from(i))} : exact{load<int64_t>(src, from(i))});
    for (const exact x : all_x)
      y.push_back(y.empty() ? x : sum ? y.back() + x : largest ? std::max(y.back(), x) : std::min(y.back(), x));
    if (d.exclusive != 0)
      y.insert(y.begin(), sum       ? exact{0}
                          : largest ? (narrow ? exact{INT32_MIN} : exact{INT64_MIN})
                                    : (narrow ? exact{INT32_MAX} : exact{INT64_MAX}));
    for (int64_t i = 0; i < n; ++i) {
      const exact value = y[static_cast<size_t>(d.first + i)];
      const bool fits = value >= INT64_MIN && value <= INT64_MAX;
      if (!fits && all.status == LOCKSTEP_OK) all = {LOCKSTEP_OVERFLOW, s};
      const int64_t kept = fits ? static_cast<int64_t>(value) : value < 0 ? INT64_MIN : INT64_MAX;
      if (d.result == LOCKSTEP_I32)
        store(dst, to(i), static_cast<int32_t>(kept));
      else
        store(dst, to(i), kept);
    }
  }
  return all;
}

}  // namespace lockstep::cases
