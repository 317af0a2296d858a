// tiles.cpp - see tiles.hpp.
// Idea    A task is a strip: 32 to 256 rows of src by up to 4,096 columns, walked
//         along the columns, so that every row of src is a sequential stream and
//         a dst row gets 128 bytes or more at a visit. Each thread takes a
//         contiguous range of tasks over all matrices; in the caches columns of
//         one, so that no two write the same rows of dst.
// Moves   each byte in and out once; large results go around the cache.
// Limit   DRAM: non-temporal writes of 64, 128, 256, 512 bytes a page visit reach
//         12, 25, 50 and 95 GB/s on one Zen 5 core, reads 27-40 at best, so the
//         strip wants height; the sets of L1 and L2 want it low.
// Watch   strips begin where lines of dst begin, or the non-temporal stores would
//         tear lines; a dst whose rows lie at different offsets within a line is
//         written through the cache.
// Source  this file.
#include "tiles.hpp"

#include "byte_kernels.hpp"
#include "mutant.hpp"
#include "parallel.hpp"

namespace lockstep::cpu {
namespace {

// Rows of a strip by log2(element bytes). f32 on one thread, strips of 32, 64, 128, 256: 10000x7001 13.9, 17.2, 17.9,
// 17.4 ms; 1000 squared 80, 83, 89, 91 us.
constexpr int64_t strip_rows[] = {256, 64, 32, 32, 32};
// Columns of a task: long enough for rows to be streams, short enough to share out a flat matrix.
constexpr int64_t task_cols = 4096;
// Lines of each row fetched ahead. None below cached_bytes (256 squared f32: 4.2 us, with 2 or 4 lines 4.7). Few rows
// are few streams: 8x2000000 f32 with 0, 4, 8, 16, 32 lines 2.57, 3.78, 2.83, 2.56, 2.47 ms.
constexpr int64_t lines_ahead = 4, few_rows_ahead = 32;

// Where the rows of dst crowd into few sets (and pages): f32, one thread, strips of 32, 64, 128, 256 rows
// 1024 squared 281 (with 512-byte packing, the others with 256), 202, 117, 147 us; 4096 squared, streamed but not
// piped, 5.6, 4.6, 4.8, 5.4 ms. 16-byte elements at 512 squared were better with 64 rows (165 against 188 us).
int64_t tall_strip_rows(int log2_bytes, store how) {
  const int64_t rows = (how == store::cached ? 512 : 256) >> log2_bytes;
  return rows > 256 ? 256 : rows < 32 ? 32 : rows;
}

// Rows of src that follow each other closely are few pages, however many: 512 bytes of a dst row a visit. f32, one
// thread, streamed, strips of 32, 64, 128: 0312 of (32,112,112,64) 8.3, 6.3, 5.9 ms; 0132 of (64,96,128,160) 35, 33.7,
// 30.7 ms.
constexpr int64_t close_rows = 1024;

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

// Rows of src that are short and far apart, but go on with the next index of an outer axis: 16 KiB of a row are one
// task, and the other axes are walked within these columns, so that rows are read in long pieces and lines of dst fill
// pages that are still known. 3210 of (64,96,128,160) f32, rows of 640 bytes, on one thread: 52.1 ms a matrix at a
// time, 39.7 so (tasks of 2.5 to 80 KiB 45.8, 41.9, 42.5, 43.4, 41.4, 36.8 in a noisier run). Where the walk goes on
// along the rows anyway only crowded ones gain: 0321 of (64,96,127,160) 37.5 ms, 40.5 joined.
constexpr int64_t joined_bytes = 16 << 10;

bool run_joined(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.level);
  const int64_t run = t.cols << t.log2_bytes;
  int along = 0;
  while (along < t.axes && (t.outer[along].src != run || t.outer[along].count == 1)) ++along;
  if (along == t.axes || run > joined_bytes / 2 || run % 64 != 0 || t.rows <= 8 ||
      t.rows > piped_rows(1 << t.log2_bytes) || (along + 1 == t.axes && !kernels.crowded(t.log2_bytes, t.src_ld)))
    return false;
  const tiles::axis axis = t.outer[along];
  tiles rest = t;
  for (int k = along; k + 1 < rest.axes; ++k) rest.outer[k] = rest.outer[k + 1];
  --rest.axes;
  const int64_t runs = joined_bytes / run, chunks = (axis.count - 1) / runs + 1, matrices = matrices_of(rest);
  over_ranges(queue, chunks * matrices, 1, [&](int64_t first, int64_t last) {
    for (int64_t task = first; task < last;) {
      const int64_t start = task / matrices * runs, some = axis.count - start < runs ? axis.count - start : runs;
      const int64_t end = task / matrices * matrices + matrices;
      odometer at(rest, src + start * axis.src,
                  dst + (LOCKSTEP_MUTANT("permute_joined_chunks_on_the_first") ? 0 : start * axis.dst),
                  task % matrices);
      for (; task < last && task < end; ++task) {
        const odometer now = at;
        at.next();
        kernels.joined[t.log2_bytes](now.src, t.src_ld, now.dst, t.dst_ld, t.rows, t.cols, some, axis.dst,
                                     task + 1 < last && task + 1 < end ? at.src : nullptr);
      }
    }
    kernels.fence();
  });
  return true;
}

// Below one_thread_bytes of src and dst together a team costs more than it saves (f32, one and two threads: 128 squared
// 1.4 and 1.8 to 2.2 us, 200 squared 3.4 and 3.1). Up to own_columns_bytes, and further where rows of dst crowd, each
// thread takes columns of src, which are rows of dst: where threads share rows of dst, what one fetches ahead of its
// stores the other writes. Two threads on two Zen 4 cores, strips shared out and columns: f32 100x300 6.7 and 2.7 us,
// 256 squared 4.7 and 3.8, 512 squared 26 and 19, 1024 squared 97 and 88; bytes 512 squared 15.4 and 8.1; beyond, f32
// 1000 squared 68 and 70.
constexpr double one_thread_bytes = 256 << 10, own_columns_bytes = 2 << 20;

// At most `most` of `length`, in pieces of whole lines and much the same size, whose number the threads share evenly.
int64_t even_pieces(int64_t length, int64_t most, int64_t line, int64_t threads) {
  const int64_t pieces = ((length - 1) / (most * threads) + 1) * threads, piece = (length - 1) / pieces + 1;
  return (piece + line - 1) / line * line;
}

// How one matrix is cut and walked.
struct walk {
  store how;
  bool piped, down;  // down: along the strips of a chunk, else along the chunks of a strip
  // Rows of a strip. Strips begin `phase` elements early, where a line of dst begins: the first one is short.
  int64_t height, phase, strips;
  int64_t width, chunks;  // columns of a task
  int64_t ahead;          // lines
};

walk choose_walk(const lockstep_queue& queue, const tiles& t, const char* dst, store how, double moved) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.level);
  const int64_t bytes = int64_t{1} << t.log2_bytes, line = 64 / bytes, matrices = matrices_of(t);
  const bool tall = kernels.crowded(t.log2_bytes, t.dst_ld);
  const bool close = how != store::cached && t.src_ld <= close_rows && t.src_ld >= t.cols * bytes;
  const bool by_columns = how == store::cached && matrices < queue.threads && t.cols >= queue.threads * line &&
                          (moved <= own_columns_bytes || tall);
  const int64_t own =
      how == store::cached && (by_columns || matrices >= queue.threads) ? kernels.strip_rows(t.log2_bytes, moved) : 0;
  walk w{};
  w.how = how;
  // The kernel cuts strips itself, so that one's last block meets the next one's first. Whole rows then, as long as
  // there are strips enough to share out.
  w.piped = kernels.pipes(t.log2_bytes, t.src_ld, t.rows, t.cols, how, moved);
  w.height = w.piped   ? piped_rows(bytes)
             : own > 0 ? even_pieces(t.rows, own, line, 1)
             : close   ? (t.log2_bytes == 0 ? 256 : 512 >> t.log2_bytes)
             : tall    ? tall_strip_rows(t.log2_bytes, how)
                       : strip_rows[t.log2_bytes];
  w.phase = how == store::stream_lines ? static_cast<int64_t>(reinterpret_cast<uintptr_t>(dst) % 64) / bytes : 0;
  w.strips = (t.rows - 1 + w.phase) / w.height + 1;
  w.width = by_columns                                            ? even_pieces(t.cols, task_cols, line, queue.threads)
            : w.piped && matrices * w.strips >= 8 * queue.threads ? t.cols
                                                                  : task_cols;
  w.chunks = (t.cols - 1) / w.width + 1;
  w.down = by_columns || w.chunks == 1;
  w.ahead = moved < cached_bytes ? 0 : t.rows <= 8 ? few_rows_ahead : lines_ahead;
  return w;
}

}  // namespace

