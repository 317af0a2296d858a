// sequences.cuh - short sequences, and those whose lengths only the device knows.
//
//   scan_short       sequences of up to 128 elements: 2 to 32 threads each, 8 to 128 of them a warp
//   scan_segments    one warp per segment, leaf after leaf
//
// Moves   every element once in and once out
// Limit   scan_short: 0.87 of the copy's speed for rows of 64 f32 (H200). scan_segments: latencies of a leaf after the
//         other where one segment is longer than most
// Watch   segments begin anywhere: whether loads are whole is asked leaf by leaf
// Source  lib/bits/order_rows.hpp
#pragma once

#include "look_back.cuh"

namespace lockstep::cuda {

// Rows of 128 lanes that a warp takes at once; of small calls, which need more warps to be done at the same time.
constexpr int short_rows = 8, few_short_rows = 2;

template <class K, int R>
__global__ __launch_bounds__(scan_warps<K> * 32, scan_blocks<K>) void scan_short(const K kind, const scanned d,
                                                                                 const int threads) {
  using E = typename K::element;
  using P = typename K::partial;
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32, i = t % threads * 4, a_row = 32 / threads;
  const int64_t first = (int64_t{blockIdx.x} * scan_warps<K> + warp) * R * a_row + t / threads;
  const auto n = static_cast<int>(d.length);
  const bool quads = n % 4 == 0, whole_src = d.whole_src && quads;
  const auto* src = static_cast<const E*>(d.src);
  follow_on();
  quad<E> x[R];
  const auto load = [&](bool whole) {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      quad<E> one[1];
      const int64_t s = min(first + r * a_row, d.count - 1);
      load_quads(src + s * d.sequence_stride, i, 0, n, whole, d.element_stride, one);
      x[r] = one[0];
    }
  };
  if (whole_src)
    load(true);
  else
    load(false);
  __syncwarp();  // in place: all is read before the first result is written
  const auto place = [&](int r) {
    const int64_t s = first + r * a_row;
    return places<K>{nullptr,
                     static_cast<typename K::result*>(d.dst) + s * d.dst_sequence_stride,
                     d.element_stride,
                     d.dst_element_stride,
                     s,
                     s < d.count ? n : 0,
                     whole_src,
                     d.whole_dst && quads,
                     d.exclusive};
  };
  if constexpr (K::ordered) {
    __shared__ group_sums<R> groups[scan_warps<K>];
    sum_groups(x, t, threads, groups[warp]);
#pragma unroll
    for (int r = 0; r < R; ++r) {
      double y[4];
      sums_in_row(x[r], groups[warp].of[r][t / 2], t, y);
      const double left = from_before(y[3], 1);
      store_results(kind, place(r), i, i == 0 ? kind.first() : left, y);
    }
  } else {
#pragma unroll
    for (int r = 0; r < R; ++r) {
      typename K::local in_row[4], left, all;
      joins_in_row(kind, x[r], i, n, t, threads, in_row, left, all);
      const P entered = static_cast<P>(left);
      P y[4];
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = kind.join(entered, static_cast<P>(in_row[j]));
      store_results(kind, place(r), i, entered, y);
    }
  }
}

// One segment by a warp, in parts of R rows: all of it, or leaves.
template <int R, class K>
__device__ __forceinline__ void scan_segment(const K& kind, const scanned& d, int64_t s, int64_t begin, int64_t length,
                                             group_sums<order::rows>& room, int t) {
  using E = typename K::element;
  using T = typename K::result;
  using P = typename K::partial;
  warp_counter<K> tree;
  P before = kind.none(), entering = kind.first();
  for (int64_t first = 0; first < length; first += order::leaf) {
    const auto n = static_cast<int>(min(length - first, order::leaf));
    places<K> at{static_cast<const E*>(d.src) + (begin + first) * d.element_stride,
                 static_cast<T*>(d.dst) + (begin + first) * d.dst_element_stride,
                 d.element_stride,
                 d.dst_element_stride,
                 s,
                 n,
                 false,
                 false,
                 d.exclusive};
    constexpr uintptr_t src_unit = sizeof(E) == 2 ? 8 : 16, dst_unit = sizeof(T) == 2 ? 8 : 16;
    at.whole_src = d.element_stride == 1 && n % 4 == 0 && reinterpret_cast<uintptr_t>(at.src) % src_unit == 0;
    at.whole_dst = d.dst_element_stride == 1 && n % 4 == 0 && reinterpret_cast<uintptr_t>(at.dst) % dst_unit == 0;
    quad<E> x[R];
    load_quads(at.src, t * 4, 128, n, at.whole_src, at.stride, x);
    __syncwarp();  // in place: all is read before the first result is written
    const bool more = first + order::leaf < length;
    const P total = more ? total_of_leaf(kind, x, t) : kind.none();
    if constexpr (K::ordered) {
      auto& groups = reinterpret_cast<group_sums<R>&>(room);
      const double row_sum = sum_groups(x, t, 32, groups);
      const double base = __dadd_rn(tree.total(kind), sum_rows<R>(row_sum, t));
      write_sums(kind, at, x, groups, base, entering, t);
      entering = from_thread(__dadd_rn(base, row_sum), R - 1);
      if (more) tree.push(kind, total, t);
      __syncwarp();  // the next leaf's groups come after these have been read
    } else {
      write_joins(kind, at, x, before, t);
      before = kind.join(before, total);
    }
  }
}

template <class K>
__global__ __launch_bounds__(scan_warps<K> * 32, 2) void scan_segments(const K kind, const scanned d,
                                                                       report_word word) {
  __shared__ group_sums<order::rows> groups[scan_warps<K>];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t step = int64_t{gridDim.x} * scan_warps<K>;
  for (int64_t s = int64_t{blockIdx.x} * scan_warps<K> + warp; s < d.count; s += step) {
    const int64_t begin = d.offsets[s], length = d.offsets[s + 1] - begin;
    if (begin < 0 || length < 0) {
      if (t == 0) report(word, fault::invalid, s);
      continue;
    }
    if (length == 0) continue;
    if (length <= order::lanes)
      scan_segment<1>(kind, d, s, begin, length, groups[warp], t);
    else
      scan_segment<order::rows>(kind, d, s, begin, length, groups[warp], t);
    __syncwarp();  // the next segment's groups come after these have been read
  }
}

}  // namespace lockstep::cuda
