// normalize_backward.cpp - the gradients of RMS and LAYER: of the rows, of weight, of bias.
// Idea    a thread takes the rows of some lanes of order id 1's columns: each row, in the cache, is summed, written and
//         added to the lane's sums of columns; lanes join in the order's tree at once, so that a thread keeps eight
//         arrays of sums at most. Rows too long for that are summed first, and their columns then taken by parts.
// Moves   src and gradient once in, dst once out; long rows twice in
// Limit   conversions to double and back; the copy limit in DRAM
// Watch   a column's rows come 128 apart, not one after the other: its lanes are the order's
// Source  lib/bits/order.hpp, lockstep.h
#include <cmath>

#include "convert_kernels.hpp"
#include "normalize_rows.hpp"
#include "ops.hpp"
#include "sums_kernels.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t whole_row = 8192;     // a longer row's columns are taken by parts
constexpr int64_t part_columns = 4096;  // of that many, a multiple of a leaf
constexpr int64_t joined_columns = 512;
constexpr int lane_levels = 7;  // 2^7 lanes

struct found_row {
  double mean, scale, a, b;
};
// Value: double (squares) or order::moments.
template <class Value>
struct row_sums {
  Value of_row;
  double a, b;
  friend row_sums operator+(const row_sums& x, const row_sums& y) {
    return {x.of_row + y.of_row, x.a + y.a, x.b + y.b};
  }
};

// How a call is divided, and where its workspace has what.
struct gradient_plan {
  int64_t length, rows, leaves, parts, columns;  // leaves: of a column; columns: of a part
  int level = 0;                                 // a task takes each 2^level-th lane of a leaf
  int kinds;                                     // sums of columns: none, of one of weight and bias, of both
  int row_level = 0;                             // of rows by parts: the subtrees that tasks sum
  int64_t subtrees = 1;
  size_t weights, sums, scratch, found, values, bytes;

  gradient_plan(const lockstep_queue& queue, const lockstep_normalize_desc& d)
      : length(d.length), rows(d.count), leaves(order::leaves(d.count)) {
    kinds = (d.weight_gradient != nullptr) + (d.bias_gradient != nullptr);
    columns = length <= whole_row ? length : part_columns;
    parts = (length - 1) / columns + 1;
    const int64_t wanted = queue.threads > 1 ? queue.tuned->reductions.tasks_a_thread * queue.threads : 1;
    while (level < lane_levels && (leaves * parts) << level < wanted && int64_t{1} << level < rows) ++level;
    const int64_t row_leaves = order::leaves(length);
    if (parts > 1) {
      row_level = subtree_level(row_leaves, std::max<int64_t>(1, wanted / rows));
      subtrees = ((row_leaves - 1) >> row_level) + 1;
    }
    const auto take = [this](int64_t count, size_t each) {
      const size_t at = bytes;
      bytes += (static_cast<size_t>(count) * each + 255) / 256 * 256;
      return at;
    };
    bytes = 0;
    weights = take(length, sizeof(double));
    sums = take((leaves << level) * kinds * length, sizeof(double));
    scratch = take(queue.threads * lane_levels * kinds * columns, sizeof(double));
    found = take(parts > 1 ? rows : 0, sizeof(found_row));
    values = take(parts > 1 ? rows * subtrees : 0, sizeof(row_sums<order::moments>));
  }
};

struct gradients : normalize_call {
  gradient_plan plan;
  char* room;
  const char* gradient = static_cast<const char*>(d.gradient);
  const double* weight = reinterpret_cast<const double*>(room + plan.weights);
  double* sums = reinterpret_cast<double*>(room + plan.sums);
  double* scratch = reinterpret_cast<double*>(room + plan.scratch);
  found_row* found = reinterpret_cast<found_row*>(room + plan.found);
  const float_kernels& sum_of = term_kernels(queue.kernels, sum_f64);
  const pair_kernels& products = pair_sums(queue.kernels);
  bool layer = d.kind == LOCKSTEP_NORMALIZE_LAYER_BACKWARD;

  auto converter(lockstep_dtype from, lockstep_dtype to) const {
    return converters(queue.kernels).run[from - LOCKSTEP_F16][to - LOCKSTEP_F16];
  }
  const char* g(int64_t row, int64_t at) const { return gradient + (row * d.gradient_stride + at) * bytes; }
  const char* x(int64_t row, int64_t at) const { return src + (row * d.src_stride + at) * bytes; }

