// shapes.cuh - which kernel takes which shape of sequences, and its launch.
#pragma once

#include <algorithm>
#include <bit>

#include "columns.cuh"
#include "lane_rows.cuh"
#include "rows.cuh"
#include "segments.cuh"
#include "short_rows.cuh"
#include "split_rows.cuh"

namespace lockstep::cuda {

enum class shape { packed, warp, row_pairs, tree, columns, segments };

inline size_t element_bytes(lockstep_dtype dtype) {
  return dtype == LOCKSTEP_F16 || dtype == LOCKSTEP_BF16 ? 2 : dtype == LOCKSTEP_F32 || dtype == LOCKSTEP_I32 ? 4 : 8;
}

struct sequence_plan {
  shape how;
  int leaves_a_task;
  int64_t tasks;    // of a sequence; partial results to store when more than one
  bool neighbours;  // 16-byte (f16: 8-byte) loads
};

inline sequence_plan plan_sequences(const lockstep_reduce_desc& d, const void* src) {
  const int64_t leaves = order::leaves(d.length);
  const size_t bytes = element_bytes(d.dtype), load = bytes == 2 ? 8 : 16;
  const bool neighbours = d.element_stride == 1 && reinterpret_cast<uintptr_t>(src) % load == 0 &&
                          d.sequence_stride * static_cast<int64_t>(bytes) % static_cast<int64_t>(load) == 0;
  sequence_plan plan{shape::tree, 1, 1, false};
  if (d.offsets != nullptr) {
    plan.how = shape::segments;
  } else if (d.length == 0) {
    plan.how = shape::warp;
  } else if (d.element_stride > 1 && d.count >= 4 && d.sequence_stride < d.element_stride) {
    plan.how = shape::columns;
    plan.tasks = leaves;
  } else if (d.length <= order::lanes) {
    plan.how = shape::packed;
    plan.neighbours = neighbours && bytes <= 4 && d.length > 8 && d.length % 4 == 0;
  } else if (leaves == 1) {
    plan.how = d.element_stride == 1 ? shape::row_pairs : shape::warp;
  } else {
    const int64_t task = leaves_a_task(leaves, d.count, most_leaves);
    plan.leaves_a_task = static_cast<int>(task);
    plan.tasks = (leaves + task - 1) / task;
    plan.neighbours = neighbours;
  }
  return plan;
}

constexpr size_t partial_bytes = 24;  // the largest fold's

// Columns of one row of lanes, enough for a thread each.
inline bool short_columns(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
  return d.length <= order::lanes && d.count >= int64_t{queue.facts->processors} * block_threads;
}

// Whether several blocks may share a sequence, so that a norm of f64 needs the passes that follow it.
inline bool is_shared(const lockstep_queue& queue, const lockstep_reduce_desc& d, const sequence_plan& plan) {
  return plan.tasks > 1 || plan.how == shape::segments || (plan.how == shape::columns && !short_columns(queue, d));
}

// Room for partial results, which a call leaves there when it is captured or has more than mailboxes
// hold, and for two words a sequence of those norms.
inline size_t sequence_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_reduce_desc& d = call->reduce;
  const sequence_plan plan = plan_sequences(d, call->src);
  const size_t partials = plan.how == shape::segments ? sizeof(segment_list) + most_slots * partial_bytes
                          : plan.tasks > 1
                              ? static_cast<size_t>(d.count) * static_cast<size_t>(plan.tasks) * partial_bytes
                              : 0;
  const bool rescales = d.reduction == LOCKSTEP_NORM2 && d.dtype == LOCKSTEP_F64 && is_shared(*queue, d, plan);
  return partials + (rescales ? static_cast<size_t>(d.count) * 16 : 0);
}

// Whether a block without a task pays (below, the last task's joins as fast or faster), and is sure that the others
// run beside it: so many grids, 128, may each have such a block, and a multiprocessor has two places or more.
inline bool may_wait_apart(const lockstep_queue& queue, int64_t tasks) {
  return tasks > int64_t{queue.facts->processors} * 8 && queue.facts->processors * 2 > 128;
}

