// pairs.cuh - rows of few leaves, two neighbouring lanes per thread: one read, one write.
//
// Idea    A leaf is two warps', so that few rows keep many threads at work: all elements of a thread and their weights
//         are on their way at once and stay in registers. Lanes join through shared memory, a row's leaves by its
//         block's first warp
// Moves   every element once in and once out
// Limit   latencies; instructions where rows are many
// Watch   in place: barriers lie between the last load of a row and its first result
// Source  lib/bits/order_rows.hpp
#pragma once

#include "float_results.cuh"

namespace lockstep::cuda {

constexpr int pair_threads = order::lanes / 2;  // of a leaf
constexpr int pair_leaves = 8;                  // of a block

// Threads of a block of rows of at most R rows of lanes, and blocks per SM.
template <int R>
constexpr int pair_block = pair_threads*(R < order::rows ? 4 : pair_leaves);
template <class P, int R>
constexpr int pair_blocks = R < order::rows ? (std::is_same_v<P, double> ? 4 : 3) : 1;

struct paired_rows {
  int leaves, rows;                       // of a row; of a block, more than one only where a row is one leaf
  bool src, residual, dst, sum, columns;  // by whole pairs, as normalized_rows has quads
};

// ---- elements --------------------------------------------------------------------------
// once: of elements that no other thread reads; else of columns, which no call writes. By a predicate: for a load under
// a condition the compiler waits before it starts the next.
template <bool once, class T>
__device__ __forceinline__ pair<T> load_pair(const T* from, bool wanted) {
  pair<T> x{};
  uint32_t(&w)[sizeof(T) / 2] = x.word;
  const int loaded = wanted;
#define LOCKSTEP_IF_WANTED(load) "{ .reg .pred p; setp.ne.s32 p, %" load " }"
  if constexpr (sizeof(T) == 2 && once)
    asm volatile(LOCKSTEP_IF_WANTED("2, 0; @p ld.global.L1::no_allocate.u32 %0, [%1];")
                 : "+r"(w[0])
                 : "l"(from), "r"(loaded)
                 : "memory");
  else if constexpr (sizeof(T) == 2)
    asm volatile(LOCKSTEP_IF_WANTED("2, 0; @p ld.global.nc.u32 %0, [%1];") : "+r"(w[0]) : "l"(from), "r"(loaded));
  else if constexpr (once)
    asm volatile(LOCKSTEP_IF_WANTED("3, 0; @p ld.global.L1::no_allocate.v2.u32 {%0, %1}, [%2];")
                 : "+r"(w[0]), "+r"(w[1])
                 : "l"(from), "r"(loaded)
                 : "memory");
  else
    asm volatile(LOCKSTEP_IF_WANTED("3, 0; @p ld.global.nc.v2.u32 {%0, %1}, [%2];")
                 : "+r"(w[0]), "+r"(w[1])
                 : "l"(from), "r"(loaded));
#undef LOCKSTEP_IF_WANTED
  return x;
}
// A row of lanes apart; left: elements from `at` to the end. Missing ones are anything.
template <bool once, int R, class T>
__device__ __forceinline__ void load_pairs(const T* at, int left, bool whole, pair<T> (&x)[R]) {
  if (whole) {
#pragma unroll
    for (int r = 0; r < R; ++r) x[r] = load_pair<once>(at + r * order::lanes, r * order::lanes < left);
  } else {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 2; ++j) set_element(x[r], j, at[min(r * order::lanes + j, left - 1)]);
  }
}
// By a predicate: around a branch for each pair threads would have to meet again.
template <bool whole, class T>
__device__ __forceinline__ void store_pair(T* at, int i, int left, bool wanted, const pair<T>& x) {
  if constexpr (!whole) {
    if (wanted && i < left) at[i] = element(x, 0);
    if (wanted && i + 1 < left) at[i + 1] = element(x, 1);
  } else {
    const int stored = wanted && i < left;
    if constexpr (sizeof(T) == 2)
      asm volatile("{ .reg .pred p; setp.ne.s32 p, %2, 0; @p st.global.u32 [%0], %1; }" ::"l"(at + i), "r"(x.word[0]),
                   "r"(stored)
                   : "memory");
    else
      asm volatile("{ .reg .pred p; setp.ne.s32 p, %3, 0; @p st.global.v2.u32 [%0], {%1, %2}; }" ::"l"(at + i),
                   "r"(x.word[0]), "r"(x.word[1]), "r"(stored)
                   : "memory");
  }
}
// Elements are widened again for each use: the compiler would keep them as doubles, in twice the registers.
template <class T, int R>
__device__ __forceinline__ void forget_values(pair<T> (&x)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (uint32_t& word : x[r].word) asm volatile("" : "+r"(word));
}
template <class T, int N, int R>
__device__ __forceinline__ void fill_words(few<T, N> (&x)[R], uint32_t with) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (uint32_t& word : x[r].word) word = with;
}

