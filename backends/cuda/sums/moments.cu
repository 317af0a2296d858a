// moments.cu - means and variances: of each leaf about its own mean, leaves joined by Chan's formula.
// Idea    a warp holds a leaf in registers between its sum and its squares: one read
// Moves   every element once
// Limit   memory reads; of 16-bit elements the conversions to double
// Watch   the formula does not commute: the left subtree comes first
// Source  lib/order_rows.hpp
#include "../normalize/rows.cuh"
#include "kernels.cuh"

namespace lockstep::cuda {
namespace {

struct moment_results {
  using partial = order::moments;
  static constexpr bool ordered = true;
  static constexpr int blocks = 0;
  __device__ static partial none() { return {0.0, 0.0, 0.0}; }
  __device__ static partial join(const partial& a, const partial& b) {
    if (a.count == 0.0) return b;
    return b.count == 0.0 ? a : a + b;
  }
  __device__ static void store(const term_sums& d, int64_t s, const partial& m, int64_t length) {
    const int64_t divisor = LOCKSTEP_DEVICE_MUTANT("cuda_correction_ignored") ? length : length - d.correction;
    store_float(d.dst, d.result, 2 * s, __ddiv_rn(m.sum, static_cast<double>(length)));
    store_float(d.dst, d.result, 2 * s + 1,
                divisor > 0 ? __ddiv_rn(m.m2, static_cast<double>(divisor)) : __longlong_as_double(order::nan_f64));
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) {
    for (int k = 0; k < 2; ++k) store_float(d.dst, d.result, 2 * s + k, __longlong_as_double(order::nan_f64));
  }
};

template <class E>
struct moments_of_elements : moment_results {
  template <int R>
  __device__ static partial held(const E* x, int64_t stride, bool whole, int n, int t) {
    quad<E> h[1][R];
    load_quads(x, t * 4, order::lanes, n, whole, stride, h[0]);
    partial m[1];
    moments_of(h, n, t, 32, m);
    return m[0];
  }
  __device__ static partial leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t,
                                 const partial&) {
    const E* x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    const bool whole = n % 4 == 0 && whole_units(x, d.element_stride, sizeof(E) == 2 ? 8 : 16);
    return n <= order::lanes ? held<1>(x, d.element_stride, whole, n, t) : held<16>(x, d.element_stride, whole, n, t);
  }
};

}  // namespace

lockstep_status sum_moments(lockstep_queue& queue, const term_sums& d, void* workspace) {
  switch (d.dtype) {
    case LOCKSTEP_F16: return launch_sums<moments_of_elements<half16>, moment_results>(queue, d, workspace);
    case LOCKSTEP_BF16: return launch_sums<moments_of_elements<bfloat16>, moment_results>(queue, d, workspace);
    case LOCKSTEP_F32: return launch_sums<moments_of_elements<float>, moment_results>(queue, d, workspace);
    default: return launch_sums<moments_of_elements<double>, moment_results>(queue, d, workspace);
  }
}

}  // namespace lockstep::cuda