inline dim3 blocks_for(int64_t work, int64_t a_block) {
  return dim3(static_cast<unsigned>(std::min<int64_t>((work + a_block - 1) / a_block, INT32_MAX)));
}

// launch(), but the kernel (which calls overlap_launches) may start early.
template <class... Parameters, class... Arguments>
lockstep_status launch_early(const lockstep_queue& queue, const char* name, void (*kernel)(Parameters...), dim3 grid,
                             dim3 block, Arguments&&... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = queue.stream;
  config.attrs = &early;
  config.numAttrs = queue.facts->major >= 9 && !capturing(queue) ? 1 : 0;
  (void)cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  const cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? LOCKSTEP_OK : failed(code, name);
}

// Rows that reduce_rows takes: elements of 2 or 4 bytes, few of them left out between rows. Shorter
// rows gain nothing by it, of longer ones two tiles of 8 do not fit, and below 256 Ki elements
// the start costs more than it gives.
inline bool stages_rows(const lockstep_queue& queue, const lockstep_reduce_desc& d) {
  return queue.facts->major >= 9 && d.offsets == nullptr && d.element_stride == 1 && d.length > 8 &&
         d.sequence_stride * static_cast<int64_t>(element_bytes(d.dtype)) <= 1792 && d.sequence_stride >= d.length &&
         d.sequence_stride * 8 <= d.length * 9 && d.count >= (int64_t{1} << 18) / d.length;
}

// The shift of staged_plan with the fewest bank conflicts: `rows` rows are read at once, each
// `width` elements at width * (slot ^ swap). Elements of 2 bytes share a bank's word.
inline int least_conflicts(int rows, int width, int swaps, int64_t stride, int bytes) {
  int best = 5, fewest = INT32_MAX;
  for (int shift = 0; shift <= 5; ++shift) {
    int conflicts = 0;
    for (int slot = 0; slot < 4; ++slot) {
      int hits[32] = {}, most = 0;
      int64_t before = -1;
      for (int r = 0; r < rows; ++r)
        for (int u = 0; u < width; ++u) {
          const int64_t word = (r * stride + width * (slot ^ (r >> shift & (swaps - 1))) + u) * bytes / 4;
          if (word != before) most = std::max(most, ++hits[word % 32]);
          before = word;
        }
      conflicts += most;
    }
    if (conflicts < fewest) fewest = conflicts, best = shift;
  }
  return best;
}

// Tiles of up to 8 KiB a warp, fewer rows or tiles where that leaves processors without work.
template <class Fold, int threads, int S, int V>
lockstep_status run_rows(lockstep_queue& queue, const Fold& fold, const sequences& all) {
  constexpr int64_t size = sizeof(typename Fold::element), unit = 16 / size;
  const auto elements_of = [&](int64_t rows) { return (rows * all.sequence_stride + 2 * (unit - 1)) / unit * unit; };
  const int64_t processors = queue.facts->processors;
  int64_t rows = 32 / threads;
  while (rows < 64 && elements_of(rows * 2) * size <= 8192 + 16 && all.count / (rows * 2) >= processors * 32) rows *= 2;
  const int64_t elements = elements_of(rows), bytes = elements * size * row_stages * staged_warps;
  const int64_t tiles = (all.count + rows - 1) / rows;
  // Rows that fit into one round of tiles, or a few, are dealt out once.
  const size_t most = queue.facts->shared_bytes - 1024;
  const int64_t at_a_time =
      processors * staged_warps * std::clamp<int64_t>(static_cast<int64_t>(most) / (bytes + 1024), 1, 4);
  const int64_t share = (tiles + at_a_time - 1) / at_a_time;
  const int run = share <= 16 ? static_cast<int>(share) : staged_run;
  constexpr int at_once = V == 4 ? 8 : 32 / threads;
  const int shift = least_conflicts(at_once, V == 4 ? 4 : threads, swaps_of(threads, S, V), all.sequence_stride, size);
  const staged_plan plan{static_cast<int>(rows), static_cast<int>(elements), shift, tiles, run};
  const auto kernel = reduce_rows<Fold, threads, S, V>;
  // Always the same limit: another thread may set it between these two lines.
  if (const lockstep_status status = allow_shared(kernel, most); status != LOCKSTEP_OK) return status;
  return launch(queue, "reduce_rows", kernel, blocks_for(tiles, int64_t{run} * staged_warps), staged_warps * 32,
                static_cast<size_t>(bytes), fold, all, plan);
}

