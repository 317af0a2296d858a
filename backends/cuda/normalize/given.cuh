// given.cuh - contiguous rows whose statistics are given: parts of longer rows.
//
//   normalize_apply      of long.cuh
//   given_exponentials   one warp per leaf: results of SOFTMAX and LOG_SOFTMAX
//   given_results        one thread per row: LOGSUMEXP and PICKED
//
// Moves   every element once in and once out, 16 bytes per row
// Limit   memory; of exponentials operations of doubles
// Watch   with an S of 1 SOFTMAX is asked for in F64: the exponentials themselves
// Source  lib/bits/order_rows.hpp
#pragma once

#include "bits/normalizations.hpp"
#include "exponentials.cuh"
#include "long.cuh"
#include "normalized_rows.cuh"

namespace lockstep::cuda {

// given: m and S of each row.
template <class E, bool same>
__global__ __launch_bounds__(long_threads) void given_exponentials(const exponential_rows d, const double* given) {
  const int t = threadIdx.x % 32;
  const leaf_of_row at(d);
  if (at.row >= d.count) return;
  const double m = given[2 * at.row], part = part_of(d, m, given[2 * at.row + 1]);
  const int64_t to = at.row * d.dst_stride + at.first;
  quad<E> h[16];
  load_h<E, 16>(d, at.row, at.first, at.n, t, 32, false, false, h);
#pragma unroll
  for (int r = 0; r < 16; ++r) {
    double y[4];
    if (d.kind == LOCKSTEP_NORMALIZE_SOFTMAX) {
      exponentials_of(h[r], m, d.scale, false, y);
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(y[j], part);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dsub_rn(below(h[r], j, m, d.scale), part);
    }
    if (!same && d.result == LOCKSTEP_F64)
      store_quad(static_cast<double*>(d.dst) + to, (r * 32 + t) * 4, at.n, d.whole_dst, rounded_quad<double>(y));
    else
      store_results<E, same>(d, to, (r * 32 + t) * 4, at.n, y);
  }
}

template <class E>
__global__ __launch_bounds__(long_threads) void given_results(const exponential_rows d, const double* given) {
  const int64_t row = int64_t{blockIdx.x} * long_threads + threadIdx.x;
  if (row >= d.count) return;
  const double m = given[2 * row];
  store_one<E>(d, row, m, part_of(d, m, given[2 * row + 1]));
}

template <class E, bool same>
lockstep_status launch_given(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_normalize_desc& n = call.normalize;
  const lib::normalization_kind& kind = lib::kind_of(n.kind);
  const exponential_rows d{rows_of<E>(call), n.scale, n.labels, queue.report};
  if (kind.one_result)
    return launch(queue, "given_results", given_results<E>,
                  dim3(static_cast<unsigned>((d.count - 1) / long_threads + 1)), long_threads, 0, d, n.given);
  const int64_t warps = d.count * order::leaves(d.length);
  const dim3 blocks(static_cast<unsigned>((warps - 1) / (long_threads / 32) + 1));
  if (kind.exponential)
    return launch(queue, "given_exponentials", given_exponentials<E, same>, blocks, long_threads, 0, d, n.given);
  // A mean of 0 changes nothing.
  return launch(queue, "normalize_apply", normalize_apply<E, true, same>, blocks, long_threads, 0, d,
                reinterpret_cast<const spread*>(n.given));
}

}  // namespace lockstep::cuda
