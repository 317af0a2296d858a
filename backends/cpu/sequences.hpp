// sequences.hpp - from a lockstep_reduce_desc to calls of the micro-kernels: how
// sequences are cut into chunks, which thread takes what, how results join.
//
// A reduction R has
//   value     what a chunk gives;  chunk  elements a chunk (order::leaf for float sums)
//   rows(packed_rows, count, value*)           whole sequences of at most a chunk
//   chunks(src, count, n, first, value*)       parts of one, packed, from element first on
//   two(a, b, count, first_a, first_b, value*, value*)  whole chunks of two places of one, side by side
//   columns(src, n, ld, width, first, value*)  parts of several, side by side
//   join      push(value, level), total(): chunks, or aligned subtrees of 2^level chunks, in order
//   column_join  the same for arrays of column_block values
// and the results go to done(sequence, value), called once each, by any thread.
#pragma once

#include <algorithm>
#include <cstring>

#include "mutant.hpp"
#include "order.hpp"
#include "parallel.hpp"
#include "reduce_kernels.hpp"

namespace lockstep::cpu {

// Two streams a thread, far apart, without prefetches, by turns of turn_bytes: one core of Zen 4 takes 34 ms for the
// squares of 1 GiB of f32, 47 by one stream that prefetches 8 KiB ahead, 1.8 and 2.8 for 64 MiB, 0.70 and 1.0 for 32;
// two cores 23.7 and 45.7, 0.98 and 1.9 (beside busy neighbours 41.9 and 42.8, 2.3 and 2.4). Of 16 MiB sums gain
// nothing, extremes 3 to 10 %. By turns of 512 bytes, and not
// staggered, Zen 5 gained 3 to 12 % beyond 64 MiB on one thread and lost 10 to 20 % at 64; as they are now they have
// not run there. Streams 256 KiB apart begin anew too often (tests/results/tries.md).
constexpr int64_t two_streams_from = int64_t{32} << 20;   // bytes of a sequence
constexpr int64_t two_extremes_from = int64_t{16} << 20;  // of an extreme's, on one thread

// A pass over one sequence goes the other way than the thread's last: it begins with what that one has left in the
// caches, where a pass from the start begins with what its end has driven out. 1 MiB of f64 in an L2 of 1 MiB takes
// 0.83 of the time so, 2 MiB 0.91, 1 MiB of f32 0.90 and of i32 0.95; four parts, since 16 cost f32 5 %. Shorter ones
// stay in L2 either way, and from two_streams_from on a cache holds too little of them.
constexpr int64_t turns_from = int64_t{768} << 10, parts_of_a_turn = 4;
inline bool other_way() {
  static thread_local bool back = true;
  return back = !back;
}

// One sequence of n elements; scale, where it is not 1, multiplies each (f64).
struct vector_view {
  const char* begin;
  int64_t n, stride, bytes;
  double scale = 1;
  bool two = false;    // two places of it are read side by side
  bool turns = false;  // passes over it go there and back

  bool as_is() const { return stride == 1 && scale == 1; }
  // Of count parts, how many are read beside another: the first half with the second.
  int64_t pairs(int64_t count) const { return two && as_is() ? count / 2 : 0; }
  // Elements [first, first + m): where they lie, or copied into buffer.
  const void* chunk(int64_t first, int64_t m, void* buffer) const {
    const char* from = begin + first * stride * bytes;
    if (as_is()) return from;
    if (scale != 1 && !LOCKSTEP_MUTANT("norm_not_scaled")) {
      for (int64_t i = 0; i < m; ++i)
        static_cast<double*>(buffer)[i] = reinterpret_cast<const double*>(from)[i * stride] * scale;
      return buffer;
    }
    const auto gather = [&](auto* to) {
      const auto* elements = reinterpret_cast<const std::remove_pointer_t<decltype(to)>*>(from);
      for (int64_t i = 0; i < m; ++i) to[i] = elements[i * stride];
    };
    if (bytes == 2) gather(static_cast<uint16_t*>(buffer));
    if (bytes == 4) gather(static_cast<uint32_t*>(buffer));
    if (bytes == 8) gather(static_cast<uint64_t*>(buffer));
    return buffer;
  }
};

// Sequences as the call describes them, src as bytes.
struct sequences {
  const lockstep_reduce_desc& d;
  const char* src;
  int64_t bytes;
  bool two, turns;

