// norm.cuh - NORM2 of f64: folds for sums of squares that leave the range of a double.
//
// Where the plain sum is too small for its squares to have kept all their bits, or has overflowed,
// the sequence is folded twice more (order.hpp): its largest magnitude, then its elements times
// 2^-e. A kernel whose warp or block holds the sequence does so on the spot (norm_again), at the
// speed of its cache; for sequences that several blocks share, `plain` keeps the sums, and two
// passes follow that skip what is well. Three passes over every short row took 4 times as long as one.
#pragma once

#include "rounding.cuh"

namespace lockstep::cuda {

struct norm_sum : float_sum<double, true> {
  lockstep_dtype result;
  double* plain;  // nullptr: nothing follows

  __device__ static bool needs_again(double sum) {
    return !(sum >= order::rescale_below && sum <= 0x1.fffffffffffffp1023);
  }
  __device__ void store(double sum, int64_t s) const {
    if (plain != nullptr) plain[s] = sum;
    store_root(__dsqrt_rn(sum), s);
  }
  __device__ void store_root(double root_of_sum, int64_t s) const { store_float(dst, result, s, root_of_sum); }
  __device__ void store_empty(int64_t s) const { store(0.0, s); }
};
template <class Fold>
constexpr bool is_norm = requires {
  Fold::needs_again(0.0);
};
template <class Fold>
constexpr bool follows = requires {
  Fold::follows;
};

struct magnitudes {
  using element = double;
  using lane = uint64_t;
  using partial = uint64_t;
  static constexpr bool ordered = false;
  static constexpr int slots = 1;

  __device__ static uint64_t empty_lane() { return 0; }
  __device__ static uint64_t none() { return 0; }
  __device__ static uint64_t join(uint64_t a, uint64_t b) { return a > b ? a : b; }
  __device__ static void take(uint64_t& acc, double x, int) {
    acc = join(acc, static_cast<uint64_t>(__double_as_longlong(x)) & 0x7FFFFFFFFFFFFFFFu);
  }
  __device__ static void take_if(uint64_t& acc, double x, int i, bool wanted) { take(acc, wanted ? x : 0.0, i); }
  __device__ static uint64_t close(uint64_t acc, int64_t) { return acc; }
};

struct scaled_sum {
  using element = double;
  using lane = double;
  using partial = double;
  static constexpr bool ordered = true;
  static constexpr int slots = 4;
  double down;  // 2^-e

  __device__ static double power_of_two(int e) {  // -1023 <= e <= 1023
    return e >= -1022 ? __longlong_as_double(static_cast<int64_t>(e + 1023) << 52) : 0x1p-1023;
  }
  __device__ static double empty_lane() { return -0.0; }
  __device__ static double none() { return -0.0; }
  __device__ static double join(double a, double b) { return __dadd_rn(a, b); }
  __device__ void take(double& acc, double x, int) const {
    const double scaled = __dmul_rn(x, down);
    acc = __fma_rn(scaled, scaled, acc);
  }
  __device__ void take_if(double& acc, double x, int i, bool wanted) const { take(acc, wanted ? x : -0.0, i); }
};

// The norm from a plain sum; again(fold) folds the thread's sequence once more. By whole warps,
// whose sequences may differ.
template <class Again>
__device__ __forceinline__ double norm_again(double sum, const Again& again) {
  const uint64_t bits = again(magnitudes{});
  const bool scale = order::needs_rescale(sum, __longlong_as_double(bits));
  double root = __dsqrt_rn(sum);
  if (__any_sync(all_lanes, scale)) {
    int e = scale ? order::rescale_exponent(bits) : 0;
    const double scaled = __dsqrt_rn(again(scaled_sum{scaled_sum::power_of_two(-e)}));
    if (scale) root = __dmul_rn(scaled, scaled_sum::power_of_two(e));
  }
  return root;
}

// The passes that follow a norm_sum.
struct largest_magnitude : magnitudes {
  static constexpr bool follows = true;
  const double* plain;
  uint64_t* largest;

  __device__ bool open(int64_t s) const { return norm_sum::needs_again(plain[s]); }
  __device__ void store(uint64_t value, int64_t s) const { largest[s] = value; }
  __device__ void store_empty(int64_t s) const { largest[s] = 0; }
};

struct scaled_squares : scaled_sum {
  static constexpr bool follows = true;
  void* dst;
  lockstep_dtype result;
  const double* plain;
  const uint64_t* largest;
  double up;  // of the sequence that is open

  __device__ bool open(int64_t s) {
    if (!norm_sum::needs_again(plain[s])) return false;
    const uint64_t bits = largest[s];
    if (!order::needs_rescale(plain[s], __longlong_as_double(bits))) return false;
    const int e = order::rescale_exponent(bits);
    down = power_of_two(-e);
    up = power_of_two(e);
    return true;
  }
  __device__ void store(double value, int64_t s) const {
    store_float(dst, result, s, __dmul_rn(__dsqrt_rn(value), up));
  }
  __device__ void store_empty(int64_t) const {}
};

}  // namespace lockstep::cuda
