// transpose.cpp (isa) - the register tiles of transpose and permute, once a level.
// Idea    Sixteen bytes of a row are n = 16/E elements. A unit takes n rows a 128-bit
//         lane (row k of lane l is l*n + k), so its n registers are n*lanes rows by
//         n columns. log2(n) rounds that interleave register k with register
//         k + n/2 transpose every lane at once, and because the lanes are stacked
//         rows, each register ends as one unbroken piece of a dst row: 64 bytes,
//         one line, under AVX-512. Only in-lane unpacks are needed, and one
//         template covers every element size and vector width.
// Moves   each byte once in, once out; 64 bytes out cost log2(n) shuffles and four
//         16-byte loads.
// Limit   L1 loads: 4 a line of dst, far above what L2 and beyond deliver.
// Watch   rows a multiple of 4 KiB apart fall into one L1 set (12 ways on Zen 5):
//         a line would be fetched again for each of its four units. Such strips
//         are first copied, 512 bytes of a row at a time (256 when dst stays in cache), into a packed block
//         (16384 squared f32: 0.34 -> 0.48 of a copy; where rows do not crowd the
//         block costs: 10000x7001 0.82 -> 0.47).
// Source  this file; the interleaving network is the perfect shuffle of Stone,
//         "Parallel processing with the perfect shuffle", IEEE ToC 1971.
#include "../transpose_kernels.hpp"
#include "mutant.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif
#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 warns inside its own _mm512_undefined_epi32 (bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// Element type of a lane by size, for the interleaves.
typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));

struct v128 {
  [[maybe_unused]] static constexpr int lanes = 1;
  u8x16 x;

  static v128 gather(const char* p, int64_t) {
    v128 v;
    __builtin_memcpy(&v.x, p, 16);
    return v;
  }
  template <bool stream>
  void put(char* p) const {
#if defined(__SSE2__)
    if constexpr (stream) {
      _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)x);
      return;
    }
#endif
    __builtin_memcpy(p, &x, 16);
  }
  template <int E>
  static v128 low(v128 a, v128 b) {
    if constexpr (E == 1)
      return {__builtin_shufflevector(a.x, b.x, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)};
    else if constexpr (E == 2)
      return {(u8x16)__builtin_shufflevector((u16x8)a.x, (u16x8)b.x, 0, 8, 1, 9, 2, 10, 3, 11)};
    else if constexpr (E == 4)
      return {(u8x16)__builtin_shufflevector((u32x4)a.x, (u32x4)b.x, 0, 4, 1, 5)};
    else
      return {(u8x16)__builtin_shufflevector((u64x2)a.x, (u64x2)b.x, 0, 2)};
  }
  template <int E>
  static v128 high(v128 a, v128 b) {
    if constexpr (E == 1)
      return {__builtin_shufflevector(a.x, b.x, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)};
    else if constexpr (E == 2)
      return {(u8x16)__builtin_shufflevector((u16x8)a.x, (u16x8)b.x, 4, 12, 5, 13, 6, 14, 7, 15)};
    else if constexpr (E == 4)
      return {(u8x16)__builtin_shufflevector((u32x4)a.x, (u32x4)b.x, 2, 6, 3, 7)};
    else
      return {(u8x16)__builtin_shufflevector((u64x2)a.x, (u64x2)b.x, 1, 3)};
  }
};