  sequences(const lockstep_call* call, bool two_streams = false)
      : d(call->reduce),
        src(static_cast<const char*>(call->src)),
        bytes(static_cast<int64_t>(lockstep_dtype_bytes(d.dtype))),
        two(two_streams),
        turns(d.count == 1 && d.length >= turns_from / bytes && d.length < two_streams_from / bytes) {}
  int64_t elements() const { return d.offsets != nullptr ? d.offsets[d.count] - d.offsets[0] : d.count * d.length; }
  int64_t length(int64_t s) const { return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length; }
  const char* begin(int64_t s) const {
    if (d.offsets != nullptr && length(s) == 0) return src;  // where nothing is, an offset may be any number
    return src + (d.offsets != nullptr ? d.offsets[s] * d.element_stride : s * d.sequence_stride) * bytes;
  }
  bool packed() const { return d.element_stride == 1; }
  vector_view view(int64_t s) const { return {begin(s), length(s), d.element_stride, bytes, 1, two, turns}; }
  // Neighbouring sequences lie side by side: vectors run across them.
  bool side_by_side() const {
    return d.offsets == nullptr && d.sequence_stride == 1 && d.element_stride > 1 && d.count >= 4 && d.length > 1;
  }
};

constexpr int64_t together = 64;  // chunks a call of a kernel

// Chunks [first, last) of a sequence, one after the other.
template <class R, class Join>
void push_chunks(const R& r, const vector_view& v, int64_t first, int64_t last, Join& join) {
  typename R::value values[together];
  alignas(64) unsigned char buffer[R::chunk * 8];
  for (int64_t c = first; c < last;) {
    const int64_t at = c * R::chunk, left = v.n - at;
    int64_t count = 1;
    if (v.as_is() && left >= R::chunk) {
      count = left / R::chunk;
      if (count > last - c) count = last - c;
      if (count > together) count = together;
      r.chunks(v.begin + at * v.bytes, count, R::chunk, at, values);
    } else {
      const int64_t m = left < R::chunk ? left : R::chunk;
      r.chunks(v.chunk(at, m, buffer), 1, m, at, values);
    }
    for (int64_t k = 0; k < count; ++k) {
      if (LOCKSTEP_MUTANT("tree_drops_the_odd_leaf") && c + k == last - 1 && c + k > first && (c + k) % 2 == 0)
        continue;
      join.push(values[k], 0);
    }
    c += count;
  }
}

template <class R>
int64_t chunks_of(int64_t n) {
  return n / R::chunk + (n % R::chunk != 0);
}

// The level at which `chunks` fall into at most `most` aligned subtrees.
inline int subtree_level(int64_t chunks, int64_t most) {
  int level = 0;
  while (((chunks - 1) >> level) + 1 > most) ++level;
  return level;
}

// Chunks that the first of two streams is ahead: a power of two apart their lines look alike to the L1 (one core of
// Zen 4, sums of 1 GiB of f32: 68 ms, 38 so; 1 to 17 chunks do as well).
constexpr int64_t stagger = 5;

// The aligned subtree t of 2^level chunks of a sequence.
template <class R>
typename R::value reduce_subtree(const R& r, const vector_view& v, int level, int64_t t) {
  const int64_t chunks = chunks_of<R>(v.n);
  typename R::join join;
  push_chunks(r, v, t << level, (t + 1) << level < chunks ? (t + 1) << level : chunks, join);
  return join.total();
}

// Subtrees t and u > t side by side.
template <class R>
void reduce_two(const R& r, const vector_view& v, int level, int64_t t, int64_t u, typename R::value* values) {
  const int64_t chunks = chunks_of<R>(v.n), whole = v.n / R::chunk, end_t = (t + 1) << level;
  const int64_t end_u = (u + 1) << level < chunks ? (u + 1) << level : chunks;
  int64_t a = t << level, b = u << level;
  typename R::join one, two;
  const int64_t ahead = end_t - a < stagger ? end_t - a : stagger;
  push_chunks(r, v, a, a + ahead, one);
  a += ahead;
  const int64_t of_t = end_t - a, of_u = (end_u < whole ? end_u : whole) - b;
  for (int64_t left = of_t < of_u ? of_t : of_u; left > 0;) {
    const int64_t count = left < together ? left : together;
    typename R::value of_a[together], of_b[together];
    const int64_t at_a = a * R::chunk, at_b = b * R::chunk;
    r.two(v.begin + at_a * v.bytes, v.begin + at_b * v.bytes, count, at_a, at_b, of_a, of_b);
    for (int64_t k = 0; k < count; ++k) one.push(of_a[k], 0), two.push(of_b[k], 0);
    a += count, b += count, left -= count;
  }
  push_chunks(r, v, a, end_t, one);
  if (!LOCKSTEP_MUTANT("second_stream_without_its_tail")) push_chunks(r, v, b, end_u, two);
  values[t] = one.total();
  values[u] = two.total();
}

// Takes chunks of neighbouring subtrees, `each` of them one.
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

// Aligned subtrees [first, last): from the last to the first if back, else as one run (1 MiB of f64 on two cores, 16
// subtrees, 0.96 of the time of one after the other, 512 KiB 0.93).
template <class R>
void reduce_subtrees(const R& r, const vector_view& v, int level, int64_t first, int64_t last, bool back,
                     typename R::value* values) {
  if (!back) {
    subtree_totals<R> totals{int64_t{1} << level, values + first};
    push_chunks(r, v, first << level, std::min(last << level, chunks_of<R>(v.n)), totals);
    return totals.end();
  }
  for (int64_t t = last - 1; t >= first; --t)
    values[LOCKSTEP_MUTANT("parts_in_the_order_of_the_pass") ? first + last - 1 - t : t] =
        reduce_subtree(r, v, level, t);
}

// A sequence by one thread.
template <class R>
typename R::value reduce_alone(const R& r, const vector_view& v) {
  constexpr int64_t subtrees = 16;  // of 9 to 16 at most one is read on its own
  const int64_t chunks = chunks_of<R>(v.n);
  const int level = v.two ? subtree_level(chunks, subtrees) : v.turns ? subtree_level(chunks, parts_of_a_turn) : 62;
  typename R::value values[subtrees];
  const int64_t count = ((chunks - 1) >> level) + 1;
  const int64_t pairs = v.pairs(count);
  for (int64_t t = 0; t < pairs; ++t) reduce_two(r, v, level, t, t + pairs, values);
  reduce_subtrees(r, v, level, 2 * pairs, count, v.turns && other_way(), values);
  if (count == 1) return values[0];
  typename R::join join;
  for (int64_t t = 0; t < count; ++t) join.push(values[t], level);
  return join.total();
}

inline int streams_yield(const lockstep_queue* queue, const lockstep_call* call) {
  const sequences q(call);
  const bool extremes = q.d.reduction == LOCKSTEP_MIN || q.d.reduction == LOCKSTEP_MAX ||
                        q.d.reduction == LOCKSTEP_ARGMIN || q.d.reduction == LOCKSTEP_ARGMAX;
  // Zen 4: of 2-byte elements leaves come by turns (isa/float_sums.cpp): squares of 64 MiB of f16 take 2.7 and 2.9 ms,
  // on two cores 1.4 and 1.7.
  if (queue->level == isa::avx512_zen4 && q.bytes == 2) return 1;
  const bool alone = queue->threads == 1;
  const int64_t from = extremes && q.bytes == 4 && alone ? two_extremes_from : two_streams_from;
  return !q.packed() || q.d.offsets != nullptr || q.side_by_side() || q.d.length < from / q.bytes;
}

// Tasks a thread: 8 keep uneven cores busy to within 1/8 of a share. From stolen_from on, who is done first takes what
// others have left, in tasks of task_bytes: two cores of Zen 4 take 0.89 to 0.98 of the time so for 1 GiB, 0.68 to 0.98
// for 64 MiB, 0.6 to 0.97 for 16 MiB; 4 and 8 MiB, which then move between the cores' caches, 1.00 to 1.17.
constexpr int64_t tasks_a_thread = 8, stolen_a_thread = 64;
constexpr int64_t stolen_from = int64_t{16} << 20, task_bytes = int64_t{512} << 10;

inline int64_t most_tasks(const lockstep_queue& queue, int64_t bytes) {
  const int64_t few = tasks_a_thread * queue.threads, many = stolen_a_thread * queue.threads;
  return bytes < stolen_from ? few : std::clamp(bytes / task_bytes, few, many);
}

// body(first, last): ranges of a call's sequences.
template <class Body>
void over_sequences(const lockstep_queue& queue, const sequences& q, int64_t grain, const Body& body) {
  const int64_t bytes = q.elements() * q.bytes;
  if (queue.threads == 1 || bytes < stolen_from) return over_ranges(queue, q.d.count, grain, body);
  const int64_t tasks = std::min(q.d.count, most_tasks(queue, bytes));
  over_shares(queue, tasks,
              [&](int64_t t, int) { body(part_begin(q.d.count, t, tasks), part_begin(q.d.count, t + 1, tasks)); });
}

// Values that tasks hand over.
template <class R>
size_t sequence_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const sequences q(call);
  // Column tasks: blocks * subtrees <= tasks + blocks, where blocks < tasks.
  const int64_t values = q.side_by_side()         ? 2 * tasks_a_thread * queue->threads * column_block
                         : q.d.offsets != nullptr ? stolen_a_thread * queue->threads
                                                  : most_tasks(*queue, q.d.length * q.bytes);
  return static_cast<size_t>(values) * sizeof(typename R::value);
}

