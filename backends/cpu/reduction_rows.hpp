// reduction_rows.hpp - the table rows that reduce and square_sum share; each reads a call's sequences in its own way.
// An op gives sequences_of(call) and run(queue, q, cached, body), which calls body(reduction, results) for the
// requested reduction. done(s, value, again) is called once, from any thread, for each sequence with elements, and
// empty(s) for the others. again(R, view) reduces the whole sequence once more in the same way. Of columns done may
// take many results at once: all(first, values, count), or whole(first, count), which reduces columns of a chunk
// itself.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>

#include "axis_list.hpp"
#include "bits/order_rows.hpp"
#include "ops.hpp"
#include "passes.hpp"
#include "terms.hpp"
#include "tiny_rows.hpp"

namespace lockstep::cpu {

template <class Done, class Empty>
struct results {
  Done done;
  Empty empty;
};
template <class Done, class Empty>
results(Done, Empty) -> results<Done, Empty>;

template <pass P>
struct alone_again {
  const lockstep_queue& queue;
  template <class R>
  typename R::value operator()(const R& r, const vector_view& v) const {
    return reduce_alone<P>(queue, r, v);
  }
};
template <pass P>
struct together_again {
  const lockstep_queue& queue;
  void* workspace;
  template <class R>
  typename R::value operator()(const R& r, const vector_view& v) const {
    return reduce_together<P>(queue, r, v, workspace);
  }
};

inline const lib::reduction_kind& kind_of(const lockstep_reduce_desc& d) { return lib::kind_of(d.reduction); }
inline bool finds_extremes(const lockstep_reduce_desc& d) { return kind_of(d).extreme(); }
inline bool ordered(const lockstep_reduce_desc& d) { return kind_of(d).ordered(d.dtype); }
// Passed on by a task, because the norm of a sequence may need further reductions of it.
inline size_t value_bytes(const sequences& q) {
  const lockstep_reduce_desc& d = q.d;
  if (q.pairs != nullptr) return std::max(sizeof(wide), sizeof(order::moments));
  if (kind_of(d).to == lib::finish::root) return std::max({sizeof(wide), sizeof(extreme), sizeof(double)});
  return finds_extremes(d) ? sizeof(extreme) : ordered(d) ? sizeof(double) : sizeof(wide);
}
inline int64_t chunk_of(const lockstep_reduce_desc& d) { return ordered(d) ? order::leaf : exact_chunk; }

// Calls body(first, last) with ranges of a call's sequences.
template <class Body>
void over_sequences(const lockstep_queue& queue, const sequences& q, int64_t grain, const Body& body) {
  const int64_t bytes = q.elements() * q.bytes;
  if (queue.threads == 1 || bytes < queue.tuned->reductions.stolen_from)
    return over_parts(queue, q.d.count, grain, body);
  const int64_t tasks = std::min(q.d.count, most_tasks(queue, bytes));
  over_shares(queue, tasks,
              [&](int64_t t, int) { body(part_begin(q.d.count, t, tasks), part_begin(q.d.count, t + 1, tasks)); });
}

// ---- columns --------------------------------------------------------------------
// Where sequences side by side have one axis: the distance of their elements; else 0.
inline int64_t one_distance(const sequences& q) {
  if (q.along == nullptr) return q.d.element_stride;
  return q.along->reduced.count == 1 ? q.along->reduced.stride[0] : 0;
}
// Calls body(rows, m, ld) for elements [first, first + n) of `width` sequences side by side, the first of which begins
// at src. Short runs of rows are copied, as many as the L1 holds with room to spare.
inline constexpr int64_t copied_bytes = 16 << 10;
template <class Body>
void over_rows(const sequences& q, const char* src, int64_t first, int64_t n, int64_t width, const Body& body) {
  constexpr int64_t least_run = 16;
  const axis_list& axes = q.along->reduced;
  const int64_t apart = axes.stride[axes.count - 1] * q.bytes, row = width * q.bytes, most = copied_bytes / row;
  const bool in_place = axes.shape[axes.count - 1] >= least_run && n > most;
  alignas(64) char buffer[copied_bytes];
  int64_t rows = 0;
  axes.runs(first, n, [&](int64_t place, int64_t run) {
    const char* from = src + place * q.bytes;
    if (in_place) return body(from, run, apart / q.bytes);
    for (int64_t k = 0; k < run;) {
      const int64_t some = std::min(run - k, most - rows);
      q.along->moves->copies(from + k * apart, apart, buffer + rows * row, row, row, some);
      rows += some, k += some;
      if (rows == most) body(buffer, rows, width), rows = 0;
    }
  });
  if (rows > 0) body(buffer, rows, width);
}
// The same elements, at most a chunk, reduced.
template <class R>
void reduce_block(const R& r, const sequences& q, const char* src, int64_t first, int64_t n, int64_t width,
                  typename R::value* values) {
  if (const int64_t ld = one_distance(q); ld != 0)
    return r.columns(src + first * ld * q.bytes, n, ld, width, first, values);
  if constexpr (requires { r.listed(src, n, nullptr, width, values); }) {
    const axis_list& axes = q.along->reduced;
    const int64_t apart = axes.stride[axes.count - 1];
    int64_t at[R::chunk], *next = at;
    axes.runs(first, n, [&](int64_t place, int64_t run) {
      for (int64_t k = 0; k < run; ++k) *next++ = place + k * apart;
    });
    r.listed(src, n, at, width, values);
  } else {
    typename R::column_join join;
    int64_t at = first;
    over_rows(q, src, first, n, width, [&](const char* rows, int64_t m, int64_t ld) {
      typename R::value part[column_block];
      r.columns(rows, m, ld, width, at, part);
      join.push(part, width, 0);
      at += m;
    });
    join.total(values, width);
  }
}

inline constexpr int64_t least_block = 64;  // columns
template <class R, class To>
void reduce_columns(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
  const int64_t run = q.run_beside(), most = queue.tuned->reductions.tasks_a_thread * queue.threads;
  const int64_t chunks = chunks_of<R>(q.d.length);
  int64_t block_width = column_block, blocks_a_run = (run - 1) / block_width + 1;
  int64_t blocks = q.d.count / run * blocks_a_run;
  const int level = subtree_level(chunks, blocks < most ? (most - 1) / blocks + 1 : 1);
  const int64_t subtrees = ((chunks - 1) >> level) + 1;
  // Narrower blocks where threads would have none, if each is worth waking a thread and a quarter of its L2 holds its
  // share: the hardware's prefetchers also bring the columns beside it.
  const reduction_tuning& tuned = queue.tuned->reductions;
  const bool small = q.elements() * q.bytes <= queue.threads * tuned.has.l2 / 4;
  while (small && queue.threads > 1 && block_width > least_block && blocks * subtrees < 2 * queue.threads &&
         q.elements() / (blocks * subtrees) >= 2 * tuned.grain_elements) {
    block_width /= 2;
    blocks_a_run = (run - 1) / block_width + 1;
    blocks = q.d.count / run * blocks_a_run;
  }
  typedef typename R::value value;
  const auto done = [&](int64_t s, const value& v) { to.done(s, v, alone_again<pass::straight>{queue}); };
  auto* partial = static_cast<value*>(workspace);
  const auto reduce = [&](int64_t task) {
    const int64_t block = task % blocks, subtree = task / blocks, column = block % blocks_a_run * block_width;
    const int64_t s = block / blocks_a_run * run + column, width = std::min(run - column, block_width);
    const int64_t first = subtree << level, last = std::min((subtree + 1) << level, chunks);
    alignas(64) value values[column_block];
    const char* const src = q.begin(s);
    if constexpr (requires { to.done.whole(s, src, width, width); }) {
      if (const int64_t ld = one_distance(q); chunks == 1 && ld != 0) return to.done.whole(s, src, ld, width);
      if (q.d.length * width * q.bytes <= copied_bytes)
        return over_rows(q, src, 0, q.d.length, width,
                         [&](const char* rows, int64_t, int64_t ld) { to.done.whole(s, rows, ld, width); });
    }
    const auto reduce_chunk = [&](int64_t c) {
      const int64_t at = c * R::chunk;
      reduce_block(r, q, src, at, std::min(q.d.length - at, R::chunk), width, values);
    };
    if (last - first == 1) {
      reduce_chunk(first);
    } else {
      typename R::column_join join;
      for (int64_t c = first; c < last; ++c) reduce_chunk(c), join.push(values, width, 0);
      join.total(values, width);
    }
    if constexpr (requires { to.done.all(int64_t{}, values, width); })
      if (subtrees == 1) return to.done.all(s, values, width);
    if (subtrees == 1) {
      for (int64_t k = 0; k < width; ++k) done(s + k, values[k]);
    } else {
      std::memcpy(partial + task * block_width, values, static_cast<size_t>(width) * sizeof(value));
    }
  };
  const int64_t tasks = blocks * subtrees;
  const int64_t grain = queue.tuned->reductions.grain_elements / std::max<int64_t>(q.elements() / tasks, 1) / 4 + 1;
  // In shares, so that a thread of repeated calls finds its columns in its own L2.
  over_shares(queue, (tasks - 1) / grain + 1, [&](int64_t t, int) {
    for (int64_t task = t * grain; task < std::min((t + 1) * grain, tasks); ++task) reduce(task);
  });
  if (subtrees == 1) return;
  over_ranges(queue, q.d.count, column_block, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      const int64_t column = s % run, block = s / run * blocks_a_run + column / block_width;
      typename R::join join;
      for (int64_t t = 0; t < subtrees; ++t)
        join.push(partial[(t * blocks + block) * block_width + column % block_width], level);
      done(s, join.total());
    }
  });
}

