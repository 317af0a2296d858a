// fold.cuh - what a reduction does with an element, with two partial results and
// with the last one. leaf.cuh, sequences.cuh and subtree.cuh supply the order; the folds of min, max, argmin
// and argmax are in extreme.cuh.
//
// A fold has
//   element, lane, partial   what is read; what a thread accumulates within a
//                            leaf; what leaves and blocks exchange
//   ordered                  the order shows in the bits (float sums): a lane is
//                            an accumulator of its own, 4 slots a thread. Exact
//                            folds need one slot and no join before the end
//   open(s)                  false: sequence s needs no work
//   empty_lane, take(lane, x, index within the leaf), close(lane, leaf's index)
//   take_if(..., wanted)     without a branch: the identity stands in for x
//   take_two(lane, x, y)     if there is one: both, for less than two takes
//   take_rows<V>(lane, x[rows][4], first row, thread)
//                            if there is one: rows of a leaf, by all threads of a warp, which may look
//                            at each other's; for missing elements the last ones stand in again
//   lane_after(partial)      if there is one, take_rows gives all threads the same, and a lane may start
//                            from what the warp has: who does not beat it need not be found
//   turn                     if there is one: an extreme, which may take an element twice
//   none, join(a, b)         the identity; commutes to the bit
//   join_all(value)          if there is one: of a warp's values, for less than five joins
//   store(value, s), store_empty(s)
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "leaf.cuh"

namespace lockstep::cuda {

using int128 = __int128;
using uint128 = unsigned __int128;

struct half16 {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};

__device__ __forceinline__ double widened(half16 x) { return __half2float(__ushort_as_half(x.bits)); }
__device__ __forceinline__ double widened(bfloat16 x) { return __uint_as_float(static_cast<uint32_t>(x.bits) << 16); }
__device__ __forceinline__ double widened(float x) { return x; }
__device__ __forceinline__ double widened(double x) { return x; }

template <class T>
__device__ __forceinline__ T negative_zero() {
  if constexpr (sizeof(T) == 2)
    return {0x8000};
  else
    return T(-0.0);
}

// A computed double to dst[s], as f64 or rounded once to f32; NaN is canonical.
__device__ __forceinline__ void store_double(void* dst, bool as_f32, int64_t s, double x) {
  if (as_f32)
    static_cast<float*>(dst)[s] = x != x ? __uint_as_float(order::nan_f32) : static_cast<float>(x);
  else
    static_cast<double*>(dst)[s] = x != x ? __longlong_as_double(order::nan_f64) : x;
}

// ---- float sums and sums of squares ------------------------------------------
template <class T, bool squares>
struct float_sum {
  using element = T;
  using lane = double;
  using partial = double;
  static constexpr bool ordered = true;
  static constexpr int slots = 4;
  void* dst;
  bool as_f32, root;

  __device__ bool open(int64_t) { return true; }
  __device__ static double empty_lane() { return -0.0; }
  __device__ static double none() { return -0.0; }
  __device__ static double close(double acc, int64_t) { return acc; }
  __device__ static double join(double a, double b) { return __dadd_rn(a, b); }
  __device__ static void take(double& acc, T x, int) {
    const double wide = widened(x);
    acc = squares ? __fma_rn(wide, wide, acc) : __dadd_rn(acc, wide);
  }
  // A square of -0.0 adds +0.0, which no sum with at least one real square shows.
  __device__ static void take_if(double& acc, T x, int i, bool wanted) {
    take(acc, wanted ? x : negative_zero<T>(), i);
  }
  __device__ void store(double value, int64_t s) const {
    store_double(dst, as_f32, s, root ? __dsqrt_rn(value) : value);
  }
  __device__ void store_empty(int64_t s) const { store(0.0, s); }
};

// ---- exact integer sums ---------------------------------------------------------
template <class T>
struct integer_sum {
  using element = T;
  using lane = std::conditional_t<sizeof(T) == 4, int64_t, int128>;  // 64 elements of 32 bits fit 37
  using partial = int128;
  static constexpr bool ordered = false;
  static constexpr int slots = 1;
  int64_t* dst;
  report_word word;

  __device__ bool open(int64_t) const { return true; }
  __device__ static lane empty_lane() { return 0; }
  __device__ static partial none() { return 0; }
  __device__ static partial join(partial a, partial b) { return a + b; }
  __device__ static void take(lane& acc, T x, int) { acc += x; }
  __device__ static void take_if(lane& acc, T x, int i, bool wanted) { take(acc, wanted ? x : T{0}, i); }
  __device__ static partial close(lane acc, int64_t) { return acc; }
  __device__ void store(partial value, int64_t s) const {
    const bool fits = value >= INT64_MIN && value <= INT64_MAX;
    dst[s] = fits ? static_cast<int64_t>(value) : value < 0 ? INT64_MIN : INT64_MAX;
    if (!fits) report(word, fault::overflow, s);
  }
  __device__ void store_empty(int64_t s) const { dst[s] = 0; }
};

// 2^63 squares of 64-bit integers need 189 bits; least significant word first.
struct wide_sum {
  uint64_t word[3];

