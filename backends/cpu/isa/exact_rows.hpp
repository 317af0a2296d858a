// exact_rows.hpp - rows, pairs of chunks and columns of an exact term K (exact_terms.hpp).
#pragma once

#include "../reduce_kernels.hpp"
#include "exact_terms.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// The first m < W elements of p and zeros.
template <class K>
inline vu load_rest(const typename K::element* p, int64_t m) {
  typename K::element part[W] = {};
#if defined(LOCKSTEP_ISA_AVX512)
  const auto mask = static_cast<__mmask8>((1 << m) - 1);
  if constexpr (sizeof(*p) < 4)
    for (int64_t i = 0; i < m; ++i) part[i] = p[i];
  else if constexpr (sizeof(*p) == 4)
    _mm256_storeu_si256((__m256i*)part, _mm256_maskz_loadu_epi32(mask, p));
  else
    _mm512_storeu_si512(part, _mm512_maskz_loadu_epi64(mask, p));
#elif defined(LOCKSTEP_ISA_AVX2)
  if constexpr (sizeof(*p) < 4)
    for (int64_t i = 0; i < m; ++i) part[i] = p[i];
  else if constexpr (sizeof(*p) == 4)
    _mm_storeu_si128((__m128i*)part,
                     _mm_maskload_epi32(reinterpret_cast<const int*>(p), _mm256_castsi256_si128(first_lanes32(m))));
  else
    _mm256_storeu_si256((__m256i*)part, _mm256_maskload_epi64(reinterpret_cast<const long long*>(p), first_lanes64(m)));
#else
  for (int64_t i = 0; i < m; ++i) part[i] = p[i];
#endif
  return K::load(part);
}

template <class K>
inline void enter_two(vu* part, const typename K::element* p) {
  if constexpr (requires { K::enter_two(part, p); })
    K::enter_two(part, p);
  else
    K::enter(part, K::load(p), K::load(p + W));
}

template <class K>
inline wide total(const vu* x, int64_t n) {
  uint64_t part[K::parts];
  for (int k = 0; k < K::parts; ++k) {
    part[k] = 0;
    for (int l = 0; l < W; ++l) part[k] += x[k][l];
  }
  return K::total(part, n);
}

template <class K>
wide row(const typename K::element* p, int64_t n) {
  constexpr int parts = K::parts;
  vu x[parts] = {}, y[parts] = {};
  int64_t i = 0;
  for (; i + 4 * W <= n; i += 4 * W) {
    for (int b = 0; b < 4 * W * static_cast<int>(sizeof(*p)); b += 64)
      fetch(reinterpret_cast<const char*>(p + i) + tuned.read_ahead + b);
    enter_two<K>(x, p + i);
    enter_two<K>(y, p + i + 2 * W);
  }
  for (; i + W <= n; i += W) K::enter(x, K::load(p + i));
  if (i < n) {
    K::enter(x, load_rest<K>(p + i, n - i));
    i += W;
  }
  for (int k = 0; k < parts; ++k) x[k] += y[k];
  return total<K>(x, i);
}

inline vu or_of(vu a, vu b, vu c) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vu>(_mm512_ternarylogic_epi64(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b),
                                                        reinterpret_cast<__m512i>(c), 0xFE));
#else
  return a | b | c;
#endif
}

// Whole chunks of squares of i32 as long as they are small: up to 2^12 terms below 2^52 have a sum below 2^64, so the
// high halves are not needed, which saves 3 of 14 operations. Returns the number of chunks done.
constexpr int small_bits = 52;
template <class K>
int64_t small_chunks(const typename K::element* p, int64_t count, int64_t stride, wide* out) {
  static_assert(exact_chunk / 2 <= 1 << (64 - small_bits) && exact_chunk % (4 * W) == 0);
  for (int64_t s = 0; s < count; ++s, p += stride) {
    vu x = {}, y = {}, seen = {};
    for (int64_t i = 0; i < exact_chunk; i += 4 * W) {
      for (int b = 0; b < 4 * W * static_cast<int>(sizeof(*p)); b += 64)
        fetch(reinterpret_cast<const char*>(p + i) + tuned.read_ahead + b);
      const vu a = K::two_squares(p + i), b = K::two_squares(p + i + 2 * W);
      x += a, y += b;
      seen = or_of(seen, a, b);
    }
    uint64_t sum = 0, bits = 0;
    x += y;
    for (int l = 0; l < W; ++l) sum += x[l], bits |= seen[l];
    if (bits >> small_bits != 0) return s;
    out[s] = {{sum, 0, 0}};
  }
  return count;
}