// ---- sums ------------------------------------------------------------------------------
// A leaf's, in every thread of its two warps, thread s of which has lanes 2s and 2s + 1. of: room for all lanes.
template <class E, int R, class Enter>
__device__ __forceinline__ double paired_sum(const pair<E> (&x)[R], int left, bool full, double* of, int s,
                                             const Enter& enter) {
  double lane[2] = {-0.0, -0.0};
  if (full) {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 2; ++j) lane[j] = enter(lane[j], value(x[r], j));
  } else {
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 2; ++j)
        if (r * order::lanes + j < left) lane[j] = enter(lane[j], value(x[r], j));
  }
  reinterpret_cast<double2*>(of)[s] = make_double2(lane[0], lane[1]);
  __syncthreads();  // both warps join all lanes
  const int t = s % 32;
  double sum = __dadd_rn(__dadd_rn(of[t], of[t + 64]), __dadd_rn(of[t + 32], of[t + 96]));
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) sum = __dadd_rn(sum, from_xor(sum, mask));
  return sum;
}

// ---- results ------------------------------------------------------------------------------
template <class E, bool layer, bool weighed, bool biased>
__device__ __forceinline__ pair<E> pair_by_double(const spread& row, const pair<E>& x, const pair<E>& weight,
                                                  const pair<E>& bias) {
  pair<E> out{};
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    double y = value(x, j);
    if constexpr (layer) y = __dsub_rn(y, row.mean);
    y = __dmul_rn(y, row.divisor);
    if constexpr (biased)
      y = __fma_rn(y, weighed ? value(weight, j) : 1.0, value(bias, j));
    else if constexpr (weighed)
      y = __dmul_rn(y, value(weight, j));
    set_element(out, j, rounded_to<E>::of(y));
  }
  return out;
}

template <class E, bool layer, bool weighed, bool biased>
__device__ __forceinline__ pair<E> pair_by_float(const float_scales& d, const pair<E>& x, const pair<E>& weight,
                                                 const pair<E>& bias, float_doubt<E>& doubt) {
  return {{two_by_float<E, layer, biased>(
      d, {narrow_value(x, 0), narrow_value(x, 1)}, {factor_of<weighed>(d, weight, 0), factor_of<weighed>(d, weight, 1)},
      {biased ? narrow_value(bias, 0) : 0.0f, biased ? narrow_value(bias, 1) : 0.0f}, doubt)}};
}

// row.divisor: what elements are multiplied by. whole: all pairs are.
template <class E, bool layer, bool weighed, bool biased, bool whole, int R>
__device__ __forceinline__ void write_pairs(E* at, int left, const spread& row, pair<E> (&x)[R], pair<E> (&weight)[R],
                                            pair<E> (&bias)[R]) {
  if constexpr (sizeof(E) == 4) {
#pragma unroll
    for (int r = 0; r < R; ++r)
      store_pair<whole>(at, r * order::lanes, left, true,
                        pair_by_double<E, layer, weighed, biased>(row, x[r], weight[r], bias[r]));
  } else {
    const float_scales in_float = scales_in_float(layer ? row.mean : 0.0, row.divisor);
    const auto in_float_of = [&](int r, float_doubt<E>& doubt) {
      return pair_by_float<E, layer, weighed, biased>(in_float, x[r], weight[r], bias[r], doubt);
    };
    uint32_t doubted = 0;  // bit r: pair r
    bool of_magnitude = false;
#pragma unroll
    for (int r = 0; r < R; ++r) {
      float_doubt<E> doubt;
      const pair<E> out = in_float_of(r, doubt);
      const bool sure = in_float.usable & !doubt.of_rounding() & !doubt.of_magnitude();
      of_magnitude |= doubt.of_magnitude();
      store_pair<whole>(at, r * order::lanes, left, sure, out);
      if (!sure && r * order::lanes < left) doubted |= 1u << r;
    }
    forget_values(x);
    if constexpr (weighed) forget_values(weight);
    if (!layer && of_magnitude && in_float.usable) {
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if ((doubted >> r & 1) == 0) continue;
        float_doubt<E> doubt;
        const pair<E> out = in_float_of(r, doubt);
        if (doubt.of_rounding() || !only_zeros<E, E, weighed>(x[r], weight[r], out)) continue;
        store_pair<whole>(at, r * order::lanes, left, true, out);
        doubted ^= 1u << r;
      }
    }
    // So few are left that a warp takes one turn or two.
#pragma unroll 1
    for (; doubted != 0; doubted &= doubted - 1) {
      const int mine = __ffs(static_cast<int>(doubted)) - 1;
      pair<E> own[3] = {x[0], weight[0], bias[0]};
#pragma unroll
      for (int r = 1; r < R; ++r)
        if (r == mine) own[0] = x[r], own[1] = weight[r], own[2] = bias[r];
      store_pair<whole>(at, mine * order::lanes, left, true,
                        pair_by_double<E, layer, weighed, biased>(row, own[0], own[1], own[2]));
    }
  }
}

