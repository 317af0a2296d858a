// moments_ahead.cuh - means and variances whose leaves registers hold, while shared memory takes those that come next.
//
//   moments_of_rows     one warp per leaf of rows without gaps, of 2-byte elements per two leaves
//   moments_of_columns  one block per leaf of neighbouring columns, 64 bytes of each row
//   join_chunk_moments  one block per chunk of the leaves of a long sequence; the rest is join_leaves' (ahead.cuh)
//
// Idea    A thread holds 16 bytes of each of its leaf's rows of lanes: the sum and the squares about the mean are made
//         of one read (ahead.cuh). Elements become doubles by moving their bits, and a fused multiplication by a power
//         of two adds them at no cost
// Moves   every element once; 32 bytes per leaf written and read
// Limit   memory reads
// Watch   Moved bits of infinities and NaNs are large numbers: a leaf whose mean or squares show one is made again.
//         Chan's formula does not commute: only the first thread of a join has the order's bits
// Source  lib/bits/order_rows.hpp
#pragma once

#include "ahead.cuh"

namespace lockstep::cuda {

// What the passes over a leaf do with an element. moved: by its bits, which its results must pass `suspect`.
template <class E, bool moved>
struct moment_terms {
  template <int N>
  __device__ static double of(const few<E, N>& q, int j) {
    if constexpr (moved)
      return scaled_value(q, j);
    else
      return value(q, j);
  }
  __device__ static double add(double acc, double x) {
    if constexpr (moved)
      return __fma_rn(x, unscaled<E>, acc);
    else
      return __dadd_rn(acc, x);
  }
  __device__ static double add_square(double acc, double x, double mean) {
    const double off = moved ? __fma_rn(x, unscaled<E>, -mean) : __dsub_rn(x, mean);
    return __fma_rn(off, off, acc);
  }
};
// Whether an element of a lane with these squares about the mean may be an infinity or a NaN, moved: it is 2 * least or
// more, so that the mean is large or it is far from it.
template <class E>
__device__ __forceinline__ bool suspect(double mean, double squares) {
  constexpr double least = std::is_same_v<E, half16> ? 0x1p15 : 0x1p127;
  return fabs(mean) >= least || squares >= least * least;
}
// A leaf's mean; by a product, which has the bits of the quotient, if the leaf is whole.
__device__ __forceinline__ double mean_of_leaf(double sum, int n) {
  return n == order::leaf ? __dmul_rn(sum, 1.0 / order::leaf) : __ddiv_rn(sum, static_cast<double>(n));
}

// The lanes of a leaf, V neighbours per thread, joined in each of its threads.
template <int V>
__device__ __forceinline__ double join_neighbours(double (&lane)[V], int t) {
  constexpr int T = order::lanes / V;
  int mask = T / 2;
#pragma unroll
  for (int many = V / 2; many >= 1; many /= 2, mask /= 2)
#pragma unroll
    for (int j = 0; j < many; ++j) lane[j] = split_join(sum_fold{}, lane[j], lane[j + many], t, mask);
#pragma unroll
  for (; mask >= 1; mask /= 2) lane[0] = __dadd_rn(lane[0], from_xor(lane[0], mask));
  mask = T / 2;
#pragma unroll
  for (int many = V / 2; many >= 1; many /= 2, mask /= 2) lane[0] = __dadd_rn(lane[0], from_xor(lane[0], mask));
  return lane[0];
}

// ---- rows ------------------------------------------------------------------------------
// enter(lane, row of lanes, slot) for the rows of a step. full: every element is there.
template <bool full, int V, class Enter>
__device__ __forceinline__ void enter_step(int first_row, int n, int t, double (&lane)[V], const Enter& enter) {
#pragma unroll
  for (int r = first_row; r < first_row + step_rows; ++r)
#pragma unroll
    for (int j = 0; j < V; ++j)
      if (full || r * order::lanes + t * V + j < n) enter(lane[j], r, j);
}

template <class Fold, class E>
__global__ __launch_bounds__(ahead_threads, 1) void moments_of_rows(const term_sums d, const int leaves,
                                                                    order::moments* partials) {
  constexpr int V = 16 / static_cast<int>(sizeof(E)), T = order::lanes / V, together = 32 / T;
  constexpr int warps = ahead_threads / 32, step_elements = step_rows * order::lanes,
                most_steps = order::rows / step_rows;
  using quick = moment_terms<E, true>;
  using exact = moment_terms<E, false>;
  extern __shared__ uint4 shared_slots[];
  slots_ahead<step_rows> slots(shared_slots);
  const int t = threadIdx.x % T, warp = threadIdx.x / 32, of_warp = threadIdx.x % 32 / T;
  const int64_t all = d.count * leaves, stride = int64_t{gridDim.x} * warps * together;
  // Of a leaf; of the last one of a sequence too, where some bring nothing.
  const int steps = static_cast<int>(min((d.length + step_elements - 1) / step_elements, int64_t{most_steps}));
  struct place {
    int64_t i, s;
    const E* from;  // the thread's first element
    int n, left, step;
  };
  const auto place_of = [&](int64_t i) {
    const int64_t s = leaves == 1 ? i : i / leaves, first = (i - s * leaves) * order::leaf;
    const int n = i < all ? static_cast<int>(min(d.length - first, order::leaf)) : 0;
    return place{i, s, static_cast<const E*>(d.src) + s * d.sequence_stride + first + t * V, n, n - t * V, 0};
  };
  const auto start = [&](place& at) {
#pragma unroll
    for (int r = 0; r < step_rows; ++r)
      if (const int left = at.left - static_cast<int>(r * order::lanes); left > 0)
        slots.start(r, at.from + r * order::lanes, min(left, V) * static_cast<int>(sizeof(E)));
    slots.started();
    if (++at.step == steps)
      at = place_of(at.i + stride);
    else
      at.from += step_elements, at.left -= step_elements;
  };
  place here = place_of((int64_t{blockIdx.x} * warps + warp) * together + of_warp), next = here;
  follow_on();
#pragma unroll 1
  for (int k = 0; k < slots.stages; ++k) start(next);
#pragma unroll 1
  for (; here.i - of_warp < all; here = place_of(here.i + stride)) {  // the warp's threads stay together
    const int n = here.n;
    const bool whole = __all_sync(all_lanes, n == order::leaf);
    few<E, V> q[order::rows];
    double lane[V];
#pragma unroll
    for (double& x : lane) x = -0.0;
    const auto add = [&](double& acc, int r, int j) { acc = quick::add(acc, quick::of(q[r], j)); };
#pragma unroll
    for (int k = 0; k < most_steps; ++k)
      if (k < steps) {
        slots.take([&](int r) -> few<E, V>& { return q[k * step_rows + r]; });
        start(next);
        if (whole)
          enter_step<true>(k * step_rows, n, t, lane, add);
        else
          enter_step<false>(k * step_rows, n, t, lane, add);
      }
    double sum = join_neighbours(lane, t), mean = mean_of_leaf(sum, n);
    made_again(q);
#pragma unroll
    for (double& x : lane) x = -0.0;
    const auto add_square = [&](double& acc, int r, int j) { acc = quick::add_square(acc, quick::of(q[r], j), mean); };
#pragma unroll
    for (int k = 0; k < most_steps; ++k)
      if (k < steps) {
        if (whole)
          enter_step<true>(k * step_rows, n, t, lane, add_square);
        else
          enter_step<false>(k * step_rows, n, t, lane, add_square);
      }
    bool again = false;
#pragma unroll
    for (int j = 0; j < V; ++j) again = again || suspect<E>(mean, lane[j]);
    double m2;
    if (!__any_sync(all_lanes, again)) {
      m2 = join_neighbours(lane, t);
    } else {
      const auto pass = [&](const auto& enter) {
        double acc[V];
#pragma unroll
        for (int j = 0; j < V; ++j) acc[j] = -0.0;
#pragma unroll
        for (int k = 0; k < most_steps; ++k)
          if (k < steps) enter_step<false>(k * step_rows, n, t, acc, enter);
        return join_neighbours(acc, t);
      };
      sum = pass([&](double& acc, int r, int j) { acc = exact::add(acc, exact::of(q[r], j)); });
      mean = mean_of_leaf(sum, n);
      m2 = pass([&](double& acc, int r, int j) { acc = exact::add_square(acc, exact::of(q[r], j), mean); });
    }
    const order::moments m{static_cast<double>(n), sum, m2, 0.0};
    if (t != 0 || here.i >= all) continue;
    if (leaves == 1)
      Fold::store(d, here.s, m, d.length);
    else
      partials[here.i] = m;
  }
}

// ---- columns ---------------------------------------------------------------------------
template <class E>
struct moments_room {
  static constexpr int C = columns_ahead<E>::columns;
  columns_ahead<E> sums, squares;
  double means[C], first[C];
  int unequal[C];
};

template <class Fold, class E>
__global__ __launch_bounds__(ahead_threads, 1) void moments_of_columns(const term_sums d, const int leaves,
                                                                       order::moments* partials) {
  constexpr int V = columns_ahead<E>::V, C = columns_ahead<E>::columns, warps = ahead_threads / 32;
  constexpr int most_steps = order::rows / step_rows, own = (C + warps - 1) / warps;
  constexpr bool moved = sizeof(E) < 8;
  extern __shared__ uint4 shared_slots[];
  auto& shared = *reinterpret_cast<moments_room<E>*>(shared_slots + slot_words);
  slots_ahead<step_rows> slots(shared_slots);
  column_steps<E> next(d, leaves, blockIdx.x);
  const int chunk = next.chunk, l = next.l, t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto start = [&] {
    next.each_row(d, [&](int r, int64_t i) {
      slots.start(r, static_cast<const E*>(d.src) + i * d.element_stride + next.column, next.bytes);
    });
    slots.started();
    next.advance(d);
  };
  const int steps = next.steps;
  const int64_t groups = next.groups, all = next.all;
  follow_on();
#pragma unroll 1
  for (int k = 0; k < slots.stages; ++k) start();
#pragma unroll 1
  for (int64_t work = blockIdx.x; work < all; work += gridDim.x) {
    const int64_t leaf = work / groups, column = (work - leaf * groups) * C;
    const int n = static_cast<int>(min(d.length - leaf * order::leaf, order::leaf));
    few<E, V> q[order::rows];
    double lane[V], mean[V], sum[own];
    // enter(lane, row of lanes, column) for the rows of step k.
    const auto enter_rows = [&](int k, const auto& enter) {
      const bool whole = (k + 1) * step_rows * order::lanes <= n;
#pragma unroll
      for (int r = k * step_rows; r < (k + 1) * step_rows; ++r)
        if (whole || l + r * order::lanes < n) {
#pragma unroll
          for (int j = 0; j < V; ++j) enter(lane[j], r, j);
        }
    };
    const auto clear = [&] {
#pragma unroll
      for (double& x : lane) x = -0.0;
    };
    const auto put = [&](columns_ahead<E>& room) {
#pragma unroll
      for (int j = 0; j < V; ++j) room.lanes[chunk * V + j][l] = lane[j];
    };
    // The means of all columns, from the lanes that all threads have put.
    const auto find_means = [&] {
      __syncthreads();  // a warp joins a column's lanes of all threads
#pragma unroll
      for (int k = 0; k < own; ++k) {
        const int c = warp + k * warps;
        if (C % warps != 0 && c >= C) break;
        sum[k] = shared.sums.joined(c, t);
        if (t == 0) shared.means[c] = mean_of_leaf(sum[k], n);
      }
      __syncthreads();  // all threads of a column read its mean
#pragma unroll
      for (int j = 0; j < V; ++j) mean[j] = shared.means[chunk * V + j];
    };
    using quick = moment_terms<E, moved>;
    clear();
#pragma unroll
    for (int k = 0; k < most_steps; ++k) {
      if (k >= steps) break;
      slots.take([&](int r) -> few<E, V>& { return q[k * step_rows + r]; });
      start();
      enter_rows(k, [&](double& acc, int r, int j) { acc = quick::add(acc, quick::of(q[r], j)); });
    }
    put(shared.sums);
    if constexpr (!moved)
      if (l == 0)
        for (int j = 0; j < V; ++j) shared.first[chunk * V + j] = value(q[0], j), shared.unequal[chunk * V + j] = 0;
    find_means();
    made_again(q);
    clear();
#pragma unroll
    for (int k = 0; k < most_steps; ++k)
      if (k < steps)
        enter_rows(k, [&](double& acc, int r, int j) { acc = quick::add_square(acc, quick::of(q[r], j), mean[j]); });
    bool again = false;
    if constexpr (moved) {
#pragma unroll
      for (int j = 0; j < V; ++j) again = again || suspect<E>(mean[j], lane[j]);
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const double x = shared.first[chunk * V + j];
        if (!order::may_all_be(x, mean[j])) continue;
        bool same = true;
#pragma unroll
        for (int r = 0; r < order::rows; ++r) same = same && (l + r * order::lanes >= n || value(q[r], j) == x);
        if (!same) shared.unequal[chunk * V + j] = 1;
      }
    }
    put(shared.squares);
    if (__syncthreads_or(again)) {  // as in find_means; and the next sums' lanes come after these have been read
      using exact = moment_terms<E, false>;
      const auto pass = [&](const auto& enter) {
        clear();
#pragma unroll
        for (int k = 0; k < most_steps; ++k)
          if (k < steps) enter_rows(k, enter);
      };
      pass([&](double& acc, int r, int j) { acc = exact::add(acc, exact::of(q[r], j)); });
      put(shared.sums);
      find_means();
      pass([&](double& acc, int r, int j) { acc = exact::add_square(acc, exact::of(q[r], j), mean[j]); });
      put(shared.squares);
      __syncthreads();  // as before
    }
#pragma unroll
    for (int k = 0; k < own; ++k) {
      const int c = warp + k * warps;
      if (C % warps != 0 && c >= C) break;
      const double m2 = shared.squares.joined(c, t);
      double equal = 0.0;
      if constexpr (!moved)
        if (shared.unequal[c] == 0 && order::may_all_be(shared.first[c], shared.means[c])) equal = shared.first[c];
      const int64_t s = column + c;
      if (t != 0 || s >= d.count) continue;
      const order::moments m{static_cast<double>(n), sum[k], m2, equal};
      if (leaves == 1)
        Fold::store(d, s, m, d.length);
      else
        partials[s * leaves + leaf] = m;
    }
    if constexpr (!moved) __syncthreads();  // the next elements that others are compared with come later
  }
}