// All threads on one sequence.
template <class R>
typename R::value reduce_together(lockstep_queue& queue, const R& r, const vector_view& v, void* workspace) {
  const int64_t chunks = chunks_of<R>(v.n);
  const int level = subtree_level(chunks, most_tasks(queue, v.n * v.bytes));
  const int64_t tasks = ((chunks - 1) >> level) + 1;
  auto* values = static_cast<typename R::value*>(workspace);
  if (!v.two && v.n < stolen_from / v.bytes) {
    const bool back = v.turns && v.n >= turns_from * queue.threads / v.bytes && other_way();
    over_ranges(queue, tasks, 1, [&](int64_t first, int64_t last) {
      if (!LOCKSTEP_MUTANT("tree_cut_in_equal_shares")) return reduce_subtrees(r, v, level, first, last, back, values);
      for (int64_t t = first; t < last; ++t) {
        typename R::join join;
        push_chunks(r, v, t * chunks / tasks, (t + 1) * chunks / tasks, join);
        values[t] = join.total();
      }
    });
  } else {
    const int64_t pairs = v.pairs(tasks);
    over_shares(queue, tasks - pairs, [&](int64_t t, int) {
      if (t < pairs)
        reduce_two(r, v, level, t, t + pairs, values);
      else
        values[t + pairs] = reduce_subtree(r, v, level, t + pairs);
    });
  }
  typename R::join join;
  for (int64_t t = 0; t < tasks; ++t) join.push(values[t], level);
  return join.total();
}

