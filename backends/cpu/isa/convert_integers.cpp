// convert_integers.cpp - runs of integers and booleans to doubles and to 64-bit integers, and back, for convert.
// Idea    Floats go by way of doubles, integers among themselves by way of i64, which holds all but the upper half of
//         u64: every other type has its own largest value there.
//         The compiler vectorizes these plain loops.
// Limit   L1
// Watch   An integer beyond 2^53 that is to be rounded a second time becomes a double by rounding to odd, so that the
//         result has the rounding of the integer itself.
// Source  lockstep.h
#include "../convert_kernels.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

struct boolean {
  uint8_t byte;
};

template <class T>
inline double as_double(T x, bool odd) {
  if constexpr (sizeof(T) == 8) {
    const bool negative = x < 0;
    const uint64_t size = negative ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
    if (odd && size >> 53 != 0) {
      const uint64_t kept = (size & ~uint64_t{0x7FF}) | uint64_t{(size & 0x7FF) != 0} << 11;
      return negative ? -static_cast<double>(kept) : static_cast<double>(kept);
    }
  }
  return static_cast<double>(x);
}
template <>
inline double as_double(boolean x, bool) {
  return x.byte != 0 ? 1 : 0;
}

// Towards zero; what does not fit becomes the type's end, NaN 0.
template <class T>
inline T from_double(double x) {
  constexpr bool with_sign = static_cast<T>(-1) < T{0};
  constexpr T most = with_sign ? static_cast<T>((uint64_t{1} << (8 * sizeof(T) - 1)) - 1) : static_cast<T>(-1);
  constexpr T least = with_sign ? static_cast<T>(-most - 1) : T{0};
  constexpr double end =
      (with_sign ? 0.5 : 1) * (sizeof(T) == 8 ? 0x1p64 : static_cast<double>(uint64_t{1} << (8 * (sizeof(T) % 8))));
  if (x >= end) return most;
  if (x <= static_cast<double>(least)) return least;
  return x == x ? static_cast<T>(x) : T{0};
}
template <>
inline boolean from_double(double x) {
  return {static_cast<uint8_t>(!(x == 0))};
}

template <class T>
void to_doubles(const void* src, double* x, int64_t n, bool odd) {
  const auto* from = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) x[i] = as_double(from[i], odd);
}
template <class T>
void from_doubles(const double* x, void* dst, int64_t n) {
  auto* to = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i] = from_double<T>(x[i]);
}

constexpr int64_t most_i64 = 0x7FFFFFFFFFFFFFFF;

template <class T>
void to_integers(const void* src, int64_t* x, int64_t n) {
  const auto* from = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (sizeof(T) == 8)
      x[i] = from[i] > static_cast<T>(most_i64) ? most_i64 : static_cast<int64_t>(from[i]);
    else
      x[i] = from[i];
  }
}
template <>
void to_integers<boolean>(const void* src, int64_t* x, int64_t n) {
  const auto* from = static_cast<const uint8_t*>(src);
  for (int64_t i = 0; i < n; ++i) x[i] = from[i] != 0;
}
template <class T>
void from_integers(const int64_t* x, void* dst, int64_t n) {
  constexpr bool with_sign = static_cast<T>(-1) < T{0};
  constexpr int64_t most = sizeof(T) == 8 ? most_i64 : (int64_t{1} << (8 * (sizeof(T) % 8) - with_sign)) - 1;
  constexpr int64_t least = with_sign ? -most - 1 : 0;
  auto* to = static_cast<T*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(x[i] > most ? most : x[i] < least ? least : x[i]);
}
template <>
void from_integers<boolean>(const int64_t* x, void* dst, int64_t n) {
  auto* to = static_cast<uint8_t*>(dst);
  for (int64_t i = 0; i < n; ++i) to[i] = x[i] != 0;
}

}  // namespace

extern const integer_kernels integers_table;
const integer_kernels integers_table = {
    {to_doubles<int32_t>, to_doubles<int64_t>, to_doubles<int8_t>, to_doubles<int16_t>, to_doubles<uint8_t>,
     to_doubles<uint16_t>, to_doubles<uint32_t>, to_doubles<uint64_t>, to_doubles<boolean>},
    {from_doubles<int32_t>, from_doubles<int64_t>, from_doubles<int8_t>, from_doubles<int16_t>, from_doubles<uint8_t>,
     from_doubles<uint16_t>, from_doubles<uint32_t>, from_doubles<uint64_t>, from_doubles<boolean>},
    {to_integers<int32_t>, to_integers<int64_t>, to_integers<int8_t>, to_integers<int16_t>, to_integers<uint8_t>,
     to_integers<uint16_t>, to_integers<uint32_t>, to_integers<uint64_t>, to_integers<boolean>},
    {from_integers<int32_t>, from_integers<int64_t>, from_integers<int8_t>, from_integers<int16_t>,
     from_integers<uint8_t>, from_integers<uint16_t>, from_integers<uint32_t>, from_integers<uint64_t>,
     from_integers<boolean>}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
