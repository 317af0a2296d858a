// staged_rows.cuh - contiguous rows of 9 elements to 1,792 bytes, of 2 bytes and of those of 4 that split_rows.cuh does
// not take, staged in shared memory.
//
// Idea    Every warp has two tiles of its own, each some whole rows, one of which the copy
//         engine fills (bulk.cuh) while the other is folded: no thread waits for a load,
//         addresses or alignment, and no block for a barrier. A block ends after few tiles:
//         blocks start in the order of the rows, and so reads and writes stay together. 1, 2 or 4 threads take a
//         row, up to 32 lanes each, so that most joins need no shuffle.
// Moves   n elements read once; 3 to 4 instructions per element of a thread
// Limit   memory: 0.85 to 0.90 of it (0.81 to 0.88 by blocks that stay to the end, whose warps
//         drift apart; tests/results/tries.md)
// Watch   Bank conflicts: threads' rows start stride words apart. Thread t takes its lanes
//         in the order i ^ swap, swap from its row's number. The joins pair i with
//         i ^ d, so that the tree stays the same; a + b is b + a.
//         The engine moves whole 16 bytes: the elements of less at either end of src go
//         by hand.
// Source  this repository; figures in tests/results/tries.md.
#pragma once

#include <climits>

#include "../kernel/bulk.cuh"
#include "extreme.cuh"
#include "way.cuh"

namespace lockstep::cuda {

struct staged_plan {
  int tile_rows, stage_elements;
  int shift;  // swap = row's number >> shift
  int64_t tiles;
  int run;  // tiles a warp
};
// Loads of V words of a thread's slots; swap is below their number.
constexpr int swaps_of(int threads, int slots, int V) { return threads == 1 ? slots / V : 32 / threads; }

// A tile of rows and where it lies: element k of the stage is element first + k of src, of
// which [head, whole) is the engine's and the rest of [skew, used) by hand.
template <class T>
struct staged_tile {
  static constexpr int unit = 16 / sizeof(T);
  int64_t first;
  int skew, used, head, whole, rows;

  __device__ __forceinline__ staged_tile(const sequences& all, int64_t tile, int tile_rows) {
    const int64_t row = tile * tile_rows;
    rows = static_cast<int>(min(int64_t{tile_rows}, all.count - row));
    const int64_t begin = row * all.sequence_stride;
    const uint64_t place = reinterpret_cast<uintptr_t>(all.src) / sizeof(T) + static_cast<uint64_t>(begin);
    skew = static_cast<int>(place & (unit - 1));
    first = begin - skew;
    used = skew + (rows - 1) * static_cast<int>(all.sequence_stride) + static_cast<int>(all.length);
    head = first < 0 ? unit : 0;
    whole = (used + unit - 1) & -unit;
    const int64_t end = (all.count - 1) * all.sequence_stride + all.length;
    if (first + whole > end) whole -= unit;
  }
};

template <class T>
__device__ __forceinline__ void start_tile(const sequences& all, const staged_tile<T>& tile, T* stage,
                                           uint64_t* barrier) {
  start_copy(stage + tile.head, static_cast<const T*>(all.src) + tile.first + tile.head,
             max(tile.whole - tile.head, 0) * static_cast<int>(sizeof(T)), barrier);
}

// Packed keys of an arg_extreme compare as integers.
struct packed_join {
  __device__ static int64_t join(int64_t a, int64_t b) { return max(a, b); }
};

template <class Fold>
constexpr bool is_extreme = requires(const Fold& fold) {
  fold.turn;
};

// What a row's threads join: partial results, or packed keys where the fold has them.
template <class Fold>
struct row_value {
  static constexpr bool packs = requires(const Fold& fold, typename Fold::lane lane) { fold.pack(lane); };
  using type = std::conditional_t<packs, int64_t, typename Fold::partial>;

