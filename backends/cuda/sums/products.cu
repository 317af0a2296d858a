// products.cu - products of elements: floats in double and in the fixed order, integers exactly.
// Idea    floats as floats.cu, with a join that multiplies. An exact product is its size while that fits 64 bits, and
//         else only its sign and whether an element was 0
// Moves   every element once
// Limit   instructions; products are rare
// Watch   a product that has passed 2^64 still becomes 0 at a 0, and needs its sign
// Source  lib/bits/order.hpp, lib/bits/reductions.hpp
#include "kernels.cuh"

namespace lockstep::cuda {
namespace {

// ---- floats --------------------------------------------------------------------------------
struct factor {
  double x;
};
__device__ __forceinline__ factor operator+(factor a, factor b) { return {__dmul_rn(a.x, b.x)}; }
__device__ __forceinline__ factor joined(factor a, factor b) { return a + b; }

struct float_product_results {
  using partial = factor;
  static constexpr bool ordered = true, commutes = true;
  static constexpr int blocks = 2;
  __device__ static factor none() { return {1.0}; }
  __device__ static factor join(factor a, factor b) { return a + b; }
  __device__ static void store(const term_sums& d, int64_t s, factor product, int64_t) {
    store_float(d.dst, d.result, s, product.x);
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) { store(d, s, none(), 0); }
};

template <class E>
struct float_products : float_product_results {
  __device__ static factor leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t, const factor&) {
    const E* x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    constexpr int ahead = 4;  // rows of lanes
    factor lane[1][4] = {{{1.0}, {1.0}, {1.0}, {1.0}}}, product[1];
#pragma unroll 1
    for (int row = 0; row * order::lanes < n; row += ahead) {
      E e[ahead][4];
      walk_rows<1>(ahead, row, t, [&](int r, int slot, int i) { e[r][slot] = x[min(i, n - 1) * d.element_stride]; });
#pragma unroll
      for (int r = 0; r < ahead; ++r)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot)
          if ((row + r) * order::lanes + lane_of<1>(t, slot) < n)
            lane[0][slot] = lane[0][slot] + factor{widened(e[r][slot])};
    }
    join_rows<1>(float_product_results{}, lane, product, t);
    return product[0];
  }
};

// ---- integers ------------------------------------------------------------------------------
// size is 0 once an element was, and 1 once the product has passed 2^64.
struct exact_factor {
  uint64_t size;
  uint32_t beyond, negative;
};
__device__ __forceinline__ exact_factor operator+(const exact_factor& a, const exact_factor& b) {
  const bool zero = a.size == 0 || b.size == 0;
  const bool beyond = a.beyond != 0 || b.beyond != 0 || __umul64hi(a.size, b.size) != 0;
  return {zero ? 0 : beyond ? 1 : a.size * b.size, beyond && !zero ? 1u : 0u, a.negative ^ b.negative};
}
__device__ __forceinline__ exact_factor joined(const exact_factor& a, const exact_factor& b) { return a + b; }

struct exact_product_results {
  using partial = exact_factor;
  static constexpr bool ordered = false, commutes = true;
  static constexpr int blocks = 3;
  __device__ static partial none() { return {1, 0, 0}; }
  __device__ static partial join(const partial& a, const partial& b) { return a + b; }
  __device__ static void store(const term_sums& d, int64_t s, const partial& product, int64_t) {
    const bool negative = product.negative != 0, is_signed = d.result != LOCKSTEP_U64;
    const uint64_t most = is_signed ? static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0) : ~0ull;
    const bool fits = product.beyond == 0 && product.size <= most;
    const uint64_t size = fits ? product.size : most;
    static_cast<uint64_t*>(d.dst)[s] = negative ? 0 - size : size;
    if (!fits) report(d.faults, fault::overflow, s);
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) { store(d, s, none(), 0); }
};

template <int bytes>
struct exact_products : exact_product_results {
  __device__ static partial leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t,
                                 const partial& so_far) {
    using E =
        std::conditional_t<bytes == 1, int8_t,
                           std::conditional_t<bytes == 2, int16_t, std::conditional_t<bytes == 4, int32_t, int64_t>>>;
    const E* x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    const bool is_signed = d.dtype <= LOCKSTEP_I16, truths = d.dtype == LOCKSTEP_BOOL;
    partial mine = so_far;
    constexpr int ahead = 8;
    for (int i = t; i < n; i += 32 * ahead) {
      E e[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) e[k] = x[min(i + 32 * k, n - 1) * d.element_stride];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        const bool negative = is_signed && e[k] < 0;
        const auto bits = static_cast<std::make_unsigned_t<E>>(e[k]);
        const uint64_t size = negative ? 0 - static_cast<uint64_t>(int64_t{e[k]}) : uint64_t{bits};
        if (i + 32 * k < n) mine = mine + partial{truths ? uint64_t{bits != 0} : size, 0, negative ? 1u : 0u};
      }
    }
    return mine;
  }
};

}  // namespace

lockstep_status multiply(lockstep_queue& queue, const term_sums& d, void* workspace) {
  switch (d.dtype) {
    case LOCKSTEP_F16: return launch_sums<float_products<half16>, float_product_results>(queue, d, workspace);
    case LOCKSTEP_BF16: return launch_sums<float_products<bfloat16>, float_product_results>(queue, d, workspace);
    case LOCKSTEP_F32: return launch_sums<float_products<float>, float_product_results>(queue, d, workspace);
    case LOCKSTEP_F64: return launch_sums<float_products<double>, float_product_results>(queue, d, workspace);
    default: break;
  }
  switch (dtype_bytes(d.dtype)) {
    case 1: return launch_sums<exact_products<1>, exact_product_results>(queue, d, workspace);
    case 2: return launch_sums<exact_products<2>, exact_product_results>(queue, d, workspace);
    case 4: return launch_sums<exact_products<4>, exact_product_results>(queue, d, workspace);
    default: return launch_sums<exact_products<8>, exact_product_results>(queue, d, workspace);
  }
}

}  // namespace lockstep::cuda
