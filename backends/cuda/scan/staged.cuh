// staged.cuh - a warp scans a leaf that it keeps in shared memory.
//
// Idea    A leaf is gone through twice: for what it gives the leaves behind it and what stands before its groups, then,
//         when what stands before the leaf is known, for its results: of float sums a group of 8 a thread
// Moves   every element once in and once out
// Limit   latencies: a third of the waits are for shared memory
// Watch   in place: all of a leaf is in shared memory before its first result is written
// Source  lib/bits/order_rows.hpp
#pragma once

#include "../normalize/leaf_in_shared.cuh"
#include "look_back.cuh"

namespace lockstep::cuda {

// Room for warps of rows_a_leaf rows: the leaf, then what stands before its groups.
template <class K>
constexpr int leaf_warps = sizeof(typename K::element) == 8 ? 2 : 4;
template <class K>
constexpr int leaf_blocks_each = sizeof(typename K::element) == 2 ? 8 : 5;  // per SM
template <class K>
__host__ __device__ inline size_t bytes_of_leaf(int rows_a_leaf) {
  const size_t groups = K::ordered ? static_cast<size_t>(rows_a_leaf) * sizeof(double) * 17 : 0;
  return static_cast<size_t>(rows_a_leaf) * order::lanes * sizeof(typename K::element) + (groups + 15) / 16 * 16;
}

// One pass over the leaf: its total, as total_of_leaf's, and the sum of each group of 8, to groups[17 * row + group].
template <class K>
__device__ __forceinline__ double sums_of_groups(const K& kind, const staged_leaf<typename K::element>& x, int t,
                                                 double* groups) {
  double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
  const auto row = [&](int r) {
    const auto q = x.get(r);
    double v[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      v[j] = value(q, j);
      lane[0][j] = __dadd_rn(lane[0][j], v[j]);
    }
    const double own = __dadd_rn(__dadd_rn(v[0], v[1]), __dadd_rn(v[2], v[3]));
    const double left = from_xor(own, 1);
    if (t % 2 == 1) groups[17 * r + t / 2] = __dadd_rn(left, own);
  };
  int r = 0;
#pragma unroll 1
  for (; r + step_rows <= x.rows; r += step_rows) {
#pragma unroll
    for (int k = 0; k < step_rows; ++k) row(r + k);
  }
  if (r < x.rows) row(r), row(r + 1);
  join_rows<4>(kind, lane, sum, t);
  return sum[0];
}

// Where unit u of a row of 64 units of 16 bytes lies in it, for elements of 8 bytes: neither threads with neighbouring
// quads nor threads with neighbouring groups of 8 meet in a bank.
__device__ __forceinline__ int place_of_unit(int u) { return u ^ (u >> 3 & 3); }

// As staged_leaf, of such rows, for thread t.
template <class E>
struct leaf_in_units {
  uint4* at;
  int rows, t;

  __device__ __forceinline__ quad<E> get(int r) const {
    const int first = place_of_unit(2 * t);
    const uint4 a = at[64 * r + first], b = at[64 * r + (first ^ 1)];
    return {a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w};
  }
};
// As stage: whole lines by neighbouring threads, of elements that are not aligned to 16 bytes, too.
template <class E>
__device__ __forceinline__ void stage(const leaf_in_units<E>& leaf, const E* at, int n, int t, bool whole,
                                      int64_t stride) {
  const uint32_t room = stencil::address_of(leaf.at);
  if (whole) {
    const uint32_t to = room + static_cast<uint32_t>(16 * place_of_unit(t));
#pragma unroll 4
    for (int r = 0; r < leaf.rows; ++r)
#pragma unroll
      for (int h = 0; h < 2; ++h)
        stencil::copy_async<16>(to + static_cast<uint32_t>(16 * (64 * r + 32 * h)),
                                at + min(2 * (64 * r + 32 * h + t), n - 2));
  } else {
    const uint32_t to = room + static_cast<uint32_t>(8 * (t % 2));
#pragma unroll 2
    for (int r = 0; r < leaf.rows; ++r)
#pragma unroll
      for (int q = 0; q < 4; ++q)
        stencil::copy_async<8>(to + static_cast<uint32_t>(16 * (64 * r + place_of_unit(16 * q + t / 2))),
                               at + min(128 * r + 32 * q + t, n - 1) * stride);
  }
  stencil::copies_end_group();
  stencil::copies_wait_but<0>();
}
// Stores rows whose results lie as leaf_in_units has elements.
template <class R>
__device__ __forceinline__ void store_units(R* dst, const uint4* rows_at, int rows, int n, bool whole, int64_t stride,
                                            int t) {
  if (whole) {
    const uint4* const mine = rows_at + place_of_unit(t);
#pragma unroll 2
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int i = 2 * (64 * r + 32 * h + t);
        const uint4 x = mine[64 * r + 32 * h];
        if (i < n)
          asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(dst + i), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                       : "memory");
      }
    return;
  }
