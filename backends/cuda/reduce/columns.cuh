// columns.cuh - sequences that lie across memory, neighbours of one another.
//
//   reduce_short_columns  one thread per column of up to 128 elements
//   reduce_columns  threads across columns, 16 lanes of a leaf each (2-byte elements: 8 lanes of two columns; 4 lanes
//                   of few columns; 4 lanes of four columns by loads of 16 bytes)
// join_few_partials, or join_partials (subtree.cuh), then walks the tree above a column's leaves.
//
// Idea    Neighbouring threads take neighbouring columns, so that a row of src is one
//         contiguous read; down a leaf a thread takes every 8th lane, whose joins need no
//         other thread. A block shares its leaves' values once, by shared memory.
// Moves   n elements read once; of columns longer than a leaf a partial result a leaf
//         written and read
// Limit   memory, where loads enough are in flight: sums of f32 in 16,384 columns 0.81 of
//         it, 2 bytes in 64 columns 0.66, 2 and 3 columns 0.36 to 0.65 (H200)
// Watch   The lanes' order is the sequence's, not memory's. Left alone ptxas spends loads
//         in flight to save registers: column_blocks says what it may not.
// Source  lib/bits/order.hpp; figures in tests/results/tries.md.
#pragma once

#include "runs.hpp"
#include "subtree.cuh"
#include "way.cuh"

namespace lockstep::cuda {

template <int n, class Fold, class P>
__device__ __forceinline__ void join_down(const Fold& fold, P* value) {
  if constexpr (n > 1) {
#pragma unroll
    for (int k = 0; k < n / 2; ++k) value[k] = fold.join(value[k], value[k + n / 2]);
    join_down<n / 2>(fold, value);
  }
}

template <class Fold, int V>
constexpr int column_blocks = V == 4                                ? 2
                              : sizeof(typename Fold::element) != 4 ? 3
                              : Fold::ordered                       ? 4
                                                                    : most_column_blocks;

// V neighbouring columns per thread (2 of 2 bytes, 4 of 4, by one load: what a warp has in flight doubles, or is four
// times as much, and that is what limits it). `across` threads (a power of two) lie across columns, `down` down a leaf
// with lanes / down lanes each, lane = y + down * slot; the rest of the block takes other leaves. Joins d = 64 ... down
// are within a thread, the others go through shared memory. down: 8 * V, and more for few columns, of which a thread
// then has several rows in flight.
template <class Fold, int V, int down>
__global__ __launch_bounds__(block_threads,
                             column_blocks<Fold, V>) void reduce_columns(Fold fold, const sequences all,
                                                                         const int across, const int64_t column_tiles,
                                                                         typename Fold::partial* partials) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  constexpr int slots = order::lanes / down, loads = 16, rows = loads / slots, joined = 8 * V;
  __shared__ P values[V][block_threads];
  const int x = threadIdx.x & (across - 1), y = threadIdx.x / across % down;
  const int64_t leaves = order::leaves(all.length);
  const int64_t s = (blockIdx.x % column_tiles * across + x) * V;
  const int64_t leaf = blockIdx.x / column_tiles * (block_threads / (across * down)) + threadIdx.x / (across * down);
  follow_on();
  const bool wanted = s < all.count && leaf < leaves && fold.open(s);
  if (wanted) {
    const int64_t first = leaf * order::leaf, left = all.length - first;
    const int end = static_cast<int>(left < order::leaf ? left : order::leaf);
    const int64_t down_a_row = all.element_stride;
    const T* at = static_cast<const T*>(all.src) + all.place(s) + first * down_a_row;
    typename Fold::lane lane[V][Fold::ordered ? slots : 1];
#pragma unroll
    for (int c = 0; c < V; ++c)
      for (auto& l : lane[c]) l = fold.empty_lane();
    const auto load = [&](const T* from, T(&to)[V]) {
      if constexpr (V == 1) {
        to[0] = *from;
      } else {
        using word = std::conditional_t<V * sizeof(T) == 4, uint32_t, uint4>;
        static_assert(V * sizeof(T) == sizeof(word));
        const word bits = *reinterpret_cast<const word*>(from);
        memcpy(to, &bits, sizeof bits);
      }
    };
    const int64_t step = down * all.element_stride;
    int row = 0;
#pragma unroll 1
    for (; (row + rows) * order::lanes <= end; row += rows) {
      const T* p = at + (row * order::lanes + y) * all.element_stride;
      T v[loads][V];
#pragma unroll
      for (int k = 0; k < loads; ++k, p += step) load(p, v[k]);
#pragma unroll
      for (int k = 0; k < loads; ++k)
#pragma unroll
        for (int c = 0; c < V; ++c)
          fold.take(lane[c][Fold::ordered ? k % slots : 0], v[k][c], row * order::lanes + y + down * k);
    }
    constexpr int some = sizeof(T) == 8 ? 4 : 8;  // a short column should not pay for 16
#pragma unroll
    for (int k0 = 0; k0 < loads; k0 += some) {
      if (row * order::lanes + down * k0 >= end) break;
      T v[some][V];
#pragma unroll
      for (int k = 0; k < some; ++k)
        load(at + min(row * order::lanes + y + down * (k0 + k), end - 1) * all.element_stride, v[k]);
#pragma unroll
      for (int k = 0; k < some; ++k) {
        const int i = row * order::lanes + y + down * (k0 + k);
#pragma unroll
        for (int c = 0; c < V; ++c) fold.take_if(lane[c][Fold::ordered ? (k0 + k) % slots : 0], v[k][c], i, i < end);
      }
    }
#pragma unroll
    for (int c = 0; c < V; ++c) {
      if constexpr (Fold::ordered) {
        join_down<slots>(fold, lane[c]);
        values[c][threadIdx.x] = lane[c][0];
      } else {
        values[c][threadIdx.x] = fold.close(lane[c][0], first);
      }
    }
  }
  __syncthreads();  // threads read the values of those below them
#pragma unroll
  for (int d = down / 2; d >= joined; d /= 2) {
    if (wanted && y < d)
      for (int c = 0; c < V; ++c)
        values[c][threadIdx.x] = fold.join(values[c][threadIdx.x], values[c][threadIdx.x + d * across]);
    __syncthreads();  // they are read again
  }
  if (!wanted || y >= V) return;  // a thread for each of the columns that those above have shared
  P part[joined];
#pragma unroll
  for (int k = 0; k < joined; ++k) part[k] = values[y][threadIdx.x + (k - y) * across];
  join_down<joined>(fold, part);
  if (leaves == 1)
    fold.store(part[0], s + y);
  else
    partials[(s + y) * leaves + leaf] = part[0];
}

