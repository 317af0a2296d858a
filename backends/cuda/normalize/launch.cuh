// launch.cuh - which kernel takes rows of which length; one .cu file a type of elements calls it.
#pragma once

#include "held.cuh"
#include "long.cuh"
#include "narrow.cuh"
#include "normalize.hpp"
#include "normalized_rows.cuh"
#include "pairs.cuh"
#include "staged.cuh"
#include "vectors.cuh"

namespace lockstep::cuda {

template <class E, class P, bool same>
lockstep_status launch_rows(lockstep_queue& queue, const lockstep_call& call, const normalized_rows& d) {
  if constexpr (same && sizeof(E) < 8) {
    const int of_thread = suits_vectors<E, P>(queue, call, d);
    if (of_thread == vector_elements) return launch_vectors<E, P, vector_elements>(queue, d);
    if constexpr (sizeof(E) == 2 && std::is_same_v<P, double>)
      if (of_thread == more_elements) return launch_vectors<E, P, more_elements>(queue, d);
    if (suits_pairs<E, P>(queue, call, d)) return launch_pairs<E, P>(queue, d);
    if (suits_narrow<E, P>(d)) return launch_narrow<E, P>(queue, d);
  }
  const auto grid = [&](int64_t rows_a_block) {
    return dim3(static_cast<unsigned>((d.count + rows_a_block - 1) / rows_a_block));
  };
  if (d.length <= order::lanes) {
    constexpr int S = 4;
    int threads = 4;
    while (threads < 32 && threads * 4 < d.length) threads *= 2;
    return launch_soon(queue, "normalize_held", normalize_held<E, P, same, S>, grid(held_warps * (32 / threads) * S),
                       held_warps * 32, 0, d, threads);
  }
  const auto leaves = static_cast<int>(order::leaves(d.length));
  const int rows_a_leaf = staged_rows(std::min(d.length, order::leaf));
  // One row a block where it is several warps'.
  const int warps = leaves > 1 ? leaves : 4;
  const size_t bytes = held_bytes(warps, rows_a_leaf, sizeof(E));
  const auto kernel = normalize_staged<E, P, same>;
  // The warps' exchange comes on top.
  if (const lockstep_status status = allow_shared(queue, kernel, bytes + 1024); status != LOCKSTEP_OK) return status;
  return launch_soon(queue, "normalize_staged", kernel, grid(warps / leaves), warps * 32, bytes, d, leaves,
                     rows_a_leaf);
}

template <class E, class P, bool same>
lockstep_status launch_long(lockstep_queue& queue, const lockstep_call& call, const normalized_rows& d) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  const long_room room(d.count, d.length, call.workspace);
  auto* values = static_cast<P*>(room.values);
  auto* found = static_cast<spread*>(room.found);
  const bool norm = std::is_same_v<E, double> && d.kind == LOCKSTEP_NORMALIZE_L2;
  const int64_t warps = d.count * order::leaves(d.length);
  const dim3 leaf_blocks(static_cast<unsigned>((warps + long_threads / 32 - 1) / (long_threads / 32)));
  const dim3 row_blocks(static_cast<unsigned>(std::min<int64_t>(d.count, 65535)));
  lockstep_status status =
      launch(queue, "normalize_leaves", normalize_leaves<E, P>, leaf_blocks, long_threads, 0, d, values);
  if (status == LOCKSTEP_OK)
    status = launch(queue, "normalize_join", normalize_join<P>, row_blocks, long_threads, 0, d,
                    static_cast<const P*>(values), found, norm ? room.plain : nullptr);
  if constexpr (std::is_same_v<E, double> && !layer)
    if (status == LOCKSTEP_OK && norm)
      status = launch(queue, "normalize_again", normalize_again<E>, row_blocks, long_threads, 0, d, values, found,
                      static_cast<const double*>(room.plain));
  if (status != LOCKSTEP_OK) return status;
  return launch(queue, "normalize_apply", normalize_apply<E, layer, same>, leaf_blocks, long_threads, 0, d,
                static_cast<const spread*>(found));
}

template <class E, bool held, class P>
lockstep_status launch_kind(lockstep_queue& queue, const lockstep_call& call) {
  const normalized_rows d = rows_of<E>(call);
  const bool same = d.result == call.normalize.dtype;
  if constexpr (held)
    return same ? launch_rows<E, P, true>(queue, call, d) : launch_rows<E, P, false>(queue, call, d);
  else
    return same ? launch_long<E, P, true>(queue, call, d) : launch_long<E, P, false>(queue, call, d);
}

template <class E, bool held>
lockstep_status launch_normalize(lockstep_queue& queue, const lockstep_call& call) {
  if (call.normalize.kind == LOCKSTEP_NORMALIZE_LAYER) return launch_kind<E, held, order::moments>(queue, call);
  return launch_kind<E, held, double>(queue, call);
}

}  // namespace lockstep::cuda