  // ---- sums of a row ---------------------------------------------------------
  double pivot_of(int64_t row) const {
    if (!layer) return 0;
    alignas(8) char first[8];
    if (residual != nullptr) of_type().add(x(row, 0), residual + row * d.residual_stride * bytes, first, 1);
    double p;
    converter(d.dtype, LOCKSTEP_F64)(residual != nullptr ? first : x(row, 0), &p, 1, 1, false);
    return p;
  }
  template <class Value>
  row_sums<Value> sums_of_leaves(int64_t row, int64_t first, int64_t last, double pivot) const {
    alignas(64) char buffer[order::leaf * 8];
    alignas(64) double off[order::leaf], u[order::leaf];
    order::tree<row_sums<Value>> tree;
    for (int64_t k = first; k < last; ++k) {
      const int64_t n = leaf_length(row, k), at = k * order::leaf;
      const void* const h = leaf(row, k, buffer, true);
      row_sums<Value> here{};
      value_of(h, n, here.of_row);
      of_type().weigh(h, g(row, at), weight + at, pivot, n, off, u);
      if (layer) sum_of.rows({u, n, order::leaf, nullptr, true}, 1, &here.a);
      products.of[LOCKSTEP_F64 - LOCKSTEP_F16][LOCKSTEP_SUMS_DOT]({off, u, n}, 1, &here.b);
      tree.push(here);
    }
    return tree.total();
  }
  found_row found_of(double squares, double a, double b, double pivot, double mean) const {
    const auto n = static_cast<double>(d.length);
    const double scale = 1 / std::sqrt(squares / n + d.eps);
    return {mean, scale, a / n, std::fma(pivot - mean, a, b) * scale / n};
  }
  found_row found_of(const row_sums<double>& s, double) const { return found_of(s.of_row, 0, s.b, 0, 0); }
  found_row found_of(const row_sums<order::moments>& s, double pivot) const {
    return found_of(s.of_row.squares(), s.a, s.b, pivot, s.of_row.mean());
  }
  template <class Value>
  found_row found_of_row(int64_t row) const {
    const double pivot = pivot_of(row);
    return found_of(sums_of_leaves<Value>(row, 0, leaves, pivot), pivot);
  }
  template <class Value>
  void find_rows() const {
    auto* const values = reinterpret_cast<row_sums<Value>*>(room + plan.values);
    over_shares(queue, d.count * plan.subtrees, [&](int64_t t, int) {
      const int64_t row = t / plan.subtrees, first = (t % plan.subtrees) << plan.row_level;
      const int64_t last = std::min(first + (int64_t{1} << plan.row_level), leaves);
      values[t] = sums_of_leaves<Value>(row, first, last, pivot_of(row));
    });
    for (int64_t row = 0; row < d.count; ++row) {
      order::tree<row_sums<Value>> tree;
      for (int64_t t = 0; t < plan.subtrees; ++t) tree.push(values[row * plan.subtrees + t], plan.row_level);
      found[row] = found_of(tree.total(), pivot_of(row));
    }
  }

  // ---- rows written and added to sums of columns --------------------------------
  // to: the sums of kinds one after the other, each `apart` elements.
  void write(int64_t row, const found_row& f, int64_t begin, int64_t end, double* to, int64_t apart) const {
    alignas(64) char buffer[order::leaf * 8];
    double* const of_weight = d.weight_gradient != nullptr ? to : nullptr;
    double* const of_bias = d.bias_gradient != nullptr ? to + (of_weight != nullptr ? apart : 0) : nullptr;
    const auto from = [begin](double* p, int64_t at) { return p != nullptr ? p + (at - begin) : nullptr; };
    for (int64_t at = begin, n = 0; at < end; at += n) {
      const int64_t k = at / order::leaf;
      n = residual != nullptr ? std::min(end - at, leaf_length(row, k)) : end - at;
      const void* const h = residual != nullptr ? leaf(row, k, buffer, true) : x(row, at);
      of_type().gradients({h, g(row, at), weight + at, dst + (row * d.dst_stride + at) * bytes, n, f.mean, f.scale, f.a,
                           f.b, from(of_weight, at), from(of_bias, at)});
    }
  }
  // The rows of a leaf's lanes c, c + 2^level, ..., joined; free: scratch of the levels from this one on.
  template <class Value>
  void lanes(int64_t leaf_of_rows, int64_t c, int level, int64_t begin, int64_t end, double* to, int64_t apart,
             double* free) const {
    const int64_t rows = std::min(order::leaf, d.count - leaf_of_rows * order::leaf), columns = end - begin;
    if (level == lane_levels) {
      for (int kind = 0; kind < plan.kinds; ++kind) std::fill_n(to + kind * apart, columns, -0.0);
      for (int64_t r = c; r < rows; r += order::lanes) {
        const int64_t row = leaf_of_rows * order::leaf + r;
        write(row, plan.parts > 1 ? found[row] : found_of_row<Value>(row), begin, end, to, apart);
      }
      return;
    }
    lanes<Value>(leaf_of_rows, c, level + 1, begin, end, to, apart, free);
    const int64_t other = c + (int64_t{1} << level);
    if (other >= rows) return;  // none of those lanes has a row
    double* const next = free + plan.kinds * plan.columns;
    lanes<Value>(leaf_of_rows, other, level + 1, begin, end, free, plan.columns, next);
    for (int kind = 0; kind < plan.kinds; ++kind) add(to + kind * apart, free + kind * plan.columns, columns);
  }
  void add(double* to, const double* from, int64_t n) const {
    kernels.of[LOCKSTEP_F64 - LOCKSTEP_F16].add(to, from, to, n);
  }