template <class R, class Done>
void reduce_columns(lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const Done& done) {
  const int64_t chunks = chunks_of<R>(q.d.length), blocks = (q.d.count - 1) / column_block + 1;
  const int64_t most = tasks_a_thread * queue.threads;
  const int level = subtree_level(chunks, blocks < most ? (most - 1) / blocks + 1 : 1);
  const int64_t subtrees = ((chunks - 1) >> level) + 1;
  typedef typename R::value value;
  auto* partial = static_cast<value*>(workspace);
  const auto width_of = [&](int64_t block) {
    const int64_t left = q.d.count - block * column_block;
    return left < column_block ? left : column_block;
  };
  over_tasks(queue, blocks * subtrees, [&](int64_t task) {
    const int64_t block = task % blocks, subtree = task / blocks, width = width_of(block);
    const int64_t first = subtree << level, last = (subtree + 1) << level < chunks ? (subtree + 1) << level : chunks;
    typename R::column_join join;
    alignas(64) value values[column_block];
    for (int64_t c = first; c < last; ++c) {
      const int64_t row = c * R::chunk, n = q.d.length - row < R::chunk ? q.d.length - row : R::chunk;
      r.columns(q.src + (row * q.d.element_stride + block * column_block) * q.bytes, n, q.d.element_stride, width, row,
                values);
      join.push(values, width, 0);
    }
    join.total(values, width);
    if (subtrees == 1) {
      for (int64_t k = 0; k < width; ++k) done(block * column_block + k, values[k]);
    } else {
      std::memcpy(partial + task * column_block, values, static_cast<size_t>(width) * sizeof(value));
    }
  });
  if (subtrees == 1) return;
  over_ranges(queue, q.d.count, column_block, [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last; ++s) {
      typename R::join join;
      for (int64_t t = 0; t < subtrees; ++t)
        join.push(partial[(t * blocks + s / column_block) * column_block + s % column_block], level);
      done(s, join.total());
    }
  });
}

