// tiles.cuh - a block scans tiles of leaves that it keeps in shared memory, the next tile on its way meanwhile.
//
// Idea    A thread has a group of 8 elements. Some warps find the totals of the tile's leaves and what stands before
//         them, the others what stands before each group and each row within its leaf; then all write results. Blocks
//         stay and take tile after tile, so that loads go on while totals are waited for
// Moves   every element once in and once out
// Limit   the copy limit; where sequences have many tiles, waits for the totals of those that were taken before
// Watch   In place: a tile has landed before its first result is written. A block holds three tiles by their numbers;
//         of all that are not finished the first is always some block's current one, so waits end.
// Source  lib/order_rows.hpp
#pragma once

#include "../normalize/leaf_in_shared.cuh"
#include "look_back.cuh"

namespace lockstep::cuda {

constexpr int tile_warps = 8;
template <class K>
constexpr int tile_blocks = sizeof(typename K::element) == 2 ? 4 : 3;  // of a multiprocessor

// How sequences are cut into tiles of `rows` rows of lanes, an even number a leaf.
struct tiling {
  int rows, rows_a_leaf, leaves_a_tile;
  uint32_t pairs_inverse;  // pair p of rows is of leaf p * pairs_inverse >> 16
  int64_t leaves;          // of a sequence
  int64_t sequences_a_tile, tiles_a_sequence, tiles;
  unsigned long long* next;  // the number of the next tile; NULL: blocks take tiles in turn
};

constexpr int most_leaves_of_tile = 16, most_totals = 4;  // of a tile; and where a sequence has several

// A leaf of a tile.
template <class K>
struct leaf_place {
  const typename K::element* src;
  typename K::result* dst;
  int64_t sequence;
  int n;       // elements; 0: there is no such leaf
  bool first;  // of its sequence
};

// What is said of a tile in shared memory, beside its elements and the sums of its groups.
template <class K>
struct tile_facts {
  leaf_place<K> leaf[3][most_leaves_of_tile];      // of the tile at work and the next two, in turn
  int64_t number[3], sequence[3], of_sequence[3];  // which tile it is, of which sequence, and of its tiles
  typename K::partial total[most_totals], before[most_totals];
};

template <class K>
__host__ __device__ inline size_t tile_bytes(int rows) {
  return static_cast<size_t>(rows) * order::lanes * sizeof(typename K::element);
}
// Of a block: two tiles; for each row its 16 groups and the row itself; what stands before each row.
template <class K>
__host__ __device__ inline size_t bytes_of_tiles(int rows) {
  return 2 * tile_bytes<K>(rows) + static_cast<size_t>(rows) * 18 * sizeof(typename K::local);
}

// Where quad q of a row lies in it: threads that read every second quad meet no other's bank.
__device__ __forceinline__ int place_in_row(int q) { return q ^ (q >> 3 & 1); }

// Some warps of a block wait for each other; who only arrives goes on.
__device__ __forceinline__ void warps_wait(int barrier, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}
__device__ __forceinline__ void warps_arrive(int barrier, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

// A group's elements joined up to each of them.
template <class K>
__device__ __forceinline__ void join_group(const K& kind, const quad<typename K::element> (&x)[2],
                                           typename K::local (&y)[8]) {
#pragma unroll
  for (int j = 0; j < 8; ++j) y[j] = kind.of(x[j / 4], j % 4);
  if constexpr (K::ordered) {
#pragma unroll
    for (int d = 1; d < order::scan_group; d *= 2)
#pragma unroll
      for (int j = 7; j >= d; --j) y[j] = kind.join(y[j - d], y[j]);
  } else {
#pragma unroll
    for (int j = 1; j < 8; ++j) y[j] = kind.join(y[j - 1], y[j]);
  }
}

template <class K>
struct scan_block {
  using E = typename K::element;
  using L = typename K::local;
  using P = typename K::partial;

  const K& kind;
  const scanned& d;
  const tiling& how;
  quad<E>* tile;  // the one at work
  L* groups;      // [17 * row + group]: first the group's own, then what stands before it in its row; [16]: the row's
  L* rows;        // what stands before each row in its leaf
  tile_facts<K>& facts;
  int slot, t, warp;
  int64_t turn;  // the next tile where blocks take them in turn

  __device__ __forceinline__ int leaf_of(int pair) const {
    return static_cast<int>(static_cast<uint32_t>(pair) * how.pairs_inverse >> 16);
  }
  // The next tile's number, in thread 0. Tiles are taken in the order of their numbers by blocks that run, so whom a
  // tile waits for is at work.
  __device__ __forceinline__ int64_t take() {
    const int64_t mine = turn;
    if (how.next == nullptr)
      turn += gridDim.x;
    else if (t == 0)
      return static_cast<int64_t>(atomicAdd(how.next, 1ull));
    return mine;
  }

  // By a warp: which leaves a tile has.
  __device__ __forceinline__ void describe(int64_t number, int into) const {
    number = from_thread(number, 0);
    int64_t s = number * how.sequences_a_tile, at = 0, k = t;
    if (how.tiles_a_sequence == 1) {
      const auto leaves = static_cast<int>(how.leaves);
      s += t / leaves;
      k = t % leaves;
    } else {
      s = number / how.tiles_a_sequence;
      at = number - s * how.tiles_a_sequence;
      k += at * how.leaves_a_tile;
    }
    if (t == 0) facts.number[into] = number, facts.sequence[into] = s, facts.of_sequence[into] = at;
    if (t >= how.leaves_a_tile) return;
    leaf_place<K> place{nullptr, nullptr, s, 0, k == 0};
    if (number < how.tiles && s < d.count && k < how.leaves) {
      const int64_t first = k * order::leaf;
      place.src = static_cast<const E*>(d.src) + s * d.sequence_stride + first * d.element_stride;
      place.dst = static_cast<typename K::result*>(d.dst) + s * d.dst_sequence_stride + first * d.dst_element_stride;
      place.n = static_cast<int>(min(d.length - first, order::leaf));
    }
    facts.leaf[into][t] = place;
  }

  // Starts loading a tile: a warp the rows whose results it will write, over those whose results it has written.
  __device__ __forceinline__ void load(int into, quad<E>* to) const {
#pragma unroll 1
    for (int pair = warp; pair < how.rows / 2; pair += tile_warps) {
      const int leaf = leaf_of(pair);
      if (leaf >= how.leaves_a_tile) break;
      const leaf_place<K>& place = facts.leaf[into][leaf];
      const int n = place.n, row = 2 * pair - leaf * how.rows_a_leaf;
      if (row * order::lanes >= n) continue;
      quad<E>* const at = to + 64 * pair + place_in_row(t);
      if (d.whole_src && n % 4 == 0) {
        constexpr int bytes = sizeof(E) == 2 ? 8 : 16;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const auto* from = reinterpret_cast<const char*>(place.src + min((row + r) * 128 + t * 4, n - 4));
          const uint32_t room = stencil::address_of(at + 32 * r);
#pragma unroll
          for (int m = 0; m < static_cast<int>(sizeof(E)) * 4; m += bytes)
            stencil::copy_async<bytes>(room + m, from + m);
        }
      } else {
        quad<E> x[2];
        load_quads(place.src, row * 128 + t * 4, 128, n, false, d.element_stride, x);
        put_in_shared(at, x[0]);
        put_in_shared(at + 32, x[1]);
      }
    }
    stencil::copies_end_group();
  }

  // The total of a leaf, by a warp.
  __device__ __forceinline__ P total_of(int leaf) const {
    const quad<E>* const at = tile + 32 * how.rows_a_leaf * leaf + place_in_row(t);
    if constexpr (K::ordered) {
      double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
#pragma unroll 4
      for (int r = 0; r < order::rows; ++r) {
        const quad<E> x = quad_in_shared(at + 32 * r);
#pragma unroll
        for (int j = 0; j < 4; ++j) lane[0][j] = __dadd_rn(lane[0][j], value(x, j));
      }
      join_rows<4>(kind, lane, sum, t);
      return sum[0];
    } else {
      L mine = static_cast<L>(kind.none());
#pragma unroll 4
      for (int r = 0; r < order::rows; ++r) {
        const quad<E> x = quad_in_shared(at + 32 * r);
#pragma unroll
        for (int j = 0; j < 4; ++j) mine = kind.join(mine, kind.of(x, j));
      }
#pragma unroll
      for (int mask = 16; mask >= 1; mask /= 2) mine = kind.join(mine, from_xor(mine, mask));
      return static_cast<P>(mine);
    }
  }

  // A thread's group of a pair of rows.
  __device__ __forceinline__ void group_of(int pair, quad<E> (&x)[2]) const {
    const quad<E>* const row = tile + 64 * pair + 32 * (t / 16);
    const int g = t % 16;
    x[0] = quad_in_shared(row + place_in_row(2 * g));
    x[1] = quad_in_shared(row + place_in_row(2 * g + 1));
  }

  __device__ __forceinline__ void walk(L* row) const {
    L before = static_cast<L>(kind.none());
#pragma unroll
    for (int g = 0; g < 16; ++g) {
      const L own = row[g];
      row[g] = before;
      before = kind.join(before, own);
    }
    row[16] = before;
  }

  // What stands before each group in its row and before each row in its leaf, by the warps from `first` on.
  __device__ __forceinline__ void join_rows_and_groups(int first) const {
#pragma unroll 2
    for (int pair = warp - first; pair < how.rows / 2; pair += tile_warps - first) {
      quad<E> x[2];
      L y[8];
      group_of(pair, x);
      join_group(kind, x, y);
      groups[17 * (2 * pair + t / 16) + t % 16] = y[7];
    }
    // The first of them walks what all have written.
    const int threads = 32 * (tile_warps - first);
    if (warp != first) return warps_arrive(2, threads);
    if (!LOCKSTEP_DEVICE_MUTANT("cuda_scan_rows_walked_early")) warps_wait(2, threads);
    for (int row = t; row < how.rows; row += 32) walk(groups + 17 * row);
    __syncwarp();  // a thread walks the rows of a leaf
    if (t >= how.leaves_a_tile) return;
    L before = static_cast<L>(kind.none());
#pragma unroll 2
    for (int r = t * how.rows_a_leaf; r < (t + 1) * how.rows_a_leaf; ++r) {
      rows[r] = before;
      before = kind.join(before, groups[17 * r + 16]);
    }
  }

  // Thread t of a warp: the tree over the leaves that come before leaf t of the tile in its sequence.
  __device__ __forceinline__ P leaves_before(int leaf, int k) const {
    const P* const total = facts.total + (leaf - k);
    P before = kind.none();
    if ((k & 1) != 0) before = kind.join(total[k - 1], before);
    if ((k & 2) != 0) before = kind.join(kind.join(total[0], total[1]), before);
    return before;
  }

  // By the first `many` warps: the leaves' totals; by the first one of them then what stands before each.
  __device__ __forceinline__ void find_leaves(int many) const {
    if (facts.leaf[slot][warp].n != 0) {
      const P total = total_of(warp);
      if (t == 0) facts.total[warp] = total;
    }
    if (warp != 0) return warps_arrive(1, 32 * many);
    warps_wait(1, 32 * many);
    const int leaf = min(t, many - 1);
    P before;
    if (how.tiles_a_sequence == 1) {
      before = leaves_before(leaf, leaf % static_cast<int>(how.leaves));
    } else {
      const P* const total = facts.total;
      P all = total[0];
      if (many > 1) all = kind.join(all, total[1]);
      if (many > 2) all = kind.join(all, kind.join(total[2], total[3]));
      before = look_back(kind, d.boxes + facts.sequence[slot] * d.boxes_a_sequence * words_of<P>,
                         facts.of_sequence[slot], how.tiles_a_sequence, all, leaves_before(leaf, leaf), t);
    }
    if (t < many) facts.before[t] = before;
  }

  // What stands before a row.
  __device__ __forceinline__ P base_of(int leaf, int row, bool several) const {
    const P leaves = several ? facts.before[leaf] : kind.none();
    return kind.join(leaves, static_cast<P>(rows[row]));
  }

  // The results of a pair of rows. entering: what an exclusive tile begins with.
  __device__ __forceinline__ void write(int pair, const leaf_place<K>& place, int leaf, bool several,
                                        P entering) const {
    using R = typename K::result;
    constexpr bool through_shared = sizeof(R) <= sizeof(E);
    const int row = 2 * pair + t / 16, g = t % 16, at = (2 * pair - leaf * how.rows_a_leaf) * 128, n = place.n;
    const bool whole = d.whole_dst && n % 4 == 0;
    quad<E> x[2];
    L in_group[8];
    group_of(pair, x);
    join_group(kind, x, in_group);
    const P base = base_of(leaf, row, several);
    const L group = groups[17 * row + g];
    P y[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = kind.join(base, static_cast<P>(kind.join(group, in_group[j])));
    if (d.exclusive) {
      P entered = kind.join(base, static_cast<P>(group));
      if (K::ordered && g == 0) {  // the last result of the row before, which may be of another leaf
        if (row == 0 || (place.first && row == leaf * how.rows_a_leaf)) {
          entered = place.first ? kind.first() : entering;
        } else {
          const int other = leaf - (row == leaf * how.rows_a_leaf ? 1 : 0);
          entered = kind.join(base_of(other, row - 1, several), static_cast<P>(groups[17 * (row - 1) + 16]));
        }
      }
#pragma unroll
      for (int j = 7; j >= 1; --j) y[j] = y[j - 1];
      y[0] = entered;
    }
    quad<R> out[2]{};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      // Only an exact kind tells of results, so only those that are stored.
      if (K::ordered || at + t * 8 + j < n) set_element(out[j / 4], j % 4, kind.put(y[j], place.sequence));
    }
    if constexpr (through_shared) {  // threads with neighbouring quads store them
      auto* const to = reinterpret_cast<char*>(tile + 64 * pair + 32 * (t / 16));
      __syncwarp();
      put_in_shared(reinterpret_cast<quad<R>*>(to) + place_in_row(2 * g), out[0]);
      put_in_shared(reinterpret_cast<quad<R>*>(to) + place_in_row(2 * g + 1), out[1]);
      __syncwarp();
#pragma unroll
      for (int r = 0; r < 2; ++r)
        store_quad(place.dst, at + r * 128 + t * 4, n, whole,
                   quad_in_shared(reinterpret_cast<const quad<R>*>(tile + 64 * pair + 32 * r) + place_in_row(t)),
                   d.dst_element_stride);
    } else {
      store_quad(place.dst, at + t * 8, n, whole, out[0], d.dst_element_stride);
      store_quad(place.dst, at + t * 8 + 4, n, whole, out[1], d.dst_element_stride);
    }
  }

  // Of an exclusive float sum the result before the tile's first; the tile hands its own last one over first.
  __device__ __forceinline__ P last_of_the_tile_before() const {
    P entering = kind.first();
    const int64_t here = facts.of_sequence[slot];
    mailbox* const edges = d.boxes + d.count * d.boxes_a_sequence + facts.sequence[slot] * how.tiles_a_sequence;
    if (here + 1 < how.tiles_a_sequence && t == 0) {
      const int row = how.leaves_a_tile * how.rows_a_leaf - 1;
      hand_over(edges + here,
                kind.join(base_of(how.leaves_a_tile - 1, row, true), static_cast<P>(groups[17 * row + 16])));
    }
    if (here > 0) wait_for(edges + here - 1, true, entering);
    return entering;
  }

  // The tile at work; `after`: the slot of the one after the next, which is taken meanwhile.
  __device__ __forceinline__ void scan(int after) {
    const bool several = how.leaves > 1, takes = warp == tile_warps - 1;
    const int many = several ? how.leaves_a_tile : 0;
    int64_t taken = 0;
    if (takes) taken = take();
    if (warp < many)
      find_leaves(many);
    else
      join_rows_and_groups(many);
    if (takes) describe(taken, after);
    __syncthreads();  // all read what stands before leaves, rows and groups
    P entering = kind.first();
    if (K::ordered && d.exclusive && how.tiles_a_sequence > 1 && warp == 0) entering = last_of_the_tile_before();
#pragma unroll 1
    for (int pair = warp; pair < how.rows / 2; pair += tile_warps) {
      const int leaf = leaf_of(pair);
      if (leaf >= how.leaves_a_tile) break;
      const leaf_place<K> place = facts.leaf[slot][leaf];
      if ((2 * pair - leaf * how.rows_a_leaf) * order::lanes < place.n) write(pair, place, leaf, several, entering);
    }
    __syncwarp();  // the warp's rows are free
  }
};

template <class K>
__global__ __launch_bounds__(tile_warps * 32, tile_blocks<K>) void scan_tiles(const K kind, const scanned d,
                                                                              const tiling how) {
  using E = typename K::element;
  extern __shared__ uint4 room[];
  __shared__ tile_facts<K> facts;
  const int quads = 32 * how.rows;
  auto* const tiles = reinterpret_cast<quad<E>*>(room);
  auto* const groups = reinterpret_cast<typename K::local*>(tiles + 2 * quads);
  scan_block<K> block{kind,
                      d,
                      how,
                      tiles,
                      groups,
                      groups + 17 * how.rows,
                      facts,
                      0,
                      static_cast<int>(threadIdx.x % 32),
                      static_cast<int>(threadIdx.x / 32),
                      int64_t{blockIdx.x}};
  if (block.warp == tile_warps - 1) {
    block.describe(block.take(), 0);
    block.describe(block.take(), 1);
  }
  __syncthreads();  // all load what one warp has described
  block.load(0, tiles);
  int buffer = 0;
#pragma unroll 1
  while (facts.number[block.slot] < how.tiles) {
    const int next = block.slot == 2 ? 0 : block.slot + 1, after = next == 2 ? 0 : next + 1;
    block.load(next, tiles + (buffer ^ 1) * quads);
    if (!LOCKSTEP_DEVICE_MUTANT("leaf_used_before_it_lands")) stencil::copies_wait_but<1>();
    __syncthreads();  // all read what others have loaded, and nobody reads the last tile's sums any more
    block.scan(after);
    buffer ^= 1;
    block.slot = next;
    block.tile = tiles + buffer * quads;
  }
}

}  // namespace lockstep::cuda
