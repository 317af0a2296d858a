// scan_kinds.hpp - what a scan is made of, for scan.cpp. A kind has
//   value, before            what a leaf gives; push(value), total(): what stands before the next leaf
//   of_leaf(src, n)          a leaf's value; src packed
//   scan(leaf, total, sequence)   a leaf's results; gives what stands behind it if the kind `runs`
//   columns(leaves, before, entering, more, sequence)   the same for neighbouring columns; more: leaves follow
//   last(src, n, total)      the result of a leaf's last element: where results are shifted, the next one's first
//   put(dst, result, sequence), first()   what stands before the first element
//   nothing()                what stands before the first leaf
//   resume(d, sequence, before), resumed(d, sequence)   what `before` says for the first leaf and the first element
//   most_columns             how many columns() takes at once
//   runs                     whether the value before an element follows from the value before its predecessor
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>

#include "bits/order_rows.hpp"
#include "bits/stored_results.hpp"
#include "folds.hpp"
#include "scan_kernels.hpp"
#include "terms.hpp"

namespace lockstep::cpu {

// ---- float sums ---------------------------------------------------------------------
struct float_scan {
  static constexpr bool runs = false;
  static constexpr int64_t most_columns = scan_columns;
  typedef double value;
  struct before {
    order::tree<double> tree;  // its parts are not cleared: they take half a KiB per column
    void push(double leaf_sum) { tree.push(leaf_sum); }
    double total() const { return tree.count == 0 ? -0.0 : tree.total(); }
  };
  lockstep_dtype dtype, result;
  const scan_kernels& kernels;
  const float_kernels& sums;

  const auto& of_type() const { return kernels.of[dtype - LOCKSTEP_F16]; }
  double of_leaf(const void* src, int64_t n) const {
    double sum;
    sums.rows({src, n, n, nullptr}, 1, &sum);
    return sum;
  }
  double scan(const scanned_leaf& leaf, double total, int64_t) const {
    of_type().to[result - LOCKSTEP_F16](leaf, total);
    return total;
  }
  void columns(scanned_columns c, before* state, double* entering, bool more, int64_t) const {
    double total[scan_columns], leaf_sums[scan_columns];
    for (int64_t k = 0; k < c.count; ++k) total[k] = state[k].total();
    c.total = total, c.entering = entering, c.sums = more ? leaf_sums : nullptr;
    of_type().columns[result - LOCKSTEP_F16](c);
    for (int64_t k = 0; more && k < c.count; ++k) state[k].push(leaf_sums[k]);
  }
  double last(const void* src, int64_t n, double total) const { return of_type().last(src, n, total); }
  double first() const { return 0.0; }
  static const double* of(const lockstep_scan_desc& d, int64_t s) {
    return static_cast<const double*>(d.before) + s * (1 + std::popcount(static_cast<uint64_t>(d.first / order::leaf)));
  }
  void resume(const lockstep_scan_desc& d, int64_t s, before& b) const {
    const double* subtree = of(d, s) + 1;
    b.tree.count = static_cast<uint64_t>(d.first / order::leaf);
    for (int level = 63; level >= 0; --level)
      if ((b.tree.count >> level & 1) != 0) b.tree.part[level] = *subtree++;
  }
  double resumed(const lockstep_scan_desc& d, int64_t s) const { return *of(d, s); }
  static double nothing() { return -0.0; }
  void put(void* dst, double y, int64_t) const { kernels.put[result - LOCKSTEP_F16](dst, y); }
};

// ---- what runs ----------------------------------------------------------------------
template <class Value>
struct running_before {
  Value sum;
  Value total() const { return sum; }
  void becomes(Value behind) { sum = behind; }
};

template <class T>
struct exact_scan {
  static constexpr bool runs = true;
  static constexpr int64_t most_columns = running_most_columns;
  typedef int128 value;
  struct before : running_before<int128> {
    before() : running_before{0} {}
    void push(int128 leaf_sum) { sum += leaf_sum; }
  };
  first_failure& overflow;
  const running_kernels& near;

