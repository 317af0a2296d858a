// extreme.cuh - the folds of min, max, argmin and argmax (fold.cuh says what a fold is).
//
// Elements become integer keys (order.hpp); for the smaller the keys are turned
// over, so that the largest key wins throughout. NaN has the key beyond all others.
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "fold.cuh"

namespace lockstep::cuda {

template <class T>
struct key_of;
template <>
struct key_of<int32_t> {
  using type = int32_t;
  __device__ static type key(int32_t x, type turn) { return x ^ turn; }
  __device__ static int32_t value(type key, type turn) { return key ^ turn; }
};
template <>
struct key_of<int64_t> {
  using type = int64_t;
  __device__ static type key(int64_t x, type turn) { return x ^ turn; }
  __device__ static int64_t value(type key, type turn) { return key ^ turn; }
};
template <>
struct key_of<float> {
  using type = int32_t;
  __device__ static type key(float x, type turn) {
    return x != x ? INT32_MAX : order::key_f32(__float_as_uint(x)) ^ turn;
  }
  __device__ static float value(type key, type turn) {
    if (key == INT32_MAX) return __uint_as_float(order::nan_f32);
    return __uint_as_float(order::key_f32(static_cast<uint32_t>(key ^ turn)));  // key_f32 undoes itself, as bits
  }
};
template <>
struct key_of<double> {
  using type = int64_t;
  __device__ static type key(double x, type turn) {
    return x != x ? INT64_MAX : order::key_f64(static_cast<uint64_t>(__double_as_longlong(x))) ^ turn;
  }
  __device__ static double value(type key, type turn) {
    if (key == INT64_MAX) return __longlong_as_double(order::nan_f64);
    return __longlong_as_double(order::key_f64(static_cast<uint64_t>(key ^ turn)));
  }
};

// 16-bit elements have the keys of the floats that they are.
template <>
struct key_of<half16> {
  using type = int32_t;
  __device__ static type key(half16 x, type turn) {
    return key_of<float>::key(__half2float(__ushort_as_half(x.bits)), turn);
  }
  __device__ static half16 value(type key, type turn) {
    return {key == INT32_MAX ? order::nan_f16 : __half_as_ushort(__float2half_rn(key_of<float>::value(key, turn)))};
  }
};
template <>
struct key_of<bfloat16> {
  using type = int32_t;
  __device__ static type key(bfloat16 x, type turn) {
    return key_of<float>::key(__uint_as_float(static_cast<uint32_t>(x.bits) << 16), turn);
  }
  __device__ static bfloat16 value(type key, type turn) {
    const uint32_t bits = __float_as_uint(key_of<float>::value(key, turn));
    return {key == INT32_MAX ? order::nan_bf16 : static_cast<uint16_t>(bits >> 16)};
  }
};

// The larger or smaller, NaN before all, +0.0 above -0.0.
__device__ __forceinline__ float larger_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return a != a ? a : b != b ? b : fmaxf(a, b);
#endif
}
__device__ __forceinline__ float smaller_or_nan(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float c;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
#else
  return a != a ? a : b != b ? b : fminf(a, b);
#endif
}

// The best of some rows of a thread, turn 0 for the largest, -1 for the smallest: an operation an
// element, whose results do not wait for one another.
template <int rows, class T, class Better>
__device__ __forceinline__ T best_of_rows(const T (*x)[4], const Better& better) {
  T best[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) best[r] = better(better(x[r][0], x[r][1]), better(x[r][2], x[r][3]));
#pragma unroll
  for (int r = 1; r < rows; ++r) best[0] = better(best[0], best[r]);
  return best[0];
}
template <int rows>
__device__ __forceinline__ float best_of_rows(const float (*x)[4], int32_t turn) {
  return turn == 0 ? best_of_rows<rows>(x, larger_or_nan) : best_of_rows<rows>(x, smaller_or_nan);
}
template <int rows>
__device__ __forceinline__ int32_t best_of_rows(const int32_t (*x)[4], int32_t turn) {
  const auto larger = [](int32_t a, int32_t b) { return max(a, b); };
  const auto smaller = [](int32_t a, int32_t b) { return min(a, b); };
  return turn == 0 ? best_of_rows<rows>(x, larger) : best_of_rows<rows>(x, smaller);
}

