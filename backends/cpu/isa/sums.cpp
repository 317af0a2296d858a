// sums.cpp - products, differences squared and without their sign, and magnitudes: columns of floats, exact sums of
//            integers, and digests.
// Idea    integers: plain loops in the narrowest type that a chunk's sum fits, which the compiler turns into vectors.
// Moves   both arrays read once
// Limit   the read limit in DRAM. Products of 64-bit integers: one multiplication each
// Watch   32-bit products: two of them do not fit 64 bits, so their halves are summed apart
// Source  lib/bits/order.hpp
#include "../sums_kernels.hpp"
#include "bits/digest.hpp"
#include "pair_terms.hpp"
#include "sum_columns.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

// ---- columns of floats ---------------------------------------------------------------
// y is x where there is one matrix.
template <class E, class Enter>
void columns(const void* x, int64_t x_ld, const void* y, int64_t y_ld, int64_t n, int64_t width, double* out) {
  typedef const typename E::type* elements;
  leaf_of_columns<E>(
      matrix<E>{static_cast<elements>(x), x_ld}, matrix<E>{static_cast<elements>(y), y_ld}, n, width,
      [](vd acc, vd a, vd b, int64_t) { return Enter{}(acc, a, b); }, out);
}
// A leaf of columns, copied so that each lane's rows follow each other: where they lie, powers of two apart, they would
// evict each other from the L2 before they are read again.
template <class E>
matrix<E> by_lanes(const matrix<E>& x, int64_t n, int64_t width, void* room) {
  constexpr int64_t ahead = 16;  // rows
  const int64_t depth = (n - 1) / lanes + 1, bytes = width * static_cast<int64_t>(sizeof(typename E::type));
  auto* const to = static_cast<typename E::type*>(room);
  for (int64_t r = 0; r < n; ++r) {
    const typename E::type* const row = x.at + r * x.ld;
    if (r + ahead < n)
      for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch(reinterpret_cast<const char*>(row + ahead * x.ld) + b);
    memcpy(to + (r % lanes * depth + r / lanes) * width, row, static_cast<size_t>(bytes));
  }
  return {to, depth * width, width};
}
template <class E>
void moment_columns(const void* x, int64_t ld, int64_t n, int64_t width, void* room, double* sum, double* m2) {
  const matrix<E> here{static_cast<const typename E::type*>(x), ld};
  const matrix<E> m = room == nullptr || are_few_columns(n, width) ? here : by_lanes(here, n, width, room);
  leaf_of_columns<E>(
      m, m, n, width, [](vd acc, vd a, vd, int64_t) { return acc + a; }, sum);
  alignas(64) double mean[column_block + W];  // a vector beyond the last column is read, and not used
  for (int64_t c = 0; c < width; ++c) mean[c] = sum[c] / static_cast<double>(n);
  for (int64_t c = width; c < width + W; ++c) mean[c] = 0;
  leaf_of_columns<E>(
      m, m, n, width,
      [&mean](vd acc, vd a, vd, int64_t c) {
        vd middle;
        memcpy(&middle, mean + c, sizeof middle);
        return fused_square(a - middle, acc);
      },
      m2);
}

// ---- integers -----------------------------------------------------------------------
struct truth {};  // of BOOL
template <class T>
struct element_of {
  typedef T type;
  static T value(T x) { return x; }
};
template <>
struct element_of<truth> {
  typedef uint8_t type;
  static uint8_t value(uint8_t x) { return x != 0; }
};

inline wide widened(int128 x) {
  return {{static_cast<uint64_t>(x), static_cast<uint64_t>(x >> 64), x < 0 ? ~uint64_t{0} : 0}};
}
// low and high: sums of the low and the high 64 bits of terms, high signed.
inline wide widened(uint128 low, int128 high) {
  high += static_cast<int128>(low >> 64);
  return {{static_cast<uint64_t>(low), static_cast<uint64_t>(high), static_cast<uint64_t>(high >> 64)}};
}

