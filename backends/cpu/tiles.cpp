// tiles.cpp - see tiles.hpp.
// Idea    A task is a strip: 32 to 256 rows of src by up to 4,096 columns, walked
//         along the columns, so that every row of src is a sequential stream and
//         each visit writes 128 bytes or more of a dst row. Each thread takes a
//         contiguous range of tasks over all matrices. For data in the caches it
//         takes columns of one matrix, so that no two threads write the same dst rows.
// Moves   each byte in and out once; large results by non-temporal stores.
// Limit   DRAM. Non-temporal writes are faster the more bytes of a page each visit
//         writes, which needs high strips; the sets of L1 and L2 limit their height.
// Watch   strips start where lines of dst start, because non-temporal stores need whole
//         lines; if dst rows start at different offsets within a line, dst is written
//         through the cache.
// Source  this file.
#include "tiles.hpp"

#include <algorithm>

#include "byte_kernels.hpp"
#include "parallel.hpp"

namespace lockstep::cpu {
namespace {

int64_t tall_strip_rows(const move_tuning& tuned, int log2_bytes, store how) {
  const int64_t rows = (how == store::cached ? tuned.tall_cached_bytes : tuned.tall_streamed_bytes) >> log2_bytes;
  return std::clamp(rows, tuned.least_strip, tuned.most_strip);
}

// Whether blocks of src are loaded while the block before is written. Packing pays only
// for crowded rows. Prefetching pays for all data in memory and, through the cache, for crowded rows of little more
// than an L2.
bool pipes(const lockstep_queue& queue, const tiles& t, store how) {
  const move_tuning& tuned = queue.tuned->moves;
  const double moved = bytes_moved(t);
  const bool packs = transpose_kernels_of(queue.kernels).packs;
  const bool crowds = crowded(t.log2_bytes, t.src_ld);
  if (packs) return how == store::stream_lines && t.rows > 8 && crowds;
  if (t.rows < tuned.pipe_least_rows || t.cols << t.log2_bytes < tuned.pipe_least_bytes) return false;
  if (how != store::cached) return how == store::stream_lines;
  return beyond_caches(queue, t) || (crowds && t.log2_bytes <= 2 && moved >= static_cast<double>(tuned.cached_bytes) &&
                                     moved < static_cast<double>(tuned.pipe_cached_below));
}

// Rows of a strip that is written through the cache by squares. They touch each line once, so neither the size nor the
// sets of L1 limit the height. 0: it is written by units.
int64_t squares_strip_rows(const move_tuning& tuned, bool packs, int log2_bytes, double moved) {
  if (packs) return 0;
  if (log2_bytes <= 1) return tuned.squares_strip;
  return log2_bytes == 2 && moved < static_cast<double>(tuned.cached_bytes) ? tuned.squares_strip_of_4 : 0;
}

// Whether every dst row of every matrix starts at the same offset within `bytes`.
bool same_phase(const tiles& t, int64_t bytes) {
  bool same = t.dst_ld % bytes == 0;
  for (int k = 0; k < t.axes; ++k) same = same && (t.outer[k].count == 1 || t.outer[k].dst % bytes == 0);
  return same;
}

store choose_store(const tiles& t, const char* dst, bool large) {
  const int64_t row_bytes = t.rows << t.log2_bytes;
  if (!large) return store::cached;
  if (row_bytes >= 64 && same_phase(t, 64)) return store::stream_lines;
  const bool dense = t.dst_ld == row_bytes && (row_bytes == 16 || row_bytes == 32);
  if (dense && same_phase(t, row_bytes) && reinterpret_cast<uintptr_t>(dst) % static_cast<uintptr_t>(row_bytes) == 0)
    return store::stream_dense;
  return store::cached;
}

// Rows of src that are short and far apart, but continue with the next index of an outer axis. joined_bytes of such a
// row are one task, and the other axes are walked within these columns. So rows are read in long pieces, and dst is
// written to pages that are still in the TLB. If the walk continues along the rows anyway, only crowded rows gain.
int joined_axis(const tiles& t) {
  const int64_t run = t.cols << t.log2_bytes;
  int along = 0;
  while (along < t.axes && (t.outer[along].src != run || t.outer[along].count == 1)) ++along;
  return along < t.axes ? along : -1;
}

// The size of pieces of `length`: at most `most`, whole lines, about equal, and a number that the threads share evenly.
int64_t even_pieces(int64_t length, int64_t most, int64_t line, int64_t threads) {
  const int64_t pieces = ((length - 1) / (most * threads) + 1) * threads, piece = (length - 1) / pieces + 1;
  return (piece + line - 1) / line * line;
}

// How one matrix is cut and walked.
struct walk {
  store how;
  bool piped, down;  // down: along the strips of a chunk, else along the chunks of a strip
  // Rows of a strip. Strips start `phase` elements early, where a line of dst starts, so the first one is short.
  int64_t height, phase, strips;
  int64_t width, chunks;  // columns of a task
  int64_t ahead;          // lines
};

walk choose_walk(const lockstep_queue& queue, const tiles& t, const char* dst, store how, double moved, bool piped) {
  const move_tuning& tuned = queue.tuned->moves;
  const bool packs = transpose_kernels_of(queue.kernels).packs;
  const int64_t bytes = int64_t{1} << t.log2_bytes, line = 64 / bytes, matrices = matrices_of(t);
  const bool tall = crowded(t.log2_bytes, t.dst_ld);
  // Rows of src that are close to each other share a few pages.
  const bool close = how != store::cached && t.src_ld <= tuned.close_pitch && t.src_ld >= t.cols * bytes;
  const bool by_columns =
      how == store::cached && matrices < queue.threads && t.cols >= queue.threads * line &&
      (moved <= static_cast<double>(std::max(tuned.own_columns_bytes, queue.threads * tuned.has.l2)) || tall);
  const int64_t own = how == store::cached && (by_columns || matrices >= queue.threads)
                          ? squares_strip_rows(tuned, packs, t.log2_bytes, moved)
                          : 0;
  walk w{};
  w.how = how;
  // The kernel cuts strips itself, so that the last block of one overlaps with the first of the next. So tasks are
  // whole rows, if there are enough strips for all threads.
  w.piped = piped;
  w.height = w.piped   ? piped_rows(bytes)
             : own > 0 ? even_pieces(t.rows, own, line, 1)
             : close   ? std::min(tuned.close_bytes >> t.log2_bytes, tuned.most_strip)
             : tall    ? tall_strip_rows(tuned, t.log2_bytes, how)
                       : tuned.strip_rows[t.log2_bytes];
  w.phase = how == store::stream_lines ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % 64) / bytes : 0;
  w.strips = (t.rows - 1 + w.phase) / w.height + 1;
  w.width = by_columns ? even_pieces(t.cols, tuned.task_cols, line, queue.threads)
            : w.piped && matrices * w.strips >= tuned.strips_a_thread * queue.threads ? t.cols
                                                                                      : tuned.task_cols;
  // Few strips of a flat matrix are cut into shorter tasks, so that every thread has some.
  const int64_t tasks = matrices * w.strips * ((t.cols - 1) / w.width + 1),
                wanted = tuned.strips_a_thread * queue.threads;
  if (queue.threads > 1 && tasks < wanted && !by_columns) {
    const int64_t most = std::max<int64_t>(1, t.cols / (tuned.least_task_lines * line));
    w.width = even_pieces(t.cols, tuned.task_cols, line, std::min(most, (wanted - 1) / (matrices * w.strips) + 1));
  }
  w.chunks = (t.cols - 1) / w.width + 1;
  w.down = by_columns || w.chunks == 1;
  w.ahead = moved < static_cast<double>(tuned.cached_bytes) ? 0
            : t.rows <= tuned.few_rows                      ? tuned.few_rows_ahead
                                                            : tuned.lines_ahead;
  return w;
}
}  // namespace