template <class K>
void rows(const packed_rows& r, int64_t count, wide* out) {
  const auto* p = static_cast<const typename K::element*>(r.src);
  if constexpr (requires { K::two_squares(p); })
    if (r.offsets == nullptr && r.n == exact_chunk) {
      const int64_t done = small_chunks<K>(p, count, r.stride, out);
      p += done * r.stride, out += done, count -= done;
    }
  for (int64_t s = 0; s < count; ++s)
    out[s] = r.offsets != nullptr ? row<K>(p + r.offsets[s], r.offsets[s + 1] - r.offsets[s])
                                  : row<K>(p + s * r.stride, r.n);
}

// Whole chunks starting at a and at b, read at the same time, without prefetches: see isa/float_sums.cpp.
template <class K>
void two(const void* a, const void* b, int64_t count, wide* out_a, wide* out_b) {
  constexpr int parts = K::parts, size = sizeof(typename K::element), step = tuned.two_step / size,
                piece = tuned.stream_piece / size;
  const auto* p = static_cast<const typename K::element*>(a);
  const auto* q = static_cast<const typename K::element*>(b);
  for (int64_t s = 0; s < count; ++s) {
    vu x[parts] = {}, y[parts] = {};
    for (int64_t end = (s + 1) * exact_chunk, i = s * exact_chunk; i < end; i += piece) {
      for (int64_t j = i; j < i + piece; j += step)
#pragma GCC unroll 8
        for (int k = 0; k < step; k += 2 * W) enter_two<K>(x, p + j + k);
      for (int64_t j = i; j < i + piece; j += step)
#pragma GCC unroll 8
        for (int k = 0; k < step; k += 2 * W) enter_two<K>(y, q + j + k);
    }
    out_a[s] = total<K>(x, exact_chunk);
    out_b[s] = total<K>(y, exact_chunk);
  }
}

// Eight rows of the matrix at a time, so that the sums in L1 are touched once for
// eight elements.
template <class K>
void columns(const void* src, int64_t n, int64_t ld, int64_t width, wide* out) {
  const auto* p = static_cast<const typename K::element*>(src);
  constexpr int parts = K::parts, together = 8;
  vu sums[column_block / W][parts] = {};
  for (int64_t r = 0; r < n; r += together) {
    const int64_t last = n - r < together ? n : r + together;
    for (int64_t c = 0; c < width; c += W) {
      const auto* q = p + r * ld + c;
      vu part[parts];
      memcpy(part, sums[c / W], sizeof part);
      if (width - c < W) {
        for (int64_t i = r; i < last; ++i, q += ld) K::enter(part, load_rest<K>(q, width - c));
      } else {
        int64_t i = r;
        for (; i + 2 <= last; i += 2, q += 2 * ld) {
          __builtin_prefetch(q + together * ld);
          __builtin_prefetch(q + (together + 1) * ld);
          K::enter(part, K::load(q), K::load(q + ld));
        }
        if (i < last) K::enter(part, K::load(q));
      }
      memcpy(sums[c / W], part, sizeof part);
    }
  }
  for (int64_t c = 0; c < width; ++c) {
    uint64_t part[parts];
    for (int k = 0; k < parts; ++k) part[k] = sums[c / W][k][c % W];
    out[c] = K::total(part, n);
  }
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
