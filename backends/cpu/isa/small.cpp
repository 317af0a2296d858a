// small.cpp (isa) - matrices of up to 16 x 16 elements of 4 bytes, 8 x 8 of 8: one row in each register.
// Idea    log2(n) rounds that interleave register k with register k + n/2 transpose n x n elements (transpose.cpp does
//         it within lanes); masks cut loads and stores to the matrix, and are made once for a whole batch
// Moves   each byte once in, once out
// Limit   n * log2(n) permutations for each matrix
// Watch   missing rows repeat the last one; they become columns that are not stored or, if dst has no gaps, are
//         overwritten by the next store
// Source  see transpose.cpp
#include "../byte_kernels.hpp"

#if defined(LOCKSTEP_ISA_AVX512)
#include <immintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

#if defined(LOCKSTEP_ISA_AVX512)
struct words_8 {
  typedef __m256i vector;
  static constexpr int n = 8;
  static vector load(const char* p, unsigned first) {
    return _mm256_maskz_loadu_epi32(static_cast<__mmask8>(first), p);
  }
  static void store(char* p, unsigned first, vector x) { _mm256_mask_storeu_epi32(p, static_cast<__mmask8>(first), x); }
  static vector low(vector a, vector b) {
    return _mm256_permutex2var_epi32(a, _mm256_setr_epi32(0, 8, 1, 9, 2, 10, 3, 11), b);
  }
  static vector high(vector a, vector b) {
    return _mm256_permutex2var_epi32(a, _mm256_setr_epi32(4, 12, 5, 13, 6, 14, 7, 15), b);
  }
};
struct words_16 {
  typedef __m512i vector;
  static constexpr int n = 16;
  static vector load(const char* p, unsigned first) {
    return _mm512_maskz_loadu_epi32(static_cast<__mmask16>(first), p);
  }
  static void store(char* p, unsigned first, vector x) {
    _mm512_mask_storeu_epi32(p, static_cast<__mmask16>(first), x);
  }
  static vector low(vector a, vector b) {
    return _mm512_permutex2var_epi32(a, _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23), b);
  }
  static vector high(vector a, vector b) {
    return _mm512_permutex2var_epi32(a, _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31),
                                     b);
  }
};
struct pairs_8 {
  typedef __m512i vector;
  static constexpr int n = 8;
  static vector load(const char* p, unsigned first) {
    return _mm512_maskz_loadu_epi64(static_cast<__mmask8>(first), p);
  }
  static void store(char* p, unsigned first, vector x) { _mm512_mask_storeu_epi64(p, static_cast<__mmask8>(first), x); }
  static vector low(vector a, vector b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), b);
  }
  static vector high(vector a, vector b) {
    return _mm512_permutex2var_epi64(a, _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15), b);
  }
};

template <class K>
void small(const char* src, int64_t src_ld, int64_t src_step, char* dst, int64_t dst_ld, int64_t dst_step, int64_t rows,
           int64_t cols, int64_t count) {
  constexpr int n = K::n;
  typedef typename K::vector vector;
  const unsigned in = (1u << cols) - 1, out = (1u << rows) - 1;
  int64_t row[n];
  for (int k = 0; k < n; ++k) row[k] = (k < rows ? k : rows - 1) * src_ld;
  const int64_t dst_row = rows * static_cast<int64_t>(sizeof(vector)) / n;
  const bool packed =
      dst_ld == dst_row && dst_step == cols * dst_row && dst_step > static_cast<int64_t>(sizeof(vector));
  for (; count > 0; --count, src += src_step, dst += dst_step) {
    const bool whole = packed && count > 1;
    vector r[n], t[n];
#pragma GCC unroll 16
    for (int k = 0; k < n; ++k) r[k] = K::load(src + row[k], in);
#pragma GCC unroll 4
    for (int round = 1; round < n; round *= 2) {
#pragma GCC unroll 8
      for (int k = 0; k < n / 2; ++k) {
        t[2 * k] = K::low(r[k], r[k + n / 2]);
        t[2 * k + 1] = K::high(r[k], r[k + n / 2]);
      }
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k) r[k] = t[k];
    }
    if (whole) {
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k)
        if (k < cols) __builtin_memcpy(dst + k * dst_ld, &r[k], sizeof r[k]);
    } else {
#pragma GCC unroll 16
      for (int k = 0; k < n; ++k)
        if (k < cols) K::store(dst + k * dst_ld, out, r[k]);
    }
  }
}
constexpr small_kernels all = {small<words_8>, small<words_16>, small<pairs_8>};
#else
constexpr small_kernels all = {};
#endif

}  // namespace

extern const small_kernels small_kernels_of_table;
const small_kernels small_kernels_of_table = all;

}  // namespace lockstep::cpu::LOCKSTEP_ISA