  __device__ __forceinline__ void add(uint64_t low, uint64_t middle, uint64_t high) {
    const uint128 first = (static_cast<uint128>(word[1]) << 64) | word[0];
    const uint128 sum = first + ((static_cast<uint128>(middle) << 64) | low);
    word[0] = static_cast<uint64_t>(sum);
    word[1] = static_cast<uint64_t>(sum >> 64);
    word[2] += high + (sum < first);
  }
};

// The correctly rounded root. The sum is brought to 128 bits by an even shift, its
// 64-bit integer root found from a double's estimate and one correction by the
// remainder, and what is left over becomes one sticky bit below 11 spare ones.
__device__ inline double rounded_root(wide_sum sum) {
  if ((sum.word[0] | sum.word[1] | sum.word[2]) == 0) return 0.0;
  const int zeros = sum.word[2] != 0   ? __clzll(sum.word[2])
                    : sum.word[1] != 0 ? 64 + __clzll(sum.word[1])
                                       : 128 + __clzll(sum.word[0]);
  const int shift = (64 - zeros + 1) & ~1;  // to the right; the top bit lands on 127 or 126
  const uint128 low = (static_cast<uint128>(sum.word[1]) << 64) | sum.word[0];
  uint128 value;
  bool sticky = false;
  if (shift > 0) {
    value = (low >> shift) | (static_cast<uint128>(sum.word[2]) << (128 - shift));
    sticky = (low & ((static_cast<uint128>(1) << shift) - 1)) != 0;
  } else {
    value = low << -shift;
  }
  const double estimate = __dsqrt_rn(__fma_rn(static_cast<double>(static_cast<uint64_t>(value >> 64)), 0x1p64,
                                              static_cast<double>(static_cast<uint64_t>(value))));
  uint64_t root = estimate >= 0x1p64 ? ~0ull : static_cast<uint64_t>(estimate);
  const int128 rest = static_cast<int128>(value - static_cast<uint128>(root) * root);  // below 2^78 in size
  const double rest_double = __fma_rn(static_cast<double>(static_cast<int64_t>(rest >> 32)), 0x1p32,
                                      static_cast<double>(static_cast<uint32_t>(rest)));
  const int64_t step = static_cast<int64_t>(rest_double / (2.0 * static_cast<double>(root)));
  root = step > 0 && root > ~0ull - static_cast<uint64_t>(step) ? ~0ull : root + static_cast<uint64_t>(step);
  while (static_cast<uint128>(root) * root > value) --root;
  while (root != ~0ull && static_cast<uint128>(root + 1) * (root + 1) <= value) ++root;
  sticky = sticky || static_cast<uint128>(root) * root != value;
  return ldexp(__ull2double_rn(root | (sticky ? 1u : 0u)), shift / 2);
}

template <class T>
struct integer_squares {
  using element = T;
  using lane = std::conditional_t<sizeof(T) == 4, uint128, wide_sum>;
  using partial = lane;
  static constexpr bool ordered = false;
  static constexpr int slots = 1;
  void* dst;
  bool as_f32, root;
  report_word word;

  __device__ bool open(int64_t) const { return true; }
  __device__ static lane empty_lane() { return lane{}; }
  __device__ static partial none() { return {}; }
  __device__ static partial join(partial a, partial b) {
    if constexpr (sizeof(T) == 4)
      a += b;
    else
      a.add(b.word[0], b.word[1], b.word[2]);
    return a;
  }
  __device__ static void take(lane& acc, T x, int) {
    if constexpr (sizeof(T) == 4) {
      acc += static_cast<uint64_t>(static_cast<int64_t>(x) * x);
    } else {
      const uint64_t magnitude = x < 0 ? -static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
      acc.add(magnitude * magnitude, __umul64hi(magnitude, magnitude), 0);
    }
  }
  // Two squares of 32 bits fit 64: one wide addition for both.
  __device__ static void take_two(lane& acc, T x, T y) requires(sizeof(T) == 4) {
    acc += static_cast<uint64_t>(static_cast<int64_t>(x) * x) + static_cast<uint64_t>(static_cast<int64_t>(y) * y);
  }
  __device__ static void take_if(lane& acc, T x, int i, bool wanted) { take(acc, wanted ? x : T{0}, i); }
  __device__ static partial close(lane acc, int64_t) { return acc; }
  __device__ static wide_sum widened(uint128 sum) {
    return {static_cast<uint64_t>(sum), static_cast<uint64_t>(sum >> 64), 0};
  }
  __device__ static wide_sum widened(wide_sum sum) { return sum; }
  __device__ void store(partial sum, int64_t s) const {
    const wide_sum value = widened(sum);
    if (root) return store_double(dst, as_f32, s, rounded_root(value));
    const bool fits = (value.word[2] | value.word[1]) == 0 && value.word[0] <= INT64_MAX;
    static_cast<int64_t*>(dst)[s] = fits ? static_cast<int64_t>(value.word[0]) : INT64_MAX;
    if (!fits) report(word, fault::overflow, s);
  }
  __device__ void store_empty(int64_t s) const { store({}, s); }
};

}  // namespace lockstep::cuda