#if defined(LOCKSTEP_ISA_AVX2) || defined(LOCKSTEP_ISA_AVX512)
inline __m128i load16(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

struct v256 {
  [[maybe_unused]] static constexpr int lanes = 2;
  __m256i x;

  static v256 gather(const char* p, int64_t step) {
    return {_mm256_inserti128_si256(_mm256_castsi128_si256(load16(p)), load16(p + step), 1)};
  }
  template <bool stream>
  void put(char* p) const {
    if constexpr (stream)
      _mm256_stream_si256(reinterpret_cast<__m256i*>(p), x);
    else
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
  template <int E>
  static v256 low(v256 a, v256 b) {
    if constexpr (E == 1) return {_mm256_unpacklo_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm256_unpacklo_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm256_unpacklo_epi32(a.x, b.x)};
    return {_mm256_unpacklo_epi64(a.x, b.x)};
  }
  template <int E>
  static v256 high(v256 a, v256 b) {
    if constexpr (E == 1) return {_mm256_unpackhi_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm256_unpackhi_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm256_unpackhi_epi32(a.x, b.x)};
    return {_mm256_unpackhi_epi64(a.x, b.x)};
  }
};
#endif

#if defined(LOCKSTEP_ISA_AVX512)
struct v512 {
  [[maybe_unused]] static constexpr int lanes = 4;
  __m512i x;

  static v512 gather(const char* p, int64_t step) {
    __m512i v = _mm512_zextsi128_si512(load16(p));
    v = _mm512_inserti32x4(v, load16(p + step), 1);
    v = _mm512_inserti32x4(v, load16(p + 2 * step), 2);
    return {_mm512_inserti32x4(v, load16(p + 3 * step), 3)};
  }
  template <bool stream>
  void put(char* p) const {
    if constexpr (stream)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(p), x);
    else
      _mm512_storeu_si512(p, x);
  }
  template <int E>
  static v512 low(v512 a, v512 b) {
    if constexpr (E == 1) return {_mm512_unpacklo_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm512_unpacklo_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm512_unpacklo_epi32(a.x, b.x)};
    return {_mm512_unpacklo_epi64(a.x, b.x)};
  }
  template <int E>
  static v512 high(v512 a, v512 b) {
    if constexpr (E == 1) return {_mm512_unpackhi_epi8(a.x, b.x)};
    if constexpr (E == 2) return {_mm512_unpackhi_epi16(a.x, b.x)};
    if constexpr (E == 4) return {_mm512_unpackhi_epi32(a.x, b.x)};
    return {_mm512_unpackhi_epi64(a.x, b.x)};
  }
};
using widest = v512;
#elif defined(LOCKSTEP_ISA_AVX2)
using widest = v256;
#else
using widest = v128;
#endif

// The interleaving rounds: n registers in, their lanes transposed, in place.
template <int E, class V>
inline __attribute__((always_inline)) void interleave(V* r) {
  constexpr int n = 16 / E;
#pragma GCC unroll 4
  for (int round = 1; round < n; round *= 2) {
    V t[n];
#pragma GCC unroll 16
    for (int k = 0; k < n / 2; ++k) {
      t[2 * k] = V::template low<E>(r[k], r[k + n / 2]);
      t[2 * k + 1] = V::template high<E>(r[k], r[k + n / 2]);
    }
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) r[k] = t[k];
  }
}

template <int E, class V, bool stream>
inline __attribute__((always_inline)) void unit(const char* src, int64_t src_ld, char* dst, int64_t dst_ld) {
  constexpr int n = 16 / E;
  V r[n];
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) r[k] = V::gather(src + k * src_ld, n * src_ld);
  interleave<E>(r);
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) r[k].template put<stream>(dst + k * dst_ld);
}

// 0 to 16 bytes, in pieces: nothing beyond them is read or written.
inline void copy_few(const char* src, char* dst, int64_t bytes) {
  if (bytes & 16) {
    __builtin_memcpy(dst, src, 16);
    return;
  }
  int64_t at = 0;
  if (bytes & 8) { __builtin_memcpy(dst, src, 8); at = 8; }
  if (bytes & 4) { __builtin_memcpy(dst + at, src + at, 4); at += 4; }
  if (bytes & 2) { __builtin_memcpy(dst + at, src + at, 2); at += 2; }
  if (bytes & 1) dst[at] = src[at];
}