  // 64 bits do as long as no element of a leaf, which is below 2^51 if it is near, can carry the sum out of I64.
  static constexpr int near_bits = 51;
  static constexpr int64_t fewest = sizeof(T) == 4 ? 0 : 16;  // shorter rows are added sooner than looked at
  static bool is_near(int128 sum) {
    constexpr int128 most = int128{INT64_MAX} - (int128{order::leaf} << near_bits);
    return sum < most && sum > -most;
  }
  static bool are_near(const T* x, int64_t n) {
    if (sizeof(T) == 4) return true;
    uint64_t far = 0;
    for (int64_t i = 0; i < n; ++i) far |= static_cast<uint64_t>(x[i]) + (uint64_t{1} << near_bits);
    return far >> (near_bits + 1) == 0;
  }
  int128 of_leaf(const void* src, int64_t n) const {
    const auto* x = static_cast<const T*>(src);
    if (are_near(x, n)) return near.of_leaf(src, n);
    // Half of an i64, and what a leaf of such halves sums to, fit i64: two plain sums.
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < n; ++i) high += int64_t{x[i]} >> 32, low += x[i] & 0xFFFFFFFF;
    return (static_cast<int128>(high) << 32) + low;
  }
  int128 scan(const scanned_leaf& leaf, int128 before, int64_t s) const {
    const auto* first = static_cast<const T*>(leaf.src);
    const bool packed = leaf.src_stride == leaf.n;  // looked at as one row
    const int64_t rows = packed ? 1 : leaf.count, length = packed ? leaf.count * leaf.n : leaf.n;
    bool all_near = is_near(before) && leaf.n >= fewest;
    for (int64_t k = 0; all_near && k < rows; ++k) all_near = are_near(first + k * leaf.src_stride, length);
    if (all_near) return near.scan(leaf, static_cast<int64_t>(before));
    int128 sum = before;
    for (int64_t k = 0; k < leaf.count; ++k) {
      const auto* x = first + k * leaf.src_stride;
      auto* to = static_cast<int64_t*>(leaf.dst) + k * leaf.dst_stride + leaf.shifted;
      sum = before;
      for (int64_t i = 0; i < leaf.n; ++i) {
        sum += x[i];
        if (i < leaf.n - leaf.shifted) put(to + i, sum, s + k);
      }
    }
    return sum;
  }
  // A few rows of all columns, then the next ones, which stay in the cache from the look at them to their sums.
  void columns(const scanned_columns& c, before* state, int128* entering, bool, int64_t s) const {
    constexpr int64_t some = sizeof(T) == 4 ? order::leaf : 16;
    scanned_columns part = c;
    for (int64_t at = 0; at < c.n; at += some) {
      part.src = static_cast<const T*>(c.src) + at * c.stride;
      part.dst = static_cast<int64_t*>(c.dst) + at * c.dst_stride;
      part.n = std::min(some, c.n - at);
      columns_of(part, state, s);
    }
    for (int64_t k = 0; k < c.count; ++k) entering[k] = state[k].sum;
  }
  void columns_of(const scanned_columns& c, before* state, int64_t s) const {
    const auto* x = static_cast<const T*>(c.src);
    bool all_near = true;
    int64_t sums[most_columns];
    for (int64_t k = 0; k < c.count; ++k) {
      all_near = all_near && is_near(state[k].sum);
      sums[k] = static_cast<int64_t>(state[k].sum);
    }
    for (int64_t i = 0; all_near && i < c.n; ++i) all_near = are_near(x + i * c.stride, c.count);
    if (all_near) {
      near.columns(c, sums);
      for (int64_t k = 0; k < c.count; ++k) state[k].sum = sums[k];
      return;
    }
    auto* to = static_cast<int64_t*>(c.dst);
    for (int64_t i = 0; i < c.n; ++i, x += c.stride, to += c.dst_stride)
      for (int64_t k = 0; k < c.count; ++k) {
        const int128 before_it = state[k].sum;
        state[k].sum += x[k];
        put(to + k, c.shifted ? before_it : state[k].sum, s + k);
      }
  }
  int128 last(const void* src, int64_t n, int128 sum) const { return sum + of_leaf(src, n); }
  int128 first() const { return 0; }
  int128 resumed(const lockstep_scan_desc& d, int64_t s) const {
    int128 sum;
    std::memcpy(&sum, static_cast<const char*>(d.before) + s * static_cast<int64_t>(sizeof sum), sizeof sum);
    return sum;
  }
  void resume(const lockstep_scan_desc& d, int64_t s, before& b) const { b.sum = resumed(d, s); }
  static int128 nothing() { return 0; }
  void put(void* dst, int128 sum, int64_t s) const {
    const bool fits = sum >= INT64_MIN && sum <= INT64_MAX;
    *static_cast<int64_t*>(dst) = fits ? static_cast<int64_t>(sum) : sum < 0 ? INT64_MIN : INT64_MAX;
    if (!fits) overflow.at(s);
  }
};

template <bool largest>
struct extreme_scan {
  static constexpr bool runs = true;
  static constexpr int64_t most_columns = running_most_columns;
  typedef int64_t value;
  static int64_t better(int64_t a, int64_t b) { return (a > b) == largest ? a : b; }
  struct before : running_before<int64_t> {
    before() : running_before{largest ? INT64_MIN : INT64_MAX} {}
    void push(int64_t leaf_best) { sum = better(sum, leaf_best); }
  };
  const running_kernels& kernels;

  int64_t of_leaf(const void* src, int64_t n) const { return kernels.of_leaf(src, n); }
  int64_t scan(const scanned_leaf& leaf, int64_t best, int64_t) const { return kernels.scan(leaf, best); }
  void columns(const scanned_columns& c, before* state, int64_t* entering, bool, int64_t) const {
    for (int64_t k = 0; k < c.count; ++k) entering[k] = better(state[k].sum, kernels.nothing);
    kernels.columns(c, entering);
    for (int64_t k = 0; k < c.count; ++k) state[k].sum = entering[k];
  }
  int64_t last(const void* src, int64_t n, int64_t best) const { return better(best, of_leaf(src, n)); }
  int64_t first() const { return kernels.nothing; }
  int64_t resumed(const lockstep_scan_desc& d, int64_t s) const {
    return better(kernels.nothing, order::key_at(d.dtype, d.before, s, largest ? INT64_MAX : INT64_MIN));
  }
  void resume(const lockstep_scan_desc& d, int64_t s, before& b) const { b.sum = resumed(d, s); }
  int64_t nothing() const { return kernels.nothing; }
  void put(void* dst, int64_t best, int64_t) const { kernels.put(dst, best); }
};

}  // namespace lockstep::cpu
