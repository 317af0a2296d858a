// scan.cpp (ref) - the definition: float sums by the places of lib/bits/order_rows.hpp, exact
// sums and extremes one element after another.
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "../ops.hpp"
#include "../parallel.hpp"
#include "bits/reductions.hpp"
#include "fixed_order.hpp"

namespace lockstep::cpu {
namespace {

int64_t length_of(const lockstep_scan_desc& d, int64_t s) {
  return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length;
}
int64_t source(const lockstep_scan_desc& d, int64_t s, int64_t i) {
  return d.offsets != nullptr ? (d.offsets[s] + i) * d.element_stride : s * d.sequence_stride + i * d.element_stride;
}
int64_t target(const lockstep_scan_desc& d, int64_t s, int64_t i) {
  return d.offsets != nullptr ? (d.offsets[s] + i) * d.dst_element_stride
                              : s * d.dst_sequence_stride + i * d.dst_element_stride;
}

double joined(const std::vector<double>& leaves, size_t first, size_t last) {
  if (last - first == 1) return leaves[first];
  size_t left = 1;
  while (2 * left < last - first) left *= 2;
  return joined(leaves, first, first + left) + joined(leaves, first + left, last);
}

// Subtrees before, as many as that number of leaves has bits that are 1, and the leaves behind them.
double joined_behind(const double* subtrees, int64_t before, const std::vector<double>& leaves) {
  struct tree {
    double sum;
    int64_t size;
  };
  std::vector<tree> trees;
  for (int bit = 62; bit >= 0; --bit)
    if ((before >> bit & 1) != 0) trees.push_back({*subtrees++, int64_t{1} << bit});
  for (const double leaf : leaves) {
    trees.push_back({leaf, 1});
    while (trees.size() > 1 && trees.back().size == trees[trees.size() - 2].size) {
      const tree last = trees.back();
      trees.pop_back();
      trees.back() = {trees.back().sum + last.sum, 2 * last.size};
    }
  }
  double sum = trees.back().sum;
  for (size_t i = trees.size() - 1; i-- > 0;) sum = trees[i].sum + sum;
  return sum;
}

// result(i, y): what stands at element i. at(i) is asked before any result of its group of 8 is given. subtrees: of the
// leaves before.
template <class At, class Result>
void running_sums(int64_t n, const double* subtrees, int64_t leaves_before, const At& at, const Result& result) {
  std::vector<double> leaves;
  for (int64_t leaf = 0; leaf < n; leaf += 2048) {
    const int64_t end = n < leaf + 2048 ? n : leaf + 2048;
    const double sum = ref::leaf_of<ref::adding>(leaf, end, [&](double acc, int64_t i) { return acc + at(i); });
    const double before = leaves_before != 0 ? joined_behind(subtrees, leaves_before, leaves)
                          : leaves.empty()   ? -0.0
                                             : joined(leaves, 0, leaves.size());
    double rows = -0.0;
    for (int64_t row = leaf; row < end; row += 128) {
      double groups = -0.0;
      for (int64_t group = row; group < end && group < row + 128; group += 8) {
        double x[8];
        for (int64_t j = 0; j < 8; ++j) x[j] = group + j < end ? at(group + j) : -0.0;
        for (int step = 1; step < 8; step *= 2)
          for (int j = 7; j >= step; --j) x[j] = x[j - step] + x[j];
        for (int64_t j = 0; j < 8 && group + j < end; ++j) result(group + j, (before + rows) + (groups + x[j]));
        groups = groups + x[7];
      }
      rows = rows + groups;
    }
    leaves.push_back(sum);
  }
}

void float_sums_of(const lockstep_scan_desc& d, const void* src, void* dst, int64_t s) {
  const int64_t n = length_of(d, s);
  std::vector<double> x(static_cast<size_t>(n)), y(static_cast<size_t>(n) + 1);
  for (int64_t i = 0; i < n; ++i) x[static_cast<size_t>(i)] = ref::widened(src, d.dtype, source(d, s, i));
  const size_t shift = d.exclusive != 0 ? 1 : 0;
  const int64_t leaves_before = d.before != nullptr ? d.first / 2048 : 0;
  const auto* before = static_cast<const double*>(d.before);
  if (before != nullptr) before += s * (1 + std::popcount(static_cast<uint64_t>(leaves_before))), y[0] = *before++;
  running_sums(
      n, before, leaves_before, [&](int64_t i) { return x[static_cast<size_t>(i)]; },
      [&](int64_t i, double sum) { y[static_cast<size_t>(i) + shift] = sum; });
  for (int64_t i = 0; i < n; ++i) ref::store(d.result, dst, target(d, s, i), y[static_cast<size_t>(i)]);
}

// False where a sum did not fit.
bool exact_sums_of(const lockstep_scan_desc& d, const void* src, void* dst, int64_t s) {
  ref::int128 sum = 0;
  if (d.before != nullptr) std::memcpy(&sum, static_cast<const char*>(d.before) + s * 16, sizeof sum);
  bool fits = true;
  for (int64_t i = 0; i < length_of(d, s); ++i) {
    const ref::int128 with = sum + ref::integer(src, d.dtype, source(d, s, i));
    if (!ref::store_exact(LOCKSTEP_I64, dst, target(d, s, i), d.exclusive != 0 ? sum : with)) fits = false;
    sum = with;
  }
  return fits;
}

// Whether x comes before y where NaN is beyond everything and -0.0 < +0.0.
bool wins(double x, double y, bool largest) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && !std::isnan(y);
  if (x == y) return std::signbit(x) != std::signbit(y) && std::signbit(y) == largest;
  return largest ? x > y : x < y;
}
void extremes_of(const lockstep_scan_desc& d, const void* src, void* dst, int64_t s) {
  const bool largest = lib::kind_of(d.reduction).by == lib::join::largest;
  if (lockstep_dtype_kind(d.dtype) == 'f') {
    double best = largest ? -INFINITY : INFINITY;
    if (d.before != nullptr) best = ref::widened(d.before, d.dtype, s);
    for (int64_t i = 0; i < length_of(d, s); ++i) {
      const double x = ref::widened(src, d.dtype, source(d, s, i)), with = wins(x, best, largest) ? x : best;
      ref::store(d.dtype, dst, target(d, s, i), d.exclusive != 0 ? best : with);
      best = with;
    }
    return;
  }
  const bool narrow = d.dtype == LOCKSTEP_I32;
  ref::int128 best = largest ? (narrow ? INT32_MIN : INT64_MIN) : (narrow ? INT32_MAX : INT64_MAX);
  if (d.before != nullptr) best = ref::integer(d.before, d.dtype, s);
  for (int64_t i = 0; i < length_of(d, s); ++i) {
    const ref::int128 x = ref::integer(src, d.dtype, source(d, s, i)),
                      with = (largest ? x > best : x < best) ? x : best;
    ref::store_integer(d.dtype, dst, target(d, s, i), d.exclusive != 0 ? best : with);
    best = with;
  }
}

}  // namespace

lockstep_status ref_scan(lockstep_queue*, const lockstep_call* call) {
  const lockstep_scan_desc& d = call->scan;
  int64_t first_failed = -1;
  for (int64_t s = 0; s < d.count; ++s) {
    if (lib::kind_of(d.reduction).extreme())
      extremes_of(d, call->src, call->dst, s);
    else if (lockstep_dtype_kind(d.dtype) == 'f')
      float_sums_of(d, call->src, call->dst, s);
    else if (!exact_sums_of(d, call->src, call->dst, s) && first_failed < 0)
      first_failed = s;
  }
  if (first_failed < 0) return LOCKSTEP_OK;
  return failed(LOCKSTEP_OVERFLOW,
                "sums of sequence {} do not fit I64, dst holds the nearest values there; scan shorter sequences or "
                "floats",
                first_failed);
}

}  // namespace lockstep::cpu
