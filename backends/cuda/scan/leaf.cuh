// leaf.cuh - a warp scans a leaf that it holds in registers.
//
// Idea    Thread t holds elements 4t to 4t + 3 of each row of 128, so that loads and stores are whole.
//         Two threads have a group of 8: the odd one gets its partner's four
//         elements and adds as the order says, for the even one these
//         are -0.0. What stands before a group in its row is a chain of 16 additions, one thread per row; what stands
//         before a row is another chain.
// Moves   every element once in and once out
// Limit   the copy limit; additions in double, 7 per element, and shuffles
// Watch   results stand where their elements do, exclusive ones too, so that a call may be in place
// Source  lib/bits/order_rows.hpp
#pragma once

#include "kinds.cuh"

namespace lockstep::cuda {

// What stands before each group in its row; padded against bank conflicts of the threads that walk rows.
template <int R>
struct group_sums {
  double of[R][17];
};

// Of a whole leaf: only one that others follow is asked.
template <class K, int R>
__device__ __forceinline__ typename K::partial total_of_leaf(const K& kind, const quad<typename K::element> (&x)[R],
                                                             int t) {
  if constexpr (K::ordered) {  // lane after lane, as order.hpp says
    double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) lane[0][j] = __dadd_rn(lane[0][j], value(x[r], j));
    join_rows<4>(kind, lane, sum, t);
    return sum[0];
  } else {
    typename K::local mine = static_cast<typename K::local>(kind.none());
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) mine = kind.join(mine, kind.of(x[r], j));
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) mine = kind.join(mine, from_xor(mine, mask));
    return mine;
  }
}

template <class P>
__device__ __forceinline__ P from_before(P value, int step) {
  return by_words(value, [step](unsigned word) { return __shfl_up_sync(all_lanes, word, step); });
}

// Float sums: fills `before` and gives thread r the sum of row r. Sequences of `threads` threads begin anew.
template <class E, int R>
__device__ __forceinline__ double sum_groups(const quad<E> (&x)[R], int t, int threads, group_sums<R>& before) {
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const double own = __dadd_rn(__dadd_rn(value(x[r], 0), value(x[r], 1)), __dadd_rn(value(x[r], 2), value(x[r], 3)));
    const double left = from_xor(own, 1);
    if (t % 2 == 1) before.of[r][t / 2] = __dadd_rn(left, own);
  }
  __syncwarp();  // a thread walks what all have written
  double sum = -0.0;
  if (t < R) {
    const int groups = threads / 2;
#pragma unroll
    for (int k = 0; k < 16; ++k) {
      if ((k & (groups - 1)) == 0) sum = -0.0;
      const double group = before.of[t][k];
      before.of[t][k] = sum;
      sum = __dadd_rn(sum, group);
    }
  }
  __syncwarp();  // all read what the walkers have written
  return sum;
}

// What stands before row r of the leaf, in thread r, from the rows' sums.
template <int R>
__device__ __forceinline__ double sum_rows(double row_sum, int t) {
  double run = -0.0, mine = -0.0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    if (t == r) mine = run;
    run = __dadd_rn(run, from_thread(row_sum, r));
  }
  return mine;
}

// The sums up to elements 0 to 3 of thread t within their row; `group` stands before its group. An odd thread's partner
// has the first half of its group.
template <class E>
__device__ __forceinline__ void sums_in_row(const quad<E>& x, const quad<E>& partner, double group, int t,
                                            double (&y)[4]) {
  quad<E> before;
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(E)); ++k) {
    const uint32_t zero = sizeof(E) == 2 ? 0x80008000u : sizeof(E) == 4 || k % 2 == 1 ? 0x80000000u : 0u;  // -0.0
    before.word[k] = t % 2 == 1 ? partner.word[k] : zero;
  }
  double p[4], a[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) p[j] = value(before, j), a[j] = value(x, j);
  const double p01 = __dadd_rn(p[0], p[1]), p12 = __dadd_rn(p[1], p[2]), p23 = __dadd_rn(p[2], p[3]);
  const double p3a0 = __dadd_rn(p[3], a[0]), a01 = __dadd_rn(a[0], a[1]), a12 = __dadd_rn(a[1], a[2]);
  const double a23 = __dadd_rn(a[2], a[3]);
  y[0] = __dadd_rn(p[0], __dadd_rn(p12, p3a0));
  y[1] = __dadd_rn(p01, __dadd_rn(p23, a01));
  y[2] = __dadd_rn(__dadd_rn(p[0], p12), __dadd_rn(p3a0, a12));
  y[3] = __dadd_rn(__dadd_rn(p01, p23), __dadd_rn(a01, a23));
