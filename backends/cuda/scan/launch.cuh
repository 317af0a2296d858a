// launch.cuh - which kernel takes sequences of which shape.
#pragma once

#include "columns.cuh"
#include "leaf_of_block.cuh"
#include "scan.hpp"
#include "sequences.cuh"
#include "spans.cuh"
#include "staged.cuh"

namespace lockstep::cuda {

template <class K>
scanned scanned_of(const lockstep_call& call) {
  const lockstep_scan_desc& d = call.scan;
  const bool one = d.count <= 1;  // what comes after it is nothing's beginning
  return {call.src,
          call.dst,
          d.count,
          d.length,
          d.element_stride,
          d.sequence_stride,
          d.offsets,
          d.dst_element_stride,
          d.dst_sequence_stride,
          d.element_stride == 1 && aligned_quads<typename K::element>(call.src, one ? 0 : d.sequence_stride),
          d.dst_element_stride == 1 && aligned_quads<typename K::result>(call.dst, one ? 0 : d.dst_sequence_stride),
          d.exclusive != 0,
          d.before,
          leaves_before(d),
          boxes_a_sequence(d),
          static_cast<mailbox*>(call.workspace),
          0};
}

// Shorter sequences have too few rows for the warps of a block.
constexpr int few_rows_of_leaf = 2;

// Mailboxes of the queue that the last leaf clears sooner than a launch of its own would.
constexpr int64_t most_kept = 4096;

// cleared: mailboxes just before, by no kernel, so that nothing could be made ready early.
template <class K>
lockstep_status launch_leaves(lockstep_queue& queue, const K& kind, const scanned& d, bool cleared) {
  const int64_t warps = d.count * order::leaves(d.length);
  const bool few = warps <= queue.facts->tuned.scans.leaves_of_blocks * queue.facts->processors;
  if (d.before == nullptr && d.length > few_rows_of_leaf * order::lanes && (few || sizeof(typename K::element) == 8)) {
    const size_t room = bytes_of_leaf<K>(order::rows);
    const auto kernel = scan_blocks_of_leaf<K>;
    const dim3 grid(static_cast<unsigned>(warps));
    if (cleared) return launch(queue, "scan_blocks_of_leaf", kernel, grid, block_warps * 32, room, kind, d);
    return launch_soon(queue, "scan_blocks_of_leaf", kernel, grid, block_warps * 32, room, kind, d);
  }
  const int rows_a_leaf = staged_rows(std::min(d.length, order::leaf));
  const size_t bytes = leaf_warps<K> * bytes_of_leaf<K>(rows_a_leaf);
  const dim3 blocks(static_cast<unsigned>((warps + leaf_warps<K> - 1) / leaf_warps<K>));
  if (cleared)
    return launch(queue, "scan_leaves", scan_leaves<K>, blocks, leaf_warps<K> * 32, bytes, kind, d, rows_a_leaf);
  return launch_soon(queue, "scan_leaves", scan_leaves<K>, blocks, leaf_warps<K> * 32, bytes, kind, d, rows_a_leaf);
}

template <class K>
lockstep_status launch_spans(lockstep_queue& queue, const K& kind, const scanned& d) {
  using E = typename K::element;
  using T = typename K::result;
  const auto skew = [](const void* at) { return static_cast<int>(reinterpret_cast<uintptr_t>(at) % 16); };
  span_plan plan{32, skew(d.src), skew(d.dst), 0, 0};
  const auto room_of = [&](int64_t skewed, int64_t bytes) {
    return (skewed + plan.rows * d.length * bytes + 15) / 16 * 16;
  };
  const auto fit = [&] {
    const bool one_place = sizeof(E) == sizeof(T) && plan.src_skew == plan.dst_skew;
    const int64_t elements = room_of(plan.src_skew, sizeof(E));
    plan.results = static_cast<int>(one_place ? 0 : elements);
    plan.bytes = static_cast<int>(one_place ? elements : elements + room_of(plan.dst_skew, sizeof(T)));
  };
  const int64_t wanted = span_warps_wanted * queue.facts->processors;
  while (plan.rows * 2 * d.length * static_cast<int64_t>(sizeof(E)) <= span_bytes &&
         d.count / (plan.rows * 2) >= wanted)
    plan.rows *= 2;
  fit();
  // Spans of a multiple of 8 sequences begin all at the same place of 16 bytes.
  while (plan.rows > 8 && plan.bytes > queue.facts->shared_bytes) plan.rows /= 2, fit();
  int warps = span_warps;
  while (warps > 1 && warps * plan.bytes > span_block_bytes) warps /= 2;
  const size_t bytes = static_cast<size_t>(warps) * static_cast<size_t>(plan.bytes);
  const auto kernel = scan_spans<K>;
  if (const lockstep_status status = allow_shared(queue, kernel, bytes); status != LOCKSTEP_OK) return status;
  const int64_t a_block = int64_t{warps} * plan.rows;
  return launch_soon(queue, "scan_spans", kernel, dim3(static_cast<unsigned>((d.count + a_block - 1) / a_block)),
                     warps * 32, bytes, kind, d, plan);
}

template <class K>
lockstep_status launch_columns(lockstep_queue& queue, const K& kind, const scanned& d) {
  const dim3 blocks(static_cast<unsigned>((d.count + column_threads - 1) / column_threads));
  if constexpr (K::ordered) {
    if (d.length > order::leaf) {
      constexpr size_t bytes = sizeof(double) * order::lanes * column_threads;
      const auto kernel = scan_columns<K, true>;
      if (const lockstep_status status = allow_shared(queue, kernel, bytes); status != LOCKSTEP_OK) return status;
      return launch_soon(queue, "scan_columns", kernel, blocks, column_threads, bytes, kind, d);
    }
  }
  return launch_soon(queue, "scan_columns", scan_columns<K, false>, blocks, column_threads, 0, kind, d);
}

template <class K>
lockstep_status launch_scan(lockstep_queue& queue, const lockstep_call& call, const K& kind, scan_by how) {
  scanned d = scanned_of<K>(call);
  if (how == scan_by::columns) return launch_columns(queue, kind, d);
  if (how == scan_by::spans) return launch_spans(queue, kind, d);
  if (d.offsets != nullptr) {
    const int64_t blocks = std::min<int64_t>((d.count + scan_warps<K> - 1) / scan_warps<K>, INT32_MAX);
    return launch(queue, "scan_segments", scan_segments<K>, dim3(static_cast<unsigned>(blocks)), scan_warps<K> * 32, 0,
                  kind, d, queue.report);
  }
  if (d.length <= order::lanes && d.before == nullptr) {
    int threads = 2;
    while (threads * 4 < d.length) threads *= 2;
    const int64_t a_row = int64_t{scan_warps<K>} * (32 / threads);
    const bool few = d.count <= a_row * short_rows * 2 * queue.facts->processors;
    const int64_t a_block = a_row * (few ? few_short_rows : short_rows);
    return launch_soon(queue, "scan_short", few ? scan_short<K, few_short_rows> : scan_short<K, short_rows>,
                       dim3(static_cast<unsigned>((d.count + a_block - 1) / a_block)), scan_warps<K> * 32, 0, kind, d,
                       threads);
  }
  const auto boxes = static_cast<int64_t>(scan_boxes(call.scan) / sizeof(mailbox));
  // A captured graph may run beside this queue's other calls: it must not share their mailboxes.
  const bool kept = boxes != 0 && boxes <= most_kept && d.before == nullptr && !capturing(queue);
  if (kept)
    d.boxes = queue.mailboxes, d.kept = boxes;
  else if (boxes != 0)
    LOCKSTEP_CUDA(cudaMemsetAsync(d.boxes, 0, scan_boxes(call.scan), queue.stream));
  if constexpr (K::ordered)
    if (d.leaves_before != 0) {
      const dim3 blocks(static_cast<unsigned>((d.count + 3) / 4));
      const lockstep_status status = launch(queue, "scan_before", scan_before<K>, blocks, 128, 0, d);
      if (status != LOCKSTEP_OK) return status;
    }
  return launch_leaves(queue, kind, d, boxes != 0 && !kept);
}

}  // namespace lockstep::cuda