inline bool too_few_columns(const lockstep_queue& queue, const sequences& q) {
  const reduction_tuning& tuned = queue.tuned->reductions;
  const bool narrow = q.bytes < 4 && !ordered(q.d);
  return q.run_beside() < (narrow ? tuned.few_narrow_columns : tuned.few_columns);
}

struct by_columns {
  static constexpr bool cached = false;
  static const char* refuses(const sequences& q) {
    const bool beside = q.d.offsets == nullptr && q.d.sequence_stride == 1 && q.d.element_stride > 1 && q.d.length > 1;
    return beside ? nullptr : "needs sequences side by side: sequence_stride 1, element_stride and length above 1";
  }
  static bool yields(const lockstep_queue& queue, const sequences& q) { return too_few_columns(queue, q); }
  // blocks * subtrees <= tasks + blocks, where blocks < tasks.
  static int64_t values(const lockstep_queue& queue, const sequences&) {
    return 2 * queue.tuned->reductions.tasks_a_thread * queue.threads * column_block;
  }
  template <class R, class To>
  static void run(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
    reduce_columns(queue, r, q, workspace, to);
  }
};

// ---- sequences one after the other, or side by side on several threads -------------
// Sequences [first, last) by one thread: packed sequences of at most a chunk, or copies, go to the kernel in batches,
// the others one by one. Sequences for whose length taken(n) is true are skipped.
template <pass P, class R, class To, class Taken>
void reduce_range(const lockstep_queue& queue, const R& r, const sequences& q, int64_t first, int64_t last,
                  const To& to, const Taken& taken) {
  const alone_again<P> again{queue};
  // Sequences along axes are copied, as many as the L1 holds with room to spare.
  alignas(64) char copied[copied_bytes];
  const int64_t most = q.along == nullptr ? row_batch : std::min(row_batch, copied_bytes / (q.d.length * q.bytes));
  const auto fits = [&](int64_t s) {
    return (q.packed() || (q.along != nullptr && most > 0)) && q.length(s) <= R::chunk && !taken(q.length(s));
  };
  for (int64_t s = first; s < last;) {
    if (!fits(s)) {
      if (const int64_t n = q.length(s); n == 0)
        to.empty(s);
      else if (!taken(n))
        to.done(s, reduce_alone<P>(queue, reduction_at(r, s), q.view(s)), again);
      ++s;
      continue;
    }
    int64_t count = 1;
    while (count < most && s + count < last && fits(s + count)) ++count;
    typename R::value values[row_batch];
    const auto& of_these = reduction_at(r, s);
    if (q.along != nullptr)
      of_these.rows({q.copies(s, count, copied), q.d.length, q.d.length, nullptr}, count, values);
    else if (q.d.offsets != nullptr)
      of_these.rows({q.src, 0, 0, q.d.offsets + s}, count, values);
    else
      of_these.rows({q.begin(s), q.d.length, q.d.sequence_stride, nullptr}, count, values);
    for (int64_t k = 0; k < count; ++k, ++s) {
      if (q.length(s) == 0)
        to.empty(s);
      else
        to.done(s, values[k], again);
    }
  }
}