// ---- the tree above leaves -----------------------------------------------------------------
template <class Fold>
__global__ __launch_bounds__(sum_threads) void join_chunk_moments(const int64_t leaves, const int64_t chunks,
                                                                  const order::moments* partials,
                                                                  order::moments* chunk_values) {
  __shared__ order::moments subtrees[sum_threads];
  const int64_t s = blockIdx.x / chunks, first = (blockIdx.x - s * chunks) * moments_chunk;
  follow_on();
  const auto total =
      tree_of_block<sum_threads>(partials + s * leaves + first, min(leaves - first, int64_t{moments_chunk}), subtrees);
  if (threadIdx.x == 0) chunk_values[blockIdx.x] = total;
}

// ---- launches --------------------------------------------------------------------------
template <class Fold>
lockstep_status join_leaves_of_moments(lockstep_queue& queue, const term_sums& d, int64_t leaves,
                                       order::moments* partials) {
  if (const int64_t chunks = chunks_of_moments(leaves); chunks > 0) {
    order::moments* const values = partials + d.count * leaves;
    const lockstep_status status =
        launch_soon(queue, "join_chunk_moments", join_chunk_moments<Fold>,
                    dim3(static_cast<unsigned>(d.count * chunks)), sum_threads, 0, leaves, chunks, partials, values);
    if (status != LOCKSTEP_OK) return status;
    partials = values, leaves = chunks;
  }
  return join_leaves<Fold>(queue, d, leaves, partials);
}