// At most n rows by at most n columns: the ragged edge of a tile.
template <int E>
inline __attribute__((noinline)) void edge(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols) {
  constexpr int n = 16 / E;
  v128 r[n];
#if defined(LOCKSTEP_ISA_AVX512)
  const __mmask16 in = (__mmask16)((1u << (cols * E)) - 1), out = (__mmask16)((1u << (rows * E)) - 1);
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k)
    r[k].x = k < rows ? (u8x16)_mm_maskz_loadu_epi8(in, src + k * src_ld) : u8x16{};
  interleave<E>(r);
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k)
    if (k < cols) _mm_mask_storeu_epi8(dst + k * dst_ld, out, (__m128i)r[k].x);
#else
  for (int k = 0; k < n; ++k) {
    r[k].x = u8x16{};
    if (k < rows) copy_few(src + k * src_ld, reinterpret_cast<char*>(&r[k].x), cols * E);
  }
  interleave<E>(r);
  for (int k = 0; k < n; ++k)
    if (k < cols) copy_few(reinterpret_cast<const char*>(&r[k].x), dst + k * dst_ld, rows * E);
#endif
}

// rows rows by units units of n columns; whole lines of dst rows first, then ever narrower pieces.
template <int E, store how>
inline void band(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int units) {
  constexpr int n = 16 / E;
  constexpr int64_t line = 64 / E;
  constexpr bool lines = how != store::cached, all = how == store::stream_dense;
  int64_t i = 0;
  for (; i + line <= rows; i += line)
    for (int u = 0; u < units; ++u) {
#pragma GCC unroll 4
      for (int64_t part = 0; part < line; part += n * widest::lanes)
        unit<E, widest, lines>(src + (i + part) * src_ld + u * 16, src_ld, dst + u * n * dst_ld + (i + part) * E, dst_ld);
    }
#if defined(LOCKSTEP_ISA_AVX2) || defined(LOCKSTEP_ISA_AVX512)
  if (i + 2 * n <= rows) {
    for (int u = 0; u < units; ++u)
      unit<E, v256, all>(src + i * src_ld + u * 16, src_ld, dst + u * n * dst_ld + i * E, dst_ld);
    i += 2 * n;
  }
#endif
  for (; i + n <= rows; i += n)
    for (int u = 0; u < units; ++u)
      unit<E, v128, all>(src + i * src_ld + u * 16, src_ld, dst + u * n * dst_ld + i * E, dst_ld);
  if (i < rows)
    for (int u = 0; u < units; ++u)
      edge<E>(src + i * src_ld + u * 16, src_ld, dst + u * n * dst_ld + i * E, dst_ld, rows - i, n);
}

// The packed block of a crowded strip: rows fetched ahead of the copy, and the largest strip that fits. A row gives
// 256 bytes at a time where dst is cached (512 squared f32 in strips of 128: 26.7 us, 512 bytes 32.5), else 512
// (4096 squared in strips of 64: 4.58 ms, 256 bytes 5.39).
constexpr int64_t pack_ahead = 4, pack_rows = 256;

// Columns [0, as many whole blocks as there are), by way of a packed block. Returns the columns done.
template <int E, store how>
inline int64_t packed(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols) {
  constexpr int n = 16 / E;
  constexpr int64_t pack_bytes = how == store::cached ? 256 : 512, pack_ld = pack_bytes + 64, block = pack_bytes / E;
  alignas(64) char pack[pack_rows * pack_ld];
  int64_t j = 0;
  for (; j + block <= cols; j += block) {
    for (int64_t i = 0; i < rows; ++i) {
      const char* from = src + i * src_ld + j * E;
      // Beyond the last row: the first rows of the next block. The address is only a hint and may lie outside.
      const char* ahead = i + pack_ahead < rows ? from + pack_ahead * src_ld : from + (pack_ahead - rows) * src_ld + pack_bytes;
      for (int64_t k = 0; k < pack_bytes; k += 64) {
        __builtin_prefetch(ahead + k, 0, 3);
        __builtin_memcpy(pack + i * pack_ld + k, from + k, 64);
      }
    }
    for (int64_t k = 0; k < pack_bytes; k += 16)
      band<E, how>(pack + k, pack_ld, dst + (j + k / 16 * n) * dst_ld, dst_ld, rows, 1);
  }
  return j;
}

