// rows.cuh - what the kernels of normalize share: a part of a row in registers, its sums in the fixed order, the
// divisor they give, results.
//
// A group of 4 to 32 threads holds `R` rows of its lanes, thread t lanes 4t to 4t + 3 of each; 32 threads and 16 rows
// are a leaf. Where rows are short it holds `S` sequences at once, whose loads overlap.
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "../reduce/block_tree.cuh"
#include "quad.cuh"

namespace lockstep::cuda {

struct normalized_rows {
  const void *src, *residual;
  void *dst, *sum;
  const void *weight, *bias;
  int64_t count, length;
  int64_t src_stride, residual_stride, dst_stride, sum_stride;
  double eps;
  lockstep_normalization kind;
  lockstep_dtype result;
  bool f32_weight;                                                     // of rows that are not F32
  bool whole_src, whole_residual, whole_dst, whole_sum, whole_weight;  // by whole quads (load_quad)
};

struct spread {
  double mean, divisor;
};

struct sum_fold {  // what join_rows asks for
  __device__ static double join(double a, double b) { return __dadd_rn(a, b); }
};

// ---- elements --------------------------------------------------------------------------
// Elements [first, first + n) of a row: h = x, or x + residual, which goes to sum. from_sum: it lies there already.
template <class E, int R>
__device__ __forceinline__ void load_h(const normalized_rows& d, int64_t row, int64_t first, int n, int t, int threads,
                                       bool from_sum, bool wanted, quad<E> (&h)[R]) {
  const auto* src = static_cast<const E*>(from_sum ? d.sum : d.src);
  const int64_t at = row * (from_sum ? d.sum_stride : d.src_stride) + first;
  const bool whole = from_sum ? d.whole_sum : d.whole_src;
  load_quads(src + at, t * 4, threads * 4, n, whole, 1, h);
  if (d.residual == nullptr || from_sum) return;
  const auto* residual = static_cast<const E*>(d.residual) + row * d.residual_stride + first;
  auto* sum = static_cast<E*>(d.sum) + row * d.sum_stride + first;
  constexpr int step = R < 4 ? R : 4;
#pragma unroll
  for (int r0 = 0; r0 < R; r0 += step) {
    quad<E> more[step];
    load_quads(residual, (r0 * threads + t) * 4, threads * 4, n, d.whole_residual, 1, more);
#pragma unroll
    for (int r = 0; r < step; ++r) h[r0 + r] = sum_of(h[r0 + r], more[r]);
  }
  if (d.sum == nullptr || !wanted) return;
#pragma unroll
  for (int r = 0; r < R; ++r) store_quad(sum, (r * threads + t) * 4, n, d.whole_sum, h[r]);
}

// ---- sums ------------------------------------------------------------------------------
// Of each sequence, in every thread of its group: enter(acc, x) takes an element into its lane.
template <class E, int R, int S, class Enter>
__device__ __forceinline__ void sums_of(const quad<E> (&h)[S][R], int n, int t, int threads, double (&sum)[S],
                                        const Enter& enter) {
  double lane[S][4];
#pragma unroll
  for (int b = 0; b < S; ++b)
#pragma unroll
    for (int j = 0; j < 4; ++j) lane[b][j] = -0.0;
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int left = n - (r * threads + t) * 4;
#pragma unroll
    for (int b = 0; b < S; ++b) {
      if (left >= 4) {
#pragma unroll
        for (int j = 0; j < 4; ++j) lane[b][j] = enter(lane[b][j], value(h[b][r], j), b);
      } else {
#pragma unroll
        for (int j = 0; j < 3; ++j)
          if (j < left) lane[b][j] = enter(lane[b][j], value(h[b][r], j), b);
      }
    }
  }
  join_rows<4>(sum_fold{}, lane, sum, t, threads);
}

