// normalize.cpp - rows divided by their norm, root mean square or spread.
// Idea    a row is read, summed leaf by leaf and, while it is in the cache, read again and written: short rows in
//         batches, each thread its own. Long rows that are few are shared by leaves: all threads sum, then all write.
// Moves   every element once in and once out; twice in where a row is larger than the caches
// Limit   the copy limit in DRAM; conversions to double and back in L2
// Watch   a residual's sum is rounded first: h, not x + residual in double, enters the sums
// Source  lib/bits/order_rows.hpp, lockstep.h
#include <cmath>

#include "bits/normalizations.hpp"
#include "equal_elements.hpp"
#include "normalize_rows.hpp"
#include "ops.hpp"
#include "terms.hpp"

namespace lockstep::cpu {
namespace {

struct spread {
  double mean, divisor;
};

// ---- weight and bias ----------------------------------------------------------------
// The kernels read F32, of F64 rows F64. Rows without a weight that have a bias are weighed by ones.
bool as_it_is(const lockstep_normalize_desc& d) {
  return d.weight_dtype == (d.dtype == LOCKSTEP_F64 ? LOCKSTEP_F64 : LOCKSTEP_F32);
}
size_t wide_bytes(const lockstep_normalize_desc& d) {
  const size_t bytes = static_cast<size_t>(d.length) * (d.dtype == LOCKSTEP_F64 ? 8 : 4);
  return (bytes + 255) / 256 * 256;
}
bool makes_weight(const lockstep_normalize_desc& d) { return d.weight != nullptr ? !as_it_is(d) : d.bias != nullptr; }
bool makes_bias(const lockstep_normalize_desc& d) { return d.bias != nullptr && !as_it_is(d); }

// from: elements of weight_dtype, or NULL for ones.
void widen(const lockstep_queue& queue, const lockstep_normalize_desc& d, const void* from, int64_t first, int64_t last,
           void* to) {
  auto* floats = static_cast<float*>(to);
  auto* doubles = static_cast<double*>(to);
  const bool f64 = d.dtype == LOCKSTEP_F64;
  if (from == nullptr && f64) return std::fill(doubles + first, doubles + last, 1.0);
  if (from == nullptr) return std::fill(floats + first, floats + last, 1.0f);
  if (f64)
    return static_cast<void>(
        std::copy(static_cast<const float*>(from) + first, static_cast<const float*>(from) + last, doubles + first));
  normalizers(queue.kernels)
      .of[d.dtype - LOCKSTEP_F16]
      .widen(static_cast<const uint16_t*>(from) + first, last - first, floats + first);
}
const void* widened(const lockstep_queue& queue, const lockstep_normalize_desc& d, const void* from, void* to) {
  over_ranges(queue, d.length, 65536, [&](int64_t first, int64_t last) { widen(queue, d, from, first, last, to); });
  return to;
}
// Each thread widens a short weight and bias for itself: what one thread wrote, others would wait for.
constexpr int64_t own_length = 4096;
bool widen_alone(const lockstep_normalize_desc& d) {
  return d.dtype != LOCKSTEP_F64 && d.length <= own_length && d.given == nullptr;
}

// What a sum over a row's leaves joins by: double (squares) or order::moments.
struct normalizer : normalize_call {
  const void *weight, *bias;  // as the kernels want them; of what each thread widens for itself no weight

  bool layer() const { return d.kind == LOCKSTEP_NORMALIZE_LAYER; }

  // Leaves [first, last) of a row, from a multiple of a power of two that last - first does not exceed.
  template <class Value>
  Value value_of_leaves(int64_t row, int64_t first, int64_t last) const {
    alignas(64) char buffer[order::leaf * 8];
    order::tree<Value> tree;
    for (int64_t k = first; k < last; ++k) {
      Value value;
      value_of(leaf(row, k, buffer, true), leaf_length(row, k), value);
      tree.push(value);
    }
    return tree.total();
  }