  __device__ static auto joins(const Fold& fold) {
    if constexpr (packs)
      return packed_join{};
    else
      return fold;
  }
  __device__ static type of(const Fold& fold, const typename Fold::lane& lane) {
    if constexpr (packs)
      return fold.pack(lane);
    else
      return fold.close(lane, 0);
  }
  __device__ static typename Fold::partial partial(const Fold& fold, const type& value) {
    if constexpr (packs)
      return fold.unpack(value);
    else
      return value;
  }
};

// Joins d = n / 2, ..., 1. By recursion: of a loop whose bound halves too, nvcc 13.0 leaves
// the last levels rolled and the lanes in local memory.
template <int n, class Fold, class P>
__device__ __forceinline__ void join_halves(const Fold& fold, P* lane) {
  if constexpr (n > 1) {
#pragma unroll
    for (int j = 0; j < n / 2; ++j) lane[j] = fold.join(lane[j], lane[j + n / 2]);
    join_halves<n / 2>(fold, lane);
  }
}

// The lowest k ^ swap of the bits k of `where`, of n.
template <int n>
__device__ __forceinline__ int lowest_slot(uint32_t where, int swap) {
#pragma unroll
  for (int d = 1; d < n; d *= 2) {
    constexpr uint32_t evens[] = {0x55555555, 0x33333333, 0, 0x0f0f0f0f, 0, 0, 0, 0x00ff00ff,
                                  0,          0,          0, 0,          0, 0, 0, 0x0000ffff};
    if (swap & d) where = (where & evens[d - 1]) << d | (where >> d & evens[d - 1]);
  }
  return __ffs(static_cast<int>(where)) - 1;
}

// Elements x[k] at index at(k ^ swap), all after earlier ones. Those from `end` on do not exist: of an
// extreme they repeat one that does, which has the lower index and so wins.
template <int n, class Fold, class At>
__device__ __forceinline__ void take_group(const Fold& fold, typename Fold::lane& lane,
                                           const typename Fold::element (&x)[n], int swap, const At& at, int end) {
  if constexpr (row_value<Fold>::packs) {
    uint32_t where = 0;
    const auto best = best_key(x, fold.turn, &where);
    if (best > lane.best) lane = {best, at(lowest_slot<n>(where, swap))};
  } else if constexpr (is_extreme<Fold>) {
    lane = fold.join(lane, best_key(x, fold.turn, nullptr));
  } else {
#pragma unroll
    for (int k = 0; k < n; ++k) fold.take_if(lane, x[k], at(k ^ swap), at(k ^ swap) < end);
  }
}

// A thread's row of up to S elements by loads of V; loads in the order c ^ swap, so that
// slot j holds lane j ^ (swap * V). exact: n is S. Otherwise the last load stands in for
// missing ones: under a condition each load waits for the one before.
template <int S, int V, bool exact, class Fold>
__device__ __forceinline__ typename Fold::partial fold_row(const Fold& fold, const typename Fold::element* row, int n,
                                                           int swap) {
  typename Fold::element x[S];
#pragma unroll
  for (int c = 0; c < S / V; ++c) {
    const auto* at = row + (exact ? (c ^ swap) * V : min((c ^ swap) * V, (n - 1) & -V));
    if constexpr (V == 4) {
      using vector = std::conditional_t<sizeof(x[0]) == 2, uint2, uint4>;
      const vector bits = *reinterpret_cast<const vector*>(at);
      memcpy(&x[c * V], &bits, sizeof bits);
    } else {
      x[c] = *at;
    }
  }
  const auto index = [&](int j) { return j ^ (swap * V); };
  if constexpr (Fold::ordered) {
    typename Fold::partial lane[S];
#pragma unroll
    for (int j = 0; j < S; ++j) {
      lane[j] = fold.empty_lane();
      if constexpr (exact)
        fold.take(lane[j], x[j], index(j));
      else
        fold.take_if(lane[j], x[j], index(j), index(j) < n);
    }
    join_halves<S>(fold, lane);
    return lane[0];
  } else {
    if constexpr (is_extreme<Fold> && V == 4 && !exact) {  // a last load's end may lie beyond the row's
      const auto last = row[n - 1];
#pragma unroll
      for (int j = 0; j < S; ++j) x[j] = index(j) < n ? x[j] : last;
    }
    typename Fold::lane lane = fold.empty_lane();
    take_group<S>(
        fold, lane, x, swap * V, [](int j) { return j; }, exact ? INT_MAX : n);
    return fold.close(lane, 0);
  }
}

// Thread u's part of a row of several threads, at most 32 lanes: slot i has lane
// threads * (i ^ swap) + u.
template <int threads, class Fold>
__device__ __forceinline__ typename Fold::partial fold_part(const Fold& fold, const typename Fold::element* row, int n,
                                                            int u, int swap) {
  using T = typename Fold::element;
  using value = row_value<Fold>;
  constexpr int slots = 32, group = swaps_of(threads, slots, 1);
  typename Fold::lane lane[Fold::ordered ? slots : 1];
  for (auto& l : lane) l = fold.empty_lane();
  int first = 0;
#pragma unroll 1
  for (; first + slots * threads <= n; first += slots * threads) {
    T x[slots];
#pragma unroll
    for (int i = 0; i < slots; ++i) x[i] = row[first + threads * (i ^ swap) + u];
    if constexpr (Fold::ordered) {
#pragma unroll
      for (int i = 0; i < slots; ++i) fold.take(lane[i], x[i], 0);
    } else {
      take_group<slots>(
          fold, lane[0], x, swap, [&](int i) { return first + threads * i + u; }, INT_MAX);
    }
  }
#pragma unroll
  for (int g = 0; g < slots; g += group) {
    if (first + g * threads >= n) break;
    T x[group];
    const auto index = [&](int i) { return first + threads * ((g + i) ^ swap) + u; };
#pragma unroll
    for (int i = 0; i < group; ++i) x[i] = row[min(index(i), n - 1)];
    if constexpr (Fold::ordered) {
#pragma unroll
      for (int i = 0; i < group; ++i) fold.take_if(lane[g + i], x[i], index(i), index(i) < n);
    } else {
      take_group<group>(
          fold, lane[0], x, swap, [&](int i) { return first + threads * (g + i) + u; }, n);
    }
  }
  if constexpr (Fold::ordered) join_halves<slots>(fold, lane);
  auto mine = value::of(fold, lane[0]);
  const auto joins = value::joins(fold);
#pragma unroll
  for (int mask = threads / 2; mask >= 1; mask /= 2) mine = joins.join(mine, from_xor(mine, mask));
  return value::partial(fold, mine);
}

// threads = 1: a row of up to S elements per thread, by loads of V. 2 and 4: of up to 64, of any number.
template <class Fold, int threads, int S, int V>
__global__ __launch_bounds__(staged_warps * 32, 4) void reduce_rows(Fold fold, const sequences all,
                                                                    const staged_plan plan) {
  using T = typename Fold::element;
  static_assert(sizeof(T) <= 4);
  extern __shared__ __align__(16) unsigned char staged_memory[];
  __shared__ uint64_t landed[staged_warps][row_stages];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  T* ring = reinterpret_cast<T*>(staged_memory) + warp * row_stages * plan.stage_elements;
  const int n = static_cast<int>(all.length), stride = static_cast<int>(all.sequence_stride);
  const int64_t first = int64_t{blockIdx.x} * plan.run * staged_warps;
  const int64_t tiles = min(plan.tiles, first + plan.run * staged_warps);
  int64_t number = first + warp;
  if (t < row_stages) init_barrier(&landed[warp][t]);
  fence_engine();
  __syncwarp();  // all barriers are there before thread 0 starts the engine
  follow_on();
  if (t == 0)
    for (int k = 0; k < row_stages && number + k * staged_warps < tiles; ++k)
      start_tile(all, staged_tile<T>(all, number + k * staged_warps, plan.tile_rows), ring + k * plan.stage_elements,
                 &landed[warp][k]);
  int stage = 0;
  unsigned phase = 0;
  for (; number < tiles; number += staged_warps) {
    T* staged = ring + stage * plan.stage_elements;
    const staged_tile<T> tile(all, number, plan.tile_rows);
    wait_landed(&landed[warp][stage], phase);
    if (tile.head != 0 || tile.whole < tile.used) {  // src's first and last elements
      const T* from = static_cast<const T*>(all.src) + tile.first;
      if (t >= tile.skew && t < min(tile.head, tile.used)) staged[t] = from[t];
      const int last = max(tile.whole, tile.head) + t;
      if (last < tile.used) staged[last] = from[last];
      fence_engine();
      __syncwarp();  // the other threads read them
    }
    const int64_t s = number * plan.tile_rows;
    for (int row = 0; row < tile.rows; row += 32 / threads) {
      const int r = t / threads;
      const int swap = r >> plan.shift & (swaps_of(threads, S, V) - 1);
      const T* mine = staged + tile.skew + min(row + r, tile.rows - 1) * stride;
      typename Fold::partial value;
      if constexpr (threads == 1) {
        value =
            V == 4 && n == S ? fold_row<S, V, V == 4>(fold, mine, n, swap) : fold_row<S, V, false>(fold, mine, n, swap);
      } else {
        value = fold_part<threads>(fold, mine, n, t % threads, swap);
      }
      if (t % threads == 0 && row + r < tile.rows) fold.store(value, s + row + r);
    }
    __syncwarp();  // every thread has read the tile that the next copy overwrites
    if (t == 0 && number + row_stages * staged_warps < tiles)
      start_tile(all, staged_tile<T>(all, number + row_stages * staged_warps, plan.tile_rows), staged,
                 &landed[warp][stage]);
    if (++stage == row_stages) {
      stage = 0;
      phase ^= 1;
    }
  }
}

// The shift of staged_plan with the fewest bank conflicts: `rows` rows are read at once, each
// `width` elements at width * (slot ^ swap). Elements of 2 bytes share a bank's word.
inline int least_conflicts(int rows, int width, int swaps, int64_t stride, int bytes) {
  int best = 5, fewest = INT32_MAX;
  for (int shift = 0; shift <= 5; ++shift) {
    int conflicts = 0;
    for (int slot = 0; slot < 4; ++slot) {
      int hits[32] = {}, most = 0;
      int64_t before = -1;
      for (int r = 0; r < rows; ++r)
        for (int u = 0; u < width; ++u) {
          const int64_t word = (r * stride + width * (slot ^ (r >> shift & (swaps - 1))) + u) * bytes / 4;
          if (word != before) most = std::max(most, ++hits[word % 32]);
          before = word;
        }
      conflicts += most;
    }
    if (conflicts < fewest) fewest = conflicts, best = shift;
  }
  return best;
}

struct by_staged_rows : way {
  static const char* refuses(const lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    if (!tuned.copy_engine) return "needs a copy engine, which chips have from sm_90 on";
    if (element_bytes(d) > 4) return "needs elements of at most 4 bytes";
    if (const char* why = not_rows(d); why != nullptr) return why;
    if (d.sequence_stride < d.length) return "needs rows that do not overlap";
    if (d.length <= 8) return "needs rows of 9 elements or more";
    return d.sequence_stride * element_bytes(d) > tuned.staged_row
               ? "needs rows of which two tiles of 8 fit shared memory"
               : nullptr;
  }
  // Long rows are few of a tile.
  static bool pairs_are_faster(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    return sums_floats(d) && d.length >= tuned.pair_row &&
           (element_bytes(d) == 4 || bytes_of(d) < static_cast<double>(tuned.pair_bytes));
  }
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    // Short rows of 2-byte elements are fewer bytes, which their start must make up for.
    const int64_t least = tuned.rows_from * (element_bytes(d) == 2 && d.length <= order::lanes ? 4 : 1);
    return d.sequence_stride * tuned.staged_gap > d.length * (tuned.staged_gap + 1) || d.count < least / d.length ||
           pairs_are_faster(queue, d);
  }
  template <class Fold>
  static constexpr bool takes = sizeof(typename Fold::element) <= 4;