template <class E, bool layer, bool weighed, bool biased, int R>
__device__ __forceinline__ void write_paired(E* at, int left, bool whole, const spread& row, pair<E> (&x)[R],
                                             pair<E> (&weight)[R], pair<E> (&bias)[R]) {
  if (whole)
    write_pairs<E, layer, weighed, biased, true>(at, left, row, x, weight, bias);
  else
    write_pairs<E, layer, weighed, biased, false>(at, left, row, x, weight, bias);
}

// P: double for squares, order::moments. R: rows of lanes of a leaf at most. Squares have no bias. Of a layer missing
// weights are ones and missing biases -0.0, which leave a product as it is.
template <class E, class P, int R>
__global__ __launch_bounds__(pair_block<R>, pair_blocks<P, R>) void normalize_pairs(const normalized_rows d,
                                                                                    const paired_rows way) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  extern __shared__ uint4 room[];
  const int seats = static_cast<int>(blockDim.x) / pair_threads, seat = static_cast<int>(threadIdx.x) / pair_threads;
  const int s = threadIdx.x % pair_threads, t = threadIdx.x % 32;
  auto* const lanes = reinterpret_cast<double*>(room);
  auto* const values = reinterpret_cast<P*>(lanes + seats * order::lanes * (layer ? 2 : 1));
  auto* const found = reinterpret_cast<spread*>(values + seats);
  double* const of = lanes + seat * order::lanes;
  const bool one_leaf = way.leaves == 1;
  const int64_t wanted = int64_t{blockIdx.x} * way.rows + (one_leaf ? seat : 0);
  const int64_t row = min(wanted, d.count - 1);
  const int first = one_leaf ? 0 : seat * static_cast<int>(order::leaf);
  const int n = min(static_cast<int>(order::leaf), static_cast<int>(d.length) - first), left = n - 2 * s;
  const bool full = n == R * order::lanes;
  const int at = first + 2 * s;

  follow_on();
  pair<E> x[R], weight[R], bias[R];
  load_pairs<true>(static_cast<const E*>(d.src) + row * d.src_stride + at, left, way.src, x);
  if (d.residual != nullptr) {
    pair<E> more[R];
    load_pairs<true>(static_cast<const E*>(d.residual) + row * d.residual_stride + at, left, way.residual, more);
#pragma unroll
    for (int r = 0; r < R; ++r) x[r] = sum_of(x[r], more[r]);
    if (d.sum != nullptr && wanted < d.count) {
      E* const sum = static_cast<E*>(d.sum) + row * d.sum_stride + at;
#pragma unroll
      for (int r = 0; r < R; ++r) {
        if (way.sum)
          store_pair<true>(sum, r * order::lanes, left, true, x[r]);
        else
          store_pair<false>(sum, r * order::lanes, left, true, x[r]);
      }
    }
  }
  if (d.weight != nullptr)
    load_pairs<false>(static_cast<const E*>(d.weight) + at, left, way.columns, weight);
  else if constexpr (layer)
    fill_words(weight, std::is_same_v<E, half16> ? 0x3C003C00u : sizeof(E) == 2 ? 0x3F803F80u : 0x3F800000u);
  if constexpr (layer) {
    if (d.bias != nullptr)
      load_pairs<false>(static_cast<const E*>(d.bias) + at, left, way.columns, bias);
    else
      fill_words(bias, sizeof(E) == 2 ? 0x80008000u : 0x80000000u);
  }

  P total;
  if constexpr (layer) {
    const double sum = paired_sum(x, left, full, of, s, [](double acc, double v) { return __dadd_rn(acc, v); });
    const double mean = __ddiv_rn(sum, static_cast<double>(n));
    forget_values(x);
    total = {static_cast<double>(n), sum,
             paired_sum(x, left, full, of + seats * order::lanes, s,
                        [mean](double acc, double v) {
                          const double off = __dsub_rn(v, mean);
                          return __fma_rn(off, off, acc);
                        }),
             0.0};
  } else {
    total = paired_sum(x, left, full, of, s, [](double acc, double v) { return __fma_rn(v, v, acc); });
  }
  forget_values(x);

  // A leaf alone in its block works out its divisor in every thread, which takes no barrier.
  const bool alone = seats == 1, first_warp = threadIdx.x < 32;
  if (!alone) {
    if (s == 0) values[seat] = total;
    __syncthreads();  // the first warp reads all leaves' values
    if (first_warp) total = one_leaf ? values[min(t, seats - 1)] : tree_of_warp(values[min(t, seats - 1)], seats, t);
  }
  spread mine{};
  if (alone || first_warp) {
    mine = spread_of(d, total);
    mine.divisor = scale_of<E>(mine.divisor);
  }
  if (!alone) {
    if (static_cast<int>(threadIdx.x) < way.rows) found[threadIdx.x] = mine;
    __syncthreads();  // every thread reads its row's
    mine = found[one_leaf ? seat : 0];
  }
  if (wanted >= d.count) return;

  E* const dst = opaque(static_cast<E*>(d.dst) + row * d.dst_stride + at);
  if constexpr (layer)
    write_paired<E, true, true, true>(dst, left, way.dst, mine, x, weight, bias);
  else if (d.weight != nullptr)
    write_paired<E, false, true, false>(dst, left, way.dst, mine, x, weight, bias);
  else
    write_paired<E, false, false, false>(dst, left, way.dst, mine, x, weight, bias);
}

