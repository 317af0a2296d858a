// exponentials_launch.cuh - which kernel takes rows of exponentials of which length; one .cu file a type calls it.
#pragma once

#include "bits/normalizations.hpp"
#include "exponentials_held.cuh"
#include "exponentials_long.cuh"
#include "launch.cuh"

namespace lockstep::cuda {

template <class E, bool divides, bool same, int R, int S>
lockstep_status launch_held_exponentials(lockstep_queue& queue, const exponential_rows& d, int threads) {
  const auto leaves = static_cast<int>(order::leaves(d.length));
  const int blocks = exponential_cluster(leaves);
  const int warps = leaves == 1 ? exponential_warps : blocks > 1 ? cluster_warps(leaves) : leaves;
  const int64_t rows = leaves > 1 ? 1 : warps * (32 / threads) * S;
  const size_t bytes = divides ? static_cast<size_t>(warps) * shared_exponentials<R> : 0;
  const auto kernel = exponentials_held<E, divides, same, R, S>;
  // What warps exchange comes on top.
  if (const lockstep_status status = allow_shared(queue, kernel, bytes + 1024); status != LOCKSTEP_OK) return status;
  const dim3 grid(static_cast<unsigned>(((d.count - 1) / rows + 1) * blocks)), block(static_cast<unsigned>(warps * 32));
  return blocks > 1 ? launch_clusters(queue, "exponentials_held", kernel, grid, block, bytes,
                                      dim3(static_cast<unsigned>(blocks)), d, threads, blocks)
                    : launch_soon(queue, "exponentials_held", kernel, grid, block, bytes, d, threads, blocks);
}

template <class E, bool divides, bool same>
lockstep_status launch_exponentials(lockstep_queue& queue, const exponential_rows& d) {
  if (d.length <= narrow_from)
    return launch_held_exponentials<E, divides, same, 1, 4>(queue, d, d.length <= 16 ? 4 : 8);
  if (d.length <= narrow_to / 2) {
    // As few threads per row as hold it, more where rows are too few to fill the chip.
    constexpr int quads = narrow_quads / 2;
    const int64_t wanted = int64_t{512} * queue.facts->processors;
    int threads = 4;
    while (threads < 32 && threads * 4 < d.length && (threads * 4 * quads < d.length || d.count * threads < wanted))
      threads *= 2;
    return launch_held_exponentials<E, divides, same, quads, 1>(queue, d, threads);
  }
  if (d.length <= narrow_to) return launch_held_exponentials<E, divides, same, narrow_quads, 1>(queue, d, 32);
  return launch_held_exponentials<E, divides, same, 16, 1>(queue, d, 32);
}

template <class E>
lockstep_status launch_long_exponentials(lockstep_queue& queue, const exponential_rows& d, bool same, void* workspace) {
  const long_room room(d.count, d.length, workspace);
  auto* const extremes = static_cast<compared<E>*>(room.values);
  auto* const values = static_cast<double*>(room.values);
  auto* const found = static_cast<spread*>(room.found);
  const int64_t warps = d.count * order::leaves(d.length);
  const dim3 leaf_blocks(static_cast<unsigned>((warps + long_threads / 32 - 1) / (long_threads / 32)));
  const dim3 row_blocks(static_cast<unsigned>(std::min<int64_t>(d.count, 65535)));
  lockstep_status status =
      launch(queue, "exponentials_extremes", exponentials_extremes<E>, leaf_blocks, long_threads, 0, d, extremes);
  if (status == LOCKSTEP_OK)
    status = launch(queue, "exponentials_centre", exponentials_centre<E>, row_blocks, long_threads, 0, d,
                    static_cast<const compared<E>*>(extremes), found);
  if (status == LOCKSTEP_OK)
    status = launch(queue, "exponentials_sums", exponentials_sums<E>, leaf_blocks, long_threads, 0, d,
                    static_cast<const spread*>(found), values);
  if (status == LOCKSTEP_OK)
    status = launch(queue, "exponentials_join", exponentials_join<E>, row_blocks, long_threads, 0, d,
                    static_cast<const double*>(values), found);
  if (status != LOCKSTEP_OK || lib::kind_of(d.kind).one_result) return status;
  const auto apply = same ? exponentials_apply<E, true> : exponentials_apply<E, false>;
  return launch(queue, "exponentials_apply", apply, leaf_blocks, long_threads, 0, d, static_cast<const spread*>(found));
}

template <class E, bool held>
lockstep_status launch_exponential_kind(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_normalize_desc& n = call.normalize;
  const exponential_rows d{rows_of<E>(call), n.scale, n.labels, queue.report};
  const bool same = d.result == n.dtype || lib::kind_of(d.kind).one_result;
  if constexpr (held) {
    const bool divides = d.kind == LOCKSTEP_NORMALIZE_SOFTMAX;
    if (same)
      return divides ? launch_exponentials<E, true, true>(queue, d) : launch_exponentials<E, false, true>(queue, d);
    return divides ? launch_exponentials<E, true, false>(queue, d) : launch_exponentials<E, false, false>(queue, d);
  } else {
    return launch_long_exponentials<E>(queue, d, same, call.workspace);
  }
}

}  // namespace lockstep::cuda
