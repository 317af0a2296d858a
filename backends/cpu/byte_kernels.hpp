// byte_kernels.hpp - the kernels of isa/bytes.cpp: for narrow.cpp, short programs that fill registers with bytes from a
// few places of src; for tiles.cpp, transposes of elements of any size.
#pragma once

#include "isa.hpp"

namespace lockstep::cpu {

// Part of a register, from two places of src. Width 64: if bit b of into is set, byte b is byte from[b] % 64 of the 64
// at src[from[b] / 64]. Width 16: byte from[b] of the 16 at src[0], or byte from[16 + b] of those at src[1]; the index
// that is below 128 counts.
struct byte_step {
  int64_t src[2];
  uint64_t into;
  alignas(64) uint8_t from[64];
};

// The work of one period: store k writes `width` bytes at dst[k], combined from `together` steps that start with
// steps[k * together]. together 0: one step that needs only src[0].
struct byte_program {
  static constexpr int most_stores = 64, most_steps = 192;
  int width, stores, together;
  int64_t src_advance, dst_advance;  // from one period to the next
  int64_t dst[most_stores];
  byte_step steps[most_steps];

  int stride() const { return together > 0 ? together : 1; }  // steps for each store
};

struct byte_kernels {
  // stream: non-temporal stores; every store is then aligned to its width.
  typedef void (*kernel)(const byte_program& program, const char* src, char* dst, int64_t periods, bool stream);
  kernel by_16;  // NULL: the level has none
  kernel by_64;  // also needs AVX-512 VBMI
  // dst[j][i] = src[i][j] for i < rows <= pixel_rows, j < cols; elements of `bytes` <= 64, the rows' distances in
  // bytes.
  void (*pixels)(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, int64_t bytes);
};
inline constexpr int64_t pixel_rows = 64;

// Transposes count matrices of rows x cols, each held in registers; distances in bytes.
struct small_kernels {
  typedef void (*kernel)(const char* src, int64_t src_ld, int64_t src_step, char* dst, int64_t dst_ld, int64_t dst_step,
                         int64_t rows, int64_t cols, int64_t count);
  kernel of_4_by_8, of_4_by_16, of_8_by_8;  // element bytes, most rows and columns; NULL: the level has none
};

bool has_vbmi();  // this processor

}  // namespace lockstep::cpu
LOCKSTEP_ISA_TABLES(byte_kernels, byte_kernels_of)
LOCKSTEP_ISA_TABLES(small_kernels, small_kernels_of)