inline bool splits(const lockstep_queue& queue) { return queue.threads > 1 && !forked(); }

// A few long sequences of equal length, their subtrees shared out among the threads at once. workspace: most_tasks()
// values and one a sequence.
template <class R, class To>
void reduce_side_by_side(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
  const int64_t bytes = q.elements() * q.bytes, chunks = chunks_of<R>(q.d.length);
  const int level = subtree_level(chunks, std::max<int64_t>(1, most_tasks(queue, bytes) / q.d.count));
  const int64_t subtrees = ((chunks - 1) >> level) + 1, tasks = q.d.count * subtrees;
  auto* values = static_cast<typename R::value*>(workspace);
  const auto run = [&](int64_t task) {
    const int64_t s = task / subtrees;
    values[task] = reduce_subtree(queue, reduction_at(r, s), q.view(s), level, task % subtrees);
  };
  if (bytes >= queue.tuned->reductions.stolen_from)
    over_shares(queue, tasks, [&](int64_t task, int) { run(task); });
  else
    over_ranges(queue, tasks, 1, [&](int64_t first, int64_t last) {
      for (int64_t task = first; task < last; ++task) run(task);
    });
  // Totals first: a norm that is reduced again needs the workspace.
  for (int64_t s = 0; s < q.d.count; ++s) values[s] = join_subtrees<R>(values + s * subtrees, subtrees, level);
  for (int64_t s = 0; s < q.d.count; ++s)
    to.done(s, values[s], together_again<pass::straight>{queue, values + q.d.count});
}

