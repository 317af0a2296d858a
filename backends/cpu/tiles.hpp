// tiles.hpp - used by transpose and permute: many 2-D transposes of one shape, cut into
// strips that the queue's threads walk.
#pragma once

#include <algorithm>

#include "queue.hpp"
#include "transpose_kernels.hpp"

namespace lockstep::cpu {

// dst[j][i] = src[i][j] for i < rows, j < cols, once for every index of the
// outer axes (axis 0 slowest). All strides are in bytes.
struct tiles {
  struct axis {
    int64_t count, src, dst;
  };
  int log2_bytes = 0;  // of an element
  int64_t rows = 1, cols = 1;
  int64_t src_ld = 0, dst_ld = 0;
  int axes = 0;
  axis outer[LOCKSTEP_MAX_RANK] = {};
};

// A position on the outer axes, advanced like an odometer.
struct odometer {
  const tiles& t;
  const char* src;
  char* dst;
  int64_t at[LOCKSTEP_MAX_RANK] = {};

  odometer(const tiles& walk, const char* first_src, char* first_dst, int64_t index)
      : t(walk), src(first_src), dst(first_dst) {
    for (int k = t.axes - 1; k >= 0; --k) {
      at[k] = index % t.outer[k].count;
      index /= t.outer[k].count;
      src += at[k] * t.outer[k].src;
      dst += at[k] * t.outer[k].dst;
    }
  }
  // How many matrices are left along the fastest axis, this one included.
  int64_t along() const { return t.axes == 0 ? 1 : t.outer[t.axes - 1].count - at[t.axes - 1]; }
  void next(int64_t n) {  // n of along()
    if (t.axes > 0 && n > 1) {
      const int last = t.axes - 1;
      src += (n - 1) * t.outer[last].src, dst += (n - 1) * t.outer[last].dst, at[last] += n - 1;
    }
    next();
  }
  void next() {
    for (int k = t.axes - 1; k >= 0; --k) {
      src += t.outer[k].src;
      dst += t.outer[k].dst;
      if (++at[k] < t.outer[k].count) return;
      at[k] = 0;
      src -= t.outer[k].count * t.outer[k].src;
      dst -= t.outer[k].count * t.outer[k].dst;
    }
  }
};

inline int64_t matrices_of(const tiles& t) {
  int64_t matrices = 1;
  for (int k = 0; k < t.axes; ++k) matrices *= t.outer[k].count;
  return matrices;
}

inline double bytes_moved(const tiles& t) {
  return 2.0 * static_cast<double>(matrices_of(t) * t.rows * t.cols) * static_cast<double>(int64_t{1} << t.log2_bytes);
}
// Bytes moved from which dst is written by non-temporal stores. A thread finds its share of a smaller array in its own
// L2, or in a part of it, if calls follow each other.
inline double streamed_from(const lockstep_queue& queue, int64_t parts = 1) {
  const move_tuning& tuned = queue.tuned->moves;
  return static_cast<double>(std::max(tuned.stream_bytes, queue.threads * tuned.has.l2 / parts));
}
// Transposes lose between a half of the L2s and all of them.
inline bool beyond_caches(const lockstep_queue& queue, const tiles& t) {
  return bytes_moved(t) >= streamed_from(queue, 2);
}

// A way to transpose, which is a row in the tables of transpose and permute.
struct tiles_method {
  const char *name, *idea;
  const char* (*refuses)(const lockstep_queue& queue, const tiles& t, const char* dst);  // why it cannot; NULL: it can
  bool (*pays)(const lockstep_queue& queue, const tiles& t, const char* dst);
  void (*run)(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);
};

// narrow.cpp
const char* not_in_registers(const lockstep_queue& queue, const tiles& t, const char* dst);
bool registers_pay(const lockstep_queue& queue, const tiles& t, const char* dst);
void run_registers(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);
const char* not_by_programs(const lockstep_queue& queue, const tiles& t, const char* dst);
bool programs_pay(const lockstep_queue& queue, const tiles& t, const char* dst);
void run_programs(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);
// tiles.cpp
const char* not_joined(const lockstep_queue& queue, const tiles& t, const char* dst);
bool joined_pays(const lockstep_queue& queue, const tiles& t, const char* dst);
void run_joined(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);
// staged_lines.cpp
const char* not_staged(const lockstep_queue& queue, const tiles& t, const char* dst);
bool staged_pays(const lockstep_queue& queue, const tiles& t, const char* dst);
void run_staged(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);
// The same where elements of src are not yet those of dst: rows x cols of them become elements of dst in room, whose
// rows are pitch bytes apart.
struct strip_maker {
  int64_t bytes;  // of an element of src
  void (*make)(const void* self, const char* src, char* room, int64_t pitch, int64_t rows, int64_t cols);
  const void* self;
};
void run_staged(const lockstep_queue& queue, const tiles& t, const strip_maker* maker, const char* src, char* dst);
bool rows_share_lines(const tiles& t);
// tiles.cpp
const char* not_piped(const lockstep_queue& queue, const tiles& t, const char* dst);
bool pipe_pays(const lockstep_queue& queue, const tiles& t, const char* dst);
void run_piped(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);
void run_tiles(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);

inline const char* takes_all(const lockstep_queue&, const tiles&, const char*) { return nullptr; }
inline bool always_pays(const lockstep_queue&, const tiles&, const char*) { return true; }

// Best first where they pay. The last one takes everything.
inline constexpr tiles_method tiles_methods[] = {
    {"registers", "a batch of small matrices, each held in registers", not_in_registers, registers_pay, run_registers},
    {"byte_programs", "a side of a few bytes: byte permutations by a program made for the shape", not_by_programs,
     programs_pay, run_programs},
    {"joined_rows", "rows of src that continue with the next matrix, read in long pieces", not_joined, joined_pays,
     run_joined},
    {"staged_lines", "rows of dst at any place in a line: whole lines from a block in L2", not_staged, staged_pays,
     run_staged},
    {"piped", "SIMD register tiles of a block of rows while the next block is loaded", not_piped, pipe_pays, run_piped},
    {"tiled", "SIMD register tiles along strips of rows, non-temporal stores where they pay", takes_all, always_pays,
     run_tiles}};
// For calls that are part of another one.
void run_best_method(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);

// The same walk where both sides run along cols (rows is 1): dst[j] = src[j].
void run_copies(const lockstep_queue& queue, const tiles& t, const char* src, char* dst);

// dst[j][i] = src[i][j] of elements of `bytes` <= 64, any number (log2_bytes is not looked at).
void run_pixels(const lockstep_queue& queue, const tiles& t, int64_t bytes, const char* src, char* dst);

// Bytes of a row of a block in the cache: the line more keeps a column out of one set.
inline int64_t pitch_of(int64_t bytes) { return (bytes + 63) / 64 * 64 + 64; }

inline int log2_of(size_t element_bytes) { return __builtin_ctzll(element_bytes); }

}  // namespace lockstep::cpu
