// softmax.cpp - rows of exponentials: the kinds of normalize from SOFTMAX on.
// Idea    a row that is in the cache is walked for its extreme, for its exponentials, leaf by leaf or all of a short
//         row at once, for their sum, and once more for the results. Exponentials are doubles in the L1 or L2; sums,
//         extremes and roundings are those kernels that reduce and convert have.
// Moves   every element once in and once out; again in where a row is larger than the caches
// Limit   the exponentials: about 20 operations per element
// Watch   of SOFTMAX a thread keeps the exponentials of a row's first leaves only, as many as the caches hold; those
//         of the others it computes twice, which costs less than memory for them
// Source  lib/bits/functions.hpp (exp_of, log_of), lockstep.h
#include <cmath>
#include <limits>

#include "bits/normalizations.hpp"
#include "convert_kernels.hpp"
#include "normalize_rows.hpp"
#include "ops.hpp"
#include "terms.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t kept = 8192;  // exponentials of short rows, 64 KiB on the stack
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

// Leaves of a row whose exponentials a thread keeps until it writes, in its L2 and its part of the L3.
int64_t kept_leaves(const lockstep_queue& queue, const lockstep_normalize_desc& d) {
  constexpr int64_t most = 2 << 20;  // bytes
  const bool segments = d.offsets != nullptr;
  if (d.kind != LOCKSTEP_NORMALIZE_SOFTMAX || (d.length <= order::leaf && d.residual == nullptr && !segments)) return 0;
  return std::min(segments ? most : order::leaves(d.length),
                  std::min(queue.tuned->has.l2 * 2, most) / static_cast<int64_t>(order::leaf * sizeof(double)));
}

struct exponentials : normalize_call {
  const function_kernels& functions = functions_of(queue.kernels);
  const float_kernels& sum_of = term_kernels(queue.kernels, sum_f64);
  const extreme_kernels& extreme_of = term_kernels(
      queue.kernels, static_cast<extreme_term>((d.scale < 0 ? smallest : largest) + (d.dtype - LOCKSTEP_F16)));
  using conversion = void (*)(const void* src, void* dst, int64_t n, double scale, bool stream);
  conversion widen = converters(queue.kernels).run[d.dtype - LOCKSTEP_F16][LOCKSTEP_F64 - LOCKSTEP_F16];
  conversion round = converters(queue.kernels).run[LOCKSTEP_F64 - LOCKSTEP_F16][d.result - LOCKSTEP_F16];
  bool divides = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX, one_result = lib::kind_of(d.kind).one_result;

  void exp(const void* h, int64_t n, double centre, double* e) const {
    functions.exponentials[d.dtype - LOCKSTEP_F16](h, n, centre, d.scale, e);
  }
  // What each result of a row takes: 1 / S or L(S), of count rows; sums has room for a multiple of 8.
  void parts_of(double* sums, int64_t count) const {
    for (int64_t s = 0; divides && s < count; ++s) sums[s] = 1 / sums[s];
    if (divides) return;
    const int64_t whole = (count + 7) / 8 * 8;
    std::fill(sums + count, sums + whole, 1.0);
    functions.apply[LOCKSTEP_MAP_LOG](sums, whole);
  }
  void centres_of(const extreme* found, int64_t count, double* centre) const {
    uint64_t elements[normalize_rows];
    for (int64_t s = 0; s < count; ++s) order::store_key(d.dtype, elements, s, found[s].key);
    widen(elements, centre, count, 1, false);
  }
  // Of a segment without elements: its LOGSUMEXP is -inf.
  double centre_of_none() const { return d.scale < 0 ? INFINITY : -INFINITY; }
  double centre_of(const extreme& e) const {
    double x = 0;
    centres_of(&e, 1, &x);
    return x;
  }

