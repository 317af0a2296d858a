// transpose_kernels.hpp - the micro-kernels of transpose and permute (isa/transpose.cpp).
// Leading dimensions are in bytes here and in tiles.hpp; E is the element's size.
#pragma once

#include <stddef.h>

#include "isa.hpp"
#include "tuning.hpp"

namespace lockstep::cpu {

// How a kernel writes. Non-temporal stores avoid reading each line of dst, but must fill
// whole lines: dst and its leading dimension are multiples of 64.
enum class store {
  cached,
  stream_lines,  // non-temporal where 64 bytes of a dst row are complete, cached in the tail
  stream_dense,  // dst rows of 16 or 32 bytes without gaps, aligned to their size: all non-temporal
};

// Whether rows ld bytes apart are crowded, that is, fall into few sets of the L1: 8 or more of a line's rows into one
// set, or rows that step by nearly its period. A crowded src is packed; a crowded dst needs high strips.
[[maybe_unused]] static constexpr bool crowded(int log2_bytes, int64_t ld) {
  const int64_t line = 64 >> log2_bytes, power = ld & -ld, past = ld % l1_period;
  const int64_t near = past < l1_period / 2 ? past : l1_period - past;
  return near < 64 || (power < l1_period ? power : l1_period) * line >= l1_ways_at_ease * l1_period;
}

// How a kernel reads.
struct reading {
  int64_t lines = 0;           // of each row, fetched before their use, where it does not pipe
  bool piped = false;          // block by block
  const char* then = nullptr;  // the address of the next matrix of this shape, only a hint
};

struct transpose_kernels {
  // dst[j][i] = src[i][j] for i < rows, j < cols; by log2(element bytes).
  void (*tile[5])(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, store how,
                  reading read);
  // The same for `runs` runs of cols columns that follow each other in a row of src and lie run_dst apart in dst; dst,
  // dst_ld, run_dst and a run's bytes are multiples of 64, and the lines of dst are written non-temporally.
  void (*joined[5])(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols,
                    int64_t runs, int64_t run_dst, const char* then);
  // dst[to[j] + i] = src[from[i] + j], through the cache; from and to are in bytes.
  void (*placed[5])(const char* src, const int64_t* from, char* dst, const int64_t* to, int64_t rows, int64_t cols);
  // Crowded strips of src are packed; else they are fetched into L2 and read in place.
  bool packs;
  // Copies bytes; with stream, the whole 64-byte lines of dst are written non-temporally.
  void (*copy)(const char* src, char* dst, int64_t bytes, bool stream);
  // Copies `count` runs of bytes whose starts are a step apart, through the cache.
  void (*copies)(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t bytes, int64_t count);
  // Makes this thread's non-temporal stores visible before anything that follows.
  void (*fence)();
};

}  // namespace lockstep::cpu
LOCKSTEP_HALVES_TABLES(transpose_kernels, transpose_kernels_of)
