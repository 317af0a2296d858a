// sums.cpp - dst[s] = sum of x * y, (x - y)^2, |x - y| or |x| of a sequence; or its mean and variance, or its digest.
// Idea    a reduction like those of reduce.cpp, by the same ways (reduction_rows.hpp), whose term may take an
//         element of a second array. Rows of at most a leaf: many rows to a kernel call. Columns: a vector holds
//         elements of neighbouring columns.
// Moves   every element of both arrays once, 4 to 16 bytes for each result
// Limit   the read limit
// Watch   elements of src and other belong together by their index in the sequence, not by their place in memory
// Source  lib/bits/order.hpp, lib/bits/order_rows.hpp
#include <cstring>

#include "bits/digest.hpp"
#include "bits/order_rows.hpp"
#include "equal_elements.hpp"
#include "folds.hpp"
#include "normalize_kernels.hpp"
#include "ops.hpp"
#include "reduction_rows.hpp"
#include "sums_kernels.hpp"

namespace lockstep::cpu {
namespace {

// ---- terms: rows of at most a chunk ------------------------------------------------
struct float_chunks {
  typedef double value;
  typedef order::tree<double> join;
  static constexpr int64_t chunk = order::leaf;
  void (*kernel)(const rows_of_two& rows, int64_t count, double* out);
  void operator()(const rows_of_two& rows, int64_t count, double* out) const { kernel(rows, count, out); }
};
struct exact_chunks {
  typedef wide value;
  typedef running<exact_sum> join;
  static constexpr int64_t chunk = exact_chunk;
  wide (*kernel)(const void*, const void*, int64_t);
  int64_t bytes;
  void operator()(const rows_of_two& rows, int64_t count, wide* out) const {
    for (int64_t k = 0; k < count; ++k)
      out[k] =
          kernel(static_cast<const char*>(rows.x) + k * rows.x_stride * bytes,
                 rows.y != nullptr ? static_cast<const char*>(rows.y) + k * rows.y_stride * bytes : nullptr, rows.n);
  }
};
struct moment_chunks {
  typedef order::moments value;
  typedef order::tree<order::moments> join;
  static constexpr int64_t chunk = order::leaf;
  void (*kernel)(const void* x, int64_t stride, int64_t n, int64_t count, double* sum, double* m2);
  bool f64;
  void operator()(const rows_of_two& rows, int64_t count, order::moments* out) const {
    double sum[row_batch], m2[row_batch];
    kernel(rows.x, rows.x_stride, rows.n, count, sum, m2);
    for (int64_t k = 0; k < count; ++k) out[k] = {static_cast<double>(rows.n), sum[k], m2[k], 0};
    const auto* x = static_cast<const double*>(rows.x);
    for (int64_t k = 0; f64 && k < count; ++k) out[k].equal = equal_elements(x + k * rows.x_stride, rows.n, sum[k]);
  }
};

// A term's reduction in the form that sequences.hpp needs.
template <class Of>
struct pair_fold {
  typedef typename Of::value value;
  typedef typename Of::join join;
  static constexpr int64_t chunk = Of::chunk;
  Of of;
  const sequences& q;
  vector_view other = {};  // of one sequence; begin is NULL where there is one array

  pair_fold at(int64_t s) const { return {of, q, q.other(s)}; }
  // Of the sequences from this one on.
  void rows(const packed_rows& r, int64_t count, value* out) const {
    if (r.offsets == nullptr)
      return of({r.src, other.begin, r.n, r.stride, q.pairs->other_sequence_stride}, count, out);
    const auto* y = static_cast<const char*>(q.pairs->other);
    for (int64_t k = 0; k < count; ++k) {
      const int64_t first = r.offsets[k] * q.bytes, n = r.offsets[k + 1] - r.offsets[k];
      if (n != 0) of({static_cast<const char*>(r.src) + first, y != nullptr ? y + first : nullptr, n}, 1, out + k);
    }
  }
  void chunks(const void* x, int64_t count, int64_t n, int64_t first, value* out) const {
    alignas(64) unsigned char buffer[chunk * 8];
    for (int64_t k = 0; k < count; ++k) {
      const int64_t at = k * chunk, i = first + at;
      of({static_cast<const char*>(x) + at * q.bytes, other.begin != nullptr ? other.chunk(i, n, buffer) : nullptr, n},
         1, out + k);
    }
  }
};

// ---- digests: a word's place counts, so a chunk has to know where it begins ---------
struct digest_words {
  uint64_t sums[2] = {};
};
struct digest_fold {
  typedef digest_words value;
  typedef running<digest_fold> join;
  static constexpr int64_t chunk = exact_chunk;
  void (*kernel)(const void* words, int64_t count, uint64_t key, uint64_t sums[2]);
  const sequences& q;

