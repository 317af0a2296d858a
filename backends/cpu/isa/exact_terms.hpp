// exact_terms.hpp - the terms of exact_sums.cpp: integers as 64-bit lanes, W at once, and how each is added to its
// lane.
#pragma once

#include "vectors.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;
typedef int32_t vi32 __attribute__((vector_size(W * 4)));
typedef int64_t vi64 __attribute__((vector_size(W * 8)));

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
inline vu load_i64(const void* p) { return load_line<vu>(p); }
template <class T>
inline vu load_widened(const T* p) {
  typedef T narrow __attribute__((vector_size(W * sizeof(T))));
  narrow x;
  memcpy(&x, p, sizeof x);
  if constexpr (T(-1) < T(0))
    return reinterpret_cast<vu>(__builtin_convertvector(x, vi64));
  else
    return __builtin_convertvector(x, vu);
}

// A term's two sums, and the exact sum that they represent.
inline void enter_term(vu* part, vu t) {
  part[0] += t;
  part[1] += t >> 32;
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
  // The products use only the low halves: a register's even elements in place, its odd ones shifted down.
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

// ---- u64, and what is narrower ------------------------------------------------------
struct u64_sum {
  typedef uint64_t element;
  static constexpr int parts = 2;
  static vu load(const uint64_t* p) { return load_i64(p); }
  static void enter(vu* part, vu a, vu b) {
    enter_term(part, a);
    enter_term(part, b);
  }
  static void enter(vu* part, vu a) { enter_term(part, a); }
  static wide total(const uint64_t* part, int64_t) { return widened(static_cast<int128>(value_of(part))); }
};
struct u64_square : i64_square {
  typedef uint64_t element;
  static vu load(const uint64_t* p) { return load_i64(p); }
};
// Two squares of u32 may exceed a u64.
struct u32_square {
  typedef uint32_t element;
  static constexpr int parts = 2;
  static vu load(const uint32_t* p) { return load_widened(p); }
  static void enter(vu* part, vu a, vu b) {
    enter(part, a);
    enter(part, b);
  }
  static void enter(vu* part, vu a) { enter_term(part, product_unsigned(a, a)); }
  static wide total(const uint64_t* part, int64_t) { return widened(static_cast<int128>(value_of(part))); }
};
// Types whose sums over a chunk fit 64 bits.
template <class T>
struct small_sum {
  typedef T element;
  static constexpr int parts = 1;
  static vu load(const T* p) { return load_widened(p); }
  static void enter(vu* part, vu a, vu b) { part[0] += a + b; }
  static void enter(vu* part, vu a) { part[0] += a; }
  static wide total(const uint64_t* part, int64_t) { return widened(static_cast<int64_t>(part[0])); }
};
template <class T>
struct small_square : small_sum<T> {
  static void enter(vu* part, vu a, vu b) { part[0] += product_signed(a) + product_signed(b); }
  static void enter(vu* part, vu a) { part[0] += product_signed(a); }
};
struct bool_sum : small_sum<uint8_t> {
  static vu load(const uint8_t* p) {
    const vu x = load_widened(p);
    return reinterpret_cast<vu>(x != 0) & 1;
  }
};

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