// done(s, value) for every sequence that has elements, empty(s) for the others;
// together(s, value) in place of done for a sequence that all threads summed: it
// is called alone and may use them again.
template <class R, class Done, class Empty, class Together>
void reduce_sequences(lockstep_queue& queue, const R& r, const sequences& q, void* workspace, const Done& done,
                      const Empty& empty, const Together& together) {
  if (q.d.offsets == nullptr && q.d.length == 0) {
    for (int64_t s = 0; s < q.d.count; ++s) empty(s);
    return;
  }
  if (q.side_by_side()) return reduce_columns(queue, r, q, workspace, done);

  // Long sequences one after the other, by all threads, unless there are enough
  // of them to share out whole. 256 KiB: 2 us of L2 reads on one core, about what
  // starting a parallel region costs.
  const int64_t share = tasks_a_thread * queue.threads;
  const bool split = queue.threads > 1 && !forked() && (q.d.offsets != nullptr || q.d.count < share);
  const auto is_long = [&](int64_t n) { return split && n > (256 << 10) / q.bytes; };
  const int64_t first_element = q.d.offsets != nullptr ? q.d.offsets[0] : 0;
  const int64_t elements = q.d.offsets != nullptr ? q.d.offsets[q.d.count] - first_element : q.d.length;
  bool any_short = !is_long(elements);
  if (!any_short) {
    for (int64_t s = 0; s < q.d.count; ++s) {
      if (!is_long(q.length(s)))
        any_short = true;
      else
        together(s, reduce_together(queue, r, q.view(s), workspace));
    }
  }
  if (!any_short) return;

  // Packed sequences of at most a chunk go to the kernel in batches, the others one
  // by one.
  constexpr int64_t batch = 256;
  const auto fits = [&](int64_t s) { return q.packed() && q.length(s) <= R::chunk && !is_long(q.length(s)); };
  const auto share_of = [&](int64_t first, int64_t last) {
    for (int64_t s = first; s < last;) {
      if (!fits(s)) {
        if (const int64_t n = q.length(s); n == 0)
          empty(s);
        else if (!is_long(n))
          done(s, reduce_alone(r, q.view(s)));
        ++s;
        continue;
      }
      int64_t count = 1;
      while (count < batch && s + count < last && fits(s + count)) ++count;
      typename R::value values[batch];
      if (q.d.offsets != nullptr)
        r.rows({q.src, 0, 0, q.d.offsets + s}, count, values);
      else
        r.rows({q.begin(s), q.d.length, q.d.sequence_stride, nullptr}, count, values);
      for (int64_t k = 0; k < count; ++k, ++s) {
        if (q.length(s) == 0)
          empty(s);
        else
          done(s, values[k]);
      }
    }
  };
  if (q.d.offsets != nullptr) {
    // Ranges of about equal work: an element is one unit, a segment 16 (what a
    // kernel call costs beside its elements). work(s) grows with s.
    const auto work = [&](int64_t s) {
      return static_cast<double>(q.d.offsets[s] - first_element) + 16.0 * static_cast<double>(s);
    };
    const double total = work(q.d.count);
    const auto cut = [&](int64_t t) {
      int64_t low = 0, high = q.d.count;
      while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (work(middle) * static_cast<double>(share) < total * static_cast<double>(t))
          low = middle + 1;
        else
          high = middle;
      }
      return t == share ? q.d.count : low;
    };
    over_tasks(queue, total < 65536 ? 1 : share,
               [&](int64_t t) { share_of(total < 65536 ? 0 : cut(t), total < 65536 ? q.d.count : cut(t + 1)); });
    return;
  }
  // grain: at least 64 Ki elements a thread.
  const int64_t grain = q.d.length >= 65536 ? 1 : 65536 / q.d.length + 1;
  over_sequences(queue, q, grain, share_of);
}

}  // namespace lockstep::cpu