#pragma unroll
  for (int j = 0; j < 4; ++j) y[j] = __dadd_rn(group, y[j]);
}

template <class E>
__device__ __forceinline__ void sums_in_row(const quad<E>& x, double group, int t, double (&y)[4]) {
  quad<E> partner;
#pragma unroll
  for (int k = 0; k < static_cast<int>(sizeof(E)); ++k) partner.word[k] = __shfl_up_sync(all_lanes, x.word[k], 1);
  sums_in_row(x, partner, group, t, y);
}

// Where the elements and results of a sequence, or of a leaf of it, lie.
template <class K>
struct places {
  const typename K::element* src;
  typename K::result* dst;
  int64_t stride, dst_stride;
  int64_t sequence;
  int n;
  bool whole_src, whole_dst, exclusive;
};

// `entering`: the result of the element before the thread's first, where results are shifted.
template <class K, class P>
__device__ __forceinline__ void store_results(const K& kind, const places<K>& at, int i, P entering, const P (&y)[4]) {
  quad<typename K::result> out{};
  const auto set = [&](int j, P result) {
    // Only an exact kind tells of results, so only those that are stored.
    if (K::ordered || i + j < at.n) set_element(out, j, kind.put(result, at.sequence));
  };
  if (at.exclusive) {
    set(0, entering);
#pragma unroll
    for (int j = 1; j < 4; ++j) set(j, y[j - 1]);
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) set(j, y[j]);
  }
  store_quad(at.dst, i, at.n, at.whole_dst, out, at.dst_stride);
}

// The results of a leaf of float sums. base: of thread r, what stands before row r. entering: what an exclusive leaf
// begins with.
template <class K, int R>
__device__ __forceinline__ void write_sums(const K& kind, const places<K>& at, const quad<typename K::element> (&x)[R],
                                           const group_sums<R>& before, double base, double entering, int t) {
  double carried = entering;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    double y[4];
    sums_in_row(x[r], before.of[r][t / 2], t, y);
    const double row = from_thread(base, r);
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = __dadd_rn(row, y[j]);
    double entered = 0;
    if (at.exclusive) {
      entered = from_before(y[3], 1);
      if (t == 0) entered = carried;
      carried = from_thread(y[3], 31);
    }
    store_results(kind, at, (r * 32 + t) * 4, entered, y);
  }
}

// A thread's elements of a row joined up to each of them, and what the threads before it in its sequence have.
template <class K>
__device__ __forceinline__ void joins_in_row(const K& kind, const quad<typename K::element>& x, int i, int n, int t,
                                             int threads, typename K::local (&y)[4], typename K::local& before,
                                             typename K::local& all) {
  using L = typename K::local;
  const L none = static_cast<L>(kind.none());
  L run = none;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    if (i + j < n) run = kind.join(run, kind.of(x, j));
    y[j] = run;
  }
  for (int step = 1; step < threads; step *= 2) {
    const L left = from_before(run, step);
    if ((t & (threads - 1)) >= step) run = kind.join(left, run);
  }
  all = from_thread(run, 31);
  before = from_before(run, 1);
  if ((t & (threads - 1)) == 0) before = none;
}

// The results of a leaf of an exact kind behind `before`.
template <class K, int R>
__device__ __forceinline__ void write_joins(const K& kind, const places<K>& at, const quad<typename K::element> (&x)[R],
                                            typename K::partial before, int t) {
  using P = typename K::partial;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int i = (r * 32 + t) * 4;
    typename K::local in_row[4], left, all;
    joins_in_row(kind, x[r], i, at.n, t, 32, in_row, left, all);
    const P entered = kind.join(before, static_cast<P>(left));
    P y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = kind.join(entered, static_cast<P>(in_row[j]));
    store_results(kind, at, i, entered, y);
    before = kind.join(before, static_cast<P>(all));
  }
}

}  // namespace lockstep::cuda
