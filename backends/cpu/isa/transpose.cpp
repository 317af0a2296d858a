// transpose.cpp (isa) - the register tiles of transpose and permute, for each level.
// Idea    Sixteen bytes of a row are n = 16/E elements. A unit has n rows in each 128-bit
//         lane (row k of lane l is l*n + k), so its n registers are n*lanes rows by
//         n columns. log2(n) rounds that interleave register k with register
//         k + n/2 transpose every lane at once. Because the lanes are stacked rows,
//         each register ends as one contiguous piece of a dst row: 64 bytes, one
//         line, with AVX-512. Only in-lane unpacks are needed, and one template
//         covers every element size and vector width.
// Moves   each byte once in, once out; 64 bytes out take log2(n) shuffles and four
//         16-byte loads.
// Limit   L1 loads: 4 for each line of dst, much faster than L2 and memory.
// Watch   rows a multiple of 4 KiB apart are crowded: they fall into one L1 set, and a
//         line would be fetched again for each of its four units. Such strips are
//         first packed into a block, or, for non-temporal stores, alternately into
//         two blocks, so that reads and writes of memory overlap. Other rows are not
//         packed, because that costs time. Zen 4 prefetches instead of packing
//         (transpose_pipe.hpp).
// Source  this file; the interleaving network is the perfect shuffle of Stone,
//         "Parallel processing with the perfect shuffle", IEEE ToC 1971.
#include <stdint.h>

#include "../transpose_kernels.hpp"
#include "transpose_pipe.hpp"
#include "transpose_registers.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

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

#if defined(LOCKSTEP_ISA_AVX512)
// 64 bytes of 64 / E rows at once: whole lines on both sides; each line takes one load and 4, 3 or 2 shuffles (E = 4,
// 8, 16). The lanes are transposed as in unit, where register k of group q holds row q*n + k; then the four groups
// exchange lanes.
template <int E, bool stream, class Row, class Column, class Between>
inline __attribute__((always_inline)) void square(const Row& row, const Column& column, const Between& between) {
  constexpr int n = 16 / E;
  v512 r[4][n];
#pragma GCC unroll 4
  for (int q = 0; q < 4; ++q) {
#pragma GCC unroll 4
    for (int k = 0; k < n; ++k) r[q][k].x = _mm512_loadu_si512(row(q * n + k));
    interleave<E>(r[q]);
  }
#pragma GCC unroll 4
  for (int k = 0; k < n; ++k) {
    const __m512i even_above = _mm512_shuffle_i64x2(r[0][k].x, r[1][k].x, 0x88),
                  odd_above = _mm512_shuffle_i64x2(r[0][k].x, r[1][k].x, 0xDD);
    const __m512i even_below = _mm512_shuffle_i64x2(r[2][k].x, r[3][k].x, 0x88),
                  odd_below = _mm512_shuffle_i64x2(r[2][k].x, r[3][k].x, 0xDD);
    v512{_mm512_shuffle_i64x2(even_above, even_below, 0x88)}.template put<stream>(column(k));
    v512{_mm512_shuffle_i64x2(odd_above, odd_below, 0x88)}.template put<stream>(column(n + k));
    v512{_mm512_shuffle_i64x2(even_above, even_below, 0xDD)}.template put<stream>(column(2 * n + k));
    v512{_mm512_shuffle_i64x2(odd_above, odd_below, 0xDD)}.template put<stream>(column(3 * n + k));
    between(4);
  }
}