// Eight times every eighth lane, lanes 0 4 2 6 1 5 3 7 first, so that the last three joins are a binary
// counter's; of each eighth all loads are in flight together, of short columns those of all eighths.
template <int S, class Fold>
__device__ __forceinline__ typename Fold::partial fold_column(const Fold& fold, const typename Fold::element* at,
                                                              int64_t stride, int n) {
  using P = typename Fold::partial;
  constexpr bool at_once = S <= 16;
  typename Fold::element all[at_once ? S : 1];
  if constexpr (at_once) {
#pragma unroll
    for (int k = 0; k < S; ++k) all[k] = at[min(k, n - 1) * stride];
  }
  P pair{}, four{}, half{};
#pragma unroll(at_once ? 8 : 1)
  for (int j = 0; j < 8; ++j) {
    int first = static_cast<int>(__brev(static_cast<unsigned>(j)) >> 29);
    typename Fold::element x[S / 8];
#pragma unroll
    for (int k = 0; k < S / 8; ++k) {
      if constexpr (at_once)
        x[k] = all[first + 8 * k];
      else
        x[k] = at[min(first + 8 * k, n - 1) * stride];
    }
    P value;
    if constexpr (Fold::ordered) {
      P lane[S / 8];
#pragma unroll
      for (int k = 0; k < S / 8; ++k) {
        lane[k] = fold.empty_lane();
        fold.take_if(lane[k], x[k], 0, first + 8 * k < n);
      }
      join_down<S / 8>(fold, lane);
      value = lane[0];
    } else {
      typename Fold::lane lane = fold.empty_lane();
#pragma unroll
      for (int k = 0; k < S / 8; ++k) fold.take_if(lane, x[k], first + 8 * k, first + 8 * k < n);
      value = fold.close(lane, 0);
    }
    if ((j & 1) == 0) {
      pair = value;
      continue;
    }
    value = fold.join(pair, value);
    if ((j & 2) == 0) {
      four = value;
      continue;
    }
    value = fold.join(four, value);
    if ((j & 4) == 0)
      half = value;
    else
      half = fold.join(half, value);
  }
  return half;
}