// The best key of x[0 .. n-1], and as bits of `where` who has it. Floats by the hardware's
// maximum: four operations per element in place of eight, of which NaN and the key take five.
template <int n, class T>
__device__ __forceinline__ typename key_of<T>::type best_key(const T (&x)[n], typename key_of<T>::type turn,
                                                             uint32_t* where) {
  static_assert(n <= 32);
  using key = typename key_of<T>::type;
  const auto find = [&](const auto& of, auto best) {
    *where = 0;
#pragma unroll
    for (int k = 0; k < n; ++k)
      if (of(x[k]) == best) *where |= 1u << k;
  };
#if __CUDA_ARCH__ >= 800
  if constexpr (std::is_same_v<T, float>) {
    const auto turned = [&](float y) { return __float_as_uint(y) ^ (static_cast<uint32_t>(turn) & 0x80000000u); };
    float best = __uint_as_float(turned(x[0]));
#pragma unroll
    for (int k = 1; k < n; ++k) best = larger_or_nan(best, __uint_as_float(turned(x[k])));
    if (best == best) {
      if (where != nullptr) find(turned, __float_as_uint(best));
      return order::key_f32(__float_as_uint(best));
    }
    if (where == nullptr) return INT32_MAX;
  }
#endif
  const auto key_of_x = [&](T y) { return key_of<T>::key(y, turn); };
  key best = key_of_x(x[0]);
#pragma unroll
  for (int k = 1; k < n; ++k) best = max(best, key_of_x(x[k]));
  if (where != nullptr) find(key_of_x, best);
  return best;
}

__device__ __forceinline__ uint32_t bits_of(float x) { return __float_as_uint(x); }
__device__ __forceinline__ uint32_t bits_of(int32_t x) { return static_cast<uint32_t>(x); }

template <class T>
struct extreme {
  using element = T;
  using lane = typename key_of<T>::type;
  using partial = lane;
  static constexpr bool ordered = false;
  static constexpr int slots = 1;
  T* dst;
  lane turn;  // 0 for the largest, -1 for the smallest
  report_word word;

  __device__ bool open(int64_t) const { return true; }
  __device__ static lane empty_lane() { return none(); }
  __device__ static partial none() {
    return sizeof(lane) == 4 ? static_cast<lane>(INT32_MIN) : static_cast<lane>(INT64_MIN);
  }
  __device__ static partial join(partial a, partial b) { return a > b ? a : b; }
  __device__ void take(lane& acc, T x, int) const { acc = join(acc, key_of<T>::key(x, turn)); }
  __device__ void take_if(lane& acc, T x, int, bool wanted) const {
    acc = join(acc, wanted ? key_of<T>::key(x, turn) : none());
  }
  template <int V, int rows>
  __device__ __forceinline__ void take_rows(lane& acc, const T (&x)[rows][4], int, int) const requires(sizeof(T) == 4) {
    acc = join(acc, key_of<T>::key(best_of_rows<rows>(x, turn), turn));
  }
  __device__ static partial join_all(partial value) requires(sizeof(T) == 4) { return largest_of_warp(value); }
  __device__ static partial close(lane acc, int64_t) { return acc; }
  __device__ void store(partial value, int64_t s) const { dst[s] = key_of<T>::value(value, turn); }
  __device__ void store_empty(int64_t s) const { report(word, fault::empty, s); }
};

// An index is stored with the first key that beats the smallest possible one; if
// none does, all elements equal it and the first index is the answer.
template <class T>
struct arg_extreme {
  using element = T;
  using key = typename key_of<T>::type;
  struct lane {
    key best;
    int index;  // within the leaf, -1: none
  };
  struct partial {
    int64_t index;  // within the sequence, INT64_MAX: none
    int64_t best;   // the key; 64 bits leave no gap, which blocks would exchange uninitialised
  };
  static constexpr bool ordered = false;
  static constexpr int slots = 1;
  int64_t* dst;
  key turn;
  report_word word;