// Rows of f32 that reduce_lane_rows takes: those that 16-byte loads do not fit, and long arrays of others, where few of
// its threads idle. For short arrays a warp a leaf is faster.
inline bool takes_lanes(const lockstep_queue& queue, const lockstep_reduce_desc& d, const sequence_plan& plan) {
  const int64_t leaves = order::leaves(d.length);
  if (plan.tasks > 1 || d.element_stride > 1 || leaves > most_lane_leaves || d.count > INT32_MAX) return false;
  const double bytes = static_cast<double>(d.count) * static_cast<double>(d.length) * 4;
  return !plan.neighbours || (bytes > 2.0 * queue.facts->l2_bytes && (leaves == 2 || d.length % order::leaf == 0));
}

// The threads that reduce_split gives a row, or 0: not its kind. Of fewer rows its blocks are too few for a chip.
inline int split_of(const lockstep_reduce_desc& d, const void* src) {
  if (d.offsets != nullptr || d.element_stride != 1 || d.length % 4 != 0 || d.length < 8 || d.length > 128) return 0;
  if (d.sequence_stride % 4 != 0 || reinterpret_cast<uintptr_t>(src) % 16 != 0) return 0;
  const auto threads = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(d.length) / 4));
  return d.count >= (int64_t{1} << 18) / d.length ? threads : 0;
}

template <class Fold, int L>
lockstep_status run_split(lockstep_queue& queue, const Fold& fold, const sequences& all) {
  return launch(queue, "reduce_split", reduce_split<Fold, L>, blocks_for(all.count, split_threads / L * split_batches),
                split_threads, 0, fold, all);
}

template <class Fold>
lockstep_status run_short_columns(lockstep_queue& queue, const Fold& fold, const sequences& all) {
  return launch(queue, "reduce_short_columns", reduce_short_columns<Fold>, blocks_for(all.count, block_threads),
                block_threads, 0, fold, all);
}

// Elements of 2 bytes: two columns a thread, where every pair of them is aligned.
inline bool pairs_columns(const lockstep_reduce_desc& d, const void* src) {
  return element_bytes(d.dtype) == 2 && d.sequence_stride == 1 && d.count % 2 == 0 && d.element_stride % 2 == 0 &&
         reinterpret_cast<uintptr_t>(src) % 4 == 0;
}

template <class Fold, int V>
lockstep_status run_columns(lockstep_queue& queue, const Fold& fold, const sequences& all, int64_t leaves,
                            typename Fold::partial* partials) {
  int across = 32 / V;
  while (across > 4 / V && across / 2 * V >= all.count) across /= 2;
  const int64_t tiles = (all.count + across * V - 1) / (across * V), leaves_a_block = block_threads / (across * 8 * V);
  return launch(queue, "reduce_columns", reduce_columns<Fold, V>,
                blocks_for(tiles * ((leaves + leaves_a_block - 1) / leaves_a_block), 1), block_threads, 0, fold, all,
                across, tiles, partials);
}

// A warp takes 32 segments where that leaves twice as many warps as are at work: fewer warps are slower
// for long segments.
template <class Fold>
lockstep_status run_segments(lockstep_queue& queue, const Fold& fold, const sequences& all, segment_list* list) {
  const bool staged = all.element_stride == 1 && all.count >= int64_t{queue.facts->processors} * 24 * 32 * 2;
  LOCKSTEP_CUDA(cudaMemsetAsync(list, 0, 2 * sizeof(unsigned), queue.stream));
  return launch(queue, "reduce_segments", staged ? reduce_segments<Fold, true> : reduce_segments<Fold, false>,
                blocks_for(all.count, block_threads / 32 * (staged ? 32 : 4)), block_threads, 0, fold, all,
                queue.report, list);
}