// Sequences of equal length.
template <pass P, class R, class To>
void reduce_lanes(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
  if (q.d.length == 0) {
    for (int64_t s = 0; s < q.d.count; ++s) to.empty(s);
    return;
  }
  const reduction_tuning& tuned = queue.tuned->reductions;
  // All threads share each sequence, unless there are enough sequences to give each thread whole ones.
  if (splits(queue) && q.d.count < tuned.tasks_a_thread * queue.threads && q.d.length > tuned.long_bytes / q.bytes) {
    if (P == pass::straight && q.d.count > 1) return reduce_side_by_side(queue, r, q, workspace, to);
    for (int64_t s = 0; s < q.d.count; ++s)
      to.done(s, reduce_together<P>(queue, reduction_at(r, s), q.view(s), workspace),
              together_again<P>{queue, workspace});
    return;
  }
  const int64_t grain = q.d.length >= tuned.grain_elements ? 1 : tuned.grain_elements / q.d.length + 1;
  over_sequences(queue, q, grain, [&](int64_t first, int64_t last) {
    reduce_range<P>(queue, r, q, first, last, to, [](int64_t) { return false; });
  });
}

inline bool beyond_caches(const lockstep_queue& queue, const sequences& q) {
  const int64_t most = queue.tuned->reductions.cached_bytes(q.bytes);
  return most == 0 || q.elements() > most / q.bytes;
}

