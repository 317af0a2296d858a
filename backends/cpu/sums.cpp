// sums.cpp - dst[s] = sum of x * y, (x - y)^2, |x - y| or |x| of a sequence; or its mean and variance.
// Idea    the passes of reduce (passes.hpp) over src; the kernel of a chunk also reads the same elements of other. All
//         threads share a long sequence, each with aligned subtrees; shorter sequences go to one thread each, rows of
//         at most a leaf many to a kernel call. Columns: a vector holds neighbouring ones.
// Moves   every element of both arrays once, 4 to 16 bytes for each result
// Limit   the read limit
// Watch   elements of src and other belong together by their index in the sequence, not by their place in memory
// Source  lib/order.hpp, lib/order_rows.hpp
#include "folds.hpp"
#include "normalize_kernels.hpp"
#include "ops.hpp"
#include "order_rows.hpp"
#include "reduction_rows.hpp"
#include "sums_kernels.hpp"

namespace lockstep::cpu {
namespace {

// A reduction of one sequence in the form that sequences.hpp needs: of(x, y, n) is the value of a chunk.
template <class Of>
struct chunk_sums {
  typedef typename Of::value value;
  typedef typename Of::join join;
  static constexpr int64_t chunk = Of::chunk;
  Of of;
  vector_view src, other;  // other.begin is NULL where there is one array

  void chunks(const void* x, int64_t count, int64_t n, int64_t first, value* out) const {
    alignas(64) unsigned char buffer[chunk * 8];
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = k * chunk, i = first + at;
      out[k] = of(static_cast<const char*>(x) + at * src.bytes,
                  other.begin != nullptr ? other.chunk(i, n, buffer) : nullptr, n);
    }
  }
  // Needed by the pass of passes.hpp that reads two places of a sequence; it is not used here.
  void two(const void* a, const void* b, int64_t count, int64_t first_a, int64_t first_b, value* out_a,
           value* out_b) const {
    chunks(a, count, chunk, first_a, out_a);
    chunks(b, count, chunk, first_b, out_b);
  }
};

struct float_chunks {
  typedef double value;
  typedef order::tree<double> join;
  static constexpr int64_t chunk = order::leaf;
  void (*kernel)(const rows_of_two& rows, int64_t count, double* out);
  double operator()(const void* x, const void* y, int64_t n) const {
    double value;
    kernel({x, y, n}, 1, &value);
    return value;
  }
};
struct exact_chunks {
  typedef wide value;
  typedef running<exact_sum> join;
  static constexpr int64_t chunk = exact_chunk;
  wide (*kernel)(const void*, const void*, int64_t);
  wide operator()(const void* x, const void* y, int64_t n) const { return kernel(x, y, n); }
};
struct moment_chunks {
  typedef order::moments value;
  typedef order::tree<order::moments> join;
  static constexpr int64_t chunk = order::leaf;
  void (*kernel)(const void* x, int64_t stride, int64_t n, int64_t count, double* sum, double* m2);
  order::moments operator()(const void* x, const void*, int64_t n) const {
    order::moments m{static_cast<double>(n), 0, 0};
    kernel(x, 0, n, 1, &m.sum, &m.m2);
    return m;
  }
};

// ---- columns: sequences side by side, in other too -------------------------------
bool side_by_side(const lockstep_queue& queue, const lockstep_sums_desc& d) {
  return lockstep_dtype_kind(d.dtype) == 'f' && d.offsets == nullptr && d.sequence_stride == 1 &&
         d.element_stride > 1 && d.count >= queue.tuned->reductions.few_columns && d.length > 0 &&
         (d.other == nullptr || d.other_sequence_stride == 1);
}
// A reduction by columns, as reduce_columns of reduction_rows.hpp needs it.
struct column_sums : float_chunks {
  typedef float_sum::column_join column_join;
  const lockstep_sums_desc& d;
  const sequences& q;
  void (*of_columns)(const void* x, int64_t x_ld, const void* y, int64_t y_ld, int64_t n, int64_t width, double* out);

  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t first, double* out) const {
    const int64_t column = (static_cast<const char*>(src) - q.src) / q.bytes - first * ld;
    const int64_t at = first * d.other_element_stride + column;
    if (d.other == nullptr)
      of_columns(src, ld, src, ld, n, width, out);
    else
      of_columns(src, ld, static_cast<const char*>(d.other) + at * q.bytes, d.other_element_stride, n, width, out);
  }
};
// Means and variances: few columns a thread, because a leaf of each is read twice.
constexpr int64_t moments_block = 64;
typedef order::tree<order::moments> moments_tree;
template <class Done>
void moments_of_columns(const lockstep_queue& queue, const lockstep_call* call, const Done& done) {
  const lockstep_sums_desc& d = call->sums;
  const sequences q(*call);
  const auto kernel = summers(queue.kernels).moment_columns[d.dtype - LOCKSTEP_F16];
  const int64_t block = std::clamp<int64_t>(d.count / (2 * queue.threads) / 16 * 16, 16, moments_block);
  over_shares(queue, (d.count - 1) / block + 1, [&](int64_t t, int thread) {
    const int64_t first = t * block, width = std::min(block, d.count - first);
    auto* const joins = static_cast<moments_tree*>(call->workspace) + thread * moments_block;
    for (int64_t k = 0; k < width; ++k) joins[k].count = 0;
    alignas(64) double sum[column_block], m2[column_block];
    for (int64_t at = 0; at < d.length; at += order::leaf) {
      const int64_t n = std::min(order::leaf, d.length - at);
      kernel(q.src + (first + at * d.element_stride) * q.bytes, d.element_stride, n, width, sum, m2);
      for (int64_t k = 0; k < width; ++k) joins[k].push({static_cast<double>(n), sum[k], m2[k]});
    }
    for (int64_t k = 0; k < width; ++k) done(first + k, joins[k].total());
  });
}