void run_tiles(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.level);
  const auto tile = kernels.tile[t.log2_bytes];
  const int64_t bytes = int64_t{1} << t.log2_bytes, line = 64 / bytes, matrices = matrices_of(t);
  const double moved = 2.0 * static_cast<double>(matrices * t.rows * t.cols) * static_cast<double>(bytes);
  if (run_narrow(queue, t, src, dst, moved >= stream_bytes)) return;
  const store how = choose_store(t, dst, moved >= stream_bytes);
  const bool whole_lines = how == store::stream_lines && reinterpret_cast<uintptr_t>(dst) % 64 == 0;
  if (whole_lines && run_joined(queue, t, src, dst)) return;
  const walk w = choose_walk(queue, t, dst, how, moved);
  const int64_t inners = w.down ? w.strips : w.chunks, outers = w.down ? w.chunks : w.strips;
  const int64_t tasks = matrices * inners * outers;

  over_ranges(queue, tasks, moved < one_thread_bytes ? tasks : 1, [&](int64_t first, int64_t last) {
    int64_t inner = LOCKSTEP_MUTANT("transpose_share_begins_with_a_chunk") ? 0 : first % inners;
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
      char* to = at.dst + col * (LOCKSTEP_MUTANT("transpose_pitch_of_src_in_dst") ? t.src_ld : t.dst_ld);
      if (row < 0) {  // up to the first whole line of dst
        const int64_t head = end < line - w.phase ? end : line - w.phase;
        tile(from, t.src_ld, to, t.dst_ld, head - (LOCKSTEP_MUTANT("transpose_stream_head_off_by_one") ? 1 : 0), cols,
             store::cached, {w.ahead});
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
        tile(from + (LOCKSTEP_MUTANT("transpose_int32_offset") ? static_cast<int32_t>(start) : start), t.src_ld,
             to + row * bytes, t.dst_ld, end - row, cols, how, {w.ahead, w.piped, then});
      if (++inner < inners) continue;
      inner = 0;
      if (++outer < outers) continue;
      outer = 0;
      at.next();
    }
    kernels.fence();
  });
}