template <pass P, bool Cached>
struct by_lanes {
  static constexpr bool cached = Cached;
  static const char* refuses(const sequences& q) {
    if (q.d.offsets != nullptr) return "needs sequences of one length";
    if (P == pass::two_streams && !q.packed()) return "needs elements without gaps";
    if (P == pass::alternating && q.d.count > 1) return "needs one sequence";
    if (P != pass::straight && q.d.length < 2 * chunk_of(q.d))
      return ordered(q.d) ? "needs 4096 elements, two leaves" : "needs 16384 elements, two chunks";
    if (Cached && !ordered(q.d)) return "needs a sum or product of floats";
    return Cached && q.d.length < order::leaf ? "needs 2048 elements, a leaf" : nullptr;
  }
  static bool yields(const lockstep_queue& queue, const sequences& q) {
    if (Cached && beyond_caches(queue, q)) return true;
    const reduction_tuning& tuned = queue.tuned->reductions;
    const int64_t bytes = q.d.length * q.bytes;
    if (P == pass::two_streams) {
      const bool early = finds_extremes(q.d) && q.bytes == 4 && queue.threads == 1;
      return (q.bytes == 2 && !tuned.two_streams_of_2_bytes) || queue.threads > tuned.two_streams_threads ||
             bytes < (early ? tuned.two_extremes_from : tuned.two_streams_from);
    }
    // Threads that take work from others may start anywhere.
    if (P == pass::alternating)
      return bytes < tuned.alternating_from * queue.threads || bytes >= tuned.alternating_below ||
             (queue.threads > 1 && bytes >= tuned.stolen_from);
    return false;
  }
  static int64_t values(const lockstep_queue& queue, const sequences& q) {
    const int64_t few = queue.tuned->reductions.tasks_a_thread * queue.threads;
    if (q.d.count >= few) return most_tasks(queue, q.d.length * q.bytes);
    return most_tasks(queue, saturated_product(q.d.count, q.d.length * q.bytes)) + q.d.count;
  }
  template <class R, class To>
  static void run(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
    reduce_lanes<P>(queue, r, q, workspace, to);
  }
};

// ---- segments -------------------------------------------------------------------
template <class R, class To>
void reduce_segments(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
  const reduction_tuning& tuned = queue.tuned->reductions;
  const bool split = splits(queue);
  const int64_t elements = q.elements(), share = tuned.tasks_a_thread * queue.threads;
  // All threads share a segment that is more than one's part of the whole; the others are dealt out.
  const auto is_long = [&](int64_t n) { return split && n > std::max(tuned.long_bytes / q.bytes, elements / share); };
  bool any_short = !is_long(elements);
  if (!any_short) {
    for (int64_t s = 0; s < q.d.count; ++s) {
      if (!is_long(q.length(s)))
        any_short = true;
      else
        to.done(s, reduce_together<pass::straight>(queue, reduction_at(r, s), q.view(s), workspace),
                together_again<pass::straight>{queue, workspace});
    }
  }
  if (!any_short) return;
  const segment_shares all(queue, q.d.offsets, q.d.count, tuned.grain_elements);
  over_tasks(queue, all.shares,
             [&](int64_t t) { reduce_range<pass::straight>(queue, r, q, all.cut(t), all.cut(t + 1), to, is_long); });
}

template <bool Cached>
struct by_segments {
  static constexpr bool cached = Cached;
  static const char* refuses(const sequences& q) {
    if (q.d.offsets == nullptr) return "needs segments, sequences of lengths of their own";
    return Cached && !ordered(q.d) ? "needs a sum or product of floats" : nullptr;
  }
  static bool yields(const lockstep_queue& queue, const sequences& q) { return Cached && beyond_caches(queue, q); }
  static int64_t values(const lockstep_queue& queue, const sequences&) {
    return queue.tuned->reductions.stolen_a_thread * queue.threads;
  }
  template <class R, class To>
  static void run(const lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const To& to) {
    reduce_segments(queue, r, q, workspace, to);
  }
};

// ---- many short rows of one length, whose results go straight to dst ----------------
inline const char* not_tiny_rows(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  const bool extremes = finds_extremes(d);
  if (!ordered(d) && !extremes) return "exact sums and products are checked for overflow one by one";
  const tiny_row_kernels& kernels = tiny_rows(queue->kernels);
  if (extremes ? kernels.extremes[extreme_term_of(kind_of(d), d.dtype)] == nullptr
               : kernels.sums[float_term_of(kind_of(d), d.dtype)] == nullptr)
    return "has no kernel for this reduction of this dtype";
  if (d.offsets != nullptr || d.element_stride != 1) return "needs rows of one length without gaps";
  if (d.length >= 1 && d.length <= (extremes ? tiny_extreme : tiny_sum)) return nullptr;
  return extremes ? "needs rows of 1 to 7 elements to find extremes" : "needs rows of 1 to 3 elements to sum";
}
inline const char* not_short_rows(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  if (!ordered(d) && !finds_extremes(d)) return "exact sums and products are checked for overflow one by one";
  if (d.offsets != nullptr || d.element_stride != 1) return "needs rows of one length without gaps";
  return d.length < 1 || d.length > order::leaf ? "needs rows of 1 to 2048 elements" : nullptr;
}
inline int few_or_long_rows(const lockstep_queue* queue, const lockstep_call* call) {
  const reduction_tuning& tuned = queue->tuned->reductions;
  return call->reduce.count < tuned.few_rows || call->reduce.length > tuned.short_row;
}
// Calls rows(first, last) with ranges of the call's rows.
template <class Rows>
void over_short_rows(const lockstep_queue& queue, const sequences& q, const Rows& rows) {
  over_sequences(queue, q, queue.tuned->reductions.grain_elements / q.d.length + 1, rows);
}