  static void add(digest_words& into, const digest_words& value) {
    for (int k = 0; k < 2; ++k) into.sums[k] += value.sums[k];
  }
  digest_words of(const void* x, int64_t n, int64_t first) const {
    const int64_t words = n * q.bytes / 8, rest = n * q.bytes % 8;
    const uint64_t at = static_cast<uint64_t>(q.pairs->correction + first) / 8 * static_cast<uint64_t>(q.bytes);
    digest_words value;
    kernel(x, words, digest::key_of(at, q.d.dtype, 0), value.sums);
    if (rest == 0) return value;
    uint64_t word = 0;
    std::memcpy(&word, static_cast<const char*>(x) + 8 * words, static_cast<size_t>(rest));
    const int missing = static_cast<int>(8 - rest);
    kernel(&word, 1, digest::key_of(at + static_cast<uint64_t>(words), q.d.dtype, missing), value.sums);
    return value;
  }
  digest_fold at(int64_t) const { return *this; }
  void rows(const packed_rows& r, int64_t count, value* out) const {
    for (int64_t k = 0; k < count; ++k) {
      const int64_t first = r.offsets != nullptr ? r.offsets[k] : k * r.stride;
      const int64_t n = r.offsets != nullptr ? r.offsets[k + 1] - first : r.n;
      if (n != 0) out[k] = of(static_cast<const char*>(r.src) + first * q.bytes, n, 0);
    }
  }
  void chunks(const void* x, int64_t count, int64_t n, int64_t first, value* out) const {
    for (int64_t k = 0; k < count; ++k)
      out[k] = of(static_cast<const char*>(x) + k * chunk * q.bytes, n, first + k * chunk);
  }
};

bool of_floats(const lockstep_sums_desc& d) {
  return lockstep_dtype_kind(d.dtype) == 'f' && d.kind != LOCKSTEP_SUMS_DIGEST;
}
bool of_moments(const lockstep_sums_desc& d) { return d.kind == LOCKSTEP_SUMS_MEAN_VARIANCE; }

struct moment_results {
  const sequences& q;

  double divisor_of(int64_t n) const {  // NaN where there is no variance
    const int64_t divisor = n - q.pairs->correction;
    return divisor > 0 ? static_cast<double>(divisor) : NAN;
  }
  void store(int64_t s, double mean, double variance) const {
    store_float(q, 2 * s, mean);
    store_float(q, 2 * s + 1, variance);
  }
  template <class Again>
  void operator()(int64_t s, const order::moments& m, const Again&) const {
    const int64_t n = q.length(s);
    store(s, m.mean(), m.squares() / divisor_of(n));
  }
};

// ---- columns: sequences side by side, in other too -------------------------------
// A reduction by columns, as reduce_columns of reduction_rows.hpp needs it.
struct column_sums : pair_fold<float_chunks> {
  typedef float_sum::column_join column_join;
  void (*of_columns)(const void* x, int64_t x_ld, const void* y, int64_t y_ld, int64_t n, int64_t width, double* out);

  void columns(const void* src, int64_t n, int64_t ld, int64_t width, int64_t first, double* out) const {
    const lockstep_sums_desc& d = *q.pairs;
    const int64_t column = (static_cast<const char*>(src) - q.src) / q.bytes - first * ld;
    const int64_t at = first * d.other_element_stride + column;
    if (d.other == nullptr)
      of_columns(src, ld, src, ld, n, width, out);
    else
      of_columns(src, ld, static_cast<const char*>(d.other) + at * q.bytes, d.other_element_stride, n, width, out);
  }
};
// Means and variances: a leaf of a block of columns is read twice. Of rows that lie far apart an L2 holds only a copy,
// of 256 bytes of each.
constexpr int64_t moments_row = 256;
typedef order::tree<order::moments> moments_tree;
struct moments_room {
  int64_t block, joins, copy;  // columns; the values of their joins, and of the copy, 0 if rows lie close together