  __device__ bool open(int64_t) const { return true; }
  __device__ static lane empty_lane() { return {extreme<T>::none(), -1}; }
  __device__ static partial none() { return {INT64_MAX, extreme<T>::none()}; }
  __device__ static partial join(partial a, partial b) {
    return b.best > a.best || (b.best == a.best && b.index < a.index) ? b : a;
  }
  __device__ void take(lane& acc, T x, int index) const {  // indices come in increasing order
    const key k = key_of<T>::key(x, turn);
    if (k > acc.best) acc = {k, index};
  }
  __device__ void take_if(lane& acc, T x, int index, bool wanted) const {
    const key k = key_of<T>::key(x, turn);
    if (wanted && k > acc.best) acc = {k, index};
  }
  // The warp's best first, by an operation an element; its index only if it beats what the warp has, and
  // only among the first four rows that have it.
  template <int V, int rows>
  __device__ __forceinline__ void take_rows(lane& acc, const T (&x)[rows][4], int first, int t) const
      requires(sizeof(T) == 4) {
    constexpr int some = 4;
    key has[rows / some];
#pragma unroll
    for (int part = 0; part < rows / some; ++part)
      has[part] = key_of<T>::key(best_of_rows<some>(x + part * some, turn), turn);
    key best = has[0];
#pragma unroll
    for (int part = 1; part < rows / some; ++part) best = max(best, has[part]);
    best = largest_of_warp(best);
    if (best > acc.best) acc = {best, first * order::lanes + find<V>(x, has, best, t)};
  }
  // The lowest index in a warp's rows of a key that one has: among the first four that do. By recursion: a
  // loop that any() may leave stays rolled, and x in local memory.
  template <int V, int part = 0, int rows, int parts>
  __device__ __forceinline__ int find(const T (&x)[rows][4], const key (&has)[parts], key best, int t) const {
    constexpr int some = rows / parts;
    if constexpr (part + 1 < parts)
      if (!__any_sync(all_lanes, has[part] == best)) return find<V, part + 1>(x, has, best, t);
    const auto lowest = [&](const auto& is) {
      unsigned at = INT32_MAX;
#pragma unroll
      for (int i = some * 4 - 1; i >= 0; --i)
        if (is(x[part * some + i / 4][i % 4])) at = (part * some + i / 4) * order::lanes + lane_of<V>(t, i % 4);
      return static_cast<int>(smallest_of_warp(at));
    };
    const T value = key_of<T>::value(best, turn);
    if constexpr (std::is_same_v<T, float>)
      if (value != value) return lowest([](T y) { return y != y; });
    return lowest([&](T y) { return bits_of(y) == bits_of(value); });
  }
  __device__ static lane lane_after(partial so_far) requires(sizeof(T) == 4) {
    return {static_cast<key>(so_far.best), -1};
  }
  __device__ static partial join_all(partial value) requires(sizeof(T) == 4) {
    const key best = largest_of_warp(static_cast<key>(value.best));
    const auto high = static_cast<uint32_t>(value.index >> 32), low = static_cast<uint32_t>(value.index);
    const uint32_t above = smallest_of_warp(value.best == best ? high : ~0u);
    const uint32_t below = smallest_of_warp(value.best == best && high == above ? low : ~0u);
    return {static_cast<int64_t>(above) << 32 | below, best};
  }
  // Within one leaf a 4-byte key and the index turned over are one integer to compare.
  __device__ static int64_t pack(lane acc) requires(sizeof(key) == 4) {
    return static_cast<int64_t>(acc.best) * (int64_t{1} << 32) + static_cast<uint32_t>(~acc.index);
  }
  __device__ static partial unpack(int64_t packed) {
    return close({static_cast<key>(packed >> 32), static_cast<int>(~static_cast<uint32_t>(packed))}, 0);
  }
  __device__ static partial close(lane acc, int64_t first_index) {
    return {acc.index < 0 ? INT64_MAX : first_index + acc.index, acc.best};
  }
  __device__ void store(partial value, int64_t s) const { dst[s] = value.index == INT64_MAX ? 0 : value.index; }
  __device__ void store_empty(int64_t s) const { report(word, fault::empty, s); }
};

}  // namespace lockstep::cuda