const char* not_joined(const lockstep_queue& queue, const tiles& t, const char* dst) {
  const int64_t run = t.cols << t.log2_bytes;
  if (joined_axis(t) < 0) return "needs an axis along which rows of src go on";
  if (run > queue.tuned->moves.joined_bytes / 2 || run % 64 != 0) return "needs short rows of whole lines";
  if (t.rows <= 8 || t.rows > piped_rows(1 << t.log2_bytes)) return "needs 9 to 128 rows, of 16-byte elements 32";
  const bool lines = t.rows << t.log2_bytes >= 64 && same_phase(t, 64) && reinterpret_cast<uintptr_t>(dst) % 64 == 0;
  return lines ? nullptr : "needs rows of dst that are whole lines";
}

bool joined_pays(const lockstep_queue& queue, const tiles& t, const char*) {
  return beyond_caches(queue, t) && (joined_axis(t) + 1 < t.axes || crowded(t.log2_bytes, t.src_ld));
}

void run_joined(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const int64_t run = t.cols << t.log2_bytes;
  const int along = joined_axis(t);
  const tiles::axis axis = t.outer[along];
  tiles rest = t;
  for (int k = along; k + 1 < rest.axes; ++k) rest.outer[k] = rest.outer[k + 1];
  --rest.axes;
  const int64_t runs = queue.tuned->moves.joined_bytes / run, chunks = (axis.count - 1) / runs + 1,
                matrices = matrices_of(rest);
  over_ranges(queue, chunks * matrices, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last;) {
      const int64_t start = task / matrices * runs, some = axis.count - start < runs ? axis.count - start : runs;
      const int64_t end = task / matrices * matrices + matrices;
      odometer at(rest, src + start * axis.src, dst + start * axis.dst, task % matrices);
      for (; task < last && task < end; ++task) {
        const odometer now = at;
        at.next();
        kernels.joined[t.log2_bytes](now.src, t.src_ld, now.dst, t.dst_ld, t.rows, t.cols, some, axis.dst,
                                     task + 1 < last && task + 1 < end ? at.src : nullptr);
      }
    }
    kernels.fence();
  });
}