  moments_room(const lockstep_queue& queue, const sequences& q) {
    const lockstep_reduce_desc& d = q.d;
    constexpr int64_t value = sizeof(order::moments), a_line = 64 / value;
    block = std::clamp<int64_t>(d.count / (2 * queue.threads) / 16 * 16, 16, moments_row / q.bytes);
    joins = block * ((static_cast<int64_t>(sizeof(moments_tree)) - 1) / value + 1);
    const int64_t rows = std::min(order::leaf, d.length);
    const bool apart = rows * d.element_stride * q.bytes > queue.tuned->has.l2;
    copy = apart ? (rows * block * q.bytes / value + a_line - 1) / a_line * a_line : 0;
  }
  int64_t of_thread() const { return joins + copy; }
};
void moments_of_columns(const lockstep_queue& queue, const sequences& q, const moment_results& done) {
  const lockstep_reduce_desc& d = q.d;
  const auto kernel = summers(queue.kernels).moment_columns[d.dtype - LOCKSTEP_F16];
  const moments_room room(queue, q);
  over_shares(queue, (d.count - 1) / room.block + 1, [&](int64_t t, int thread) {
    const int64_t first = t * room.block, width = std::min(room.block, d.count - first);
    auto* const values = static_cast<order::moments*>(q.workspace) + thread * room.of_thread();
    auto* const joins = reinterpret_cast<moments_tree*>(values);
    for (int64_t k = 0; k < width; ++k) joins[k].count = 0;
    alignas(64) double sum[column_block], m2[column_block], equal[column_block] = {};
    for (int64_t at = 0; at < d.length && !interrupted(queue); at += order::leaf) {
      const int64_t n = std::min(order::leaf, d.length - at);
      const void* x = q.src + (first + at * d.element_stride) * q.bytes;
      kernel(x, d.element_stride, n, width, room.copy > 0 ? values + room.joins : nullptr, sum, m2);
      if (d.dtype == LOCKSTEP_F64) equal_columns(x, d.element_stride, n, width, sum, equal);
      for (int64_t k = 0; k < width; ++k) joins[k].push({static_cast<double>(n), sum[k], m2[k], equal[k]});
    }
    for (int64_t k = 0; k < width; ++k) done(first + k, joins[k].total(), 0);
  });
}

struct pair_columns : by_columns {
  static const char* refuses(const sequences& q) {
    if (!of_floats(*q.pairs)) return "needs floats";
    if (q.pairs->other != nullptr && q.pairs->other_sequence_stride != 1) return "needs other side by side too";
    return by_columns::refuses(q);
  }
  static int64_t values(const lockstep_queue& queue, const sequences& q) {
    return of_moments(*q.pairs) ? queue.threads * moments_room(queue, q).of_thread() : by_columns::values(queue, q);
  }
  template <class R, class To>
  static void run(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
    if constexpr (std::is_same_v<R, column_sums>)
      reduce_columns(queue, r, q, workspace, to);
    else if constexpr (std::is_same_v<R, pair_fold<moment_chunks>>)
      moments_of_columns(queue, q, to.done);
  }
};

// ---- rows of floats of at most a leaf, each packed in src and in other -------------
const char* not_short_pairs(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_sums_desc& d = call->sums;
  if (!of_floats(d)) return "exact sums are checked one by one";
  if (d.offsets != nullptr || d.element_stride != 1 || d.other_element_stride != 1)
    return "needs rows of one length without gaps";
  return d.length < 1 || d.length > order::leaf ? "needs rows of 1 to 2048 elements" : nullptr;
}

// ---- all of them --------------------------------------------------------------------
struct sums_op {
  static sequences sequences_of(const lockstep_call& call) { return {call, call.sums}; }

