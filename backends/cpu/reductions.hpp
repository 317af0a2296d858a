// reductions.hpp - the three reductions of sequences.hpp: sums in the fixed order,
// exact sums, extremes; and what storing their results needs.
#pragma once

#include <atomic>
#include <bit>
#include <cmath>

#include "mutant.hpp"
#include "sequences.hpp"

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

// ---- float sums -----------------------------------------------------------------
struct float_sum {
  typedef double value;
  typedef order::tree<double> join;
  static constexpr int64_t chunk = order::leaf;
  float_term term;
  const float_sum_kernels& kernels;
  int64_t bytes = INT64_MAX;  // that the call reads in all

  void rows(packed_rows r, int64_t count, double* out) const {
    r.bytes = bytes;
    kernels.of[term].rows(r, count, out);
  }
  void chunks(const void* src, int64_t count, int64_t n, int64_t, double* out) const {
    rows({src, n, chunk, nullptr}, count, out);
  }
  void two(const void* a, const void* b, int64_t count, int64_t, int64_t, double* out_a, double* out_b) const {
    kernels.of[term].two(a, b, count, out_a, out_b);
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t, double* out) const {
    kernels.of[term].columns(src, n, ld, width, out);
  }

  // The tree of every column at once.
  struct block {
    double column[column_block];
    friend block operator+(const block& a, const block& b) {
      block sum;
      for (int64_t k = 0; k < column_block; ++k) sum.column[k] = a.column[k] + b.column[k];
      return sum;
    }
  };
  struct column_join {
    order::tree<block> tree;
    void push(const double* values, int64_t width, int level) {
      block b = {};
      std::memcpy(b.column, values, static_cast<size_t>(width) * sizeof(double));
      tree.push(b, level);
    }
    void total(double* values, int64_t width) const {
      const block b = tree.total();
      std::memcpy(values, b.column, static_cast<size_t>(width) * sizeof(double));
    }
  };
};

// ---- exact sums -------------------------------------------------------------------
struct exact_sum {
  typedef wide value;
  typedef running<exact_sum> join;
  typedef running_columns<exact_sum> column_join;
  static constexpr int64_t chunk = exact_chunk;
  exact_term term;
  const exact_sum_kernels& kernels;

  void rows(const packed_rows& r, int64_t count, wide* out) const { kernels.of[term].rows(r, count, out); }
  void chunks(const void* src, int64_t count, int64_t n, int64_t, wide* out) const {
    rows({src, n, chunk, nullptr}, count, out);
  }
  void two(const void* a, const void* b, int64_t count, int64_t, int64_t, wide* out_a, wide* out_b) const {
    kernels.of[term].two(a, b, count, out_a, out_b);
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t, wide* out) const {
    kernels.of[term].columns(src, n, ld, width, out);
  }
  static void add(wide& into, const wide& value) {
    bool carry = false;
    for (int k = 0; k < 3; ++k) {
      uint64_t sum;
      const bool first = __builtin_add_overflow(into.limb[k], value.limb[k], &sum);
      carry = (__builtin_add_overflow(sum, uint64_t{carry}, &into.limb[k]) || first) &&
              !LOCKSTEP_MUTANT("exact_sum_without_carry");
    }
  }
};

// ---- extremes ---------------------------------------------------------------------
// Chunks of a longer sequence only say where they begin, as ~first: the winner is
// searched once, by locate().
template <bool Largest>
struct extreme_of {
  typedef extreme value;
  typedef running<extreme_of> join;
  typedef running_columns<extreme_of> column_join;
  static constexpr int64_t chunk = exact_chunk;
  extreme_term term;
  bool index;
  const extreme_kernels& kernels;

