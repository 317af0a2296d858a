// byte_kernels.hpp - what isa/bytes.cpp offers: to narrow.cpp registers filled with bytes from a few places of src, as
// a short program says; to tiles.cpp elements of any size.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// Part of a register, from two places of src. Width 64: byte b is byte from[b] % 64 of the 64 at src[from[b] / 64],
// where bit b of into is set. Width 16: byte from[b] of the 16 at src[0] or byte from[16 + b] of those at src[1],
// whichever is below 128.
struct byte_step {
  int64_t src[2];
  uint64_t into;
  alignas(64) uint8_t from[64];
};

// What is done once a period: store k writes `width` bytes at dst[k], put together by steps[k * together] and the
// `together` - 1 that follow; 0: by one step that needs src[0] only.
struct byte_program {
  static constexpr int most_stores = 64, most_steps = 192;
  int width, stores, together;
  int64_t src_advance, dst_advance;  // from one period to the next
  int64_t dst[most_stores];
  byte_step steps[most_steps];

  int stride() const { return together > 0 ? together : 1; }  // steps a store
};

struct byte_kernels {
  // stream: around the cache; every store is aligned to its width.
  typedef void (*kernel)(const byte_program& program, const char* src, char* dst, int64_t periods, bool stream);
  kernel by_16;  // NULL: the level has none
  kernel by_64;  // needs AVX-512 VBMI beside the level
  // dst[j][i] = src[i][j] for i < rows <= pixel_rows, j < cols; elements of `bytes` <= 64, the rows' distances in
  // bytes.
  void (*pixels)(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, int64_t bytes);
};
inline constexpr int64_t pixel_rows = 64;

// count matrices of rows x cols, each in registers as a whole; distances in bytes.
struct small_kernels {
  typedef void (*kernel)(const char* src, int64_t src_ld, int64_t src_step, char* dst, int64_t dst_ld, int64_t dst_step,
                         int64_t rows, int64_t cols, int64_t count);
  kernel of_4_by_8, of_4_by_16, of_8_by_8;  // element bytes, most rows and columns; NULL: the level has none
};

bool has_vbmi();  // this processor

}  // namespace lockstep::cpu
LOCKSTEP_ISA_TABLES(byte_kernels, byte_kernels_of)
LOCKSTEP_ISA_TABLES(small_kernels, small_kernels_of)
