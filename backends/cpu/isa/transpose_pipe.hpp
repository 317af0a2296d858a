// transpose_pipe.hpp - loads strips of src block by block while the block before is transposed:
// copied into a packed block, or on Zen 4 prefetched into L2 and read from src.
#pragma once

#include "../transpose_kernels.hpp"
#include "../tuning.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// The walk: strips of `height` rows within `chunk` bytes of the columns, cut into blocks. While one block is transposed
// the next is loaded, four lines for every four that are written, so that reads and writes of memory overlap. More
// lines at once are slower, because the hardware drops prefetches that come in bursts; fewer are slower too.
struct pipe {
  static constexpr bool packs = !tuned.halves;
  static constexpr int64_t bytes = tuned.pipe_bytes, ld = bytes + 64;  // of a block's row; of its copy
  struct block {
    int64_t row, at;  // of src; at in bytes
  };
  const char* src;
  int64_t src_ld, rows, row_bytes, height, chunk;
  const char* then;  // the address of the next matrix of this shape, only a hint, or null

  int64_t start_of_chunk(block b) const { return b.at - b.at % chunk; }
  int64_t end_of_chunk(block b) const {
    const int64_t start = start_of_chunk(b);
    return row_bytes - start < chunk ? row_bytes : start + chunk;
  }
  block after(block b) const {
    if (b.at + bytes < end_of_chunk(b)) return {b.row, b.at + bytes};
    if (b.row + height < rows) return {b.row + height, start_of_chunk(b)};
    return {0, end_of_chunk(b)};
  }
  bool done(block b) const { return b.at >= row_bytes; }
  const char* start(block b) const { return src + b.row * src_ld + b.at; }
  int64_t rows_of(block b) const { return rows - b.row < height ? rows - b.row : height; }
  int64_t width_of(block b) const { return end_of_chunk(b) - b.at < bytes ? end_of_chunk(b) - b.at : bytes; }
};

#if !defined(LOCKSTEP_ISA_AVX512_HALVES)
// One strip after the other; chunks of columns gain nothing here.
template <int E, store how>
constexpr int64_t pipe_rows(int64_t, int64_t, bool) {
  return piped_rows(E);
}
constexpr int64_t pipe_cols(int64_t, bool) { return int64_t{1} << 40; }

// A block being loaded. It is copied, because crowded rows share few sets of L1 and L2.
struct incoming {
  static constexpr int64_t rows_ahead = tuned.pipe_ahead;
  const char *from, *ahead, *after;  // ahead and after (the next block) are hints and may be outside src
  int64_t src_ld;
  char* to;
  int64_t rows, width, at = 0;  // rows: still to load; 0 when the matrix is done

  incoming(const pipe& p, pipe::block b, char* packed)
      : from(p.start(b)),
        after(p.start(p.after(b))),
        src_ld(p.src_ld),
        to(packed),
        rows(p.done(b) ? 0 : p.rows_of(b)),
        width(p.width_of(b)) {
    look_ahead();
  }
  void look_ahead() { ahead = rows > rows_ahead ? from + rows_ahead * src_ld : after + (rows_ahead - rows) * src_ld; }
  inline __attribute__((always_inline)) void lines(int64_t n) {
    for (; n > 0 && rows > 0; --n) {
      __builtin_prefetch(ahead + at, 0, 3);
      __builtin_memcpy(to + at, from + at, 64);
      if ((at += 64) < width) continue;
      at = 0;
      --rows;
      from += src_ld;
      to += pipe::ld;
      look_ahead();
    }
  }
};
#else
// Whether rows of dst are so far apart that their pages fall into few sets of the L2 TLB.
constexpr int64_t apart(int64_t ld) { return ld & -ld; }
constexpr bool few_sets(int64_t dst_ld) {
  return apart(dst_ld) >= tuned.few_sets_from && apart(dst_ld) <= tuned.few_sets_to;
}
// Rows of a strip on Zen 4. Each visit of a dst row should write 128 bytes, or 256 through the cache. Rows a multiple
// of 512 KiB apart share one set of the L2 TLB, so strips are low. If dst has few sets, visits cost more and strips are
// high, except for bytes, and only if the pages of src's rows have room too. lines: squares read whole lines; otherwise
// rows are read twice as often, and high strips gain only for 2 bytes. Figures: tests/results/tries.md.
template <int E, store how>
constexpr int64_t pipe_rows(int64_t src_ld, int64_t dst_ld, bool lines) {
  const bool few = E > 1 && few_sets(dst_ld) && apart(src_ld) <= tuned.few_sets_to;
  const bool tall = how == store::cached || (few && (lines || E == 2));
  const int64_t rows = tall                                  ? tuned.tall_strip
                       : apart(src_ld) >= tuned.one_set_from ? tuned.low_strip
                                                             : tuned.usual_strip;
  return rows < 64 / E ? 64 / E : rows;
}
// Columns of a chunk, which is walked through all strips before the next chunk. Each column is a page of dst, so the
// chunk's pages should fit the L2 TLB; if dst has few sets, two thirds of them. Rows that are not whole lines need
// wider chunks.
constexpr int64_t pipe_cols(int64_t dst_ld, bool lines) {
  if (!few_sets(dst_ld) || (!lines && apart(dst_ld) == tuned.few_sets_to)) return tuned.chunk_cols;
  return lines ? tuned.chunk_bytes / apart(dst_ld) : tuned.short_chunk_cols;
}

// A block being prefetched into L2. It takes a line of each of 16 rows in alternation, because the hardware follows
// that many streams. L2 and not L1, because an L1 can wait for only 24 misses at a time.
struct incoming {
  static constexpr int64_t group = tuned.pipe_group;
  const char* from;
  int64_t src_ld, rows, width, at = 0, row = 0;

  incoming(const pipe& p, pipe::block b, char*) : from(p.start(b)), src_ld(p.src_ld) {
    if (p.done(b)) {
      from = p.then;
      b = {0, 0};
    }
    rows = from == nullptr ? 0 : p.rows_of(b);
    width = p.width_of(b);
  }
  inline __attribute__((always_inline)) void lines(int64_t n) {
    for (; n > 0 && rows > 0; n -= 4) {
#pragma GCC unroll 4
      for (int k = 0; k < 4; ++k) __builtin_prefetch(from + at + (row + k) * src_ld, 0, 2);
      row = (row + 4) % group;
      if (row > 0 || (at += 64) < width) continue;
      at = 0;
      rows -= group;
      from += group * src_ld;
    }
  }
};
#endif

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