template <class E, int R, int S>
__device__ __forceinline__ void squares_of(const quad<E> (&h)[S][R], int n, int t, int threads, double (&sum)[S]) {
  sums_of(h, n, t, threads, sum, [](double acc, double x, int) { return __fma_rn(x, x, acc); });
}
// A group's threads share its S quotients: thread b does sequence b's.
template <int S>
__device__ __forceinline__ void means_of(const double (&sum)[S], int n, int t, double (&mean)[S]) {
  double mine = sum[0];
#pragma unroll
  for (int b = 1; b < S; ++b)
    if (t % S == b) mine = sum[b];
  const double quotient = __ddiv_rn(mine, static_cast<double>(n));
#pragma unroll
  for (int b = 0; b < S; ++b)
    mean[b] = S == 1 ? quotient : from_thread(quotient, static_cast<int>(threadIdx.x % 32) - t + b);
}
// The element that a group's sequence of F64 consists of, else 0 (order_rows.hpp). own: the thread's first element;
// same(x): whether all of the thread's are x.
template <class Same>
__device__ __forceinline__ double equal_of(double own, double mean, int t, int threads, const Same& same) {
  const int base = static_cast<int>(threadIdx.x % 32) - t;
  const double first = from_thread(own, base);
  const bool may = order::may_all_be(first, mean);
  if (!__any_sync(all_lanes, may)) return 0.0;
  const unsigned others = __ballot_sync(all_lanes, may && !same(first));
  return may && (others >> base & (0xFFFFFFFFu >> (32 - threads))) == 0 ? first : 0.0;
}
template <class E, int R, int S>
__device__ __forceinline__ void moments_of(const quad<E> (&h)[S][R], int n, int t, int threads,
                                           order::moments (&m)[S]) {
  double sum[S], mean[S], m2[S];
  sums_of(h, n, t, threads, sum, [](double acc, double x, int) { return __dadd_rn(acc, x); });
  means_of(sum, n, t, mean);
  sums_of(h, n, t, threads, m2, [&](double acc, double x, int b) {
    const double off = __dsub_rn(x, mean[b]);
    return __fma_rn(off, off, acc);
  });
#pragma unroll
  for (int b = 0; b < S; ++b) {
    m[b] = {static_cast<double>(n), sum[b], m2[b], 0.0};
    if constexpr (sizeof(E) == 8)
      m[b].equal = equal_of(value(h[b][0], 0), mean[b], t, threads, [&](double x) {
        bool same = true;
#pragma unroll
        for (int r = 0; r < R; ++r)
#pragma unroll
          for (int j = 0; j < 4; ++j) same = same && ((r * threads + t) * 4 + j >= n || value(h[b][r], j) == x);
        return same;
      });
  }
}

// The tree over thread k's value, k < count <= 32, in every thread: 2i with 2i + 1, an odd one out moves up.
template <class P>
__device__ __forceinline__ P tree_of_warp(P mine, int count, int t) {
  for (int step = 1; step < count; step *= 2) {
    const P right = by_words(mine, [step](unsigned word) { return __shfl_down_sync(all_lanes, word, step); });
    if ((t & (2 * step - 1)) == 0 && t + step < count) mine = joined(mine, right);
  }
  return from_thread(mine, 0);
}

// ---- the divisor ------------------------------------------------------------------------
// Norms of F64 that leave the range of a double are again's (norm.cuh).
__device__ __forceinline__ spread spread_of(const normalized_rows& d, double squares) {
  if (d.kind == LOCKSTEP_NORMALIZE_RMS)
    return {0.0, __dsqrt_rn(__dadd_rn(__ddiv_rn(squares, static_cast<double>(d.length)), d.eps))};
  const double norm = __dsqrt_rn(squares);
  return {0.0, norm < d.eps ? d.eps : norm};
}
__device__ __forceinline__ spread spread_of(const normalized_rows& d, const order::moments& m) {
  const double n = static_cast<double>(d.length);
  return {m.mean(), __dsqrt_rn(__dadd_rn(__ddiv_rn(m.squares(), n), d.eps))};
}
__device__ __forceinline__ spread spread_of_norm(const normalized_rows& d, double norm) {
  return {0.0, norm < d.eps ? d.eps : norm};
}
// What an element is multiplied by; F64 is divided.
template <class E>
__device__ __forceinline__ double scale_of(double divisor) {
  return sizeof(E) == 8 ? divisor : __drcp_rn(divisor);
}

// The norm of what the group's threads hold, scaled where order::needs_rescale asks for it.
template <int R, int S>
__device__ __forceinline__ double norm_of(const quad<double> (&h)[S][R], int b, int n, int t, int threads,
                                          double plain) {
  uint64_t most = 0;
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if ((r * threads + t) * 4 + j < n)
        most = max(most, static_cast<uint64_t>(__double_as_longlong(value(h[b][r], j))) & 0x7FFFFFFFFFFFFFFFu);
  for (int mask = threads / 2; mask >= 1; mask /= 2) most = max(most, from_xor(most, mask));
  const bool scale = order::needs_rescale(plain, __longlong_as_double(static_cast<int64_t>(most)));
  const int e = scale ? order::rescale_exponent(most) : 0;
  const double down = scaled_sum::power_of_two(-e);
  quad<double> one[1][R];
#pragma unroll
  for (int r = 0; r < R; ++r) one[0][r] = h[b][r];
  double sum[1];
  sums_of(one, n, t, threads, sum, [down](double acc, double x, int) {
    const double scaled = __dmul_rn(x, down);
    return __fma_rn(scaled, scaled, acc);
  });
  const double root = __dsqrt_rn(sum[0]);
  return scale ? __dmul_rn(root, scaled_sum::power_of_two(e)) : __dsqrt_rn(plain);
}

