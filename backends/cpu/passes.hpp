// passes.hpp - reduces one sequence by one thread or by all: how its chunks are divided and in which order they are
// read.
#pragma once

#include <algorithm>

#include "parallel.hpp"
#include "sequences.hpp"

namespace lockstep::cpu {

enum class pass {
  straight,
  alternating,  // repeated passes alternate direction
  two_streams,  // two places of the sequence are read at the same time
};

// Repeated passes alternate direction, so that each starts on data that is still cached. A pass that always starts at
// the front would start on data that its own end has evicted.
inline bool other_way() {
  static thread_local bool back = true;
  return back = !back;
}

// push_chunks of a call that may end early: then of a part of them.
template <class R, class Join>
void push_until_over(const lockstep_queue& queue, const R& r, const vector_view& v, int64_t first, int64_t last,
                     Join& join) {
  constexpr int64_t piece = (int64_t{1} << 20) / R::chunk;  // elements
  if (queue.interrupt == nullptr) return push_chunks(r, v, first, last, join);
  for (int64_t c = first; c < last && (c == first || !interrupted(queue)); c += piece)
    push_chunks(r, v, c, std::min(c + piece, last), join);
}

// The aligned subtree t of 2^level chunks of a sequence.
template <class R>
typename R::value reduce_subtree(const lockstep_queue& queue, const R& r, const vector_view& v, int level, int64_t t) {
  const int64_t chunks = chunks_of<R>(v.n);
  typename R::join join;
  push_until_over(queue, r, v, t << level, (t + 1) << level < chunks ? (t + 1) << level : chunks, join);
  return join.total();
}

// Subtrees t and u > t, read at the same time.
template <class R>
void reduce_two(const lockstep_queue& queue, const R& r, const vector_view& v, int level, int64_t t, int64_t u,
                typename R::value* values) {
  const int64_t chunks = chunks_of<R>(v.n), whole = v.n / R::chunk, end_t = (t + 1) << level;
  const int64_t end_u = (u + 1) << level < chunks ? (u + 1) << level : chunks;
  int64_t a = t << level, b = u << level;
  typename R::join one, two;
  const int64_t ahead = std::min(end_t - a, queue.tuned->reductions.stagger);
  push_chunks(r, v, a, a + ahead, one);
  a += ahead;
  const int64_t of_t = end_t - a, of_u = (end_u < whole ? end_u : whole) - b;
  for (int64_t left = of_t < of_u ? of_t : of_u; left > 0 && !interrupted(queue);) {
    const int64_t count = left < chunks_together ? left : chunks_together;
    typename R::value of_a[chunks_together], of_b[chunks_together];
    const int64_t at_a = a * R::chunk, at_b = b * R::chunk;
    const char *const x = v.begin + at_a * v.bytes, *const y = v.begin + at_b * v.bytes;
    if constexpr (requires { r.two(x, y, count, at_a, at_b, of_a, of_b); })
      r.two(x, y, count, at_a, at_b, of_a, of_b);
    else
      r.chunks(x, count, R::chunk, at_a, of_a), r.chunks(y, count, R::chunk, at_b, of_b);
    for (int64_t k = 0; k < count; ++k) one.push(of_a[k], 0), two.push(of_b[k], 0);
    a += count, b += count, left -= count;
  }
  push_chunks(r, v, a, end_t, one);
  push_chunks(r, v, b, end_u, two);
  values[t] = one.total();
  values[u] = two.total();
}

// Takes chunks of neighbouring subtrees of `each` chunks.
template <class R>
struct subtree_totals {
  int64_t each;
  typename R::value* to;
  int64_t taken = 0;
  typename R::join join = {};

  void push(const typename R::value& value, int) {
    join.push(value, 0);
    if (++taken == each) end();
  }
  void end() {
    if (taken == 0) return;
    *to++ = join.total();
    join = {};
    taken = 0;
  }
};

// Aligned subtrees [first, last): from the last to the first if back, else in one run.
template <class R>
void reduce_subtrees(const lockstep_queue& queue, const R& r, const vector_view& v, int level, int64_t first,
                     int64_t last, bool back, typename R::value* values) {
  if (!back && queue.interrupt == nullptr) {
    subtree_totals<R> totals{int64_t{1} << level, values + first};
    push_chunks(r, v, first << level, std::min(last << level, chunks_of<R>(v.n)), totals);
    return totals.end();
  }
  for (int64_t k = 0; k < last - first; ++k) {
    const int64_t t = back ? last - 1 - k : first + k;
    values[t] = reduce_subtree(queue, r, v, level, t);
  }
}

inline int64_t most_tasks(const lockstep_queue& queue, int64_t bytes) {
  const reduction_tuning& tuned = queue.tuned->reductions;
  const int64_t few = tuned.tasks_a_thread * queue.threads, many = tuned.stolen_a_thread * queue.threads;
  return bytes < tuned.stolen_from ? few : std::clamp(bytes / tuned.task_bytes, few, many);
}

// Ranges of segments of about equal work, in elements: share t begins at segment cut(t).
struct segment_shares {
  const int64_t* offsets;
  int64_t count, shares;
  double cost, total;  // of a segment beside its elements; of all