// The same for elements of 1 and 2 bytes, whose 64 or 32 registers are in L1 between the two steps. Units would load
// each line of src four times, and lines of 64 crowded rows do not stay in L1 for that.
template <int E, bool stream, class Between>
inline __attribute__((always_inline)) void small_square(const char* src, int64_t src_ld, char* dst, int64_t dst_ld,
                                                        const Between& between) {
  constexpr int n = 16 / E;
  alignas(64) char turned[4 * n * 64];
  for (int q = 0; q < 4; ++q) {
    v512 r[n];
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) r[k].x = _mm512_loadu_si512(src + (q * n + k) * src_ld);
    interleave<E>(r);
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) r[k].template put<false>(turned + (q * n + k) * 64);
  }
  for (int l = 0; l < 4; ++l) {
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k)
      v512::gather(turned + k * 64 + l * 16, n * 64).template put<stream>(dst + (l * n + k) * dst_ld);
    between(n);
  }
}
#endif

// 0 to 16 bytes, in pieces: nothing beyond them is read or written.
inline void copy_few(const char* src, char* dst, int64_t bytes) {
  if (bytes & 16) {
    __builtin_memcpy(dst, src, 16);
    return;
  }
  int64_t at = 0;
  if (bytes & 8) {
    __builtin_memcpy(dst, src, 8);
    at = 8;
  }
  if (bytes & 4) {
    __builtin_memcpy(dst + at, src + at, 4);
    at += 4;
  }
  if (bytes & 2) {
    __builtin_memcpy(dst + at, src + at, 2);
    at += 2;
  }
  if (bytes & 1) dst[at] = src[at];
}

// At most n rows by at most n columns; from and to give the places of a row of src and of dst.
template <int E, class From, class To>
inline __attribute__((always_inline)) void few(const From& from, const To& to, int64_t rows, int64_t cols) {
  constexpr int n = 16 / E;
  v128 r[n];
#if defined(LOCKSTEP_ISA_AVX512)
  const __mmask16 in = (__mmask16)((1u << (cols * E)) - 1), out = (__mmask16)((1u << (rows * E)) - 1);
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k) r[k].x = k < rows ? (u8x16)_mm_maskz_loadu_epi8(in, from(k)) : u8x16{};
  interleave<E>(r);
#pragma GCC unroll 16
  for (int k = 0; k < n; ++k)
    if (k < cols) _mm_mask_storeu_epi8(to(k), out, (__m128i)r[k].x);
#else
  for (int k = 0; k < n; ++k) {
    r[k].x = u8x16{};
    if (k < rows) copy_few(from(k), reinterpret_cast<char*>(&r[k].x), cols * E);
  }
  interleave<E>(r);
  for (int k = 0; k < n; ++k)
    if (k < cols) copy_few(reinterpret_cast<const char*>(&r[k].x), to(k), rows * E);
#endif
}

// The ragged edge of a tile.
template <int E>
inline __attribute__((noinline)) void edge(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows,
                                           int64_t cols) {
  few<E>([&](int k) { return src + k * src_ld; }, [&](int k) { return dst + k * dst_ld; }, rows, cols);
}

