// fused_runs.cpp - permutations of many short axes as transposes of longer runs.
// Idea    The fastest axis of src and those that follow it there are one run of src; the fastest axis of dst and those
//         that follow it there are one run of dst. So a matrix of the two runs is transposed by whole registers,
//         however short its axes are. Where a row of src and a row of dst begin comes from two tables.
// Moves   each byte in and out once.
// Limit   L1: the tables are two loads for four of data.
// Watch   an axis can be in one run only; the shorter run takes the next one.
// Source  this repository; figures in tests/results/tries.md.
#include "fused_runs.hpp"

#include <algorithm>

#include "parallel.hpp"

namespace lockstep::cpu {
namespace {

// The axis that goes on where `run` ends in src (dst), or -1.
int next_axis(const fused_axes& all, const bool* taken, int64_t bytes, const run_of_axes& run, bool in_src) {
  for (int k = 0; k < all.axes; ++k)
    if (!taken[k] && (in_src ? all.axis[k].src : all.axis[k].dst) == run.length * bytes &&
        run.length * all.axis[k].count <= fused_places)
      return k;
  return -1;
}

void list_places(const run_of_axes& run, bool of_src, int64_t* place) {
  place[0] = 0;
  int64_t length = 1;
  for (int k = 0; k < run.axes; ++k) {
    const int64_t step = of_src ? run.axis[k].src : run.axis[k].dst, count = run.axis[k].count;
    for (int64_t i = 1; i < count; ++i)
      for (int64_t l = 0; l < length; ++l) place[i * length + l] = place[l] + i * step;
    length *= count;
  }
}

// Pieces of about equal length, of whole registers.
int64_t pieces_of(int64_t length, int64_t most, int64_t whole) {
  const int64_t pieces = (length - 1) / most + 1, piece = (length - 1) / pieces + 1;
  return std::min(length, (piece + whole - 1) / whole * whole);
}

double moved_by(const fused_runs& runs) {
  return bytes_moved(runs.rest) * static_cast<double>(runs.along_src.length * runs.along_dst.length);
}

}  // namespace

std::optional<fused_runs> fuse_runs(const fused_axes& all, int64_t bytes) {
  fused_runs f;
  f.rest.log2_bytes = log2_of(static_cast<size_t>(bytes));
  bool taken[LOCKSTEP_MAX_RANK] = {};
  const auto extend = [&](run_of_axes& run, bool in_src) {
    const int k = next_axis(all, taken, bytes, run, in_src);
    if (k < 0) return false;
    taken[k] = true;
    run.axis[run.axes++] = all.axis[k];
    run.length *= all.axis[k].count;
    return true;
  };
  if (!extend(f.along_dst, false) || !extend(f.along_src, true)) return {};
  for (bool more = true; more;) {
    const bool src_first = f.along_src.length < f.along_dst.length;
    more = false;
    for (const bool in_src : {src_first, !src_first}) {
      run_of_axes& run = in_src ? f.along_src : f.along_dst;
      if (!more && run.length * bytes < fused_run) more = extend(run, in_src);
    }
  }
  for (int k = 0; k < all.axes; ++k)
    if (!taken[k]) f.rest.outer[f.rest.axes++] = all.axis[k];
  return f;
}

const char* not_fused(const fused_runs& runs) {
  return runs.along_src.axes + runs.along_dst.axes > 2 ? nullptr : "needs short axes that follow each other";
}

// In the caches longer runs are always better; memory asks for whole lines first.
bool fused_pays(const lockstep_queue& queue, const fused_runs& runs) {
  const int64_t shorter = std::min(runs.along_src.axis[0].count, runs.along_dst.axis[0].count) << runs.rest.log2_bytes;
  const bool large = moved_by(runs) >= streamed_from(queue);
  return shorter < (large ? queue.tuned->moves.fused_streamed_below : queue.tuned->moves.fused_cached_below);
}

void run_fused(const lockstep_queue& queue, const fused_runs& runs, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const int64_t bytes = int64_t{1} << runs.rest.log2_bytes, rows = runs.along_dst.length, cols = runs.along_src.length;
  int64_t from[fused_places], to[fused_places];
  list_places(runs.along_dst, true, from);
  list_places(runs.along_src, false, to);
  const int64_t height = pieces_of(rows, queue.tuned->moves.fused_height / bytes, 64 / bytes),
                width = pieces_of(cols, queue.tuned->moves.fused_width / bytes, 64 / bytes);
  const int64_t strips = (rows - 1) / height + 1, chunks = (cols - 1) / width + 1;
  const int64_t tasks = matrices_of(runs.rest) * strips * chunks;
  const bool alone = moved_by(runs) < static_cast<double>(queue.tuned->moves.one_thread_bytes);
  over_ranges(queue, tasks, alone ? tasks : 1, [&](int64_t first, int64_t last) {
    odometer at(runs.rest, src, dst, first / (strips * chunks));
    int64_t chunk = first / strips % chunks, strip = first % strips;
    for (int64_t task = first; task < last; ++task) {
      const int64_t row = strip * height, col = chunk * width;
      kernels.placed[runs.rest.log2_bytes](at.src + col * bytes, from + row, at.dst + row * bytes, to + col,
                                           std::min(height, rows - row), std::min(width, cols - col));
      if (++strip < strips) continue;
      strip = 0;
      if (++chunk < chunks) continue;
      chunk = 0;
      at.next();
    }
  });
}

}  // namespace lockstep::cpu
