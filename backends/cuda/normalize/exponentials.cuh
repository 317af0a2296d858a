// exponentials.cuh - what the kernels of softmax and its kin share: extremes, exponentials and their sums, results.
//
// Idea    A thread has quads of a row as rows.cuh has them. Missing elements are infinities that no extreme is and
//         whose exponential is 0, so that the loops over quads ask for no end
// Moves   nothing
// Limit   operations of doubles: 18 per element
// Watch   16-bit elements and their difference to the extreme take one operation of doubles and no conversion
//         (held_below), which a scale of almost 0 does not allow
// Source  lib/bits/functions.hpp
#pragma once

#include "../device/faults.hpp"
#include "bits/functions.hpp"
#include "float_results.cuh"

namespace lockstep::cuda {

struct exponential_rows : normalized_rows {
  double scale;
  const int64_t* labels;  // of LOCKSTEP_NORMALIZE_PICKED
  report_word faults;
};

// ---- extremes --------------------------------------------------------------------------
// An element as it is compared: the largest is asked for, of a negative scale of the negated elements. A NaN wins.
template <class E>
using compared = std::conditional_t<sizeof(E) == 8, double, float>;

__device__ __forceinline__ float larger(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float y;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
#else
  return a > b || a != a ? a : b;
#endif
}
__device__ __forceinline__ double larger(double a, double b) { return a > b || a != a ? a : b; }

// Of all quads of a thread; words are compared two elements at a time where they have two.
template <class E, int R>
__device__ __forceinline__ compared<E> largest_of(const quad<E> (&h)[R], bool negated) {
  if constexpr (sizeof(E) == 2) {
    using two = std::conditional_t<std::is_same_v<E, half16>, __half2, __nv_bfloat162>;
    const uint32_t flip = negated ? 0x80008000u : 0u;
    const auto of = [&](int r, int k) {
      const uint32_t word = h[r].word[k] ^ flip;
      two x;
      memcpy(&x, &word, 4);
      return x;
    };
    two most = __hmax2_nan(of(0, 0), of(0, 1));
#pragma unroll
    for (int r = 1; r < R; ++r) most = __hmax2_nan(most, __hmax2_nan(of(r, 0), of(r, 1)));
    few<E, 2> both;
    memcpy(&both.word[0], &most, 4);
    return larger(narrow_value(both, 0), narrow_value(both, 1));
  } else {
    const auto of = [&](int r, int j) { return negated ? -narrow_value(h[r], j) : narrow_value(h[r], j); };
    compared<E> most = of(0, 0);
#pragma unroll
    for (int r = 0; r < R; ++r)
#pragma unroll
      for (int j = 0; j < 4; ++j) most = larger(most, of(r, j));
    return most;
  }
}
template <class T>
__device__ __forceinline__ T largest_of_group(T most, int threads) {
  for (int mask = threads / 2; mask >= 1; mask /= 2) most = larger(most, from_xor(most, mask));
  return most;
}

// What stands in for elements beyond a row's end.
template <class E>
__device__ __forceinline__ E infinity_below(bool negated) {
  if constexpr (std::is_same_v<E, half16>)
    return {static_cast<uint16_t>(negated ? 0x7C00 : 0xFC00)};
  else if constexpr (std::is_same_v<E, bfloat16>)
    return {static_cast<uint16_t>(negated ? 0x7F80 : 0xFF80)};
  else
    return static_cast<E>(negated ? HUGE_VAL : -HUGE_VAL);
}
template <class E, int R>
__device__ __forceinline__ void fill_missing(quad<E> (&h)[R], int n, int t, int threads, bool negated) {
  if (n == R * threads * 4) return;
  const E least = infinity_below<E>(negated);
#pragma unroll
  for (int r = 0; r < R; ++r) {
    const int left = n - (r * threads + t) * 4;
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (j >= left) set_element(h[r], j, least);
  }
}

// Elements are widened again for each use: the compiler would keep them as doubles, in twice the registers.
template <class E, int R>
__device__ __forceinline__ void forget_doubles(quad<E> (&h)[R]) {
#pragma unroll
  for (int r = 0; r < R; ++r)
#pragma unroll
    for (uint32_t& word : h[r].word) asm volatile("" : "+r"(word));
}

// ---- exponentials ------------------------------------------------------------------------
// d = (x - m) * scale of element j. m is finite and x no NaN.
template <class E>
__device__ __forceinline__ double below(const quad<E>& q, int j, double m, double scale) {
  return __dmul_rn(__dsub_rn(value(q, j), m), scale);
}
// The same of a scale beyond least_held_scale: the bits of a 16-bit element, moved into those of a double, are the
// element times 2^-896, of an infinity 2^128.
template <class E>
__device__ __forceinline__ double held_below(const quad<E>& q, int j, double m, double scale) {
  if constexpr (sizeof(E) == 2) {
    const int high = (__float_as_int(narrow_value(q, j)) >> 3) & static_cast<int>(0x8FFFFFFFu);
    const double off = __fma_rn(__hiloint2double(high, 0), 0x1p896, -m);
    return scale == 1 ? off : __dmul_rn(off, scale);
  } else {
    return below(q, j, m, scale);
  }
}
// Four doubles as the programs of functions.hpp take them: four exponentials at once hide each other's latencies.
struct four {
  double x[4];
  friend __device__ __forceinline__ four operator-(four a, double b) {
#pragma unroll
    for (double& x : a.x) x = __dsub_rn(x, b);
    return a;
  }
};
struct by_fours {
  using real = four;
  using bits = uint64_t;
  static __device__ __forceinline__ four all(double x) { return {{x, x, x, x}}; }
  static __device__ __forceinline__ four fma(four a, const four& b, const four& c) {
#pragma unroll
    for (int j = 0; j < 4; ++j) a.x[j] = __fma_rn(a.x[j], b.x[j], c.x[j]);
    return a;
  }
};
// exp_below(d) of functions.hpp, which has the same bits. Bits are compared in place of doubles, whose units have
// enough to do, and elements whose exponential is 0 are mended afterwards.
__device__ __forceinline__ void exponentials_of(const double (&d)[4], double (&e)[4]) {
  using M = by_fours;
  using P = functions::programs<M>;
  constexpr uint64_t least = 0xC086200000000000u;  // -708
  const P::reduced a = P::reduce({{d[0], d[1], d[2], d[3]}});
  const four y = M::fma(a.r, M::fma(a.r, P::exp_tail(a.r), M::all(1)), M::all(1));
  uint32_t most = 0;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const int high = __double2hiint(y.x[j]) + (__double2loint(a.shifted.x[j]) << 20);
    e[j] = __hiloint2double(high, __double2loint(y.x[j]));
    most = max(most, static_cast<uint32_t>(__double2hiint(d[j])));
  }
  if (most < static_cast<uint32_t>(least >> 32)) return;
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    asm volatile("" : "+d"(e[j]));  // keeps this a branch
    if (static_cast<uint64_t>(__double_as_longlong(d[j])) > least) e[j] = 0.0;
  }
}
template <class E>
__device__ __forceinline__ void exponentials_of(const quad<E>& q, double m, double scale, bool held, double (&e)[4]) {
  double d[4];
#pragma unroll
  for (int j = 0; j < 4; ++j) d[j] = held ? held_below(q, j, m, scale) : below(q, j, m, scale);
  exponentials_of(d, e);
}

