// scan_kinds.hpp - what a scan is made of, for scan.cpp. A kind has
//   value, before            what a leaf gives; push(value), total(): what stands before the next leaf
//   of_leaf(src, n)          a leaf's value; src packed
//   scan(leaf, sequence)     a leaf's results
//   columns(leaves, before, entering, more, sequence)   the same for neighbouring columns; more: leaves follow
//   last(src, n, total)      the result of a leaf's last element: where results are shifted, the next one's first
//   put(dst, result, sequence), first()   what stands before the first element
//   nothing()                what stands before the first leaf
#pragma once

#include <limits>
#include <type_traits>

#include "order_rows.hpp"
#include "reductions.hpp"
#include "scan_kernels.hpp"
#include "terms.hpp"

namespace lockstep::cpu {

// ---- float sums ---------------------------------------------------------------------
struct float_scan {
  typedef double value;
  struct before {
    order::tree<double> tree = {};
    void push(double leaf_sum) { tree.push(leaf_sum); }
    double total() const { return tree.count == 0 ? -0.0 : tree.total(); }
  };
  lockstep_dtype dtype, result;
  const scan_kernels& kernels;
  const float_sum_kernels& sums;

  const auto& of_type() const { return kernels.of[dtype - LOCKSTEP_F16]; }
  double of_leaf(const void* src, int64_t n) const {
    double sum;
    sums.of[terms_of(dtype).sum_of_floats].rows({src, n, n, nullptr}, 1, &sum);
    return sum;
  }
  void scan(const scanned_leaf& leaf, double total, int64_t) const { of_type().to[result - LOCKSTEP_F16](leaf, total); }
  void columns(scanned_columns c, before* state, double* entering, bool more, int64_t) const {
    double total[scan_columns], leaf_sums[scan_columns];
    for (int64_t k = 0; k < c.count; ++k) total[k] = state[k].total();
    c.total = total, c.entering = entering, c.sums = more ? leaf_sums : nullptr;
    of_type().columns[result - LOCKSTEP_F16](c);
    for (int64_t k = 0; more && k < c.count; ++k) state[k].push(leaf_sums[k]);
  }
  double last(const void* src, int64_t n, double total) const { return of_type().last(src, n, total); }
  double first() const { return 0.0; }
  static double nothing() { return -0.0; }
  void put(void* dst, double y, int64_t) const { kernels.put[result - LOCKSTEP_F16](dst, y); }
};

// ---- exact sums -----------------------------------------------------------------------
template <class T>
struct exact_scan {
  typedef int128 value;
  struct before {
    int128 sum = 0;
    void push(int128 leaf_sum) { sum += leaf_sum; }
    int128 total() const { return sum; }
  };
  first_failure& overflow;