template <class Fold>
lockstep_status run_sequences(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
  using P = typename Fold::partial;
  static_assert(sizeof(P) <= partial_bytes);
  constexpr size_t size = sizeof(typename Fold::element);
  constexpr int neighbours = size == 8 ? 2 : 4;
  const lockstep_reduce_desc& d = call.reduce;
  const sequence_plan plan = plan_sequences(d, call.src);
  const sequences all{call.src, d.count, d.length, d.element_stride, d.sequence_stride, d.offsets};
  auto* partials = static_cast<P*>(call.workspace);
  lockstep_status status = LOCKSTEP_OK;
  bool join = plan.tasks > 1;
  if constexpr (size == 4) {
    switch (split_of(d, call.src)) {
      case 2: return run_split<Fold, 2>(queue, fold, all);
      case 4: return run_split<Fold, 4>(queue, fold, all);
      case 8: return run_split<Fold, 8>(queue, fold, all);
      case 16: return run_split<Fold, 16>(queue, fold, all);
      case 32: return run_split<Fold, 32>(queue, fold, all);
      default: break;
    }
  }
  if constexpr (size <= 4) {
    if (stages_rows(queue, d)) {
      const bool vectors = reinterpret_cast<uintptr_t>(call.src) % 16 == 0 && d.sequence_stride % 4 == 0;
      const auto run = d.length <= 16   ? vectors ? run_rows<Fold, 1, 16, 4> : run_rows<Fold, 1, 16, 1>
                         : d.length <= 32 ? vectors ? run_rows<Fold, 1, 32, 4> : run_rows<Fold, 1, 32, 1>
                         : d.length <= 64 ? run_rows<Fold, 2, 32, 1>
                                        : run_rows<Fold, 4, 32, 1>;
      return run(queue, fold, all);
    }
  }
  if constexpr (!follows<Fold>) {  // these finish their sequences
    switch (plan.how) {
      case shape::packed: {
        int threads = 1;
        while (threads * 4 < d.length) threads *= 2;
        const auto kernel = plan.neighbours ? reduce_packed < Fold, neighbours == 4 ? 4 : 1,
                   true >  // 9 elements or more
            : threads >= 4 ? reduce_packed<Fold, 1, true>
                           : reduce_packed<Fold, 1, false>;
        return launch(queue, "reduce_packed", kernel, blocks_for(d.count, 8 * 4 * (32 / threads)), block_threads, 0,
                      fold, all, threads);
      }
      case shape::warp:
        return launch(queue, "reduce_warp", reduce_warp<Fold>, blocks_for(d.count, block_threads / 32), block_threads,
                      0, fold, all, queue.report);
      case shape::row_pairs:
        return launch(queue, "reduce_row_pairs",
                      d.length <= 3 * order::lanes - neighbours ? reduce_row_pairs<Fold, neighbours, 3>
                                                                : reduce_row_pairs<Fold, neighbours, 4>,
                      blocks_for(d.count, block_threads / 32 * 2), block_threads, 0, fold, all);
      default: break;
    }
  }
  switch (plan.how) {
    case shape::segments: {
      auto* list = static_cast<segment_list*>(call.workspace);
      if constexpr (is_norm<Fold>) {  // which finishes what it does not list
        Fold alone = fold;
        alone.plain = nullptr;
        status = run_segments(queue, alone, all, list);
      } else if constexpr (!follows<Fold>) {
        status = run_segments(queue, fold, all, list);
      }
      if (status != LOCKSTEP_OK) return status;
      return launch(queue, "reduce_listed", reduce_listed<Fold>, static_cast<unsigned>(queue.facts->processors) * 3,
                    block_threads, 0, fold, all, queue.report, list, reinterpret_cast<P*>(list + 1));
    }
    case shape::columns: {
      if constexpr (!follows<Fold>)
        if (short_columns(queue, d)) return run_short_columns(queue, fold, all);
      if constexpr (size == 2)
        status = pairs_columns(d, call.src) ? run_columns<Fold, 2>(queue, fold, all, plan.tasks, partials)
                                            : run_columns<Fold, 1>(queue, fold, all, plan.tasks, partials);
      else
        status = run_columns<Fold, 1>(queue, fold, all, plan.tasks, partials);
      break;
    }
    case shape::tree: {
      if constexpr (Fold::ordered && size == 4)
        if (takes_lanes(queue, d, plan))
          return launch(queue, "reduce_lane_rows",
                        streams(queue, static_cast<double>(d.count) * static_cast<double>(d.length) * size)
                            ? reduce_lane_rows<Fold, true>
                            : reduce_lane_rows<Fold, false>,
                        blocks_for(d.count, 1), static_cast<unsigned>(order::leaves(d.length)) * order::lanes, 0, fold,
                        all);
      // A captured graph may run beside this queue's other calls: it must not share their mailboxes.
      const bool hands_over = join && d.count * plan.tasks * words_of<P> <= mailbox_count && !capturing(queue);
      join = join && !hands_over;
      const bool apart = hands_over && d.count == 1 && may_wait_apart(queue, plan.tasks);
      // 16 loads in flight a thread for 8 Mi elements or more that blocks share, and for many rows of whole leaves,
      // which lie a multiple of 8 KiB apart. Others do as well with 8, short rows and elements of 2 bytes better.
      const int64_t leaves = order::leaves(d.length);
      const bool whole = plan.tasks == 1 && d.length % order::leaf == 0;
      const bool large = streams(queue, static_cast<double>(d.count) * static_cast<double>(d.length) * size) &&
                         ((size > 2 && plan.tasks > 1 && d.count * leaves >= 4096) ||
                          (whole && plan.neighbours && (size == 4 || (Fold::ordered && size == 8)) &&
                           d.count * leaves >= int64_t{queue.facts->processors} * 32));
      // As many warps as share the leaves evenly (9 leaves: 5 warps, not 8). Whole leaves by 8 loads in flight are
      // faster with warps that idle.
      int warps = std::min(block_threads / 32, plan.leaves_a_task);
      if (plan.tasks == 1 && (large || !whole)) {
        const int64_t rounds = (leaves + warps - 1) / warps;
        warps = static_cast<int>((leaves + rounds - 1) / rounds);
      }
      const auto kernel = !plan.neighbours ? reduce_tree<Fold, 1, false>
                          : large          ? reduce_tree<Fold, neighbours, true>
                                           : reduce_tree<Fold, neighbours, false>;
      status = launch_early(queue, "reduce_tree", kernel, blocks_for(d.count * plan.tasks + apart, 1), warps * 32, fold,
                            all, plan.leaves_a_task, plan.tasks, partials, hands_over ? queue.mailboxes : nullptr);
      break;
    }
    default: return failed(LOCKSTEP_INTERNAL, "no kernel for this shape of sequences");
  }
  if (status != LOCKSTEP_OK || !join) return status;
  return launch(queue, "join_partials", join_partials<Fold>,
                blocks_for(d.count, joined_by_block(plan.tasks) ? 1 : block_threads / 32), block_threads, 0, fold,
                d.count, plan.tasks, partials);
}

template <class Fold>
lockstep_status run_alone(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
  const lockstep_reduce_desc& d = call.reduce;
  const sequences all{call.src, d.count, d.length, d.element_stride, d.sequence_stride, d.offsets};
  return launch(queue, "reduce_alone", reduce_alone<Fold>, blocks_for(d.count, block_threads), block_threads, 0, fold,
                all, queue.report);
}

}  // namespace lockstep::cuda