// `rows` rows by `units` units of n columns; first whole lines of dst rows, then narrower pieces. between(lines) is
// called after every few lines of dst. squares: four units become one square where possible.
template <int E, store how, bool squares, class Between>
inline __attribute__((always_inline)) void band(const char* src, int64_t src_ld, char* dst, int64_t dst_ld,
                                                int64_t rows, int units, const Between& between) {
  constexpr int n = 16 / E;
  constexpr int64_t line = 64 / E;
  constexpr bool lines = how != store::cached, all = how == store::stream_dense;
  int64_t i = 0;
  for (; i + line <= rows; i += line) {
#if defined(LOCKSTEP_ISA_AVX512)
    if constexpr (squares && (E >= 4 || !pipe::packs))
      if (units == 4) {
        int64_t from_ld = src_ld, to_ld = dst_ld;
        // Otherwise GCC keeps multiples of both in vector registers, which costs a move for each line.
        if constexpr (how == store::cached) asm("" : "+r"(from_ld), "+r"(to_ld));
        if constexpr (E >= 4)
          square<E, lines>([&](int k) { return src + i * src_ld + k * from_ld; },
                           [&](int k) { return dst + i * E + k * to_ld; }, between);
        else
          small_square<E, lines>(src + i * src_ld, from_ld, dst + i * E, to_ld, between);
        continue;
      }
#endif
    for (int u = 0; u < units; ++u) {
#pragma GCC unroll 4
      for (int64_t part = 0; part < line; part += n * widest::lanes)
        unit<E, widest, lines>(src + (i + part) * src_ld + u * 16, src_ld, dst + u * n * dst_ld + (i + part) * E,
                               dst_ld);
      between(n);
    }
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

// On Zen 4 squares are faster in the cache for elements of up to 4 bytes. Units are as fast or faster for 8 and 16
// bytes, and for 2 bytes if most loads of a square would cross lines.
template <int E, store how>
inline void band(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int units) {
  constexpr bool squares = !pipe::packs && how == store::cached && E <= 4;
  const auto between = [](int64_t) {};
  if (squares && (E != 2 || src_ld % 64 == 0))
    band<E, how, squares>(src, src_ld, dst, dst_ld, rows, units, between);
  else
    band<E, how, false>(src, src_ld, dst, dst_ld, rows, units, between);
}

// As many whole blocks of columns as there are, through a packed block. Returns the number of columns done.
template <int E, store how>
inline int64_t packed(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols) {
  constexpr int n = 16 / E;
  constexpr int64_t pack_ahead = tuned.pack_ahead, pack_rows = tuned.pack_rows;
  constexpr int64_t pack_bytes = how == store::cached ? tuned.pack_cached : tuned.pack_streamed,
                    pack_ld = pack_bytes + 64, block = pack_bytes / E;
  alignas(64) char pack[pack_rows * pack_ld];
  int64_t j = 0;
  for (; j + block <= cols; j += block) {
    for (int64_t i = 0; i < rows; ++i) {
      const char* from = src + i * src_ld + j * E;
      // After the last row: the first rows of the next block. The address is only a hint and may be outside src.
      const char* ahead =
          i + pack_ahead < rows ? from + pack_ahead * src_ld : from + (pack_ahead - rows) * src_ld + pack_bytes;
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

// All columns except a last part of less than a line, block by block (transpose_pipe.hpp). Returns the number of
// columns done. run: bytes of a row of src after which dst continues run_dst further on.
template <int E, store how>
__attribute__((noinline)) int64_t piped(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows,
                                        int64_t cols, int64_t run, int64_t run_dst, const char* then) {
  alignas(64) char packed[2][pipe::packs ? piped_rows(E) * pipe::ld : 1];
  const bool lines = src_ld % 64 == 0 && reinterpret_cast<intptr_t>(src) % 64 == 0;
  const int64_t height = pipe_rows<E, how>(src_ld, dst_ld, lines), chunk = pipe_cols(dst_ld, lines) * E;
  const pipe p{src, src_ld, rows, cols * E / 64 * 64, height, chunk, then};
  if (p.row_bytes == 0) return 0;
  pipe::block b{0, 0};
  if (pipe::packs) incoming(p, b, packed[0]).lines(INT64_MAX);
  for (int k = 0; !p.done(b); k ^= 1) {
    const pipe::block next = p.after(b);
    incoming in(p, next, packed[k ^ 1]);
    const char* from = pipe::packs ? packed[k] : p.start(b);
    const int64_t from_ld = pipe::packs ? pipe::ld : src_ld;
    for (int64_t j = 0; j < p.width_of(b); j += 64) {
      const int64_t at = b.at + j;
      band<E, how, true>(
          from + j, from_ld, dst + at / run * run_dst + at % run / E * dst_ld + b.row * E, dst_ld, p.rows_of(b),
          4, [&](int64_t lines) __attribute__((always_inline)) { in.lines(lines); });
    }
    in.lines(INT64_MAX);
    b = next;
  }
  return p.row_bytes / E;
}

// All rows of a few columns: less than a line.
template <int E, store how>
inline void few_columns(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols) {
  constexpr int n = 16 / E;
  const int units = static_cast<int>(cols / n);
  const int64_t j = units * n;
  if (units > 0) band<E, how>(src, src_ld, dst, dst_ld, rows, units);
  if (j < cols)
    for (int64_t i = 0; i < rows; i += n)
      edge<E>(src + i * src_ld + j * E, src_ld, dst + j * dst_ld + i * E, dst_ld, rows - i < n ? rows - i : n,
              cols - j);
}

template <int E, store how>
void tile_as(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, reading read) {
  constexpr int64_t line = 64 / E;
  int64_t j = 0;
  // If all rows start at the same offset in a line, squares start at a line too, so that no line is needed by two
  // squares. For crowded rows it would be fetched twice.
  if (!pipe::packs && src_ld % 64 == 0 && cols >= 8 * line) {
    j = (-reinterpret_cast<intptr_t>(src) & 63) / E;
    few_columns<E, how>(src, src_ld, dst, dst_ld, rows, j);
  }
  if (read.piped && rows > 8)
    j += piped<E, how>(src + j * E, src_ld, dst + j * dst_ld, dst_ld, rows, cols - j, (cols - j) * E, 0, read.then);
  else if (rows > 8 && rows <= tuned.pack_rows && how != store::stream_lines && crowded(__builtin_ctz(E), src_ld))
    j += packed<E, how>(src + j * E, src_ld, dst + j * dst_ld, dst_ld, rows, cols - j);
  for (; j + line <= cols; j += line) {
    if (read.lines > 0 && j + (read.lines + 1) * line <= cols)
      for (int64_t i = 0; i < rows; ++i) __builtin_prefetch(src + i * src_ld + j * E + read.lines * 64, 0, 3);
    band<E, how>(src + j * E, src_ld, dst + j * dst_ld, dst_ld, rows, 4);
  }
  few_columns<E, how>(src + j * E, src_ld, dst + j * dst_ld, dst_ld, rows, cols - j);
}

template <int E>
void tile(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, store how,
          reading read) {
  if (how == store::stream_lines)
    tile_as<E, store::stream_lines>(src, src_ld, dst, dst_ld, rows, cols, read);
  else if (how == store::stream_dense)
    tile_as<E, store::stream_dense>(src, src_ld, dst, dst_ld, rows, cols, read);
  else
    tile_as<E, store::cached>(src, src_ld, dst, dst_ld, rows, cols, read);
}

template <int E>
void joined(const char* src, int64_t src_ld, char* dst, int64_t dst_ld, int64_t rows, int64_t cols, int64_t runs,
            int64_t run_dst, const char* then) {
  piped<E, store::stream_lines>(src, src_ld, dst, dst_ld, rows, runs * cols, cols * E, run_dst, then);
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
  copy_few(src + at, dst + at, bytes - at);
}

// ---- rows whose places are in tables ------------------------------------------------
// Whole registers only: the last ones overlap those before them and write the same bytes again.
template <int E, class V>
inline void placed_by(const char* src, const int64_t* from, char* dst, const int64_t* to, int64_t rows, int64_t cols) {
  constexpr int64_t n = 16 / E, high = n * V::lanes;
  for (int64_t i = 0;; i = i + 2 * high <= rows ? i + high : rows - high) {
    for (int64_t j = 0;; j = j + 2 * n <= cols ? j + n : cols - n) {
      V r[n];
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) r[k] = V::of([&](int lane) { return src + from[i + lane * n + k] + j * E; });
      interleave<E>(r);
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) r[k].template put<false>(dst + to[j + k] + i * E);
      if (j + n == cols) break;
    }
    if (i + high == rows) break;
  }
}

// The same by squares, which load each line of src once.
#if defined(LOCKSTEP_ISA_AVX512)
template <int E>
inline void placed_squares(const char* src, const int64_t* from, char* dst, const int64_t* to, int64_t rows,
                           int64_t cols) {
  constexpr int64_t n = 64 / E;
  for (int64_t i = 0;; i = i + 2 * n <= rows ? i + n : rows - n) {
    for (int64_t j = 0;; j = j + 2 * n <= cols ? j + n : cols - n) {
      square<E, false>([&](int k) { return src + from[i + k] + j * E; }, [&](int k) { return dst + to[j + k] + i * E; },
                       [](int64_t) {});
      if (j + n == cols) break;
    }
    if (i + n == rows) break;
  }
}
#endif

template <int E>
void placed(const char* src, const int64_t* from, char* dst, const int64_t* to, int64_t rows, int64_t cols) {
  constexpr int64_t n = 16 / E;
#if defined(LOCKSTEP_ISA_AVX512)
  if constexpr (E >= 4)
    if (cols >= 4 * n && rows >= 4 * n) return placed_squares<E>(src, from, dst, to, rows, cols);
#endif
  if (cols >= n && rows >= n * widest::lanes) return placed_by<E, widest>(src, from, dst, to, rows, cols);
#if defined(LOCKSTEP_ISA_AVX512)
  if (cols >= n && rows >= n * v256::lanes) return placed_by<E, v256>(src, from, dst, to, rows, cols);
#endif
  if (cols >= n && rows >= n) return placed_by<E, v128>(src, from, dst, to, rows, cols);
  for (int64_t i = 0; i < rows; i += n)
    for (int64_t j = 0; j < cols; j += n)
      few<E>([&](int k) { return src + from[i + k] + j * E; }, [&](int k) { return dst + to[j + k] + i * E; },
             rows - i < n ? rows - i : n, cols - j < n ? cols - j : n);
}

// Runs of `whole` registers of `step` bytes each and of up to one more, which ends where the run ends.
template <int step, int whole>
void copies_of(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t bytes, int64_t count) {
  const int64_t last = bytes - step;
  for (int64_t i = 0; i < count; ++i, src += src_step, dst += dst_step) {
#pragma GCC unroll 8
    for (int k = 0; k < whole; ++k) __builtin_memcpy(dst + k * step, src + k * step, step);
    __builtin_memcpy(dst + last, src + last, step);
  }
}
typedef void (*copies_kernel)(const char*, int64_t, char*, int64_t, int64_t, int64_t);
template <int step>
constexpr copies_kernel copies_by[] = {copies_of<step, 0>, copies_of<step, 1>, copies_of<step, 2>, copies_of<step, 3>,
                                       copies_of<step, 4>, copies_of<step, 5>, copies_of<step, 6>, copies_of<step, 7>};
void copies(const char* src, int64_t src_step, char* dst, int64_t dst_step, int64_t bytes, int64_t count) {
#if defined(LOCKSTEP_ISA_AVX512)
  constexpr int widest = 64;
#elif defined(LOCKSTEP_ISA_AVX2)
  constexpr int widest = 32;
#else
  constexpr int widest = 16;
#endif
  if (bytes >= widest && bytes <= 8 * widest)
    return copies_by<widest>[(bytes - 1) / widest](src, src_step, dst, dst_step, bytes, count);
  if (widest > 16 && bytes >= 16 && bytes <= 8 * 16)
    return copies_by<16>[(bytes - 1) / 16](src, src_step, dst, dst_step, bytes, count);
  for (int64_t i = 0; i < count; ++i) copy(src + i * src_step, dst + i * dst_step, bytes, false);
}

void fence() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

}  // namespace

extern const transpose_kernels transpose_kernels_of_table;
const transpose_kernels transpose_kernels_of_table = {{tile<1>, tile<2>, tile<4>, tile<8>, tile<16>},
                                                      {joined<1>, joined<2>, joined<4>, joined<8>, joined<16>},
                                                      {placed<1>, placed<2>, placed<4>, placed<8>, placed<16>},
                                                      pipe::packs,
                                                      copy,
                                                      copies,
                                                      fence};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