void run_copies(const lockstep_queue& queue, const tiles& t, const char* src, char* dst) {
  const transpose_kernels& kernels = transpose_kernels_of(queue.level);
  const int64_t runs = matrices_of(t), run_bytes = t.cols << t.log2_bytes;
  const bool large = 2.0 * static_cast<double>(runs) * static_cast<double>(run_bytes) >= stream_bytes;
  // Runs below two lines are mostly edges: the cache joins them.
  const bool stream = large && run_bytes >= 128;
  constexpr int64_t piece = 1 << 18;
  const int64_t pieces = (run_bytes - 1) / piece + 1;
  over_ranges(queue, runs * pieces, 1, [&](int64_t first, int64_t last) {
    int64_t part = first % pieces;
    odometer at(t, src, dst, first / pieces);
    for (int64_t task = first; task < last; ++task) {
      const int64_t start = part * piece, some = run_bytes - start < piece ? run_bytes - start : piece;
      const char* from = at.src + start;
      char* to = at.dst + start;
      if (++part == pieces) {
        part = 0;
        at.next();
        if (task + 1 < last && run_bytes <= 4096)
          for (int64_t k = 0; k < run_bytes; k += 64) __builtin_prefetch(at.src + k, 0, 3);
      }
      kernels.copy(from, to, some, stream);
    }
    kernels.fence();
  });
}

void run_pixels(const lockstep_queue& queue, const tiles& t, int64_t bytes, const char* src, char* dst) {
  const auto pixels = byte_kernels_of(queue.level).pixels;
  // 192 bytes of a dst row a visit, as far as the kernel goes.
  const int64_t height = bytes <= 3 ? pixel_rows : bytes <= 24 ? 192 / bytes : 8;
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
