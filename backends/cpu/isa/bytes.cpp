// bytes.cpp (isa) - registers filled with bytes from a few places of src, as a program says (byte_kernels.hpp);
// transposes of elements whose size is not a power of two.
// Idea    each step is a byte permutation of two registers (vpermi2b of 2 x 64, two pshufb of 16);
//         the indices come from memory, so that one kernel serves
//         every shape
// Moves   each byte once out; in, two loads for each step
// Limit   L1 loads: three for each step, of which the two of data mostly cross lines
// Watch   a load may read past the needed bytes, so narrow.cpp ends the periods before the end of src
// Source  this file
#include "../byte_kernels.hpp"
#include "../tuning.hpp"

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
#include <immintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
inline __m128i load16(const void* p) { return _mm_loadu_si128(static_cast<const __m128i*>(p)); }

// S: steps for each store, 0 if it needs only one place of src; many: any number.
constexpr int many = 4;
template <int S>
inline __m128i step_16(const byte_step& step, const char* src) {
  const __m128i x = _mm_shuffle_epi8(load16(src + step.src[0]), load16(step.from));
  return S == 0 ? x : _mm_or_si128(x, _mm_shuffle_epi8(load16(src + step.src[1]), load16(step.from + 16)));
}
template <int S, bool stream>
void move_16(const byte_program& program, const char* src, char* dst, int64_t periods) {
  const int together = S == many ? program.together : S;
  for (int64_t period = 0; period < periods; ++period, src += program.src_advance, dst += program.dst_advance) {
    const byte_step* step = program.steps;
    for (int k = 0; k < program.stores; ++k, step += S == 0 ? 1 : together) {
      __m128i x = step_16<S>(*step, src);
      for (int i = 1; i < together; ++i) x = _mm_or_si128(x, step_16<S>(step[i], src));
      if constexpr (stream)
        _mm_stream_si128(reinterpret_cast<__m128i*>(dst + program.dst[k]), x);
      else
        _mm_storeu_si128(reinterpret_cast<__m128i*>(dst + program.dst[k]), x);
    }
  }
}
template <bool stream>
void move_16_by_steps(const byte_program& program, const char* src, char* dst, int64_t periods) {
  switch (program.together) {
    case 0: return move_16<0, stream>(program, src, dst, periods);
    case 1: return move_16<1, stream>(program, src, dst, periods);
    case 2: return move_16<2, stream>(program, src, dst, periods);
    case 3: return move_16<3, stream>(program, src, dst, periods);
    default: return move_16<many, stream>(program, src, dst, periods);
  }
}
void run_16(const byte_program& program, const char* src, char* dst, int64_t periods, bool stream) {
  if (stream)
    move_16_by_steps<true>(program, src, dst, periods);
  else
    move_16_by_steps<false>(program, src, dst, periods);
}
#else
constexpr byte_kernels::kernel run_16 = nullptr;
#endif

#if defined(LOCKSTEP_ISA_AVX512)
#define LOCKSTEP_VBMI __attribute__((target("avx512vbmi")))
template <int S>
LOCKSTEP_VBMI inline __m512i step_64(const byte_step& step, const char* src) {
  const __m512i from = _mm512_load_si512(step.from), x = _mm512_loadu_si512(src + step.src[0]);
  if constexpr (S == 0)
    return _mm512_maskz_permutexvar_epi8(~__mmask64{0}, from, x);  // GCC 12 warns about the plain one
  else
    return _mm512_permutex2var_epi8(x, from, _mm512_loadu_si512(src + step.src[1]));
}
template <int S, bool stream>
LOCKSTEP_VBMI void move_64(const byte_program& program, const char* src, char* dst, int64_t periods) {
  const int together = S == many ? program.together : S;
  for (int64_t period = 0; period < periods; ++period, src += program.src_advance, dst += program.dst_advance) {
    const byte_step* step = program.steps;
    for (int k = 0; k < program.stores; ++k, step += S == 0 ? 1 : together) {
      __m512i x = step_64<S>(*step, src);
      for (int i = 1; i < together; ++i) x = _mm512_mask_mov_epi8(x, step[i].into, step_64<S>(step[i], src));
      if constexpr (stream)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + program.dst[k]), x);
      else
        _mm512_storeu_si512(dst + program.dst[k], x);
    }
  }
}
template <bool stream>
void move_64_by_steps(const byte_program& program, const char* src, char* dst, int64_t periods) {
  switch (program.together) {
    case 0: return move_64<0, stream>(program, src, dst, periods);
    case 1: return move_64<1, stream>(program, src, dst, periods);
    case 2: return move_64<2, stream>(program, src, dst, periods);
    case 3: return move_64<3, stream>(program, src, dst, periods);
    default: return move_64<many, stream>(program, src, dst, periods);
  }
}
void run_64(const byte_program& program, const char* src, char* dst, int64_t periods, bool stream) {
  if (stream)
    move_64_by_steps<true>(program, src, dst, periods);
  else
    move_64_by_steps<false>(program, src, dst, periods);
}
#else
constexpr byte_kernels::kernel run_64 = nullptr;
#endif

// ---- elements of any size ---------------------------------------------------------
// Pieces of each row are packed, so that it does not matter if rows fall into the same sets of L1. Elements are written
// as L bytes; the next element overwrites the excess, and the last one of a row is written exactly. In the last row no
// read goes past its end.
template <int L>
void pixels_of(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, int64_t bytes) {
  constexpr int64_t piece = tuned.pixel_piece, pack_ld = piece + 64, ahead = tuned.pixel_ahead;
  alignas(64) char pack[pixel_rows * pack_ld];
  const int64_t most = piece / bytes;
  for (int64_t left = 0; left < cols; left += most) {
    const int64_t n = cols - left < most ? cols - left : most;
    const char* from = src + left * bytes;
    for (int64_t i = 0; i < rows; ++i, from += src_ld) {
      __builtin_prefetch(from + ahead);
      __builtin_prefetch(from + ahead + 64);
      if (n == most && i + 1 < rows)
        __builtin_memcpy(pack + i * pack_ld, from, piece);
      else
        __builtin_memcpy(pack + i * pack_ld, from, static_cast<size_t>(n * bytes));
    }
    for (int64_t j = 0; j < n; ++j) {
      const char* at = pack + j * bytes;
      char* to = dst + (left + j) * dst_ld;
      for (int64_t i = 0; i + 1 < rows; ++i, at += pack_ld, to += bytes) __builtin_memcpy(to, at, L);
      __builtin_memcpy(to, at, static_cast<size_t>(bytes));
    }
  }
}
void pixels(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, int64_t bytes) {
  if (bytes <= 4) return pixels_of<4>(src, src_ld, dst, dst_ld, rows, cols, bytes);
  if (bytes <= 8) return pixels_of<8>(src, src_ld, dst, dst_ld, rows, cols, bytes);
  if (bytes <= 16) return pixels_of<16>(src, src_ld, dst, dst_ld, rows, cols, bytes);
  if (bytes <= 32) return pixels_of<32>(src, src_ld, dst, dst_ld, rows, cols, bytes);
  pixels_of<64>(src, src_ld, dst, dst_ld, rows, cols, bytes);
}

}  // namespace

extern const byte_kernels byte_kernels_of_table;
const byte_kernels byte_kernels_of_table = {run_16, run_64, pixels};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