namespace {
void walk_strips(const lockstep_queue& queue, const tiles& t, const char* src, char* dst, bool piped) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const auto tile = kernels.tile[t.log2_bytes];
  const int64_t bytes = int64_t{1} << t.log2_bytes, line = 64 / bytes, matrices = matrices_of(t);
  const double moved = bytes_moved(t);
  const store how = choose_store(t, dst, beyond_caches(queue, t));
  const walk w = choose_walk(queue, t, dst, how, moved, piped);
  const int64_t inners = w.down ? w.strips : w.chunks, outers = w.down ? w.chunks : w.strips;
  const int64_t tasks = matrices * inners * outers;

  const bool alone = moved < static_cast<double>(queue.tuned->moves.one_thread_bytes);
  over_ranges(queue, tasks, alone ? tasks : 1, [&](int64_t first, int64_t last) {
    int64_t inner = first % inners;
    int64_t outer = first / inners % outers;
    odometer at(t, src, dst, first / inners / outers);
    for (int64_t task = first; task < last; ++task) {
      int64_t strip = w.down ? inner : outer;
      int64_t row = strip * w.height - w.phase;
      if (w.piped && w.down) {  // all strips at once
        const int64_t more = (w.strips - strip < last - task ? w.strips - strip : last - task) - 1;
        strip = inner += more;
        task += more;
      }
      const int64_t below = (strip + 1) * w.height - w.phase, end = t.rows < below ? t.rows : below;
      const int64_t col = (w.down ? outer : inner) * w.width, cols = t.cols - col < w.width ? t.cols - col : w.width;
      const char* from = at.src + col * bytes;
      char* to = at.dst + col * t.dst_ld;
      if (row < 0) {  // up to the first whole line of dst
        const int64_t head = end < line - w.phase ? end : line - w.phase;
        tile(from, t.src_ld, to, t.dst_ld, head, cols, store::cached, {w.ahead});
        row = head;
      }
      const char* then = nullptr;
      if (w.piped && w.chunks == 1 && task + 1 < last) {
        odometer following = at;
        following.next();
        then = following.src;
      }
      const int64_t start = row * t.src_ld;
      if (row < end)
        tile(from + start, t.src_ld, to + row * bytes, t.dst_ld, end - row, cols, how, {w.ahead, w.piped, then});
      if (++inner < inners) continue;
      inner = 0;
      if (++outer < outers) continue;
      outer = 0;
      at.next();
    }
    kernels.fence();
  });
}

}  // namespace

const char* not_piped(const lockstep_queue&, const tiles& t, const char*) {
  if (t.rows <= 8) return "needs 9 rows";
  return t.cols << t.log2_bytes < 64 ? "needs rows of a line, 64 bytes" : nullptr;
}