#pragma unroll 2
  for (int r = 0; r < rows; ++r)
#pragma unroll
    for (int q = 0; q < 4; ++q) {
      const int i = 128 * r + 32 * q + t;
      if (i < n) dst[i * stride] = reinterpret_cast<const R*>(rows_at + 64 * r + place_of_unit(16 * q + t / 2))[t % 2];
    }
}

// Where quad q of a row lies in it: threads that read every second quad meet no other's bank.
__device__ __forceinline__ int place_in_row(int q) { return q ^ (q >> 3 & 1); }

// The results of a leaf of float sums, as write_sums. A thread has a group of 8, a half warp a row; groups[17 * row +
// 16] stands before the row. leaf: its first quad. Results no larger than elements take their places, from which
// threads with neighbouring quads store them.
template <bool units = false, class K>
__device__ __forceinline__ void write_staged_sums(const K& kind, const places<K>& at, quad<typename K::element>* leaf,
                                                  int rows, const double* groups, double entering, int t) {
  using E = typename K::element;
  using R = typename K::result;
  constexpr bool through_shared = !units && sizeof(R) <= sizeof(E);
  const int g = t % 16, turn = g >> 1 & 3, first = place_in_row(2 * g), second = place_in_row(2 * g + 1);
  double carried = entering;
#pragma unroll 1
  for (int r = t / 16; r < rows; r += 2) {
    quad<E>* const row = leaf + 32 * r;
    uint4* const unit = reinterpret_cast<uint4*>(row) + 4 * g;
    double y[8];
    if constexpr (units) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint4 x = unit[i ^ turn];
        y[2 * i] = __hiloint2double(static_cast<int>(x.y), static_cast<int>(x.x));
        y[2 * i + 1] = __hiloint2double(static_cast<int>(x.w), static_cast<int>(x.z));
      }
    } else {
      const quad<E> x[2] = {quad_in_shared(row + first), quad_in_shared(row + second)};
#pragma unroll
      for (int j = 0; j < 8; ++j) y[j] = value(x[j / 4], j % 4);
    }
#pragma unroll
    for (int d = 1; d < order::scan_group; d *= 2)
#pragma unroll
      for (int j = 7; j >= d; --j) y[j] = __dadd_rn(y[j - d], y[j]);
    const double group = groups[17 * r + g], before = groups[17 * r + 16];
#pragma unroll
    for (int j = 0; j < 8; ++j) y[j] = __dadd_rn(before, __dadd_rn(group, y[j]));
    double entered = 0;
    if (at.exclusive) {
      entered = from_before(y[7], 1);
      if (t == 0) entered = carried;
      carried = from_thread(y[7], 31);
    }
    quad<R> out[2]{};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const double result = at.exclusive ? (j == 0 ? entered : y[(j + 7) % 8]) : y[j];
      set_element(out[j / 4], j % 4, kind.put(result, at.sequence));
    }
    if constexpr (units) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const uint32_t* const w = out[i / 2].word + 4 * (i % 2);
        unit[i ^ turn] = make_uint4(w[0], w[1], w[2], w[3]);
      }
    } else if constexpr (through_shared) {
      put_in_shared(reinterpret_cast<quad<R>*>(row + first), out[0]);
      put_in_shared(reinterpret_cast<quad<R>*>(row + second), out[1]);
    } else {
      store_quad(at.dst, (r * 32 + 2 * g) * 4, at.n, at.whole_dst, out[0], at.dst_stride);
      store_quad(at.dst, (r * 32 + 2 * g + 1) * 4, at.n, at.whole_dst, out[1], at.dst_stride);
    }
  }
  if constexpr (units) {
    __syncwarp();  // threads store what others have put
    store_units(at.dst, reinterpret_cast<const uint4*>(leaf), rows, at.n, at.whole_dst, at.dst_stride, t);
  }
  if constexpr (through_shared) {
    __syncwarp();  // threads store what others have put
    const quad<E>* const mine = leaf + place_in_row(t);
#pragma unroll 2
    for (int r = 0; r < rows; ++r)
      store_quad(at.dst, (r * 32 + t) * 4, at.n, at.whole_dst,
                 quad_in_shared(reinterpret_cast<const quad<R>*>(mine + 32 * r)), at.dst_stride);
  }
}