// Fold: a fold that stores and joins.
template <class Fold, class E>
lockstep_status launch_moments_ahead(lockstep_queue& queue, const term_sums& d, void* workspace) {
  const int64_t leaves = order::leaves(d.length);
  auto* partials = static_cast<order::moments*>(workspace);
  constexpr size_t slots = size_t{16} * slot_words;
  const auto run = [&](const char* name, void (*kernel)(term_sums, int, order::moments*), int64_t work, size_t shared) {
    const lockstep_status status = allow_shared(queue, kernel, shared);
    if (status != LOCKSTEP_OK) return status;
    const auto blocks = static_cast<unsigned>(std::min<int64_t>(work, queue.facts->processors));
    return launch_soon(queue, name, kernel, dim3(blocks), ahead_threads, shared, d, static_cast<int>(leaves), partials);
  };
  lockstep_status status = LOCKSTEP_OK;
  if (lie_side_by_side(d)) {
    status = run("moments_of_columns", moments_of_columns<Fold, E>, columns_ahead<E>::groups(d) * leaves,
                 slots + sizeof(moments_room<E>));
  } else if constexpr (sizeof(E) < 8) {
    constexpr int a_block = ahead_threads / 32 * (4 / static_cast<int>(sizeof(E)));
    status = run("moments_of_rows", moments_of_rows<Fold, E>, (d.count * leaves + a_block - 1) / a_block, slots);
  }
  return status != LOCKSTEP_OK || leaves == 1 ? status : join_leaves_of_moments<Fold>(queue, d, leaves, partials);
}

}  // namespace lockstep::cuda