  // Large tiles, fewer rows or tiles where that leaves processors without work.
  template <int threads, int S, int V, class Fold>
  static lockstep_status run_by(lockstep_queue& queue, const sequences& all, const Fold& fold) {
    const reduction_tuning& tuned = queue.facts->tuned.reductions;
    constexpr int64_t size = sizeof(typename Fold::element), unit = 16 / size;
    const auto elements_of = [&](int64_t rows) { return (rows * all.sequence_stride + 2 * (unit - 1)) / unit * unit; };
    const int64_t processors = queue.facts->processors;
    int64_t rows = 32 / threads;
    while (rows < tuned.staged_rows && elements_of(rows * 2) * size <= tuned.staged_tile + 16 &&
           all.count / (rows * 2) >= processors * tuned.staged_tiles)
      rows *= 2;
    const int64_t elements = elements_of(rows), bytes = elements * size * row_stages * staged_warps;
    const int64_t tiles = (all.count + rows - 1) / rows;
    const size_t most = queue.facts->shared_bytes - 1024;
    const int64_t at_a_time =
        processors * staged_warps * std::clamp<int64_t>(static_cast<int64_t>(most) / (bytes + 1024), 1, 4);
    const int64_t share = (tiles + at_a_time - 1) / at_a_time;
    const int run = static_cast<int>(share <= tuned.staged_rounds ? share : tuned.staged_run);
    constexpr int at_once = V == 4 ? 8 : 32 / threads;
    const int shift =
        least_conflicts(at_once, V == 4 ? 4 : threads, swaps_of(threads, S, V), all.sequence_stride, size);
    const staged_plan plan{static_cast<int>(rows), static_cast<int>(elements), shift, tiles, run};
    const auto kernel = reduce_rows<Fold, threads, S, V>;
    if (const lockstep_status status = allow_shared(queue, kernel, most); status != LOCKSTEP_OK) return status;
    return launch_soon(queue, "reduce_rows", kernel, blocks_for(tiles, int64_t{run} * staged_warps), staged_warps * 32,
                       static_cast<size_t>(bytes), fold, all, plan);
  }
  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    const sequences all = sequences_of(call);
    const bool vectors = reinterpret_cast<uintptr_t>(all.src) % 16 == 0 && all.sequence_stride % 4 == 0;
    if (all.length <= 16) return vectors ? run_by<1, 16, 4>(queue, all, fold) : run_by<1, 16, 1>(queue, all, fold);
    if (all.length <= 32) return vectors ? run_by<1, 32, 4>(queue, all, fold) : run_by<1, 32, 1>(queue, all, fold);
    return all.length <= 64 ? run_by<2, 32, 1>(queue, all, fold) : run_by<4, 32, 1>(queue, all, fold);
  }
};

}  // namespace lockstep::cuda
