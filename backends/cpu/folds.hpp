// folds.hpp - what joins make of terms, in the form that sequences.hpp needs: sums and products of floats in the fixed
// order, exact sums and products, extremes; and helpers for storing their results.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>
#include <type_traits>

#include "reduction_rows.hpp"
#include "tiny_rows.hpp"

namespace lockstep::cpu {

__extension__ typedef __int128 int128;

// Joins that do not depend on the order: R::add(into, value).
template <class R>
struct running {
  typename R::value sum = {};
  bool any = false;

  void push(const typename R::value& value, int) {
    if (any)
      R::add(sum, value);
    else
      sum = value;
    any = true;
  }
  typename R::value total() const { return sum; }
};
template <class R>
struct running_columns {
  typename R::value sum[column_block];
  bool any = false;

  void push(const typename R::value* values, int64_t width, int) {
    for (int64_t k = 0; k < width; ++k) {
      if (any)
        R::add(sum[k], values[k]);
      else
        sum[k] = values[k];
    }
    any = true;
  }
  void total(typename R::value* values, int64_t width) const {
    for (int64_t k = 0; k < width; ++k) values[k] = sum[k];
  }
};

// ---- floats in the fixed order ----------------------------------------------------
// The values as they are.
struct float_results {
  const sequences& q;
  template <class Again>
  void operator()(int64_t s, double value, const Again&) const {
    store_float(q, s, value);
  }
  void all(int64_t first, const double* values, int64_t count) const { store_floats(q, first, values, count); }
};
// A value whose join multiplies.
struct factor {
  double x;
  friend factor operator+(factor a, factor b) { return {a.x * b.x}; }
};
// Value: double or factor.
template <class Value>
struct float_fold {
  typedef Value value;
  typedef order::tree<Value> join;
  static constexpr int64_t chunk = order::leaf;
  const float_kernels& kernels;
  bool cached = false;  // see packed_rows

  static double* doubles(Value* values) { return reinterpret_cast<double*>(values); }
  void rows(packed_rows r, int64_t count, Value* out) const {
    r.cached = cached;
    kernels.rows(r, count, doubles(out));
  }
  void chunks(const void* src, int64_t count, int64_t n, int64_t, Value* out) const {
    rows({src, n, chunk, nullptr}, count, out);
  }
  void two(const void* a, const void* b, int64_t count, int64_t, int64_t, Value* out_a, Value* out_b) const {
    kernels.two(a, b, count, doubles(out_a), doubles(out_b));
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t, Value* out) const {
    kernels.columns(src, n, ld, width, doubles(out));
  }
  void listed(const void* src, int64_t n, const int64_t* at, int64_t width, Value* out) const {
    kernels.listed(src, n, at, width, doubles(out));
  }

  // The tree of every column at once.
  struct block {
    Value column[column_block];
    friend block operator+(const block& a, const block& b) {
      block sum;
      for (int64_t k = 0; k < column_block; ++k) sum.column[k] = a.column[k] + b.column[k];
      return sum;
    }
  };
  struct column_join {
    order::tree<block> tree;
    void push(const Value* values, int64_t width, int level) {
      block b = {};
      std::memcpy(b.column, values, static_cast<size_t>(width) * sizeof(Value));
      tree.push(b, level);
    }
    void total(Value* values, int64_t width) const {
      const block b = tree.total();
      std::memcpy(values, b.column, static_cast<size_t>(width) * sizeof(Value));
    }
  };
};
typedef float_fold<double> float_sum;

// ---- exact sums -------------------------------------------------------------------
struct exact_sum {
  typedef wide value;
  typedef running<exact_sum> join;
  typedef running_columns<exact_sum> column_join;
  static constexpr int64_t chunk = exact_chunk;
  const exact_kernels& kernels;

  void rows(const packed_rows& r, int64_t count, wide* out) const { kernels.rows(r, count, out); }
  void chunks(const void* src, int64_t count, int64_t n, int64_t, wide* out) const {
    rows({src, n, chunk, nullptr}, count, out);
  }
  void two(const void* a, const void* b, int64_t count, int64_t, int64_t, wide* out_a, wide* out_b) const {
    kernels.two(a, b, count, out_a, out_b);
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t, wide* out) const {
    kernels.columns(src, n, ld, width, out);
  }
  static void add(wide& into, const wide& value) { order::add(into, value); }
};

// ---- exact products ---------------------------------------------------------------
struct exact_product {
  typedef exact_factor value;
  typedef running<exact_product> join;
  typedef running_columns<exact_product> column_join;
  static constexpr int64_t chunk = exact_chunk;
  const product_kernels& kernels;