// ---- results ------------------------------------------------------------------------------
// Columns i + k * step to + 3 of n of weight or bias, by the read-only path: all rows read them.
template <int count, class T>
__device__ __forceinline__ void load_columns(const T* at, bool whole, int i, int step, int n, quad<T> (&q)[count]) {
  if (whole) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const T* p = at + min(i + k * step, n - 4);
      uint32_t(&w)[sizeof(T)] = q[k].word;
      if constexpr (sizeof(T) == 2) {
        const uint2 x = __ldg(reinterpret_cast<const uint2*>(p));
        w[0] = x.x, w[1] = x.y;
      } else {
#pragma unroll
        for (int m = 0; m < static_cast<int>(sizeof(T)); m += 4) {
          const uint4 x = __ldg(reinterpret_cast<const uint4*>(p) + m / 4);
          w[m] = x.x, w[m + 1] = x.y, w[m + 2] = x.z, w[m + 3] = x.w;
        }
      }
    }
  } else {
#pragma unroll
    for (int k = 0; k < count; ++k) {
#pragma unroll
      for (int j = 0; j < 4; ++j) set_element(q[k], j, at[min(i + k * step + j, n - 1)]);
    }
  }
}

template <class E, bool same>
__device__ __forceinline__ void store_results(const normalized_rows& d, int64_t at, int i, int n,
                                              const double (&y)[4]) {
  const auto store = [&](auto* to) {
    using T = std::remove_cvref_t<decltype(*to)>;
    store_quad(to + at, i, n, d.whole_dst, rounded_quad<T>(y));
  };
  if constexpr (same)
    store(static_cast<E*>(d.dst));
  else if (d.result == LOCKSTEP_F16)
    store(static_cast<half16*>(d.dst));
  else if (d.result == LOCKSTEP_BF16)
    store(static_cast<bfloat16*>(d.dst));
  else
    store(static_cast<float*>(d.dst));
}

// Writes elements [first, first + n) of rows row + b * apart, those below d.count. W: the type of weight and bias.
template <class E, class W, bool layer, bool same, int R, int S>
__device__ __forceinline__ void write_weighed(const normalized_rows& d, const quad<E> (&h)[S][R], int64_t row,
                                              int64_t apart, int64_t first, int n, int t, int threads,
                                              const double (&mean)[S], const double (&scale)[S]) {
  constexpr int step = R < 4 ? R : 4;  // rows of lanes whose weights are loaded together
#pragma unroll
  for (int r0 = 0; r0 < R; r0 += step) {
    quad<W> weight[step], bias[step];
    const int at = (r0 * threads + t) * 4;
    if (d.weight != nullptr)
      load_columns(static_cast<const W*>(d.weight) + first, d.whole_weight, at, threads * 4, n, weight);
    if (d.bias != nullptr)
      load_columns(static_cast<const W*>(d.bias) + first, d.whole_weight, at, threads * 4, n, bias);
#pragma unroll
    for (int r = 0; r < step; ++r) {
#pragma unroll
      for (int b = 0; b < S; ++b) {
        double y[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          double x = value(h[b][r0 + r], j);
          if constexpr (layer) x = __dsub_rn(x, mean[b]);
          y[j] = sizeof(E) == 8 ? __ddiv_rn(x, scale[b]) : __dmul_rn(x, scale[b]);
        }
        if (d.bias != nullptr) {
#pragma unroll
          for (int j = 0; j < 4; ++j)
            y[j] = __fma_rn(y[j], d.weight != nullptr ? value(weight[r], j) : 1.0, value(bias[r], j));
        } else if (d.weight != nullptr) {
#pragma unroll
          for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(y[j], value(weight[r], j));
        }
        if (row + b * apart < d.count)
          store_results<E, same>(d, (row + b * apart) * d.dst_stride + first, at + r * threads * 4, n, y);
      }
    }
  }
}
template <class E, bool layer, bool same, int R, int S>
__device__ __forceinline__ void write_rows(const normalized_rows& d, const quad<E> (&h)[S][R], int64_t row,
                                           int64_t apart, int64_t first, int n, int t, int threads,
                                           const double (&mean)[S], const double (&scale)[S]) {
  if constexpr (!std::is_same_v<E, float>)
    if (d.f32_weight) return write_weighed<E, float, layer, same>(d, h, row, apart, first, n, t, threads, mean, scale);
  write_weighed<E, E, layer, same>(d, h, row, apart, first, n, t, threads, mean, scale);
}

}  // namespace lockstep::cuda