// ---- the table ----------------------------------------------------------------------
template <class Way>
size_t workspace_of(const lockstep_queue& queue, const sequences& q) {
  return static_cast<size_t>(Way::values(queue, q)) * value_bytes(q);
}
template <class Op, class Way>
lockstep_status reduce_by(const lockstep_queue& queue, const sequences& q) {
  return Op::run(queue, q, Way::cached, [&](const auto& r, const auto& to) { Way::run(queue, r, q, q.workspace, to); });
}
template <class Op, class Way>
constexpr lockstep_variant reduction_row(const char* name, const char* idea) {
  return {name,
          idea,
          0,
          [](const lockstep_queue*, const lockstep_call* call) { return Way::refuses(Op::sequences_of(*call)); },
          [](const lockstep_queue* queue, const lockstep_call* call) {
            return static_cast<int>(Way::yields(*queue, Op::sequences_of(*call)));
          },
          [](const lockstep_queue* queue, const lockstep_call* call) {
            return workspace_of<Way>(*queue, Op::sequences_of(*call));
          },
          [](lockstep_queue* queue, const lockstep_call* call) {
            return reduce_by<Op, Way>(*queue, Op::sequences_of(*call));
          }};
}

// The ways that reduce_axes takes too (reduce.cpp).
struct reduction_way {
  size_t (*workspace)(const lockstep_queue&, const sequences&);
  lockstep_status (*run)(const lockstep_queue&, const sequences&);
};
extern const reduction_way by_lanes_way, by_columns_way;

template <class Op>
constexpr auto reduction_rows(lockstep_status (*reference)(lockstep_queue*, const lockstep_call*)) {
  return std::array{
      lockstep_variant{"tiny_rows", "many rows of a few elements: code for each length, one row in each lane if packed",
                       0, not_tiny_rows, few_or_long_rows, nullptr, Op::tiny_rows},
      lockstep_variant{"short_rows", "many rows of equal length, a register of rows at a time, results straight to dst",
                       0, not_short_rows, few_or_long_rows, nullptr, Op::short_rows},
      reduction_row<Op, by_columns>("columns",
                                    "adjacent sequences: each vector holds one element of several sequences"),
      reduction_row<Op, by_segments<true>>("segments_cached", "as segments, without prefetches, for cached data"),
      reduction_row<Op, by_segments<false>>("segments", "sequences of different lengths, divided by elements"),
      reduction_row<Op, by_lanes<pass::two_streams, false>>(
          "streams", "as lanes, two places of a sequence read at the same time, for data larger than the caches"),
      reduction_row<Op, by_lanes<pass::alternating, true>>("alternating_cached",
                                                           "as lanes_cached, repeated passes alternate direction"),
      reduction_row<Op, by_lanes<pass::alternating, false>>(
          "alternating", "as lanes, repeated passes alternate direction, for data that just fits the caches"),
      reduction_row<Op, by_lanes<pass::straight, true>>("lanes_cached",
                                                        "as lanes, without prefetches, for cached data"),
      reduction_row<Op, by_lanes<pass::straight, false>>(
          "lanes", "SIMD lanes over chunks (leaves of the fixed order), aligned subtrees divided among threads"),
      lockstep_variant{"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr,
                       reference}};
}

}  // namespace lockstep::cpu
