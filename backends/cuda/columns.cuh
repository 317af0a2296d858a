// columns.cuh - sequences that lie across memory, neighbours of one another.
//
//   reduce_columns  threads across columns, 16 lanes of a leaf each
//   join_partials   the tree above its leaves, and above reduce_tree's tasks where the
//                   last block may not join them
#pragma once

#include "sequences.cuh"

namespace lockstep::cuda {

// `across` threads (a power of two, at most 32) lie across columns, 8 down a leaf with
// 16 lanes each, lane = y + 8 * slot; the rest of the block takes other leaves. Joins
// d = 64 ... 8 are within a thread, 4 2 1 go through shared memory.
template <int n, class Fold, class P>
__device__ __forceinline__ void join_down(const Fold& fold, P* value) {
  if constexpr (n > 1) {
#pragma unroll
    for (int k = 0; k < n / 2; ++k) value[k] = fold.join(value[k], value[k + n / 2]);
    join_down<n / 2>(fold, value);
  }
}

template <class Fold>
__global__ __launch_bounds__(block_threads) void reduce_columns(Fold fold, const sequences all, const int across,
                                                                const int64_t column_tiles,
                                                                typename Fold::partial* partials) {
  using T = typename Fold::element;
  using P = typename Fold::partial;
  constexpr int down = 8, slots = order::lanes / down;
  __shared__ P values[block_threads];
  const int x = threadIdx.x & (across - 1), y = threadIdx.x / across % down;
  const int64_t leaves = order::leaves(all.length);
  const int64_t s = blockIdx.x % column_tiles * across + x;
  const int64_t leaf = blockIdx.x / column_tiles * (block_threads / (across * down)) + threadIdx.x / (across * down);
  const bool wanted = s < all.count && leaf < leaves && fold.open(s);
  if (wanted) {
    const int64_t first = leaf * order::leaf, left = all.length - first;
    const int end = static_cast<int>(left < order::leaf ? left : order::leaf);
    const T* at = static_cast<const T*>(all.src) + s * all.sequence_stride +
                  first * (LOCKSTEP_DEVICE_MUTANT("columns_stride_of_width") ? all.count : all.element_stride);
    typename Fold::lane lane[Fold::ordered ? slots : 1];
    for (auto& l : lane) l = fold.empty_lane();
    const int64_t step = down * all.element_stride;
    int row = 0;
#pragma unroll 1
    for (; (row + 1) * order::lanes <= end; ++row) {
      const T* p = at + (row * order::lanes + y) * all.element_stride;
      T v[slots];
#pragma unroll
      for (int k = 0; k < slots; ++k, p += step) v[k] = *p;
#pragma unroll
      for (int k = 0; k < slots; ++k) fold.take(lane[Fold::ordered ? k : 0], v[k], row * order::lanes + y + down * k);
    }
    constexpr int some = 4;  // a short column should not pay for 16
#pragma unroll
    for (int k0 = 0; k0 < slots; k0 += some) {
      if (row * order::lanes + down * k0 >= end) break;
      T v[some];
#pragma unroll
      for (int k = 0; k < some; ++k)
        v[k] = at[min(row * order::lanes + y + down * (k0 + k), end - 1) * all.element_stride];
#pragma unroll
      for (int k = 0; k < some; ++k) {
        const int i = row * order::lanes + y + down * (k0 + k);
        fold.take_if(lane[Fold::ordered ? k0 + k : 0], v[k], i, i < end);
      }
    }
    if constexpr (Fold::ordered) {
      join_down<slots>(fold, lane);
      values[threadIdx.x] = lane[0];
    } else {
      values[threadIdx.x] = fold.close(lane[0], first);
    }
  }
  __syncthreads();  // threads y = 0 read the values of the seven below them
  if (!wanted || y != 0) return;
  P part[down];
#pragma unroll
  for (int k = 0; k < down; ++k) part[k] = values[threadIdx.x + k * across];
  join_down<down>(fold, part);
  if (leaves == 1)
    fold.store(part[0], s);
  else
    partials[s * leaves + leaf] = part[0];
}

// A warp joins the leaves of each sequence, 1,024 at a time.
template <class Fold>
__global__ __launch_bounds__(block_threads) void join_partials(Fold fold, const int64_t count, const int64_t leaves,
                                                               const typename Fold::partial* partials) {
  using P = typename Fold::partial;
  const int t = threadIdx.x % 32;
  const int64_t s = (int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
  if (s >= count || !fold.open(s)) return;
  const P* of_sequence = partials + s * leaves;
  warp_counter<Fold> tree;
  for (int64_t begin = 0; begin < leaves; begin += 1024)
    tree.push(fold,
              join_values(fold, static_cast<int>(leaves - begin < 1024 ? leaves - begin : 1024), t,
                          [&](int i) { return of_sequence[begin + i]; }),
              t);
  const P total = tree.total(fold);
  if (t == 0) fold.store(total, s);
}

}  // namespace lockstep::cuda
