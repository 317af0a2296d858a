// transpose_kernels.hpp - what isa/transpose.cpp offers to transpose and permute.
// Leading dimensions are in bytes here and in tiles.hpp; E is the element's size.
#pragma once

#include <stddef.h>

#include "isa.hpp"

namespace lockstep::cpu {

// How a kernel writes. Non-temporal stores spare the read of each line of dst,
// but must fill whole lines: dst and its leading dimension are multiples of 64.
enum class store {
  cached,
  stream_lines,  // non-temporal where 64 bytes of a dst row are complete, cached in the tail
  stream_dense,  // dst rows of 16 or 32 bytes without gaps, aligned to their size: all non-temporal
};

// Rows of a strip that a kernel pipes through two packed blocks, which take 278 KB of stack: callers may have threads
// of 512 KiB. f64: 4096 squared took 10.50 ms with 64 rows and 10.26 with 128 (two threads 5.61 and 5.49); 16-byte
// elements were no faster with 64 than with 32. 1- and 2-byte elements would gain 7 and 3 % from 256 (557 KB).
constexpr int64_t piped_rows(int64_t bytes) { return bytes <= 8 ? 128 : 32; }

// src and dst together: below cached_bytes nothing is fetched ahead, from stream_bytes on dst goes around the cache.
constexpr double cached_bytes = 1 << 20, stream_bytes = 16 << 20;

// How a kernel reads.
struct reading {
  int64_t lines = 0;           // of each row, fetched before their use, where it does not pipe
  bool piped = false;          // block by block, as pipes() says
  const char* then = nullptr;  // where the next matrix of this shape begins: a hint
};

struct transpose_kernels {
  // dst[j][i] = src[i][j] for i < rows, j < cols; by log2(element bytes).
  void (*tile[5])(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, store how,
                  reading read);
  // The same for `runs` runs of cols columns that follow each other in a row of src and lie run_dst apart in dst; dst,
  // dst_ld, run_dst and a run's bytes are multiples of 64, and the lines of dst are written non-temporally.
  void (*joined[5])(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols,
                    int64_t runs, int64_t run_dst, const char* then);
  // Whether rows ld bytes apart fall into few sets of the caches: such a src is packed, such a dst wants tall strips.
  bool (*crowded)(int log2_bytes, int64_t ld);
  // Whether strips of such a src should come in block by block; moved: bytes of src and dst in all.
  bool (*pipes)(int log2_bytes, int64_t ld, int64_t rows, int64_t cols, store how, double moved);
  // Rows of a strip that goes through the cache, where this level wants its own; else 0.
  int64_t (*strip_rows)(int log2_bytes, double moved);
  // Copies bytes; with stream, the whole 64-byte lines of dst are written non-temporally.
  void (*copy)(const char* src, char* dst, int64_t bytes, bool stream);
  // Makes this thread's non-temporal stores visible before anything that follows.
  void (*fence)();
};

}  // namespace lockstep::cpu
LOCKSTEP_ZEN4_TABLES(transpose_kernels, transpose_kernels_of)