  int128 of_leaf(const void* src, int64_t n) const {
    const auto* x = static_cast<const T*>(src);
    // Half of an i64, and what a leaf of such halves sums to, fit i64: two plain sums.
    int64_t high = 0, low = 0;
    for (int64_t i = 0; i < n; ++i) high += x[i] >> (4 * sizeof(T)), low += x[i] & ((T{1} << (4 * sizeof(T))) - 1);
    return (static_cast<int128>(high) << (4 * sizeof(T))) + low;
  }
  void scan(const scanned_leaf& leaf, int128 sum, int64_t s) const {
    const auto* x = static_cast<const T*>(leaf.src);
    auto* to = static_cast<int64_t*>(leaf.dst) + leaf.shifted;
    const int64_t n = leaf.n - leaf.shifted;
    // As long as no element can carry the sum out of i64, 64 bits do.
    constexpr int128 most = sizeof(T) == 4 ? int128{INT64_MAX} - (int128{1} << 43) : 0;
    if (sizeof(T) == 4 && sum < most && sum > -most) {
      auto near = static_cast<int64_t>(sum);
      for (int64_t i = 0; i < n; ++i) to[i] = near += x[i];
      return;
    }
    for (int64_t i = 0; i < n; ++i) put(to + i, sum += x[i], s);
  }
  void columns(const scanned_columns& c, before* state, int128* entering, bool, int64_t s) const {
    const auto* x = static_cast<const T*>(c.src);
    auto* to = static_cast<int64_t*>(c.dst);
    bool all_near = sizeof(T) == 4;
    int64_t near[scan_columns];
    constexpr int128 most = int128{INT64_MAX} - (int128{1} << 43);
    for (int64_t k = 0; k < c.count; ++k) {
      const int128 sum = state[k].sum;
      all_near = all_near && sum < most && sum > -most;
      near[k] = static_cast<int64_t>(sum);
    }
    for (int64_t i = 0; i < c.n; ++i, x += c.stride, to += c.dst_stride) {
      if (all_near) {
        for (int64_t k = 0; k < c.count; ++k) {
          const int64_t before_it = near[k];
          near[k] += x[k];
          to[k] = c.shifted ? before_it : near[k];
        }
        continue;
      }
      for (int64_t k = 0; k < c.count; ++k) {
        const int128 before_it = state[k].sum;
        state[k].sum += x[k];
        put(to + k, c.shifted ? before_it : state[k].sum, s + k);
      }
    }
    for (int64_t k = 0; k < c.count; ++k) {
      if (all_near) state[k].sum = near[k];
      entering[k] = state[k].sum;
    }
  }
  int128 last(const void* src, int64_t n, int128 sum) const { return sum + of_leaf(src, n); }
  int128 first() const { return 0; }
  static int128 nothing() { return 0; }
  void put(void* dst, int128 sum, int64_t s) const {
    const bool fits = sum >= INT64_MIN && sum <= INT64_MAX;
    *static_cast<int64_t*>(dst) = fits ? static_cast<int64_t>(sum) : sum < 0 ? INT64_MIN : INT64_MAX;
    if (!fits && !LOCKSTEP_MUTANT("scan_overflow_lost")) overflow.at(s);
  }
};

// ---- extremes -------------------------------------------------------------------------
// An element as an integer that grows with it. Bits: the unsigned integer that holds a float, or the integer itself.
template <class Bits, Bits infinity, Bits nan>
struct float_key {
  typedef std::make_signed_t<Bits> number;
  static constexpr Bits sign = static_cast<Bits>(Bits{1} << (8 * sizeof(Bits) - 1));
  static constexpr int64_t least = static_cast<number>(static_cast<Bits>(~(sign | infinity) ^ sign));  // of -infinity
  static constexpr int64_t most = infinity;
  // The key of an element, in as many bits as it has and without a branch: loops become vectors.
  static number narrow(Bits bits, bool largest) {
    constexpr number most_of_all = std::numeric_limits<number>::max();
    const auto b = static_cast<number>(bits);
    const auto key = static_cast<number>(b ^ (b < 0 ? most_of_all : 0));
    const bool is_nan = static_cast<number>(bits & static_cast<Bits>(~sign)) > static_cast<number>(infinity);
    return is_nan ? largest ? most_of_all : std::numeric_limits<number>::min() : key;
  }
  static Bits element(number key) {
    constexpr number most_of_all = std::numeric_limits<number>::max();
    const bool is_nan = key == most_of_all || key == std::numeric_limits<number>::min();
    return is_nan ? nan : static_cast<Bits>(key ^ (key < 0 ? most_of_all : 0));
  }
  // Of 64 bits the least and the largest stand for NaN, too.
  static number narrowed(int64_t key) {
    if (key == INT64_MAX) return std::numeric_limits<number>::max();
    return key == INT64_MIN ? std::numeric_limits<number>::min() : static_cast<number>(key);
  }
  static int64_t widened(number key) {
    if (key == std::numeric_limits<number>::max()) return INT64_MAX;
    return key == std::numeric_limits<number>::min() ? INT64_MIN : key;
  }
};
template <class T>
struct integer_key {
  static constexpr int64_t least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  typedef T number;
  static T narrow(T x, bool) { return x; }
  static T element(T key) { return key; }
  static T narrowed(int64_t key) { return static_cast<T>(key); }
  static int64_t widened(T key) { return key; }
};
template <class T, class Key, bool Largest>
struct extreme_scan {
  typedef int64_t value;
  static constexpr int64_t none = Largest ? Key::least : Key::most;
  static int64_t better(int64_t a, int64_t b) { return Largest ? (a > b ? a : b) : (a < b ? a : b); }
  struct before {
    int64_t best = none;
    void push(int64_t leaf_best) { best = better(best, leaf_best); }
    int64_t total() const { return best; }
  };
  typedef typename Key::number number;
  static number better_of(number a, number b) { return Largest ? (a > b ? a : b) : (a < b ? a : b); }
  int64_t of_leaf(const void* src, int64_t n) const {
    const auto* x = static_cast<const T*>(src);
    number best = Key::narrowed(none);
    for (int64_t i = 0; i < n; ++i) best = better_of(best, Key::narrow(x[i], Largest));
    return Key::widened(best);
  }
  void scan(const scanned_leaf& leaf, int64_t from, int64_t) const {
    const auto* x = static_cast<const T*>(leaf.src);
    auto* to = static_cast<T*>(leaf.dst) + leaf.shifted;
    number best = Key::narrowed(from);
    constexpr int64_t step = 64;  // by vectors to keys and back; one after the other only between
    number keys[step];
    for (int64_t i = 0; i < leaf.n - leaf.shifted; i += step) {
      const int64_t here = std::min(step, leaf.n - leaf.shifted - i);
      for (int64_t k = 0; k < here; ++k) keys[k] = Key::narrow(x[i + k], Largest);
      for (int64_t k = 0; k < here; ++k) keys[k] = best = better_of(best, keys[k]);
      for (int64_t k = 0; k < here; ++k) to[i + k] = Key::element(keys[k]);
    }
  }
  void columns(const scanned_columns& c, before* state, int64_t*, bool, int64_t) const {
    const auto* x = static_cast<const T*>(c.src);
    auto* to = static_cast<T*>(c.dst);
    number best[scan_columns];
    for (int64_t k = 0; k < c.count; ++k) best[k] = Key::narrowed(state[k].best);
    for (int64_t i = 0; i < c.n; ++i, x += c.stride, to += c.dst_stride) {
      number own[scan_columns], given[scan_columns];  // apart from src and dst, which the compiler takes for one array
      for (int64_t k = 0; k < c.count; ++k) own[k] = Key::narrow(x[k], Largest);
      for (int64_t k = 0; k < c.count; ++k) {
        const number here = best[k];
        best[k] = better_of(here, own[k]);
        given[k] = c.shifted ? here : best[k];
      }
      for (int64_t k = 0; k < c.count; ++k) to[k] = Key::element(given[k]);
    }
    for (int64_t k = 0; k < c.count; ++k) state[k].best = Key::widened(best[k]);
  }
  int64_t last(const void* src, int64_t n, int64_t best) const { return better(best, of_leaf(src, n)); }
  int64_t first() const { return none; }
  static int64_t nothing() { return none; }
  void put(void* dst, int64_t best, int64_t) const { *static_cast<T*>(dst) = Key::element(Key::narrowed(best)); }
};

}  // namespace lockstep::cpu
