// normalize_columns.cpp - normalize along an axis that is not the last: rows that lie side by side.
// Idea    as many rows as a thread's cache holds are transposed into it, normalized there as any contiguous rows, and
//         transposed back. Where there are fewer such tiles than threads, all threads share each tile
// Moves   every element once in and once out; a tile in the cache three times
// Limit   the copy limit in DRAM; the transposes in L2
// Watch   a tile has whole lines of each array's elements at one index, so that threads share none; in place a tile is
//         read before it is written
// Source  lib/bits/order_rows.hpp
#include "bits/normalizations.hpp"
#include "normalize_rows.hpp"
#include "ops.hpp"
#include "transpose_kernels.hpp"

namespace lockstep::cpu {
namespace {

constexpr int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }

struct columns {
  const lockstep_queue& queue;
  const lockstep_call& call;
  const lockstep_normalize_desc& d = call.normalize;
  bool one_result = lib::kind_of(d.kind).one_result;
  int64_t bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.dtype));
  int64_t result_bytes = static_cast<int64_t>(lockstep_dtype_bytes(d.result));
  int64_t pitch = d.length <= 64 ? d.length : (d.length + 15) / 16 * 16 + 16;  // of a tile's rows: not a power of two
  int64_t width = width_of_tile();
  int64_t across = (d.inner - 1) / width + 1, tiles = d.count / d.inner * across;
  // Where a tile's arrays begin in its room.
  int64_t residual_at = aligned(width * pitch * bytes),
          dst_at = residual_at + (d.residual != nullptr ? residual_at : 0),
          work_at = dst_at + (one_result ? 0 : aligned(width * pitch * result_bytes));
  bool shared = queue.threads > 1 && tiles < queue.threads;
  lockstep_queue of_tile = queue_of_tile();  // what a tile's rows are normalized on

  lockstep_queue queue_of_tile() const {
    lockstep_queue one = queue;
    if (!shared) one.threads = 1, one.interrupt = nullptr;
    return one;
  }
  int64_t width_of_tile() const {
    const int64_t line = 64 / std::min(bytes, result_bytes);
    const int64_t rows = queue.tuned->has.l2 / 2 / (pitch * (bytes + result_bytes));
    return std::min(std::max(rows / line * line, line), d.inner);
  }
  int64_t width_at(int64_t tile) const { return std::min(width, d.inner - tile % across * width); }

  // The tile as a call on contiguous rows.
  lockstep_call rows_of(int64_t tile, char* room) const {
    lockstep_call rows = call;
    lockstep_normalize_desc& r = rows.normalize;
    const int64_t first = tile / across * d.inner + tile % across * width;
    r.count = width_at(tile), r.inner = 1;
    r.src_stride = r.residual_stride = r.sum_stride = pitch;
    rows.src = room;
    if (d.residual != nullptr) r.residual = room + residual_at;
    if (d.sum != nullptr) r.sum = room + residual_at;
    if (d.given != nullptr) r.given = d.given + 2 * first;
    if (d.kind == LOCKSTEP_NORMALIZE_PICKED) r.labels = d.labels + first;
    rows.dst = room + dst_at;
    if (one_result)
      rows.dst = static_cast<char*>(call.dst) + first * d.dst_stride * result_bytes;
    else
      r.dst_stride = pitch;
    rows.workspace = room + work_at;
    rows.workspace_bytes = contiguous_bytes(&of_tile, &rows);
    return rows;
  }
  int64_t room_bytes() const { return work_at + aligned(static_cast<int64_t>(rows_of(0, nullptr).workspace_bytes)); }

  int64_t place(int64_t tile, int64_t stride) const { return tile / across * stride + tile % across * width; }
  using side = const void*;
  // Elements [first, last) of the tile's rows, from an array or to it.
  void bring(side from, int64_t stride, int64_t tile, int64_t first, int64_t last, char* rows) const {
    const char* at = static_cast<const char*>(from) + (place(tile, stride) + first * d.inner) * bytes;
    transpose_kernels_of(queue.kernels)
        .tile[__builtin_ctzll(static_cast<uint64_t>(bytes))](at, d.inner * bytes, rows + first * bytes, pitch * bytes,
                                                             last - first, width_at(tile), store::cached, {});
  }
  void take_back(const char* rows, int64_t size, int64_t tile, int64_t first, int64_t last, void* to,
                 int64_t stride) const {
    char* at = static_cast<char*>(to) + (place(tile, stride) + first * d.inner) * size;
    const auto whole_lines = [](int64_t n) { return n % 64 == 0; };
    const bool stream = d.count * d.length * (bytes + size) >= queue.tuned->rows.normalize_stream_bytes &&
                        whole_lines(d.inner * size) && whole_lines(width_at(tile) * size) &&
                        whole_lines(static_cast<int64_t>(reinterpret_cast<uintptr_t>(at)));
    const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
    kernels.tile[__builtin_ctzll(static_cast<uint64_t>(size))](rows + first * size, pitch * size, at, d.inner * size,
                                                               width_at(tile), last - first,
                                                               stream ? store::stream_lines : store::cached, {});
    if (stream) kernels.fence();
  }
  void bring_all(int64_t tile, int64_t first, int64_t last, char* room) const {
    bring(call.src, d.src_stride, tile, first, last, room);
    if (d.residual != nullptr) bring(d.residual, d.residual_stride, tile, first, last, room + residual_at);
  }
  void take_all_back(int64_t tile, int64_t first, int64_t last, char* room) const {
    if (!one_result) take_back(room + dst_at, result_bytes, tile, first, last, call.dst, d.dst_stride);
    if (d.sum != nullptr) take_back(room + residual_at, bytes, tile, first, last, d.sum, d.sum_stride);
  }

  void normalize(const lockstep_call& rows) const {
    lockstep_queue mine = of_tile;
    contiguous_rows(&mine, &rows);
  }
  void run(char* workspace) const {
    if (shared) {
      constexpr int64_t grain = 1024;  // elements of each row, of either type whole lines
      for (int64_t tile = 0; tile < tiles && !interrupted(queue); ++tile) {
        over_ranges(queue, d.length, grain, [&](int64_t a, int64_t b) { bring_all(tile, a, b, workspace); });
        normalize(rows_of(tile, workspace));
        over_ranges(queue, d.length, grain, [&](int64_t a, int64_t b) { take_all_back(tile, a, b, workspace); });
      }
      return;
    }
    const int64_t each = room_bytes();
    over_shares(queue, tiles, [&](int64_t tile, int thread) {
      char* const room = workspace + thread * each;
      bring_all(tile, 0, d.length, room);
      normalize(rows_of(tile, room));
      take_all_back(tile, 0, d.length, room);
    });
  }
};

}  // namespace

const char* not_columns(const lockstep_queue*, const lockstep_call* call) {
  return call->normalize.inner > 1 ? nullptr : "needs rows side by side, along an axis that is not the last";
}
const char* not_contiguous(const lockstep_queue*, const lockstep_call* call) {
  return call->normalize.inner > 1 ? "needs contiguous rows" : nullptr;
}

size_t columns_bytes(const lockstep_queue* queue, const lockstep_call* call) {
  const columns c{*queue, *call};
  return static_cast<size_t>(c.room_bytes()) * static_cast<size_t>(c.shared ? 1 : queue->threads);
}

lockstep_status launch_columns(lockstep_queue* queue, const lockstep_call* call) {
  if (const lockstep_status status = require_labels(call->normalize); status != LOCKSTEP_OK) return status;
  columns{*queue, *call}.run(static_cast<char*>(call->workspace));
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cpu