// Rows whose lines share L1 sets: 8 or more of a line's rows in one set, or rows that step by nearly 4 KiB.
bool crowded(int log2_bytes, int64_t ld) {
  const int64_t line = 64 >> log2_bytes, power = ld & -ld, past = ld % 4096, near = past < 2048 ? past : 4096 - past;
  return near < 64 || (power < 4096 ? power : 4096) * line >= 8 * 4096;
}

template <int E, store how>
void tile_as(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, int64_t ahead) {
  constexpr int n = 16 / E;
  constexpr int64_t line = 64 / E;
  int64_t j = rows > 8 && rows <= pack_rows && crowded(__builtin_ctz(E), src_ld) ? packed<E, how>(src, src_ld, dst, dst_ld, rows, cols) : 0;
  for (; j + line <= cols; j += line) {
    if (ahead > 0 && j + (ahead + 1) * line <= cols)
      for (int64_t i = 0; i < rows; ++i) __builtin_prefetch(src + i * src_ld + j * E + ahead * 64, 0, 3);
    band<E, how>(src + j * E, src_ld, dst + j * dst_ld, dst_ld, rows, 4);
  }
  const int rest = static_cast<int>((cols - j) / n);
  if (rest > 0) band<E, how>(src + j * E, src_ld, dst + j * dst_ld, dst_ld, rows, rest);
  j += rest * n;
  if (j < cols)
    for (int64_t i = 0; i < rows - (LOCKSTEP_MUTANT("transpose_corner_lost") ? rows % n : 0); i += n)
      edge<E>(src + i * src_ld + j * E, src_ld, dst + j * dst_ld + i * E, dst_ld, rows - i < n ? rows - i : n, cols - j);
}

template <int E>
void tile(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, store how,
          int64_t ahead) {
  if (how == store::stream_lines)
    tile_as<E, store::stream_lines>(src, src_ld, dst, dst_ld, rows, cols, ahead);
  else if (how == store::stream_dense)
    tile_as<E, store::stream_dense>(src, src_ld, dst, dst_ld, rows, cols, ahead);
  else
    tile_as<E, store::cached>(src, src_ld, dst, dst_ld, rows, cols, ahead);
}

void copy(const char* src, char* dst, int64_t bytes, bool stream) {
  int64_t at = 0;
  if (stream) {
    const int64_t head = -reinterpret_cast<intptr_t>(dst) & 63;
    for (; at + 16 <= head && at + 16 <= bytes; at += 16) v128::gather(src + at, 0).put<false>(dst + at);
    const int64_t few = (head < bytes ? head : bytes) - at;
    copy_few(src + at, dst + at, few);
    at += few;
    for (; at + 64 <= bytes; at += 64) {
#if defined(LOCKSTEP_ISA_AVX512)
      _mm512_stream_si512(reinterpret_cast<__m512i*>(dst + at), _mm512_loadu_si512(src + at));
#else
#pragma GCC unroll 4
      for (int64_t k = 0; k < 64; k += 16) v128::gather(src + at + k, 0).put<true>(dst + at + k);
#endif
    }
  }
  if (bytes - at > 256) {
    __builtin_memcpy(dst + at, src + at, (size_t)(bytes - at));
    return;
  }
  for (; at + 64 <= bytes; at += 64) __builtin_memcpy(dst + at, src + at, 64);
  for (; at + 16 <= bytes; at += 16) __builtin_memcpy(dst + at, src + at, 16);
  copy_few(src + at, dst + at, LOCKSTEP_MUTANT("copy_tail_off_by_one") ? (bytes - at) & ~1 : bytes - at);
}

void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace

extern const transpose_kernels transpose_kernels_of_table;
const transpose_kernels transpose_kernels_of_table = {{tile<1>, tile<2>, tile<4>, tile<8>, tile<16>}, crowded, copy, fence};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