  // The norm of F64 rows beyond the range where double keeps their squares: as NORM2.
  double norm(int64_t row, double plain) const {
    const bool kept = plain >= order::rescale_below && plain < INFINITY;
    if (kept || plain != plain || d.dtype != LOCKSTEP_F64) return std::sqrt(plain);
    alignas(64) double buffer[order::leaf];
    double most = 0;
    for (int64_t k = 0; k < leaves; ++k) {
      const auto* h = static_cast<const double*>(leaf(row, k, buffer, false));
      for (int64_t i = 0; i < leaf_length(row, k); ++i) most = std::max(most, std::fabs(h[i]));
    }
    if (!order::needs_rescale(plain, most)) return std::sqrt(plain);
    const int e = order::rescale_exponent(std::bit_cast<uint64_t>(most));
    const double down = std::ldexp(1.0, -e);
    order::tree<double> tree;
    for (int64_t k = 0; k < leaves; ++k) {
      const auto* h = static_cast<const double*>(leaf(row, k, buffer, false));
      for (int64_t i = 0; i < leaf_length(row, k); ++i) buffer[i] = h[i] * down;
      double value;
      value_of(buffer, leaf_length(row, k), value);
      tree.push(value);
    }
    return std::sqrt(tree.total()) * std::ldexp(1.0, e);
  }
  spread spread_of(int64_t row, double squares) const {
    if (d.kind == LOCKSTEP_NORMALIZE_RMS) return {0.0, std::sqrt(squares / static_cast<double>(d.length) + d.eps)};
    const double n = norm(row, squares);
    return {0.0, n < d.eps ? d.eps : n};
  }
  spread spread_of(int64_t, const order::moments& m) const {
    return {m.mean(), std::sqrt(m.squares() / m.count + d.eps)};
  }

  void write(int64_t row, int64_t count, int64_t k, const void* h, int64_t n, const double* mean,
             const double* divisor) const {
    const int64_t at = k * order::leaf, each = d.dtype == LOCKSTEP_F64 ? 8 : 4;
    const auto from = [&](const void* p) { return p == nullptr ? nullptr : static_cast<const char*>(p) + at * each; };
    of_type().rows[d.result - LOCKSTEP_F16]({h, dst + (row * d.dst_stride + at) * result_bytes, n, d.src_stride,
                                             d.dst_stride, mean, divisor, from(weight), from(bias), stream},
                                            count);
  }
  void write_leaves(int64_t row, const spread& s, int64_t first, int64_t last) const {
    alignas(64) char buffer[order::leaf * 8];
    if (residual == nullptr) {
      const int64_t n = (last < leaves ? last * order::leaf : d.length) - first * order::leaf;
      return write(row, 1, first, leaf(row, first, buffer, false), n, &s.mean, &s.divisor);
    }
    for (int64_t k = first; k < last; ++k)
      write(row, 1, k, leaf(row, k, buffer, false), leaf_length(row, k), &s.mean, &s.divisor);
  }

  // Rows [first, last) by one thread.
  template <class Value>
  void rows(int64_t first, int64_t last) const {
    for (int64_t row = first; row < last; ++row)
      write_leaves(row, spread_of(row, value_of_leaves<Value>(row, 0, leaves)), 0, leaves);
    if (stream) kernels.fence();
  }
  void values_of_rows(const void* x, int64_t count, double* squares) const {
    squares_of.rows({x, d.length, d.src_stride, nullptr}, count, squares);
  }
  void values_of_rows(const void* x, int64_t count, order::moments* moments) const {
    double sum[normalize_rows], m2[normalize_rows];
    of_type().moments(x, d.src_stride, d.length, count, sum, m2);
    for (int64_t s = 0; s < count; ++s) moments[s] = {static_cast<double>(d.length), sum[s], m2[s], 0};
    const auto* h = static_cast<const double*>(x);
    for (int64_t s = 0; d.dtype == LOCKSTEP_F64 && s < count; ++s)
      moments[s].equal = equal_elements(h + s * d.src_stride, d.length, sum[s]);
  }
  // Rows of at most a leaf, which a kernel sums side by side.
  template <class Value>
  void batches(int64_t first, int64_t last) const {
    const int64_t batch =
        std::clamp<int64_t>(queue.tuned->rows.normalize_batch_bytes / (d.length * bytes), 1, normalize_rows);
    for (int64_t row = first; row < last; row += batch) {
      const int64_t count = std::min(batch, last - row);
      Value values[normalize_rows];
      double mean[normalize_rows], divisor[normalize_rows];
      const char* x = src + row * d.src_stride * bytes;
      values_of_rows(x, count, values);
      for (int64_t s = 0; s < count; ++s) {
        const spread found = spread_of(row + s, values[s]);
        mean[s] = found.mean, divisor[s] = found.divisor;
      }
      write(row, count, 0, x, d.length, mean, divisor);
    }
    if (stream) kernels.fence();
  }