template <class Fold>
__global__ __launch_bounds__(block_threads, 4) void reduce_short_columns(Fold fold, const sequences all) {
  const int64_t s = int64_t{blockIdx.x} * block_threads + threadIdx.x;
  const int n = static_cast<int>(all.length);
  const auto* at = static_cast<const typename Fold::element*>(all.src) + all.place(min(s, all.count - 1));
  const auto folded = [&](const auto& by) {
    return n <= 8    ? fold_column<8>(by, at, all.element_stride, n)
           : n <= 16 ? fold_column<16>(by, at, all.element_stride, n)
           : n <= 32 ? fold_column<32>(by, at, all.element_stride, n)
           : n <= 64 ? fold_column<64>(by, at, all.element_stride, n)
                     : fold_column<128>(by, at, all.element_stride, n);
  };
  follow_on();
  const auto value = folded(fold);
  if constexpr (is_norm<Fold>) {
    if (__any_sync(all_lanes, fold.needs_again(value))) {
      const double root = norm_again(value, folded);
      if (s < all.count) fold.store_root(root, s);
      return;
    }
  }
  if (s < all.count) fold.store(value, s);
}

// Sequences side by side.
inline const char* not_columns(const lockstep_reduce_desc& d) {
  if (const char* why = not_of_one_length(d); why != nullptr) return why;
  const bool beside = d.element_stride > 1 && d.sequence_stride < d.element_stride;
  return beside ? nullptr : "needs sequences side by side: sequence_stride below element_stride";
}

template <class Fold>
lockstep_status launch_short_columns(const lockstep_queue& queue, const Fold& fold, const sequences& all) {
  return launch_soon(queue, "reduce_short_columns", reduce_short_columns<Fold>, blocks_for(all.count, block_threads),
                     block_threads, 0, fold, all);
}

struct by_short_columns : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    if (const char* why = not_columns(call.reduce); why != nullptr) return why;
    return call.reduce.length > order::lanes ? "needs columns of at most 128 elements" : nullptr;
  }
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    if (call.reduce.length <= tuned.shortest_column) return false;
    return call.reduce.count < queue.facts->processors * tuned.short_columns;
  }
  template <class Fold>
  static constexpr bool takes = !follows<Fold>;

  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    return launch_short_columns(queue, fold, sequences_of(call));
  }
};

// One thread per column of few leaves: a warp would be 32 threads for them.
constexpr int most_few_leaves = 8;
template <class Fold>
__global__ __launch_bounds__(block_threads) void join_few_partials(Fold fold, const int64_t count, const int leaves,
                                                                   const typename Fold::partial* partials) {
  typename Fold::partial value[most_few_leaves];
  const int64_t s = int64_t{blockIdx.x} * block_threads + threadIdx.x;
  follow_on();
  if (s >= count || !fold.open(s)) return;
#pragma unroll
  for (int k = 0; k < most_few_leaves; ++k) value[k] = k < leaves ? partials[s * leaves + k] : fold.none();
#pragma unroll
  for (int step = 1; step < most_few_leaves; step *= 2)
#pragma unroll
    for (int k = 0; k < most_few_leaves; k += 2 * step) value[k] = fold.join(value[k], value[k + step]);
  fold.store(value[0], s);
}

// Fewer blocks than SMs: more threads share a leaf, each with one column.
inline bool few_tasks(const lockstep_queue& queue, int64_t count, int64_t length) {
  return (count + 31) / 32 * order::leaves(length) < queue.facts->processors && length > 2 * order::lanes;
}

