// exact_sums.cpp - exact sums and sums of squares of integers.
// Idea    64-bit lanes keep two sums of each term t: of t itself, modulo 2^64, and of t >> 32. Together they give
//         the exact sum of up to 2^32 terms: the low halves add up to the first less 2^32 times the second.
//         Squares of i64 are three such terms (schoolbook, 32-bit digits).
// Moves   every element read once; 24 bytes written a chunk
// Limit   L2: 5 or 7 operations a vector of i32 squares; DRAM: the read limit
// Watch   two squares of i32 fit one u64 (2 * 2^62), four do not
// Source  this repository
#include "../reduce_kernels.hpp"
#include "mutant.hpp"
#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
typedef int32_t vi32 __attribute__((vector_size(W * 4)));
typedef int64_t vi64 __attribute__((vector_size(W * 8)));

constexpr int ahead = 8192;  // bytes; see float_sums.cpp

// Products of the lanes' low 32 bits: signed, unsigned. (maskz with all lanes: GCC 12 warns about its own plain form.)
inline vu product_signed(vu x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vu>(_mm512_maskz_mul_epi32(0xFF, reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(x)));
#elif defined(LOCKSTEP_ISA_AVX2)
  return reinterpret_cast<vu>(_mm256_mul_epi32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(x)));
#else
  return x * x;
#endif
}
inline vu product_unsigned(vu x, vu y) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vu>(_mm512_maskz_mul_epu32(0xFF, reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(y)));
#elif defined(LOCKSTEP_ISA_AVX2)
  return reinterpret_cast<vu>(_mm256_mul_epu32(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(y)));
#else
  return (x & 0xFFFFFFFFu) * (y & 0xFFFFFFFFu);
#endif
}

inline vu load_i32(const int32_t* p) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vu>(_mm512_maskz_cvtepi32_epi64(0xFF, _mm256_loadu_si256((const __m256i*)p)));
#elif defined(LOCKSTEP_ISA_AVX2)
  return reinterpret_cast<vu>(_mm256_cvtepi32_epi64(_mm_loadu_si128((const __m128i*)p)));
#else
  vi32 x;
  memcpy(&x, p, sizeof x);
  return reinterpret_cast<vu>(__builtin_convertvector(x, vi64));
#endif
}
inline vu load_i64(const int64_t* p) { return load_line<vu>(p); }

// A term's two sums, and what they stand for.
inline void enter_term(vu* part, vu t) {
  part[0] += t;
  if (!LOCKSTEP_MUTANT("exact_chunk_wraps")) part[1] += t >> 32;
}
inline uint128 value_of(const uint64_t* part) {
  return (static_cast<uint128>(part[1]) << 32) + (part[0] - (part[1] << 32));
}
inline wide widened(int128 x) {
  return {{static_cast<uint64_t>(x), static_cast<uint64_t>(x >> 64), x < 0 ? ~uint64_t{0} : 0}};
}

struct i32_sum {
  typedef int32_t element;
  static constexpr int parts = 1;
  static vu load(const int32_t* p) { return load_i32(p); }
  static void enter(vu* part, vu a, vu b) { part[0] += a + b; }
  static void enter(vu* part, vu a) { part[0] += a; }
  static wide total(const uint64_t* part, int64_t) { return widened(static_cast<int64_t>(part[0])); }
};
// Shifted up by 2^63, so that the halves are unsigned.
struct i64_sum {
  typedef int64_t element;
  static constexpr int parts = 2;
  static vu load(const int64_t* p) { return load_i64(p) ^ (uint64_t{1} << 63); }
  static void enter(vu* part, vu a, vu b) {
    enter_term(part, a);
    enter_term(part, b);
  }
  static void enter(vu* part, vu a) { enter_term(part, a); }
  static wide total(const uint64_t* part, int64_t n) {
    return widened(static_cast<int128>(value_of(part)) - (static_cast<int128>(n) << 63));
  }
};
struct i32_square {
  typedef int32_t element;
  static constexpr int parts = 2;
  static vu load(const int32_t* p) { return load_i32(p); }
#if defined(LOCKSTEP_ISA_AVX512) || defined(LOCKSTEP_ISA_AVX2)
  // The products look at the low halves only: a register's even elements as they lie, its odd ones shifted down.
  static void enter_two(vu* part, const int32_t* p) { enter_term(part, two_squares(p)); }
  static vu two_squares(const int32_t* p) {
    vu x;
    memcpy(&x, p, sizeof x);
    return product_signed(x) + product_signed(x >> 32);
  }
#else
  static vu two_squares(const int32_t* p) { return product_signed(load(p)) + product_signed(load(p + W)); }
#endif
  static void enter(vu* part, vu a, vu b) { enter_term(part, product_signed(a) + product_signed(b)); }
  static void enter(vu* part, vu a) { enter_term(part, product_signed(a)); }
  static wide total(const uint64_t* part, int64_t) { return widened(static_cast<int128>(value_of(part))); }
};
// (h * 2^32 + l)^2 = h^2 * 2^64 + h*l * 2^33 + l^2 of the magnitude.
struct i64_square {
  typedef int64_t element;
  static constexpr int parts = 6;
  static vu load(const int64_t* p) {
    const vu x = load_i64(p), sign = reinterpret_cast<vu>(reinterpret_cast<vi64>(x) < 0);
    return (x ^ sign) - sign;
  }
  static void enter(vu* part, vu a, vu b) {
    enter(part, a);
    enter(part, b);
  }
  static void enter(vu* part, vu a) {
    const vu high = a >> 32;
    enter_term(part, product_unsigned(a, a));
    enter_term(part + 2, product_unsigned(a, high));
    enter_term(part + 4, product_unsigned(high, high));
  }
  static wide total(const uint64_t* part, int64_t) {
    const uint128 low = value_of(part) + (value_of(part + 2) << 33), high = value_of(part + 4) + (low >> 64);
    return {{static_cast<uint64_t>(low), static_cast<uint64_t>(high), static_cast<uint64_t>(high >> 64)}};
  }
};