  template <class Body>
  static lockstep_status run(const lockstep_queue& queue, const sequences& q, bool, const Body& body) {
    const lockstep_sums_desc& d = *q.pairs;
    const sums_kernels& kernels = summers(queue.kernels);
    const int type = d.dtype - LOCKSTEP_F16;
    if (of_moments(d)) {
      const moment_results store{q};
      body(pair_fold<moment_chunks>{{normalizers(queue.kernels).of[type].moments, d.dtype == LOCKSTEP_F64}, q},
           results{store, [&](int64_t s) { store.store(s, NAN, NAN); }});
      return LOCKSTEP_OK;
    }
    if (d.kind == LOCKSTEP_SUMS_DIGEST) {
      const auto store = [&](int64_t s, const digest_words& value) {
        std::memcpy(static_cast<uint64_t*>(q.dst) + 2 * s, value.sums, sizeof value.sums);
      };
      body(digest_fold{kernels.digest, q},
           results{[&](int64_t s, const digest_words& value, const auto&) { store(s, value); },
                   [&](int64_t s) { store(s, {}); }});
      return LOCKSTEP_OK;
    }
    if (of_floats(d)) {
      body(column_sums{{{pair_sums(queue.kernels).of[type][d.kind]}, q}, kernels.columns[type][d.kind]},
           results{float_results{q}, [&](int64_t s) { store_float(q, s, 0.0); }});
      return LOCKSTEP_OK;
    }
    first_failure overflow;
    body(pair_fold<exact_chunks>{{kernels.exact[d.dtype - LOCKSTEP_I32][d.kind], q.bytes}, q},
         results{[&](int64_t s, const wide& value, const auto&) {
                   if (!store_exact(q, s, value)) overflow.at(s);
                 },
                 [&](int64_t s) { store_exact(q, s, wide{}); }});
    return overflowed(q, overflow);
  }

  // Results straight to dst, `batch` rows to a kernel call.
  static lockstep_status short_rows(lockstep_queue* queue, const lockstep_call* call) {
    const sequences q = sequences_of(*call);
    const int type = q.d.dtype - LOCKSTEP_F16;
    const bool moments = of_moments(*q.pairs), straight = !moments && q.d.result == LOCKSTEP_F64;
    const int64_t batch = straight ? q.d.count : moments ? row_batch : row_results;
    const auto sums = moments ? nullptr : pair_sums(queue->kernels).of[type][q.pairs->kind];
    const auto pairs = normalizers(queue->kernels).of[type].moments;
    const auto rows = [&](int64_t s, int64_t count) {
      double values[std::max<int64_t>(row_results, 2 * row_batch)];
      if (!moments) {
        sums({q.begin(s), q.other(s).begin, q.d.length, q.d.sequence_stride, q.pairs->other_sequence_stride}, count,
             straight ? static_cast<double*>(q.dst) + s : values);
        return straight ? void() : store_floats(q, s, values, count);
      }
      order::moments found[row_batch];
      moment_chunks{pairs, q.d.dtype == LOCKSTEP_F64}({q.begin(s), nullptr, q.d.length, q.d.sequence_stride}, count,
                                                      found);
      const double divisor = moment_results{q}.divisor_of(q.d.length);
      for (int64_t k = 0; k < count; ++k)
        values[2 * k] = found[k].mean(), values[2 * k + 1] = found[k].squares() / divisor;
      store_floats(q, 2 * s, values, 2 * count);
    };
    const reduction_tuning& tuned = queue->tuned->reductions;
    over_parts(*queue, q.d.count, tuned.grain_elements / (q.d.length + tuned.segment_cost) + 1,
               [&](int64_t first, int64_t last) {
                 for (int64_t s = first; s < last; s += batch) rows(s, std::min(batch, last - s));
               });
    return LOCKSTEP_OK;
  }
};

constexpr lockstep_variant rows[] = {
    reduction_row<sums_op, pair_columns>("columns",
                                         "adjacent sequences: each vector holds one element of several sequences"),
    {"short_rows", "many rows of equal length, several to a kernel call, results straight to dst", 0, not_short_pairs,
     nullptr, nullptr, sums_op::short_rows},
    reduction_row<sums_op, by_segments<false>>("segments", "sequences of different lengths, divided by elements"),
    reduction_row<sums_op, by_lanes<pass::straight, false>>(
        "lanes", "SIMD lanes over the leaves of both arrays, aligned subtrees divided among threads"),
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_sums},
};
}  // namespace

const lockstep_table sums_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
