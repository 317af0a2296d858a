// narrow_sums.hpp - exact sums and sums of squares of integers of 1 and 2 bytes, a register of packed elements at once.
// Idea    neighbours are added in lanes twice as wide, those of 1 byte by the sum of absolute differences from 0.
//         32-bit lanes hold the sum of a chunk, except for squares of 2 bytes.
//         Signed elements are shifted up by half their
//         range; this is subtracted at the end, also for the zeros that pad the last register.
// Limit   2 to 8 operations for each register; DRAM: the read limit
// Watch   two squares of -2^15 add up to 2^31, so the sum is unsigned
#pragma once

#include "../reduce_kernels.hpp"
#include "vectors.hpp"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

typedef uint8_t vb8 __attribute__((vector_size(W * 8)));
typedef int16_t vh16 __attribute__((vector_size(W * 8)));
typedef uint16_t vw16 __attribute__((vector_size(W * 8)));
typedef int32_t vh32 __attribute__((vector_size(W * 8)));
typedef uint32_t vw32 __attribute__((vector_size(W * 8)));

// Sums of 16-bit lanes two by two, as 32-bit lanes.
inline vw32 pairs_of(vw16 x) {
  const vw32 both = reinterpret_cast<vw32>(x);
  return (both & 0xFFFFu) + (both >> 16);
}
// Sums of bytes in 32-bit lanes, in any order.
inline vw32 sums_of(vb8 x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vw32>(_mm512_sad_epu8(reinterpret_cast<__m512i>(x), __m512i{}));
#elif defined(LOCKSTEP_ISA_AVX2)
  return reinterpret_cast<vw32>(_mm256_sad_epu8(reinterpret_cast<__m256i>(x), __m256i{}));
#elif defined(__SSE2__)
  return reinterpret_cast<vw32>(_mm_sad_epu8(reinterpret_cast<__m128i>(x), __m128i{}));
#else
  const vw16 both = reinterpret_cast<vw16>(x);
  return pairs_of((both & 0xFF) + (both >> 8));
#endif
}
// Squares of signed 16-bit lanes, two by two.
inline vw32 squares_of(vh16 x) {
#if defined(LOCKSTEP_ISA_AVX512)
  return reinterpret_cast<vw32>(_mm512_madd_epi16(reinterpret_cast<__m512i>(x), reinterpret_cast<__m512i>(x)));
#elif defined(LOCKSTEP_ISA_AVX2)
  return reinterpret_cast<vw32>(_mm256_madd_epi16(reinterpret_cast<__m256i>(x), reinterpret_cast<__m256i>(x)));
#elif defined(__SSE2__)
  return reinterpret_cast<vw32>(_mm_madd_epi16(reinterpret_cast<__m128i>(x), reinterpret_cast<__m128i>(x)));
#else
  const vh32 both = reinterpret_cast<vh32>(x);
  const vw32 even = reinterpret_cast<vw32>((both << 16) >> 16), odd = reinterpret_cast<vw32>(both >> 16);
  return even * even + odd * odd;
#endif
}
inline vu halves_of(vw32 x) {
  const vu both = reinterpret_cast<vu>(x);
  return (both & 0xFFFFFFFFu) + (both >> 32);
}
// The sum of all lanes.
inline int64_t total_of_32(vu x) {
  int64_t sum = 0;
  for (int l = 0; l < W; ++l) sum += static_cast<int64_t>((x[l] & 0xFFFFFFFFu) + (x[l] >> 32));
  return sum;
}
inline int64_t total_of_64(vu x) {
  uint64_t sum = 0;
  for (int l = 0; l < W; ++l) sum += x[l];
  return static_cast<int64_t>(sum);
}