  segment_shares(const lockstep_queue& queue, const int64_t* all, int64_t segments, int64_t grain)
      : offsets(all), count(segments), cost(static_cast<double>(queue.tuned->reductions.segment_cost)) {
    total = work(count);
    shares = total < static_cast<double>(grain) ? 1 : queue.tuned->reductions.tasks_a_thread * queue.threads;
  }
  // Before segment s.
  double work(int64_t s) const { return static_cast<double>(offsets[s] - offsets[0]) + cost * static_cast<double>(s); }
  int64_t cut(int64_t t) const {
    int64_t low = 0, high = count;
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (work(middle) * static_cast<double>(shares) < total * static_cast<double>(t))
        low = middle + 1;
      else
        high = middle;
    }
    return t == shares ? count : low;
  }
};

// The values of aligned subtrees of 2^level chunks each, joined in order.
template <class R>
typename R::value join_subtrees(const typename R::value* values, int64_t count, int level) {
  typename R::join join;
  for (int64_t t = 0; t < count; ++t) join.push(values[t], level);
  return join.total();
}

// How many of count subtrees are read in pairs: the first half with the second half.
template <pass P>
int64_t pairs_of(const vector_view& v, int64_t count) {
  return P == pass::two_streams && v.as_is() ? count / 2 : 0;
}

// A sequence by one thread.
template <pass P, class R>
typename R::value reduce_alone(const lockstep_queue& queue, const R& r, const vector_view& v) {
  const int64_t chunks = chunks_of<R>(v.n);
  if constexpr (P == pass::straight) {
    typename R::join join;
    push_until_over(queue, r, v, 0, chunks, join);
    return join.total();
  } else {
    // Of 9 to 16 subtrees at most one is not read in a pair.
    const int64_t most =
        P == pass::two_streams ? subtrees_alone : std::min(subtrees_alone, queue.tuned->reductions.parts_of_a_pass);
    const int level = subtree_level(chunks, most);
    typename R::value values[subtrees_alone];
    const int64_t count = ((chunks - 1) >> level) + 1, pairs = pairs_of<P>(v, count);
    for (int64_t t = 0; t < pairs; ++t) reduce_two(queue, r, v, level, t, t + pairs, values);
    reduce_subtrees(queue, r, v, level, 2 * pairs, count, P == pass::alternating && other_way(), values);
    return join_subtrees<R>(values, count, level);
  }
}

// A sequence by all threads. workspace: most_tasks() values.
template <pass P, class R>
typename R::value reduce_together(const lockstep_queue& queue, const R& r, const vector_view& v, void* workspace) {
  const int64_t chunks = chunks_of<R>(v.n);
  const int level = subtree_level(chunks, most_tasks(queue, v.n * v.bytes));
  const int64_t tasks = ((chunks - 1) >> level) + 1, pairs = pairs_of<P>(v, tasks);
  auto* values = static_cast<typename R::value*>(workspace);
  if (P == pass::two_streams || (P == pass::straight && v.n >= queue.tuned->reductions.stolen_from / v.bytes)) {
    over_shares(queue, tasks - pairs, [&](int64_t t, int) {
      if (t < pairs)
        reduce_two(queue, r, v, level, t, t + pairs, values);
      else
        values[t + pairs] = reduce_subtree(queue, r, v, level, t + pairs);
    });
    return join_subtrees<R>(values, tasks, level);
  }
  const bool back = P == pass::alternating && other_way();
  over_ranges(
      queue, tasks, 1,
      [&](int64_t first, int64_t last) { reduce_subtrees(queue, r, v, level, first, last, back, values); }, back);
  return join_subtrees<R>(values, tasks, level);
}

}  // namespace lockstep::cpu