  // ---- all rows ------------------------------------------------------------------
  double* sums_of(int64_t leaf_of_rows, int64_t c) const {
    return sums + ((leaf_of_rows << plan.level) + c) * plan.kinds * d.length;
  }
  template <class Value>
  void all_lanes() const {
    const int64_t residues = int64_t{1} << plan.level;
    over_shares(queue, (plan.leaves * plan.parts) << plan.level, [&](int64_t t, int thread) {
      const int64_t part = t % plan.parts, c = t / plan.parts % residues, leaf = t / plan.parts / residues;
      if (leaf * order::leaf + c >= d.count) return;
      const int64_t begin = part * plan.columns, end = std::min(begin + plan.columns, d.length);
      lanes<Value>(leaf, c, plan.level, begin, end, sums_of(leaf, c) + begin, d.length,
                   scratch + thread * lane_levels * plan.kinds * plan.columns);
    });
  }
  void join_columns() const {
    over_shares(queue, (d.length - 1) / joined_columns + 1, [&](int64_t t, int) {
      const int64_t begin = t * joined_columns, n = std::min(joined_columns, d.length - begin);
      for (int kind = 0; kind < plan.kinds; ++kind) {
        const int64_t at = kind * d.length + begin;
        for (int64_t leaf = 0; leaf < plan.leaves; ++leaf)
          for (int level = plan.level - 1; level >= 0; --level)
            for (int64_t c = 0, half = int64_t{1} << level; c < half; ++c)
              if (leaf * order::leaf + c + half < d.count) add(sums_of(leaf, c) + at, sums_of(leaf, c + half) + at, n);
        for (int64_t step = 1; step < plan.leaves; step *= 2)
          for (int64_t leaf = 0; leaf + step < plan.leaves; leaf += 2 * step)
            add(sums_of(leaf, 0) + at, sums_of(leaf + step, 0) + at, n);
        void* const to = kind == 0 && d.weight_gradient != nullptr ? d.weight_gradient : d.bias_gradient;
        const auto each = static_cast<int64_t>(lockstep_dtype_bytes(d.weight_dtype));
        converter(LOCKSTEP_F64, d.weight_dtype)(sums_of(0, 0) + at, static_cast<char*>(to) + begin * each, n, 1, false);
      }
    });
  }
  template <class Value>
  void run() const {
    over_ranges(queue, d.length, 65536, [&](int64_t first, int64_t last) {
      auto* const to = const_cast<double*>(weight);
      if (d.weight == nullptr) return std::fill(to + first, to + last, 1.0);
      const auto each = static_cast<int64_t>(lockstep_dtype_bytes(d.weight_dtype));
      converter(d.weight_dtype, LOCKSTEP_F64)(static_cast<const char*>(d.weight) + first * each, to + first,
                                              last - first, 1, false);
    });
    if (plan.parts > 1) find_rows<Value>();
    all_lanes<Value>();
    if (plan.kinds != 0) join_columns();
  }
};

}  // namespace

size_t gradient_bytes(const lockstep_queue* queue, const lockstep_normalize_desc& d) {
  return gradient_plan(*queue, d).bytes;
}

void gradients_of_rows(const normalize_call& rows, void* workspace) {
  const gradients all{rows, gradient_plan(rows.queue, rows.d), static_cast<char*>(workspace)};
  if (all.layer)
    all.run<order::moments>();
  else
    all.run<double>();
}

}  // namespace lockstep::cpu