// The first m < W elements of p and zeros.
template <class K>
inline vu load_part(const typename K::element* p, int64_t m) {
  typename K::element part[W] = {};
#if defined(LOCKSTEP_ISA_AVX512)
  const auto mask = static_cast<__mmask8>((1 << m) - 1);
  if constexpr (sizeof(*p) == 4)
    _mm256_storeu_si256((__m256i*)part, _mm256_maskz_loadu_epi32(mask, p));
  else
    _mm512_storeu_si512(part, _mm512_maskz_loadu_epi64(mask, p));
#elif defined(LOCKSTEP_ISA_AVX2)
  if constexpr (sizeof(*p) == 4)
    _mm_storeu_si128((__m128i*)part, _mm_maskload_epi32(p, _mm256_castsi256_si128(first_lanes32(m))));
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
      fetch(reinterpret_cast<const char*>(p + i) + ahead + b);
    enter_two<K>(x, p + i);
    enter_two<K>(y, p + i + 2 * W);
  }
  for (; i + W <= n; i += W) K::enter(x, K::load(p + i));
  if (i < n) {
    K::enter(x, load_part<K>(p + i, n - i));
    i += W;
  }
  for (int k = 0; k < parts; ++k) x[k] += y[k];
  return total<K>(x, LOCKSTEP_MUTANT("exact_row_counts_no_pads") ? n : i);
}

inline vu or_of(vu a, vu b, vu c) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vu>(_mm512_ternarylogic_epi64(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b),
                                                        reinterpret_cast<__m512i>(c), 0xFE));
#else
  return a | b | c;
#endif
}

// Whole chunks of squares of i32 as long as they are small: up to 2^12 terms below 2^52 add up below 2^64, high halves
// need not be kept, and two vectors take 11 operations in place of 14: 1 MiB on one Zen 5 core 8.9 -> 7.7 us. Sums of
// larger squares (|x| from 2^25.5 on) seldom fit the I64 that they are meant for. Returns the chunks done.
constexpr int small_bits = 52;
template <class K>
int64_t small_chunks(const typename K::element* p, int64_t count, int64_t stride, wide* out) {
  static_assert(exact_chunk / 2 <= 1 << (64 - small_bits) && exact_chunk % (4 * W) == 0);
  for (int64_t s = 0; s < count; ++s, p += stride) {
    vu x = {}, y = {}, seen = {};
    for (int64_t i = 0; i < exact_chunk; i += 4 * W) {
      for (int b = 0; b < 4 * W * static_cast<int>(sizeof(*p)); b += 64)
        fetch(reinterpret_cast<const char*>(p + i) + ahead + b);
      const vu a = K::two_squares(p + i), b = K::two_squares(p + i + 2 * W);
      x += a, y += b;
      seen = or_of(seen, a, b);
    }
    uint64_t sum = 0, bits = 0;
    x += y;
    for (int l = 0; l < W; ++l) sum += x[l], bits |= seen[l];
    if (bits >> small_bits != 0 && !LOCKSTEP_MUTANT("large_squares_as_small_ones")) return s;
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

// Whole chunks from a on and from b on, side by side, without prefetches: see isa/float_sums.cpp.
template <class K>
void two(const void* a, const void* b, int64_t count, wide* out_a, wide* out_b) {
  constexpr int parts = K::parts, size = sizeof(typename K::element), step = 256 / size, turn = turn_bytes / size;
  const auto* p = static_cast<const typename K::element*>(a);
  const auto* q = static_cast<const typename K::element*>(b);
  for (int64_t s = 0; s < count; ++s) {
    vu x[parts] = {}, y[parts] = {};
    for (int64_t end = (s + 1) * exact_chunk, i = s * exact_chunk; i < end; i += turn) {
      for (int64_t j = i; j < i + turn; j += step)
#pragma GCC unroll 8
        for (int k = 0; k < step; k += 2 * W) enter_two<K>(x, p + j + k);
      for (int64_t j = i; j < i + turn; j += step)
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
        for (int64_t i = r; i < last; ++i, q += ld) K::enter(part, load_part<K>(q, width - c));
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

extern const exact_sum_kernels exact_sums_table;
const exact_sum_kernels exact_sums_table = {{
    {rows<i32_sum>, two<i32_sum>, columns<i32_sum>},
    {rows<i64_sum>, two<i64_sum>, columns<i64_sum>},
    {rows<i32_square>, two<i32_square>, columns<i32_square>},
    {rows<i64_square>, two<i64_square>, columns<i64_square>},
}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