  // ---- a row by parts -------------------------------------------------------
  extreme further(const extreme& a, const extreme& b) const { return (d.scale < 0) == (b.key < a.key) ? b : a; }
  extreme extreme_of_leaves(int64_t row, int64_t first, int64_t last) const {
    alignas(64) char buffer[order::leaf * 8];
    constexpr int64_t together = exact_chunk / order::leaf;
    extreme found{};
    for (int64_t k = first, next = 0; k < last; k = next) {
      next = residual == nullptr ? std::min(k + together, last) : k + 1;
      const int64_t n = (next - k - 1) * order::leaf + leaf_length(row, next - 1);
      extreme here;
      extreme_of.rows({leaf(row, k, buffer, true), n, n, nullptr}, 1, false, &here);
      found = k == first ? here : further(found, here);
    }
    return found;
  }
  // Exponentials that a part of a row keeps: of its first leaves, those of others are computed again.
  struct store {
    double* e;
    int64_t leaves;
    double* of(int64_t leaf, double* otherwise) const { return leaf < leaves ? e + leaf * order::leaf : otherwise; }
  };
  // The sum of a subtree's exponentials.
  double sum_of_leaves(int64_t row, int64_t first, int64_t last, double centre, const store& keeps) const {
    alignas(64) char buffer[order::leaf * 8];
    alignas(64) double others[order::leaf];
    order::tree<double> tree;
    for (int64_t k = first; k < last; ++k) {
      double sum = 0, *const to = keeps.of(k - first, others);
      exp(leaf(row, k, buffer, false), leaf_length(row, k), centre, to);
      sum_of.rows({to, leaf_length(row, k), order::leaf, nullptr, true}, 1, &sum);
      tree.push(sum);
    }
    return tree.total();
  }
  char* result(int64_t row, int64_t at) const {
    const bool between = d.offsets != nullptr && !one_result;
    return dst + ((between ? d.offsets[row] : row * d.dst_stride) + at) * result_bytes;
  }
  void write_leaves(int64_t row, int64_t first, int64_t last, double centre, double part, const store& keeps) const {
    alignas(64) char buffer[order::leaf * 8];
    alignas(64) double y[order::leaf];
    for (int64_t k = first; k < last; ++k) {
      const double* const e = std::isfinite(centre) ? keeps.of(k - first, nullptr) : nullptr;
      if (e != nullptr)
        round(e, result(row, k * order::leaf), leaf_length(row, k), part, stream);
      else
        write(row, k * order::leaf, leaf(row, k, buffer, false), leaf_length(row, k), centre, part, y);
    }
  }
  void write(int64_t row, int64_t at, const void* h, int64_t n, double centre, double part, double* y) const {
    if (!std::isfinite(centre))
      std::fill(y, y + n, nan);
    else if (divides)
      exp(h, n, centre, y);
    else
      functions.differences[d.dtype - LOCKSTEP_F16](h, n, centre, d.scale, part, y);
    round(y, result(row, at), n, divides ? part : 1, stream);
  }
  void write_one(int64_t row, double centre, double part) const {
    double y[8] = {nan};
    if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP) {
      y[0] = centre * d.scale;
      if (std::isfinite(centre)) y[0] = y[0] + part;
    } else if (std::isfinite(centre)) {
      alignas(64) char buffer[order::leaf * 8];
      const int64_t k = d.labels[row] / order::leaf, within = d.labels[row] % order::leaf;
      const char* h = static_cast<const char*>(leaf(row, k, buffer, false)) + within * bytes;
      functions.differences[d.dtype - LOCKSTEP_F16](h, 1, centre, d.scale, part, y);
    }
    round(y, result(row, 0), 1, 1, false);
  }

  // ---- rows [first, last) by one thread ---------------------------------------
  void rows(int64_t first, int64_t last, const store& keeps) const {
    for (int64_t row = first; row < last; ++row) {
      const int64_t past = order::leaves(length(row));
      const double centre = past == 0 ? centre_of_none() : centre_of(extreme_of_leaves(row, 0, past));
      double part[8] = {1};
      if (std::isfinite(centre)) part[0] = sum_of_leaves(row, 0, past, centre, keeps);
      parts_of(part, 1);
      if (one_result)
        write_one(row, centre, part[0]);
      else
        write_leaves(row, 0, past, centre, part[0], keeps);
    }
  }
  // Rows of at most a leaf without a residual, some at a time. Where each one's exponentials lie: segments' without
  // gaps between them, because a sum reads them by offsets.
  void batches(int64_t first, int64_t last) const {
    alignas(64) double e[kept + 8];  // the last vector is written whole
    const bool segments = d.offsets != nullptr;
    const int64_t pitch = (d.length + 7) / 8 * 8;
    for (int64_t row = first, count = 0; row < last; row += count) {
      int64_t place[normalize_rows + 1] = {};
      for (count = 0; count < normalize_rows && row + count < last; ++count) {
        place[count + 1] = place[count] + (segments ? length(row + count) : pitch);
        if (place[count + 1] > kept) break;
      }
      const packed_rows x = segments ? packed_rows{src, 0, 0, d.offsets + row}
                                     : packed_rows{src + row * d.src_stride * bytes, d.length, d.src_stride, nullptr};
      extreme found[normalize_rows];
      double centre[normalize_rows], part[normalize_rows];
      extreme_of.rows(x, count, false, found);
      centres_of(found, count, centre);
      for (int64_t s = 0; s < count; ++s) {
        const int64_t n = length(row + s);
        if (n == 0) centre[s] = centre_of_none();
        if (std::isfinite(centre[s]))
          exp(leaf(row + s, 0, nullptr, false), n, centre[s], e + place[s]);
        else
          std::fill_n(e + place[s], n, nan);
      }
      sum_of.rows(segments ? packed_rows{e, 0, 0, place, true} : packed_rows{e, d.length, pitch, nullptr, true}, count,
                  part);
      parts_of(part, count);
      for (int64_t s = 0; s < count; ++s) {
        const int64_t n = length(row + s);
        if (one_result)
          write_one(row + s, centre[s], part[s]);
        else if (divides)
          round(e + place[s], result(row + s, 0), n, part[s], stream);
        else
          write(row + s, 0, leaf(row + s, 0, nullptr, false), n, centre[s], part[s], e);
      }
    }
  }
  // One row by all threads.
  void together(int64_t row, void* workspace, double* e) const {
    const int64_t past = order::leaves(length(row));
    const int level = subtree_level(past, most_tasks(queue, length(row) * bytes));
    const int64_t tasks = ((past - 1) >> level) + 1;
    const auto end = [&](int64_t t) { return std::min((t + 1) << level, past); };
    const int64_t each = kept_leaves(queue, d) * queue.threads / tasks;
    const auto keeps = [&](int64_t t) { return store{e + t * each * order::leaf, each}; };
    auto* const found = static_cast<extreme*>(workspace);
    over_shares(queue, tasks, [&](int64_t t, int) { found[t] = extreme_of_leaves(row, t << level, end(t)); });
    for (int64_t t = 1; t < tasks; ++t) found[0] = further(found[0], found[t]);
    const double centre = centre_of(found[0]);
    double part[8] = {1};
    if (std::isfinite(centre)) {
      auto* const sums = static_cast<double*>(workspace);
      over_shares(queue, tasks,
                  [&](int64_t t, int) { sums[t] = sum_of_leaves(row, t << level, end(t), centre, keeps(t)); });
      order::tree<double> tree;
      for (int64_t t = 0; t < tasks; ++t) tree.push(sums[t], level);
      part[0] = tree.total();
    }
    parts_of(part, 1);
    if (one_result) return write_one(row, centre, part[0]);
    over_shares(queue, tasks, [&](int64_t t, int) {
      write_leaves(row, t << level, end(t), centre, part[0], keeps(t));
      if (stream) kernels.fence();
    });
  }

  // Segments: all threads share one that is more than a thread's part of the whole; the others are dealt out.
  void segments(void* workspace, double* e) const {
    const int64_t share = queue.tuned->reductions.tasks_a_thread * queue.threads, each = kept_leaves(queue, d);
    const int64_t most =
        queue.threads == 1 || forked() ? INT64_MAX : std::max(queue.tuned->rows.shared_bytes / bytes, elements / share);
    for (int64_t row = 0; elements > most && row < d.count; ++row)
      if (length(row) > most) together(row, workspace, e);
    const segment_shares all(queue, d.offsets, d.count, queue.tuned->rows.normalize_grain);
    over_shares(queue, all.shares, [&](int64_t t, int thread) {
      const int64_t last = all.cut(t + 1);
      for (int64_t row = all.cut(t), past = row; row < last; row = past) {
        while (past < last && length(past) <= order::leaf) ++past;
        if (row < past) {
          batches(row, past);
        } else {
          ++past;
          if (length(row) <= most) rows(row, past, {e + thread * each * order::leaf, each});
        }
      }
      if (stream) kernels.fence();
    });
  }

  // Whose centre and sum are known.
  void given_rows() const {
    if (one_result)
      return over_rows([&](int64_t first, int64_t last) {
        for (int64_t row = first; row < last; ++row) given_leaves(row, 0, 0);
      });
    over_leaves([&](int64_t row, int64_t first, int64_t last) { given_leaves(row, first, last); });
  }
  void given_leaves(int64_t row, int64_t first, int64_t last) const {
    double part[8] = {d.given[2 * row + 1]};
    parts_of(part, 1);
    if (one_result) return write_one(row, d.given[2 * row], part[0]);
    write_leaves(row, first, last, d.given[2 * row], part[0], {nullptr, 0});
    if (stream) kernels.fence();
  }

  void run(void* workspace) const {
    if (d.given != nullptr) return given_rows();
    auto* const e = reinterpret_cast<double*>(static_cast<char*>(workspace) + joins_bytes(&queue, d));
    if (d.offsets != nullptr) return segments(workspace, e);
    if (shares_rows()) {
      for (int64_t row = 0; row < d.count; ++row) together(row, workspace, e);
      return;
    }
    if (residual == nullptr && leaves == 1)
      return over_rows([&](int64_t first, int64_t last) {
        batches(first, last);
        if (stream) kernels.fence();
      });
    const int64_t each = kept_leaves(queue, d);
    const int64_t group = std::max<int64_t>(queue.tuned->rows.normalize_grain / d.length, 1);
    over_shares(queue, (d.count - 1) / group + 1, [&](int64_t t, int thread) {
      rows(t * group, std::min((t + 1) * group, d.count), {e + thread * each * order::leaf, each});
      if (stream) kernels.fence();
    });
  }
};

}  // namespace

size_t exponential_bytes(const lockstep_queue* queue, const lockstep_normalize_desc& d) {
  const int64_t kept = queue->threads * kept_leaves(*queue, d) * order::leaf;
  return joins_bytes(queue, d) + static_cast<size_t>(kept) * sizeof(double);
}

lockstep_status exponential_rows(const normalize_call& rows, void* workspace) {
  const lockstep_status status = require_labels(rows.d);
  if (status != LOCKSTEP_OK) return status;
  exponentials{rows}.run(workspace);
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cpu