// enter(part, x) adds a register's terms; total(part, n) is the sum of n elements, without the effect of padding zeros.
struct u8_packed {
  typedef uint8_t element;
  static constexpr int parts = 1;
  static void enter(vu* part, vu x) {
    part[0] = reinterpret_cast<vu>(reinterpret_cast<vw32>(part[0]) + sums_of(reinterpret_cast<vb8>(x)));
  }
  static int64_t total(const vu* part, int64_t) { return total_of_32(part[0]); }
};
struct i8_packed : u8_packed {
  typedef int8_t element;
  static void enter(vu* part, vu x) { u8_packed::enter(part, x ^ 0x8080808080808080u); }
  static int64_t total(const vu* part, int64_t n) { return total_of_32(part[0]) - 128 * n; }
};
struct bool_packed : u8_packed {
  static void enter(vu* part, vu x) {
    const auto truths = reinterpret_cast<vu>(reinterpret_cast<vb8>(x) != 0) & 0x0101010101010101u;
    u8_packed::enter(part, truths);
  }
};
struct u16_packed {
  typedef uint16_t element;
  static constexpr int parts = 1;
  static void enter(vu* part, vu x) {
    part[0] = reinterpret_cast<vu>(reinterpret_cast<vw32>(part[0]) + pairs_of(reinterpret_cast<vw16>(x)));
  }
  static int64_t total(const vu* part, int64_t) { return total_of_32(part[0]); }
};
struct i16_packed : u16_packed {
  typedef int16_t element;
  static void enter(vu* part, vu x) { u16_packed::enter(part, x ^ 0x8000800080008000u); }
  static int64_t total(const vu* part, int64_t n) { return total_of_32(part[0]) - 32768 * n; }
};

struct i8_squares : u8_packed {
  typedef int8_t element;
  static void enter(vu* part, vu x) {
    const vh16 both = reinterpret_cast<vh16>(x);
    const vw32 even = squares_of(reinterpret_cast<vh16>(both << 8) >> 8), odd = squares_of(both >> 8);
    part[0] = reinterpret_cast<vu>(reinterpret_cast<vw32>(part[0]) + (even + odd));
  }
};
struct u8_squares : u8_packed {
  static void enter(vu* part, vu x) {
    const vw16 both = reinterpret_cast<vw16>(x);
    const vw32 even = squares_of(reinterpret_cast<vh16>(both & 0xFF)),
               odd = squares_of(reinterpret_cast<vh16>(both >> 8));
    part[0] = reinterpret_cast<vu>(reinterpret_cast<vw32>(part[0]) + (even + odd));
  }
};
struct i16_squares {
  typedef int16_t element;
  static constexpr int parts = 1;
  static void enter(vu* part, vu x) { part[0] += halves_of(squares_of(reinterpret_cast<vh16>(x))); }
  static int64_t total(const vu* part, int64_t) { return total_of_64(part[0]); }
};
// x = y + 2^15 with y signed: x^2 = y^2 + 2^16 x - 2^30.
struct u16_squares {
  typedef uint16_t element;
  static constexpr int parts = 2;
  static void enter(vu* part, vu x) {
    i16_squares::enter(part, x ^ 0x8000800080008000u);
    u16_packed::enter(part + 1, x);
  }
  static int64_t total(const vu* part, int64_t n) {
    return total_of_64(part[0]) + (total_of_32(part[1]) << 16) - (n << 30);
  }
};

template <class K>
wide narrow_row(const typename K::element* p, int64_t n) {
  constexpr int width = static_cast<int>(sizeof(vu) / sizeof(*p)), parts = K::parts;
  vu x[parts] = {};
  const auto take = [&](const void* from) {
    vu v;
    memcpy(&v, from, sizeof v);
    K::enter(x, v);
  };
  int64_t i = 0;
  for (; i + 4 * width <= n; i += 4 * width) {
    for (int b = 0; b < 4 * static_cast<int>(sizeof(vu)); b += 64)
      fetch(reinterpret_cast<const char*>(p + i) + tuned.read_ahead + b);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) take(p + i + k * width);
  }
  for (; i + width <= n; i += width) take(p + i);
  if (i < n) {
    typename K::element part[width] = {};
    memcpy(part, p + i, static_cast<size_t>(n - i) * sizeof(*p));
    take(part);
    i += width;
  }
  const int64_t sum = K::total(x, i);
  return {{static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 63), static_cast<uint64_t>(sum >> 63)}};
}

template <class K>
void narrow_rows(const packed_rows& r, int64_t count, wide* out) {
  const auto* p = static_cast<const typename K::element*>(r.src);
  for (int64_t s = 0; s < count; ++s)
    out[s] = r.offsets != nullptr ? narrow_row<K>(p + r.offsets[s], r.offsets[s + 1] - r.offsets[s])
                                  : narrow_row<K>(p + s * r.stride, r.n);
}
template <class K>
void narrow_two(const void* a, const void* b, int64_t count, wide* out_a, wide* out_b) {
  narrow_rows<K>({a, exact_chunk, exact_chunk, nullptr}, count, out_a);
  narrow_rows<K>({b, exact_chunk, exact_chunk, nullptr}, count, out_b);
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
