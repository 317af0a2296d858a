// launch.cuh - which kernel takes sequences of which shape.
#pragma once

#include "scan.hpp"
#include "sequences.cuh"
#include "tiles.cuh"

namespace lockstep::cuda {

template <class K>
scanned scanned_of(const lockstep_call& call) {
  const lockstep_scan_desc& d = call.scan;
  return {call.src,
          call.dst,
          d.count,
          d.length,
          d.element_stride,
          d.sequence_stride,
          d.offsets,
          d.dst_element_stride,
          d.dst_sequence_stride,
          d.element_stride == 1 && aligned_quads<typename K::element>(call.src, d.sequence_stride),
          d.dst_element_stride == 1 && aligned_quads<typename K::result>(call.dst, d.dst_sequence_stride),
          d.exclusive != 0,
          0,
          static_cast<mailbox*>(call.workspace)};
}

// Whole sequences a tile where they fit; else several tiles a sequence.
template <class K>
tiling tiling_of(const lockstep_queue& queue, const scanned& d) {
  int rows = sizeof(typename K::element) == 8 ? 32 : 64;
  while (rows > order::rows && bytes_of_tiles<K>(rows) > static_cast<size_t>(queue.facts->shared_bytes) / 2) rows /= 2;
  const int64_t leaves = order::leaves(d.length);
  const int rows_a_leaf = staged_rows(std::min(d.length, order::leaf)),
            fit = std::min(rows / rows_a_leaf, most_leaves_of_tile);
  const auto pairs_inverse = static_cast<uint32_t>(65536 / (rows_a_leaf / 2) + 1);
  if (leaves > fit) {
    const int64_t tiles = (leaves + fit - 1) / fit;
    return {rows, rows_a_leaf, fit, pairs_inverse, leaves, 1, tiles, d.count * tiles, nullptr};
  }
  const int64_t sequences = fit / leaves;
  return {rows,      rows_a_leaf, static_cast<int>(sequences * leaves),  pairs_inverse, leaves,
          sequences, 1,           (d.count + sequences - 1) / sequences, nullptr};
}

template <class K>
lockstep_status launch_tiles(lockstep_queue& queue, const K& kind, scanned d) {
  tiling how = tiling_of<K>(queue, d);
  if (how.tiles_a_sequence > 1) {
    d.boxes_a_sequence = boxes_a_sequence(how.tiles_a_sequence);
    int64_t boxes = d.count * d.boxes_a_sequence * words_of<typename K::partial>;
    if (K::ordered && d.exclusive) boxes += d.count * how.tiles_a_sequence;
    how.next = reinterpret_cast<unsigned long long*>(d.boxes + boxes);
    LOCKSTEP_CUDA(cudaMemsetAsync(d.boxes, 0, static_cast<size_t>(boxes + 1) * sizeof(mailbox), queue.stream));
  }
  const size_t bytes = bytes_of_tiles<K>(how.rows);
  const auto kernel = scan_tiles<K>;
  constexpr int threads = tile_warps * 32;
  if (const lockstep_status status = allow_shared(queue, kernel, bytes); status != LOCKSTEP_OK) return status;
  int blocks = 1;
  if (const lockstep_status status = resident_blocks(queue, kernel, threads, bytes, &blocks); status != LOCKSTEP_OK)
    return status;
  const int64_t grid = std::min<int64_t>(how.tiles, int64_t{blocks} * queue.facts->processors);
  return launch(queue, "scan_tiles", kernel, dim3(static_cast<unsigned>(grid)), threads, bytes, kind, d, how);
}

template <class K>
lockstep_status launch_scan(lockstep_queue& queue, const lockstep_call& call, const K& kind) {
  const scanned d = scanned_of<K>(call);
  if (d.offsets != nullptr) {
    const int64_t blocks = std::min<int64_t>((d.count + scan_warps<K> - 1) / scan_warps<K>, INT32_MAX);
    return launch(queue, "scan_segments", scan_segments<K>, dim3(static_cast<unsigned>(blocks)), scan_warps<K> * 32, 0,
                  kind, d, queue.report);
  }
  if (d.length <= order::lanes) {
    int threads = 2;
    while (threads * 4 < d.length) threads *= 2;
    const int64_t a_block = int64_t{scan_warps<K>} * short_rows * (32 / threads);
    return launch(queue, "scan_short", scan_short<K>, dim3(static_cast<unsigned>((d.count + a_block - 1) / a_block)),
                  scan_warps<K> * 32, 0, kind, d, threads);
  }
  return launch_tiles(queue, kind, d);
}

}  // namespace lockstep::cuda