// ---- what a row's results take --------------------------------------------------------------
// 1 / S or L(S); NaN where the extreme is infinite or NaN, so that all results are.
__device__ __forceinline__ double part_of(const exponential_rows& d, double m, double sum) {
  if (!(fabs(m) <= 0x1.fffffffffffffp1023)) return __longlong_as_double(static_cast<int64_t>(order::nan_f64));
  return d.kind == LOCKSTEP_NORMALIZE_SOFTMAX ? __drcp_rn(sum) : functions::programs<functions::scalar>::log_of(sum);
}

// Results of SOFTMAX: 0 to 1, or all of a row NaN. To 16 bits by way of a float that is cut off, with the last bit set
// where something was; a bf16 may have as few bits as such a float, which rounded_to looks after.
template <class T>
__device__ __forceinline__ quad<T> rounded_shares(const double (&y)[4], bool numbers) {
  quad<T> q{};
  if constexpr (sizeof(T) == 2) {
    constexpr uint32_t normal = (1023u - 126u) << 20;
    float f[4];
    uint32_t smallest = 0xFFFFFFFFu;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const uint32_t rest = min(static_cast<uint32_t>(__double2loint(y[j])) & 0x1FFFFFFFu, 1u);
      f[j] = __uint_as_float(__float_as_uint(__double2float_rz(y[j])) | rest);
      smallest = min(smallest, static_cast<uint32_t>(__double2hiint(y[j])) - 1u);  // of 0 the largest
    }
    if (numbers && (std::is_same_v<T, half16> || smallest >= normal - 1u)) {
#pragma unroll
      for (int k = 0; k < 2; ++k) q.word[k] = rounded_pair<T>(f[2 * k], f[2 * k + 1]);
      return q;
    }
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) set_element(q, j, rounded_to<T>::of(y[j]));
  return q;
}
template <class E, bool same>
__device__ __forceinline__ void store_shares(const normalized_rows& d, int64_t at, int i, int n, const double (&y)[4],
                                             bool numbers) {
  const auto store = [&](auto* to) {
    using T = std::remove_cvref_t<decltype(*to)>;
    store_quad(to + at, i, n, d.whole_dst, rounded_shares<T>(y, numbers));
  };
  if constexpr (same)
    store(static_cast<E*>(d.dst));
  else if (d.result == LOCKSTEP_F16)
    store(static_cast<half16*>(d.dst));
  else if (d.result == LOCKSTEP_BF16)
    store(static_cast<bfloat16*>(d.dst));
  else
    store(static_cast<float*>(d.dst));
}