// Rows of floats of at most a leaf, each packed in src and in other.
bool short_rows(const lockstep_sums_desc& d) {
  return lockstep_dtype_kind(d.dtype) == 'f' && d.offsets == nullptr && d.length > 0 && d.length <= order::leaf &&
         (d.element_stride == 1 || d.length == 1) &&
         (d.other == nullptr || d.other_element_stride == 1 || d.length == 1);
}
// body(first, count) for all of them, at most `batch` at a time.
template <class Body>
void over_short_rows(const lockstep_queue& queue, const lockstep_sums_desc& d, int64_t batch, const Body& body) {
  const reduction_tuning& tuned = queue.tuned->reductions;
  over_parts(queue, d.count, tuned.grain_elements / (d.length + tuned.segment_cost) + 1,
             [&](int64_t first, int64_t last) {
               for (int64_t s = first; s < last; s += batch) body(s, std::min(batch, last - s));
             });
}
void sums_of_short_rows(const lockstep_queue& queue, const lockstep_call* call, const float_chunks& of) {
  const lockstep_sums_desc& d = call->sums;
  const sequences q(*call);
  const auto* other = static_cast<const char*>(d.other);
  const int64_t between = d.other_sequence_stride;
  const bool straight = d.result == LOCKSTEP_F64;
  over_short_rows(queue, d, straight ? d.count : row_results, [&](int64_t s, int64_t count) {
    double values[row_results];
    of.kernel({q.src + s * d.sequence_stride * q.bytes, other != nullptr ? other + s * between * q.bytes : nullptr,
               d.length, d.sequence_stride, between},
              count, straight ? static_cast<double*>(call->dst) + s : values);
    if (!straight) store_floats(call, s, values, count);
  });
}

// done(s, value) for every sequence that has elements, by any thread; empty(s) for the others.
template <class Of, class Done, class Empty>
void over_all(const lockstep_queue& queue, const lockstep_call* call, const Of& of, const Done& done,
              const Empty& empty) {
  const sequences q(*call);
  const lockstep_sums_desc& d = call->sums;
  const reduction_tuning& tuned = queue.tuned->reductions;
  const auto sums_of = [&](int64_t s) {
    const int64_t at = d.offsets != nullptr ? d.offsets[s] * d.other_element_stride : s * d.other_sequence_stride;
    const char* other = d.other != nullptr ? static_cast<const char*>(d.other) + at * q.bytes : nullptr;
    return chunk_sums<Of>{of, q.view(s), {other, q.length(s), d.other_element_stride, q.bytes}};
  };
  const bool few = splits(queue) && (d.offsets != nullptr || d.count < tuned.tasks_a_thread * queue.threads);
  const auto is_long = [&](int64_t s) { return few && q.length(s) > tuned.long_bytes / q.bytes; };
  if (few)
    for (int64_t s = 0; s < d.count; ++s) {
      if (!is_long(s)) continue;
      const auto sums = sums_of(s);
      done(s, reduce_together<pass::straight>(queue, sums, sums.src, call->workspace));
    }
  const int64_t tasks = std::clamp<int64_t>(q.elements() / tuned.grain_elements, 1, d.count);
  over_shares(queue, tasks, [&](int64_t t, int) {
    for (int64_t s = part_begin(d.count, t, tasks); s < part_begin(d.count, t + 1, tasks); ++s) {
      if (q.length(s) == 0) {
        empty(s);
      } else if (!is_long(s)) {
        const auto sums = sums_of(s);
        done(s, reduce_alone<pass::straight>(queue, sums, sums.src));
      }
    }
  });
}