// A chunk of terms that fit 32 bits in sum, or 64.
template <class Sum, class K, class Term>
inline wide narrow_sum(const void* x, const void* y, int64_t n, const Term& term) {
  typedef typename K::type T;
  const T *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
  Sum sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += term(static_cast<Sum>(K::value(p[i])), static_cast<Sum>(K::value(q[i])));
  return widened(static_cast<int128>(sum));
}
// Terms of 64 bits that are not negative: term() gives them, and what was added to each of them.
template <class T, class Term>
inline wide halves_sum(const void* x, const void* y, int64_t n, uint64_t added, const Term& term) {
  const T *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
  uint64_t all = 0, high = 0;  // all modulo 2^64, which the high halves complete
  for (int64_t i = 0; i < n; ++i) {
    const uint64_t t = term(p[i], q[i]);
    all += t;
    high += t >> 32;
  }
  const uint128 sum = (static_cast<uint128>(high) << 32) + (all - (high << 32));
  return widened(static_cast<int128>(sum) -
                 static_cast<int128>(static_cast<uint128>(added) * static_cast<uint64_t>(n)));
}
template <class T>
inline uint32_t distance32(T a, T b) {
  return a > b ? static_cast<uint32_t>(a) - static_cast<uint32_t>(b)
               : static_cast<uint32_t>(b) - static_cast<uint32_t>(a);
}
template <class T>
inline uint64_t distance64(T a, T b) {
  return a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b)
               : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
}

template <class T>
constexpr bool is_signed = false;
template <>
constexpr bool is_signed<int32_t> = true;
template <>
constexpr bool is_signed<int64_t> = true;

template <class T>
wide exact_dot(const void* x, const void* y, int64_t n) {
  typedef element_of<T> K;
  constexpr int bytes = sizeof(typename K::type);
  if constexpr (bytes == 1) {
    return narrow_sum<int32_t, K>(x, y, n, [](int32_t a, int32_t b) { return a * b; });
  } else if constexpr (bytes == 2) {
    return narrow_sum<int64_t, K>(x, y, n, [](int64_t a, int64_t b) {
      return static_cast<int64_t>(static_cast<int32_t>(a)) * static_cast<int32_t>(b);
    });
  } else if constexpr (bytes == 4 && is_signed<T>) {
    constexpr uint64_t shift = uint64_t{1} << 63;
    return halves_sum<T>(x, y, n, shift, [](T a, T b) { return static_cast<uint64_t>(int64_t{a} * b) + shift; });
  } else if constexpr (bytes == 4) {
    return halves_sum<T>(x, y, n, 0, [](T a, T b) { return uint64_t{a} * b; });
  } else {
    const T *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
    uint128 low = 0;
    int128 high = 0;
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (is_signed<T>) {
        const int128 t = static_cast<int128>(p[i]) * q[i];
        low += static_cast<uint64_t>(t);
        high += static_cast<int64_t>(t >> 64);
      } else {
        const uint128 t = static_cast<uint128>(p[i]) * q[i];
        low += static_cast<uint64_t>(t);
        high += static_cast<uint64_t>(t >> 64);
      }
    }
    return widened(low, high);
  }
}
template <class T>
wide exact_squared_differences(const void* x, const void* y, int64_t n) {
  typedef element_of<T> K;
  constexpr int bytes = sizeof(typename K::type);
  if constexpr (bytes == 1) {
    return narrow_sum<int32_t, K>(x, y, n, [](int32_t a, int32_t b) { return (a - b) * (a - b); });
  } else if constexpr (bytes == 2) {
    return narrow_sum<int64_t, K>(x, y, n, [](int64_t a, int64_t b) {
      const auto d = static_cast<int32_t>(a) - static_cast<int32_t>(b);
      return static_cast<int64_t>(d) * d;
    });
  } else if constexpr (bytes == 4) {
    return halves_sum<T>(x, y, n, 0, [](T a, T b) {
      const uint32_t d = distance32(a, b);
      return uint64_t{d} * d;
    });
  } else {
    const T *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
    uint128 low = 0;
    int128 high = 0;
    for (int64_t i = 0; i < n; ++i) {
      const uint64_t d = distance64(p[i], q[i]);
      const uint128 t = static_cast<uint128>(d) * d;
      low += static_cast<uint64_t>(t);
      high += static_cast<uint64_t>(t >> 64);
    }
    return widened(low, high);
  }
}
template <class T>
wide exact_absolute_differences(const void* x, const void* y, int64_t n) {
  typedef element_of<T> K;
  constexpr int bytes = sizeof(typename K::type);
  const auto apart = [](auto a, auto b) { return a > b ? a - b : b - a; };
  if constexpr (bytes <= 2) {
    return narrow_sum<int32_t, K>(x, y, n, apart);
  } else if constexpr (bytes == 4) {
    return narrow_sum<int64_t, K>(x, y, n, apart);
  } else {
    const T *p = static_cast<const T*>(x), *q = static_cast<const T*>(y);
    uint128 sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += distance64(p[i], q[i]);
    return widened(static_cast<int128>(sum));
  }
}
template <class T>
wide exact_absolute(const void* x, const void*, int64_t n) {
  typedef element_of<T> K;
  typedef typename K::type E;
  if constexpr (sizeof(E) < 8) {
    typedef int64_t Sum;
    const E* p = static_cast<const E*>(x);
    Sum sum = 0;
    for (int64_t i = 0; i < n; ++i) {
      const auto v = static_cast<Sum>(K::value(p[i]));
      sum += v < 0 ? -v : v;
    }
    return widened(static_cast<int128>(sum));
  } else {
    const E* p = static_cast<const E*>(x);
    uint128 sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += distance64<E>(p[i], 0);
    return widened(static_cast<int128>(sum));
  }
}