  void rows(const packed_rows& r, int64_t count, exact_factor* out) const { kernels.rows(r, count, out); }
  void chunks(const void* src, int64_t count, int64_t n, int64_t, exact_factor* out) const {
    rows({src, n, chunk, nullptr}, count, out);
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t, exact_factor* out) const {
    kernels.columns(src, n, ld, width, out);
  }
  static void add(exact_factor& into, const exact_factor& value) { order::multiply(into, value); }
};

// ---- extremes ---------------------------------------------------------------------
// A chunk of a longer sequence stores only its start, as ~first; locate() then searches the
// chunk with the extreme once.
template <bool Largest>
struct extreme_of {
  typedef extreme value;
  typedef running<extreme_of> join;
  typedef running_columns<extreme_of> column_join;
  static constexpr int64_t chunk = exact_chunk;
  const extreme_kernels& kernels;
  bool index = false;

  void rows(const packed_rows& r, int64_t count, extreme* out) const { kernels.rows(r, count, index, out); }
  void chunks(const void* src, int64_t count, int64_t n, int64_t first, extreme* out) const {
    kernels.rows({src, n, chunk, nullptr}, count, false, out);
    for (int64_t k = 0; k < count; ++k) out[k].index = ~(first + k * chunk);
  }
  void two(const void* a, const void* b, int64_t count, int64_t first_a, int64_t first_b, extreme* out_a,
           extreme* out_b) const {
    kernels.two(a, b, count, out_a, out_b);
    for (int64_t k = 0; k < count; ++k)
      out_a[k].index = ~(first_a + k * chunk), out_b[k].index = ~(first_b + k * chunk);
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t first, extreme* out) const {
    kernels.columns(src, n, ld, width, index, out, nullptr);
    for (int64_t k = 0; k < width; ++k) out[k].index += first;
  }
  // Chunks arrive in order, so a tie keeps the earlier one.
  static void add(extreme& into, const extreme& value) {
    if (Largest ? value.key > into.key : value.key < into.key) into = value;
  }
  int64_t locate(const vector_view& v, const extreme& winner) const {
    if (winner.index >= 0) return winner.index;
    alignas(64) unsigned char buffer[chunk * 8];
    const int64_t first = ~winner.index, m = v.n - first < chunk ? v.n - first : chunk;
    return first + kernels.find(v.chunk(first, m, buffer), m, winner.key);
  }
};

// The first sequence that failed, whichever thread finds it.
class first_failure {
 public:
  void at(int64_t s) {
    int64_t known = s_.load(std::memory_order_relaxed);
    while (s < known && !s_.compare_exchange_weak(known, s, std::memory_order_relaxed)) {
    }
  }
  bool any() const { return s_.load(std::memory_order_relaxed) != INT64_MAX; }
  int64_t sequence() const { return s_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> s_{INT64_MAX};
};

// The error of the first exact sum or product that did not fit, if any.
inline lockstep_status overflowed(const sequences& q, const first_failure& overflow) {
  if (!overflow.any()) return LOCKSTEP_OK;
  const lib::reduction_kind& kind = kind_of(q.d);
  const char* const what = kind.by == lib::join::product  ? "product"
                           : kind.of == lib::term::square ? "sum of squares"
                                                          : "sum";
  const int64_t s = overflow.sequence();
  return failed(LOCKSTEP_OVERFLOW, "the exact {} of sequence {} does not fit {}, dst[{}] holds {}; {} or floats{}",
                what, s, exact_name(q), s, exact_text(q, s),
                kind.by == lib::join::product ? "multiply shorter sequences" : "sum shorter sequences",
                kind.of == lib::term::square ? ", or take NORM2" : "");
}

// Sums of many short rows: sums(rows, count, out) sums some of them, finish(first, count, out), if given, makes them
// results.
struct sums_as_they_are {};
template <class Sums, class Finish = sums_as_they_are>
void sum_short_rows(const lockstep_queue& queue, const sequences& q, const Sums& sums, const Finish& finish = {}) {
  constexpr bool as_they_are = std::is_same_v<Finish, sums_as_they_are>;
  const bool straight = q.d.result == LOCKSTEP_F64;
  over_short_rows(queue, q, [&](int64_t first, int64_t last) {
    // Not in batches, because waiting for the results of one batch would stall the reads of the next.
    const int64_t most = straight && as_they_are ? last - first : row_results;
    for (int64_t s = first; s < last; s += most) {
      const int64_t some = last - s < most ? last - s : most;
      double values[row_results];
      double* const out = straight ? static_cast<double*>(q.dst) + s : values;
      sums(packed_rows{q.begin(s), q.d.length, q.d.sequence_stride, nullptr}, some, out);
      if constexpr (!as_they_are) finish(s, some, out);
      if (!straight) store_floats(q, s, values, some);
    }
  });
}

}  // namespace lockstep::cpu