size_t workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const reduction_tuning& tuned = queue->tuned->reductions;
  if (side_by_side(*queue, call->sums)) {
    if (call->sums.kind == LOCKSTEP_SUMS_MEAN_VARIANCE)
      return static_cast<size_t>(queue->threads * moments_block) * sizeof(moments_tree);
    return static_cast<size_t>(by_columns::values(*queue, sequences(*call))) * sizeof(double);
  }
  const int64_t most = std::max(tuned.tasks_a_thread, tuned.stolen_a_thread) * queue->threads;
  return static_cast<size_t>(most) * std::max(sizeof(wide), sizeof(order::moments));
}

void mean_variance(const lockstep_queue& queue, const lockstep_call* call) {
  const lockstep_sums_desc& d = call->sums;
  const sequences q(*call);
  const auto store = [&](int64_t s, double mean, double variance) {
    store_float(call, 2 * s, mean);
    store_float(call, 2 * s + 1, variance);
  };
  const auto divisor_of = [&](int64_t n) {  // NaN where there is no variance
    const int64_t divisor = n - d.correction;
    return divisor > 0 ? static_cast<double>(divisor) : NAN;
  };
  const auto done = [&](int64_t s, const order::moments& m) {
    const int64_t n = q.length(s);
    store(s, m.sum / static_cast<double>(n), m.m2 / divisor_of(n));
  };
  if (side_by_side(queue, d)) return moments_of_columns(queue, call, done);
  const moment_chunks of{normalizers(queue.kernels).of[d.dtype - LOCKSTEP_F16].moments};
  if (short_rows(d))
    return over_short_rows(queue, d, row_batch, [&](int64_t s, int64_t count) {
      double sum[row_batch], m2[row_batch], values[2 * row_batch];
      of.kernel(q.src + s * d.sequence_stride * q.bytes, d.sequence_stride, d.length, count, sum, m2);
      const double n = static_cast<double>(d.length), divisor = divisor_of(d.length);
      for (int64_t k = 0; k < count; ++k) values[2 * k] = sum[k] / n, values[2 * k + 1] = m2[k] / divisor;
      store_floats(call, 2 * s, values, 2 * count);
    });
  over_all(queue, call, of, done, [&](int64_t s) { store(s, NAN, NAN); });
}

lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_sums_desc& d = call->sums;
  if (d.kind == LOCKSTEP_SUMS_MEAN_VARIANCE) {
    mean_variance(*queue, call);
    return LOCKSTEP_OK;
  }
  const sums_kernels& kernels = summers(queue->kernels);
  if (side_by_side(*queue, d)) {
    const int type = d.dtype - LOCKSTEP_F16;
    const sequences q(*call);
    reduce_columns(*queue, column_sums{{kernels.floats[type][d.kind]}, d, q, kernels.columns[type][d.kind]}, q,
                   call->workspace, results{float_results{call}, 0});
    return LOCKSTEP_OK;
  }
  if (lockstep_dtype_kind(d.dtype) == 'f') {
    const float_chunks of{kernels.floats[d.dtype - LOCKSTEP_F16][d.kind]};
    if (short_rows(d)) {
      sums_of_short_rows(*queue, call, of);
      return LOCKSTEP_OK;
    }
    over_all(
        *queue, call, of, [&](int64_t s, double value) { store_float(call, s, value); },
        [&](int64_t s) { store_float(call, s, 0.0); });
    return LOCKSTEP_OK;
  }
  first_failure overflow;
  over_all(
      *queue, call, exact_chunks{kernels.exact[d.dtype - LOCKSTEP_I32][d.kind]},
      [&](int64_t s, const wide& value) {
        if (!store_exact(call, s, value)) overflow.at(s);
      },
      [&](int64_t s) { store_exact(call, s, wide{}); });
  if (!overflow.any()) return LOCKSTEP_OK;
  const int64_t s = overflow.sequence();
  return failed(LOCKSTEP_OVERFLOW,
                "the exact sum of sequence {} does not fit {}, dst[{}] holds {}; sum shorter sequences or floats", s,
                exact_name(call), s, exact_text(call, s));
}

const lockstep_variant rows[] = {
    {"leaves", "SIMD lanes over the leaves of both arrays, aligned subtrees shared among threads", 0, nullptr, nullptr,
     workspace, launch},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_sums},
};
}  // namespace

const lockstep_table sums_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