// ---- the choice ---------------------------------------------------------------------------
// Whole pairs of rows of even length, aligned in every row.
template <class E>
inline bool aligned_pairs(const void* at, int64_t stride) {
  constexpr int64_t unit = 2 * sizeof(E);
  return reinterpret_cast<uintptr_t>(at) % unit == 0 && stride % 2 == 0;
}

template <class E, class P>
bool suits_pairs(const lockstep_queue& queue, const lockstep_call& call, const normalized_rows& d) {
  const int64_t leaves = order::leaves(d.length);
  if (sizeof(E) == 8 || d.result != call.normalize.dtype || d.f32_weight || d.length <= order::lanes ||
      leaves > pair_leaves || (std::is_same_v<P, double> && d.bias != nullptr))
    return false;
  const normalize_tuning& tuned = queue.facts->tuned.normalizations;
  if (d.count * leaves * pair_threads <= tuned.pair_threads * queue.facts->processors) return true;
  return d.length >= tuned.pair_row && (!d.whole_src || !d.whole_dst);
}

template <class E, class P>
lockstep_status launch_pairs(lockstep_queue& queue, const normalized_rows& d) {
  paired_rows way{};
  way.leaves = static_cast<int>(order::leaves(d.length));
  const bool many = d.count > queue.facts->tuned.normalizations.lone_rows * queue.facts->processors;
  way.rows = way.leaves == 1 && many ? 4 : 1;
  const bool even = d.length % 2 == 0;
  way.src = even && aligned_pairs<E>(d.src, d.src_stride);
  way.residual = even && aligned_pairs<E>(d.residual, d.residual_stride);
  way.dst = even && aligned_pairs<E>(d.dst, d.dst_stride);
  way.sum = even && aligned_pairs<E>(d.sum, d.sum_stride);
  way.columns = even && aligned_pairs<E>(d.weight, 0) && aligned_pairs<E>(d.bias, 0);
  const int seats = way.leaves * way.rows;
  const size_t bytes = static_cast<size_t>(seats) *
                       (order::lanes * 8 * (std::is_same_v<P, double> ? 1 : 2) + sizeof(P) + sizeof(spread));
  const auto kernel =
      d.length <= order::leaf / 2 ? normalize_pairs<E, P, order::rows / 2> : normalize_pairs<E, P, order::rows>;
  return launch_soon(queue, "normalize_pairs", kernel, dim3(static_cast<unsigned>((d.count - 1) / way.rows + 1)),
                     dim3(static_cast<unsigned>(seats * pair_threads)), bytes, d, way);
}

}  // namespace lockstep::cuda