void digest(const void* words, int64_t count, uint64_t key, uint64_t sums[2]) {
  const auto* p = static_cast<const char*>(words);
  vu first{}, second{}, keys{};
  for (int l = 0; l < W; ++l) keys[l] = key + static_cast<uint64_t>(l) * lockstep::digest::step;
  int64_t i = 0;
#pragma GCC unroll 4
  for (; i + W <= count; i += W) {
    vu word;
    memcpy(&word, p + 8 * i, sizeof word);
    const auto terms = lockstep::digest::terms_of(word, keys);
    first += terms.first, second += terms.second;
    keys += W * lockstep::digest::step;
  }
  for (int l = 0; l < W; ++l) sums[0] += first[l], sums[1] += second[l];
  for (; i < count; ++i) {
    uint64_t word;
    memcpy(&word, p + 8 * i, sizeof word);
    const auto terms = lockstep::digest::terms_of(word, key + static_cast<uint64_t>(i) * lockstep::digest::step);
    sums[0] += terms.first, sums[1] += terms.second;
  }
}

}  // namespace

#define LOCKSTEP_COLUMN_KINDS(E) \
  { columns<E, products<E>>, columns<E, squared_distances>, columns<E, distances>, columns<E, magnitudes> }
#define LOCKSTEP_EXACT_KINDS(T) \
  { exact_dot<T>, exact_squared_differences<T>, exact_absolute_differences<T>, exact_absolute<T> }
extern const sums_kernels summers_table;
const sums_kernels summers_table = {
    {LOCKSTEP_COLUMN_KINDS(f16_element), LOCKSTEP_COLUMN_KINDS(bf16_element), LOCKSTEP_COLUMN_KINDS(f32_element),
     LOCKSTEP_COLUMN_KINDS(f64_element)},
    {moment_columns<f16_element>, moment_columns<bf16_element>, moment_columns<f32_element>,
     moment_columns<f64_element>},
    {LOCKSTEP_EXACT_KINDS(int32_t), LOCKSTEP_EXACT_KINDS(int64_t), LOCKSTEP_EXACT_KINDS(int8_t),
     LOCKSTEP_EXACT_KINDS(int16_t), LOCKSTEP_EXACT_KINDS(uint8_t), LOCKSTEP_EXACT_KINDS(uint16_t),
     LOCKSTEP_EXACT_KINDS(uint32_t), LOCKSTEP_EXACT_KINDS(uint64_t), LOCKSTEP_EXACT_KINDS(truth)},
    digest};
#undef LOCKSTEP_EXACT_KINDS
#undef LOCKSTEP_COLUMN_KINDS

}  // namespace lockstep::cpu::LOCKSTEP_ISA