bool pipe_pays(const lockstep_queue& queue, const tiles& t, const char* dst) {
  return pipes(queue, t, choose_store(t, dst, beyond_caches(queue, t)));
}

void run_piped(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  walk_strips(queue, t, src, dst, true);
}

void run_tiles(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  constexpr double few_bytes = 1024;  // planning a walk takes longer than moving them
  if (bytes_moved(t) <= few_bytes && matrices_of(t) == 1)
    return transpose_kernels_of(queue.kernels)
        .tile[t.log2_bytes](src, t.src_ld, dst, t.dst_ld, t.rows, t.cols, store::cached, {});
  walk_strips(queue, t, src, dst, false);
}

void run_best_method(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  for (const tiles_method& method : tiles_methods)
    if (method.refuses(queue, t, dst) == nullptr && method.pays(queue, t, dst)) return method.run(queue, t, src, dst);
}

// Runs of up to so many bytes go to a kernel together: a call for each takes longer than they do.
constexpr int64_t short_run = 512;

void run_copies(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.kernels);
  const move_tuning& tuned = queue.tuned->moves;
  const int64_t runs = matrices_of(t), run_bytes = t.cols << t.log2_bytes;
  const bool large = 2.0 * static_cast<double>(runs) * static_cast<double>(run_bytes) >= streamed_from(queue);
  // Runs of less than two lines are mostly partial lines, which the cache combines.
  const bool stream = large && run_bytes >= tuned.streamed_run;
  if (!stream && run_bytes <= short_run) {
    over_ranges(queue, runs, 1, [&](int64_t first, int64_t last) {
      odometer at(t, src, dst, first);
      const tiles::axis fastest = t.axes > 0 ? t.outer[t.axes - 1] : tiles::axis{};
      for (int64_t some; first < last; first += some, at.next(some)) {
        some = std::min(at.along(), last - first);
        kernels.copies(at.src, fastest.src, at.dst, fastest.dst, run_bytes, some);
      }
    });
    return;
  }
  const int64_t piece = tuned.copy_bytes;
  const int64_t pieces = (run_bytes - 1) / piece + 1;
  over_ranges(queue, runs * pieces, 1, [&, piece, run_bytes, fetched = tuned.fetched_run](int64_t first, int64_t last) {
    int64_t part = first % pieces;
    odometer at(t, src, dst, first / pieces);
    for (int64_t task = first; task < last; ++task) {
      const int64_t start = part * piece, some = run_bytes - start < piece ? run_bytes - start : piece;
      const char* from = at.src + start;
      char* to = at.dst + start;
      if (++part == pieces) {
        part = 0;
        at.next();
        if (task + 1 < last && run_bytes <= fetched)
          for (int64_t k = 0; k < run_bytes; k += 64) __builtin_prefetch(at.src + k, 0, 3);
      }
      kernels.copy(from, to, some, stream);
    }
    kernels.fence();
  });
}

void run_pixels(const lockstep_queue& queue, const tiles& t, int64_t bytes, const char* src, char* dst) {
  const auto pixels = byte_kernels_of(queue.kernels).pixels;
  const int64_t task_cols = queue.tuned->moves.task_cols;
  const int64_t height = std::clamp<int64_t>(queue.tuned->moves.pixel_bytes / bytes, 8, pixel_rows);
  const int64_t strips = (t.rows - 1) / height + 1, chunks = (t.cols - 1) / task_cols + 1;
  over_ranges(queue, matrices_of(t) * strips * chunks, 1, [&](int64_t first, int64_t last) {
    int64_t chunk = first % chunks, strip = first / chunks % strips;
    odometer at(t, src, dst, first / chunks / strips);
    for (int64_t task = first; task < last; ++task) {
      const int64_t row = strip * height, rows = t.rows - row < height ? t.rows - row : height;
      const int64_t col = chunk * task_cols, cols = t.cols - col < task_cols ? t.cols - col : task_cols;
      pixels(at.src + row * t.src_ld + col * bytes, t.src_ld, at.dst + col * t.dst_ld + row * bytes, t.dst_ld, rows,
             cols, bytes);
      if (++chunk < chunks) continue;
      chunk = 0;
      if (++strip < strips) continue;
      strip = 0;
      at.next();
    }
  });
}

}  // namespace lockstep::cpu