// h of one element, after the row's threads have met: sum may be the array that h came from.
template <class E>
__device__ __forceinline__ double element_of_row(const exponential_rows& d, int64_t row, int64_t i) {
  const auto at = [&](const void* base, int64_t stride) { return static_cast<const E*>(base)[row * stride + i]; };
  if (d.sum != nullptr) return widened(at(d.sum, d.sum_stride));
  if (d.residual == nullptr) return widened(at(d.src, d.src_stride));
  few<E, 2> x{}, more{};
  set_element(x, 0, at(d.src, d.src_stride));
  set_element(more, 0, at(d.residual, d.residual_stride));
  return value(sum_of(x, more), 0);
}

// The one result of a row of n elements, by one thread.
template <class Element>
__device__ __forceinline__ void store_one(const exponential_rows& d, int64_t row, int64_t n, const Element& element,
                                          double m, double part) {
  const auto store = [&](double y) { store_float(d.dst, d.result, row * d.dst_stride, y); };
  if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP) {
    const double centre = __dmul_rn(m, d.scale);
    return store(m == HUGE_VAL || m == -HUGE_VAL ? centre : __dadd_rn(centre, part));
  }
  const int64_t label = d.labels[row];
  if (label < 0 || label >= n) return report(d.faults, fault_of_label, row);
  store(__dsub_rn(__dmul_rn(__dsub_rn(element(label), m), d.scale), part));
}
template <class E>
__device__ __forceinline__ void store_one(const exponential_rows& d, int64_t row, double m, double part) {
  store_one(
      d, row, d.length, [&](int64_t i) { return element_of_row<E>(d, row, i); }, m, part);
}

}  // namespace lockstep::cuda
