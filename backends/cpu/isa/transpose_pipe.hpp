// transpose_pipe.hpp - how strips of src come in, block by block, while the block before is
// transposed: copied into a packed block, or on Zen 4 fetched into L2 and read in place.
#pragma once

#include "../transpose_kernels.hpp"
#include "../tuning.hpp"
#include "mutant.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// The walk: strips of `height` rows within `chunk` bytes of the columns, cut into blocks. While one block is transposed
// the next comes in, four lines for four that go out, through all strips: reads of memory overlap the writes. Evenly:
// with 16 lines at once, or one, 4096 squared f32 took 1.2 and 1.7 times as long (of a burst of prefetches some are
// dropped).
struct pipe {
  static constexpr bool packs = !tuned.halves;
  static constexpr int64_t bytes = tuned.pipe_bytes, ld = bytes + 64;  // of a block's row; of its copy
  struct block {
    int64_t row, at;  // of src; at in bytes
  };
  const char* src;
  int64_t src_ld, rows, row_bytes, height, chunk;
  const char* then;  // where the next matrix of this shape begins: a hint, or null

  int64_t start_of_chunk(block b) const { return b.at - b.at % chunk; }
  int64_t end_of_chunk(block b) const {
    const int64_t start = start_of_chunk(b);
    return row_bytes - start < chunk ? row_bytes : start + chunk;
  }
  block after(block b) const {
    if (b.at + bytes < end_of_chunk(b)) return {b.row, b.at + bytes};
    if (b.row + height < rows) return {b.row + height, start_of_chunk(b)};
    return {0, LOCKSTEP_MUTANT("transpose_pipe_ends_with_a_chunk") ? row_bytes : end_of_chunk(b)};
  }
  bool done(block b) const { return b.at >= row_bytes; }
  const char* start(block b) const { return src + b.row * src_ld + b.at; }
  int64_t rows_of(block b) const { return rows - b.row < height ? rows - b.row : height; }
  int64_t width_of(block b) const { return end_of_chunk(b) - b.at < bytes ? end_of_chunk(b) - b.at : bytes; }
};

#if !defined(LOCKSTEP_ISA_AVX512_HALVES)
// All of a strip, then the next: 4096 squared took the same in chunks of 256 to 2,048 columns.
template <int E, store how>
constexpr int64_t pipe_rows(int64_t, int64_t, bool) {
  return piped_rows(E);
}
constexpr int64_t pipe_cols(int64_t, bool) { return int64_t{1} << 40; }

// A block on its way in: it is copied, for the sake of rows that crowd into few sets of L1 and L2.
struct incoming {
  static constexpr int64_t rows_ahead = tuned.pipe_ahead;
  const char *from, *ahead, *after;  // ahead and after, the block after this one, are hints and may lie outside src
  int64_t src_ld;
  char* to;
  int64_t rows, width, at = 0;  // rows to come; none: the matrix is done

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
// Rows of dst 16, 32 or 64 KiB apart, of whose pages the sets of the L2 TLB hold 768, 384 and 192; closer ones fit.
constexpr int64_t apart(int64_t ld) { return ld & -ld; }
constexpr bool few_sets(int64_t dst_ld) {
  return apart(dst_ld) >= tuned.few_sets_from && apart(dst_ld) <= tuned.few_sets_to;
}
// Rows of a strip on Zen 4, one thread: a visit of a dst row in DRAM wants 128 bytes (mixed with reads of memory 64,
// 128 and 256 bytes gave 18, 26 and 30 GB/s, a copy 38), through the cache 256 (7000x10001 f32 53 ms by 32 rows, 41 by
// 64). Rows a multiple of 512 KiB apart have one set of the L2 TLB, of 24 ways: 3210 of (64,96,128,160) f32 took 117,
// 69 and 58 ms by 64, 32 and 16 rows. Where few sets are left a visit costs more and 64 rows are better, but for bytes,
// as long as rows of src leave room for their own pages (32 and 64 rows: 4096 squared f32 4.3 and 3.9 ms, f64 8.3 and
// 7.2, 16-byte 17.2 and 15.6, 8192 squared of 2 bytes 13.0 and 11.3; f32 4096x32768 37 and 51; 16384 squared of bytes
// by 64 and 128 28.9 and 30.0). lines: squares read whole lines; where they do not, rows are read twice as often and
// only 2 bytes gain (f64 4096x3001 6.3 and 7.2, f32 8192x3001 8.0 and 8.7).
template <int E, store how>
constexpr int64_t pipe_rows(int64_t src_ld, int64_t dst_ld, bool lines) {
  const bool few = E > 1 && few_sets(dst_ld) && apart(src_ld) <= tuned.few_sets_to;
  const bool tall = how == store::cached || (few && (lines || E == 2));
  const int64_t rows = tall                                  ? tuned.tall_strip
                       : apart(src_ld) >= tuned.one_set_from ? tuned.low_strip
                                                             : tuned.usual_strip;
  return rows < 64 / E ? 64 / E : rows;
}
// Columns that are walked down before those beside them, each of them a page of dst, of the 3,072 that the L2 TLB
// knows: 10000x7001 f32 31 ms without, 20 by 2,048, 22 by 1,024 (two threads 37, 31, 18); 2048 squared 1.13, 1.14,
// 0.92. Where few sets are left two thirds of what they hold, with 64 rows: 8192 squared f32 19.5 ms by 512 and 17.1
// by 256, 16384 squared 106, 89 and 87 by 512, 256 and 128 (102 by 32 rows of 1,024; two threads 55, now 47). Rows that
// are no whole lines want wider ones (16384x3001 16.3 ms by 1,024, 18.2 by 512, 20.6 by 128 and 64 rows).
constexpr int64_t pipe_cols(int64_t dst_ld, bool lines) {
  if (!few_sets(dst_ld) || (!lines && apart(dst_ld) == tuned.few_sets_to)) return tuned.chunk_cols;
  return lines ? tuned.chunk_bytes / apart(dst_ld) : tuned.short_chunk_cols;
}

// A block on its way into L2, where it is read in place. A line of each of 16 rows by turns: the hardware follows so
// many streams (8192 squared read in strips of 16 rows 9.6 ms, of 20 14.1, of 32 16.1), and prefetches into L2 do not
// wait for the 24 misses of an L1 (16 rows by turns, a block ahead, 10 to 12 ms; into L1, row by row, 20).
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