  void rows(const packed_rows& r, int64_t count, extreme* out) const { kernels.of[term].rows(r, count, index, out); }
  void chunks(const void* src, int64_t count, int64_t n, int64_t first, extreme* out) const {
    kernels.of[term].rows({src, n, chunk, nullptr}, count, false, out);
    for (int64_t k = 0; k < count; ++k) out[k].index = ~(first + k * chunk);
  }
  void two(const void* a, const void* b, int64_t count, int64_t first_a, int64_t first_b, extreme* out_a,
           extreme* out_b) const {
    kernels.of[term].two(a, b, count, out_a, out_b);
    if (LOCKSTEP_MUTANT("second_stream_indexed_as_the_first")) first_b = first_a;
    for (int64_t k = 0; k < count; ++k)
      out_a[k].index = ~(first_a + k * chunk), out_b[k].index = ~(first_b + k * chunk);
  }
  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t first, extreme* out) const {
    kernels.of[term].columns(src, n, ld, width, index, out);
    for (int64_t k = 0; k < width; ++k) out[k].index += first;
  }
  // Chunks come in order: a tie leaves the earlier one.
  static void add(extreme& into, const extreme& value) {
    if (Largest ? value.key > into.key : value.key < into.key) into = value;
    if (LOCKSTEP_MUTANT("tie_to_the_later_chunk") && value.key == into.key) into = value;
  }
  int64_t locate(const vector_view& v, const extreme& winner) const {
    if (winner.index >= 0) return winner.index;
    alignas(64) unsigned char buffer[chunk * 8];
    const int64_t first = ~winner.index, m = v.n - first < chunk ? v.n - first : chunk;
    extreme found;
    kernels.of[term].rows({v.chunk(first, m, buffer), m, 0, nullptr}, 1, true, &found);
    return first + found.index;
  }
};

// The first sequence that failed, whichever thread finds it.
class first_failure {
 public:
  void at(int64_t s) {
    int64_t known = s_.load(std::memory_order_relaxed);
    if (LOCKSTEP_MUTANT("overflow_names_the_last_sequence") && known != INT64_MAX && s > known) s_.store(s);
    while (s < known && !s_.compare_exchange_weak(known, s, std::memory_order_relaxed)) {
    }
  }
  bool any() const { return s_.load(std::memory_order_relaxed) != INT64_MAX; }
  int64_t sequence() const { return s_.load(std::memory_order_relaxed); }

 private:
  std::atomic<int64_t> s_{INT64_MAX};
};

inline void store_float(const lockstep_call* call, int64_t s, double value) {
  const bool nan = value != value && !LOCKSTEP_MUTANT("nan_not_canonical");
  if (call->reduce.result == LOCKSTEP_F32)
    static_cast<uint32_t*>(call->dst)[s] = nan ? order::nan_f32 : std::bit_cast<uint32_t>(static_cast<float>(value));
  else
    static_cast<uint64_t*>(call->dst)[s] = nan ? order::nan_f64 : std::bit_cast<uint64_t>(value);
}

// Many short rows of one length: the kernel's sums go straight to dst. False: it is not such a call.
inline bool sum_short_rows(const lockstep_queue& queue, const lockstep_call* call, const float_sum& sum) {
  const sequences q(call);
  if (!q.packed() || q.d.offsets != nullptr || q.d.length < 1 || q.d.length > 1024 || q.d.count < 16) return false;
  constexpr int64_t batch = 512;
  over_sequences(queue, q, 65536 / q.d.length + 1, [&](int64_t first, int64_t last) {
    const auto rows = [&](int64_t s, int64_t some, double* out) {
      sum.rows({q.begin(s), q.d.length, q.d.sequence_stride, nullptr}, some, out);
    };
    // No batches: whatever waits for a batch's results stops the reads for the next, 4 % of the time of rows of 32.
    if (q.d.result == LOCKSTEP_F64) return rows(first, last - first, static_cast<double*>(call->dst) + first);
    for (int64_t s = first; s < last; s += batch) {
      const int64_t some = last - s < batch ? last - s : batch;
      double values[batch];
      rows(s, some, values);
      for (int64_t k = 0; k < some; ++k) static_cast<float*>(call->dst)[s + k] = static_cast<float>(values[k]);
    }
  });
  return true;
}

// An exact sum as I64; false (and the nearest value) where it does not fit.
inline bool fits_i64(const wide& sum, int64_t& value) {
  const uint64_t sign = 0 - (sum.limb[2] >> 63), low_sign = 0 - (sum.limb[0] >> 63);
  const bool fits = sum.limb[2] == sign && sum.limb[1] == sign && low_sign == sign;
  value = fits                                                      ? static_cast<int64_t>(sum.limb[0])
          : sign != 0 && !LOCKSTEP_MUTANT("saturates_upwards_only") ? INT64_MIN
                                                                    : INT64_MAX;
  return fits;
}

}  // namespace lockstep::cpu