template <class K>
__device__ __forceinline__ void scan_leaf_in_order(const K& kind, const places<K>& at,
                                                   const staged_leaf<typename K::element>& x,
                                                   quad<typename K::element>* leaf, double* groups, mailbox* boxes,
                                                   mailbox* edges, const scanned& d, int64_t k, int64_t leaves, int t) {
  const double total = sums_of_groups(kind, x, t, groups);
  __syncwarp();  // a thread walks what all have written
  double row_sum = -0.0;
  if (t < x.rows) {
#pragma unroll 4
    for (int g = 0; g < 16; ++g) {
      const double group = groups[17 * t + g];
      groups[17 * t + g] = row_sum;
      row_sum = __dadd_rn(row_sum, group);
    }
  }
  __syncwarp();  // all read what the walkers have written
  double run = -0.0, rows = -0.0;
#pragma unroll 4
  for (int r = 0; r < x.rows; ++r) {
    if (t == r) rows = run;
    run = __dadd_rn(run, from_thread(row_sum, r));
  }
  const double before =
      look_back(kind, boxes, d.leaves_before + k, d.leaves_before, d.leaves_before + leaves, total, t);
  const double base = __dadd_rn(before, rows);
  double entering = kind.first();
  if (at.exclusive) {  // this leaf's last result is handed over before the last one's is waited for
    if (k + 1 < leaves && t == order::rows - 1) hand_over(edges + k, __dadd_rn(base, row_sum));
    if (k > 0)
      wait_for(edges + k - 1, true, entering);
    else if (d.before != nullptr)
      entering = *floats_before(d, at.sequence);
  }
  const bool last = reads_last(d, leaves, t);
  if (t < x.rows) groups[17 * t + 16] = base;
  __syncwarp();  // all read what stands before each row
  write_staged_sums(kind, at, leaf, x.rows, groups, entering, t);
  if (last) clear_boxes(d, t);
}

template <class K>
__device__ __forceinline__ void scan_leaf_exactly(const K& kind, const places<K>& at,
                                                  const staged_leaf<typename K::element>& x, mailbox* boxes,
                                                  const scanned& d, int64_t k, int64_t leaves, int t) {
  using P = typename K::partial;
  using L = typename K::local;
  L mine = static_cast<L>(kind.none());
  if (k + 1 < leaves) {
#pragma unroll 4
    for (int r = 0; r < x.rows; ++r) {
      const auto q = x.get(r);
#pragma unroll
      for (int j = 0; j < 4; ++j) mine = kind.join(mine, kind.of(q, j));
    }
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) mine = kind.join(mine, from_xor(mine, mask));
  }
  P before = look_back(kind, boxes, k, 0, leaves, static_cast<P>(mine), t);
  const bool last = reads_last(d, leaves, t);
  if (d.before != nullptr) before = kind.join(kind.before(d.before, at.sequence), before);
#pragma unroll 1
  for (int r = 0; r < x.rows; ++r) {
    const int i = (r * 32 + t) * 4;
    L in_row[4], left, all;
    joins_in_row(kind, x.get(r), i, at.n, t, 32, in_row, left, all);
    const P entered = kind.join(before, static_cast<P>(left));
    P y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = kind.join(entered, static_cast<P>(in_row[j]));
    store_results(kind, at, i, entered, y);
    before = kind.join(before, static_cast<P>(all));
  }
  if (last) clear_boxes(d, t);
}

// rows_a_leaf: what a warp has room for.
template <class K>
__global__ __launch_bounds__(leaf_warps<K> * 32, leaf_blocks_each<K>) void scan_leaves(const K kind, const scanned d,
                                                                                       const int rows_a_leaf) {
  using E = typename K::element;
  using P = typename K::partial;
  extern __shared__ uint4 room[];
  const int t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t leaves = order::leaves(d.length), number = int64_t{blockIdx.x} * leaf_warps<K> + warp;
  const int64_t s = number / leaves, k = number - s * leaves;
  if (s >= d.count) return;
  const places<K> at = leaf_places<K>(d, s, k);
  mailbox* const boxes = d.boxes + s * d.boxes_a_sequence * words_of<P>;
  auto* const mine = reinterpret_cast<char*>(room) + warp * bytes_of_leaf<K>(rows_a_leaf);
  auto* const leaf = reinterpret_cast<quad<E>*>(mine);
  const staged_leaf<E> x{leaf + (K::ordered ? place_in_row(t) : t), staged_rows(at.n)};
  follow_on();
  stage(x, at.src, at.n, t, at.whole_src, at.stride);
  __syncwarp();  // in place: all is read before the first result is written; and threads read others' quads
  if constexpr (K::ordered) {
    auto* const groups = reinterpret_cast<double*>(mine + int64_t{rows_a_leaf} * order::lanes * int64_t{sizeof(E)});
    mailbox* const edges = d.boxes + d.count * d.boxes_a_sequence + s * leaves;
    scan_leaf_in_order(kind, at, x, leaf, groups, boxes, edges, d, k, leaves, t);
  } else {
    scan_leaf_exactly(kind, at, x, boxes, d, k, leaves, t);
  }
}

}  // namespace lockstep::cuda