template <int V, class Fold>
lockstep_status launch_columns(lockstep_queue& queue, const Fold& fold, const sequences& all, void* workspace) {
  const int64_t leaves = order::leaves(all.length);
  auto* partials = static_cast<typename Fold::partial*>(workspace);
  const auto go = [&](auto kernel, int down) {
    int across = block_threads / down;
    while (across > 4 / V && across / 2 * V >= all.count) across /= 2;
    const int64_t tiles = (all.count + across * V - 1) / (across * V), a_block = block_threads / (across * down);
    return launch_soon(queue, "reduce_columns", kernel, blocks_for(tiles * ((leaves + a_block - 1) / a_block), 1),
                       block_threads, 0, fold, all, across, tiles, partials);
  };
  constexpr int down = V == 1 ? 32 : 8 * V;  // of few columns
  const lockstep_status status = few_tasks(queue, all.count, all.length) ? go(reduce_columns<Fold, V, down>, down)
                                                                         : go(reduce_columns<Fold, V, 8 * V>, 8 * V);
  if (status != LOCKSTEP_OK || leaves == 1) return status;
  if (leaves > most_few_leaves || all.count < queue.facts->processors * 32)
    return launch_join(queue, fold, all.count, leaves, partials);
  return launch_soon(queue, "join_few_partials", join_few_partials<Fold>, blocks_for(all.count, block_threads),
                     block_threads, 0, fold, all.count, static_cast<int>(leaves), partials);
}

// Whether V neighbours may come by one load, in this row and in those `apart` elements further on.
template <int V>
bool lie_in_loads(const void* src, int64_t bytes, int64_t apart) {
  return apart % V == 0 && reinterpret_cast<uintptr_t>(src) % static_cast<uintptr_t>(V * bytes) == 0;
}

// The columns of several arrays.
template <class Fold>
lockstep_status launch_runs(lockstep_queue& queue, const Fold& fold, const lockstep_call& call,
                            const column_runs& runs) {
  sequences all = sequences_of(call);
  all.run = runs.run, all.run_stride = runs.run_stride;
  if (all.length <= order::lanes) return launch_short_columns(queue, fold, all);
  if constexpr (sizeof(typename Fold::element) == 2)
    if (runs.pairs) return launch_columns<2>(queue, fold, all, call.workspace);
  if constexpr (Fold::ordered && sizeof(typename Fold::element) == 4)
    if (runs.quads && !few_tasks(queue, all.count, all.length))
      return launch_columns<4>(queue, fold, all, call.workspace);
  return launch_columns<1>(queue, fold, all, call.workspace);
}

// V columns per thread: two where elements of 2 bytes are aligned in pairs, four where floats of 4 are in fours.
template <int V>
struct by_columns : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    if (V == 2 && element_bytes(d) != 2) return "needs elements of 2 bytes";
    if (V == 4 && (element_bytes(d) != 4 || !sums_floats(d))) return "needs sums of F32";
    if (const char* why = not_columns(d); why != nullptr || V == 1) return why;
    if (d.sequence_stride != 1 || d.count % V != 0)
      return V == 2 ? "needs an even number of columns without gaps" : "needs columns without gaps, a multiple of 4";
    return lie_in_loads<V>(call.src, element_bytes(d), d.element_stride)
               ? nullptr
               : "needs rows that begin at multiples of a load";
  }
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    return call.reduce.count < queue.facts->tuned.reductions.few_columns ||
           (V > 1 && few_tasks(queue, call.reduce.count, call.reduce.length));
  }
  static size_t partials(const lockstep_call& call) {
    const int64_t leaves = order::leaves(call.reduce.length);
    return leaves > 1 ? static_cast<size_t>(call.reduce.count) * static_cast<size_t>(leaves) * partial_bytes : 0;
  }
  static bool shares(const lockstep_call&) { return true; }
  template <class Fold>
  static constexpr bool takes = V == 1 || (V == 2 ? sizeof(typename Fold::element) == 2
                                                  : Fold::ordered && sizeof(typename Fold::element) == 4);

  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    return launch_columns<V>(queue, fold, sequences_of(call), call.workspace);
  }
};

}  // namespace lockstep::cuda