  // One row by all threads.
  template <class Value>
  void together(int64_t row, void* workspace) const {
    const int level = subtree_level(leaves, most_tasks(queue, d.length * bytes));
    const int64_t tasks = ((leaves - 1) >> level) + 1;
    auto* values = static_cast<Value*>(workspace);
    over_shares(queue, tasks, [&](int64_t t, int) {
      const int64_t first = t << level;
      const int64_t last = std::min((t + 1) << level, leaves);
      values[t] = value_of_leaves<Value>(row, first, last);
    });
    order::tree<Value> tree;
    for (int64_t t = 0; t < tasks; ++t) tree.push(values[t], level);
    const spread s = spread_of(row, tree.total());
    over_shares(queue, tasks, [&](int64_t t, int) {
      write_leaves(row, s, t << level, std::min((t + 1) << level, leaves));
      if (stream) kernels.fence();
    });
  }

  // Whose mean and divisor are known.
  void given_rows() const {
    over_leaves([&](int64_t row, int64_t first, int64_t last) {
      write_leaves(row, {d.given[2 * row], d.given[2 * row + 1]}, first, last);
      if (stream) kernels.fence();
    });
  }

  template <class Value>
  void run(void* workspace) const {
    if (d.given != nullptr) return given_rows();
    if (!widen_alone(d) && shares_rows()) {
      for (int64_t row = 0; row < d.count; ++row) together<Value>(row, workspace);
      return;
    }
    const bool batched = residual == nullptr && leaves == 1;
    over_rows([&](int64_t first, int64_t last) {
      const auto run_with = [&](const normalizer& n) {
        batched ? n.batches<Value>(first, last) : n.rows<Value>(first, last);
      };
      if (weight != nullptr || !makes_weight(d)) return run_with(*this);
      alignas(64) float own[2][own_length];
      normalizer mine = *this;
      widen(queue, d, d.weight, 0, d.length, own[0]);
      mine.weight = own[0];
      if (makes_bias(d)) widen(queue, d, d.bias, 0, d.length, own[1]), mine.bias = own[1];
      run_with(mine);
    });
  }
};

}  // namespace

size_t contiguous_bytes(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  if (lib::kind_of(d.kind).exponential) return exponential_bytes(queue, d);
  if (lib::kind_of(d.kind).backward) return gradient_bytes(queue, d);
  const size_t made = widen_alone(d) ? 0 : static_cast<size_t>(makes_weight(d)) + static_cast<size_t>(makes_bias(d));
  return made * wide_bytes(d) + joins_bytes(queue, d);
}

lockstep_status contiguous_rows(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_normalize_desc& d = call->normalize;
  const normalize_call rows{*queue,
                            d,
                            static_cast<const char*>(call->src),
                            static_cast<const char*>(d.residual),
                            static_cast<char*>(call->dst),
                            static_cast<char*>(d.sum)};
  if (lib::kind_of(d.kind).exponential) return exponential_rows(rows, call->workspace);
  if (lib::kind_of(d.kind).backward) return gradients_of_rows(rows, call->workspace), LOCKSTEP_OK;
  auto* room = static_cast<char*>(call->workspace);
  const void *weight = d.weight, *bias = d.bias;
  if (widen_alone(d)) {
    if (makes_weight(d)) weight = nullptr;
  } else {
    if (makes_weight(d)) weight = widened(*queue, d, d.weight, room), room += wide_bytes(d);
    if (makes_bias(d)) bias = widened(*queue, d, d.bias, room), room += wide_bytes(d);
  }
  const normalizer n{rows, weight, bias};
  if (n.layer())
    n.run<order::moments>(room);
  else
    n.run<double>(room);
  return LOCKSTEP_OK;
}

namespace {
const lockstep_variant rows[] = {
    {"cached",
     "a row is summed and, still in the cache, written; long rows that are few by leaves, all threads on each", 0,
     not_contiguous, nullptr, contiguous_bytes, contiguous_rows},
    {"columns", "rows side by side: as many as a cache holds are transposed, normalized and transposed back", 0,
     not_columns, nullptr, columns_bytes, launch_columns},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_normalize},
};
}  // namespace

const lockstep_table normalize_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
