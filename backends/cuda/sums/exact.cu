// exact.cu - exact sums of terms of integers and truths.
// Idea    sums of integers have no order, so that a thread takes 16 bytes wherever they lie: elements of 1 byte by the
//         instruction that multiplies four and adds them. Sign and term are asked a load, one kernel a size of elements
// Moves   every element of both arrays once
// Limit   memory reads for elements of 1 and 2 bytes by plain sums and products; else instructions
// Watch   a thread's part of a run is 512 elements: so many products of bytes fit 32 bits, of 16-bit ones 64
// Source  lib/bits/order.hpp
#include "kernels.cuh"

namespace lockstep::cuda {
namespace {

struct exact_results {
  using partial = exact_sum;
  static constexpr bool ordered = false, commutes = true;
  static constexpr int blocks = 4;
  __device__ static partial none() { return {}; }
  __device__ static partial join(const partial& a, const partial& b) { return a + b; }
  __device__ static void store(const term_sums& d, int64_t s, const partial& sum, int64_t length) {
    const auto truth = [&](bool x) { static_cast<uint8_t*>(d.dst)[s] = x ? 1 : 0; };
    switch (d.reduction.to) {
      case lib::finish::root: return store_float(d.dst, d.result, s, rounded_root(sum));
      case lib::finish::any: return truth(sum.word[0] != 0);
      case lib::finish::all: return truth(sum.word[0] == static_cast<uint64_t>(length));
      case lib::finish::index:
      case lib::finish::value: break;
    }
    store_exact(d.dst, d.result, s, sum, d.faults);
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) { store(d, s, {}, 0); }
};

__device__ __forceinline__ exact_sum widened_sum(int128 x) {
  const uint64_t above = x < 0 ? ~0ull : 0;
  exact_sum sum;
  sum.word[0] = static_cast<uint64_t>(x), sum.word[1] = static_cast<uint64_t>(x >> 64), sum.word[2] = above;
  return sum;
}

// What the bits of an element mean.
enum class meaning { number, signed_number, truth, float_truth };

// 1 in each byte that is not 0.
__device__ __forceinline__ uint32_t truth_of(uint32_t x) {
  return (((x & 0x7F7F7F7Fu) + 0x7F7F7F7Fu) | x) >> 7 & 0x01010101u;
}

// A thread's sum within a leaf, of `bytes` an element: take(words of x, words of y).
template <int bytes>
struct thread_sum;

template <>
struct thread_sum<1> {
  int32_t sum = 0;
  template <term what, meaning k>
  __device__ void take(const uint32_t* xs, const uint32_t* ys) {
    [[maybe_unused]] constexpr bool is_signed = k == meaning::signed_number;
    constexpr uint32_t ones = 0x01010101u;
    uint32_t x = *xs, y = *ys;
    if (k == meaning::truth) x = truth_of(x), y = truth_of(y);
    const auto add = [&](uint32_t a, uint32_t b, bool as_signed) {
      sum = as_signed ? __dp4a(static_cast<int>(a), static_cast<int>(b), sum)
                      : static_cast<int32_t>(__dp4a(a, b, static_cast<uint32_t>(sum)));
    };
    const auto apart = [&] {  // as unsigned bytes
      const uint32_t bias = is_signed ? 0x80808080u : 0;
      return __vabsdiffu4(x ^ bias, y ^ bias);
    };
    switch (what) {
      case term::product: return add(x, y, is_signed);
      case term::squared_difference: {
        const uint32_t a = apart();
        return add(a, a, false);
      }
      case term::absolute_difference: return add(apart(), ones, false);
      case term::absolute: return add(is_signed ? __vabs4(x) : x, ones, false);
      case term::square: return add(x, x, is_signed);
      default: return add(x, ones, is_signed);
    }
  }
  __device__ exact_sum total() const { return widened_sum(sum); }
};

template <>
struct thread_sum<2> {
  int64_t sum = 0;
  template <term what, meaning k>
  __device__ void take(const uint32_t* x, const uint32_t* y) {
    [[maybe_unused]] constexpr bool is_signed = k == meaning::signed_number;
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const auto half = [&](uint32_t word) {
        if (k == meaning::truth || k == meaning::float_truth) {
          const uint32_t bits = (j == 0 ? word : word >> 16) & (k == meaning::truth ? 0xFFFFu : 0x7FFFu);
          return bits != 0 ? 1 : 0;
        }
        const auto high = static_cast<int32_t>(j == 0 ? word << 16 : word & 0xFFFF0000u);
        return is_signed ? high >> 16 : static_cast<int32_t>(static_cast<uint32_t>(high) >> 16);
      };
      const int32_t a = half(*x), b = half(*y);
      const int32_t apart = a < b ? b - a : a - b;
      switch (what) {
        case term::product: sum += static_cast<int64_t>(a) * b; break;
        case term::squared_difference: sum += static_cast<int64_t>(apart) * apart; break;
        case term::absolute_difference: sum += apart; break;
        case term::absolute: sum += a < 0 ? -a : a; break;
        case term::square: sum += static_cast<int64_t>(a) * a; break;
        default: sum += a;
      }
    }
  }
  __device__ exact_sum total() const { return widened_sum(sum); }
};

template <>
struct thread_sum<4> {
  int128 sum = 0;
  template <term what, meaning k>
  __device__ void take(const uint32_t* xs, const uint32_t* ys) {
    [[maybe_unused]] constexpr bool is_signed = k == meaning::signed_number;
    if (k == meaning::truth || k == meaning::float_truth) {
      sum += (*xs & (k == meaning::truth ? ~0u : 0x7FFFFFFFu)) != 0 ? 1 : 0;
      return;
    }
    const int64_t x = is_signed ? static_cast<int32_t>(*xs) : static_cast<int64_t>(*xs);
    const int64_t y = is_signed ? static_cast<int32_t>(*ys) : static_cast<int64_t>(*ys);
    const auto apart = static_cast<uint64_t>(x < y ? y - x : x - y), size = static_cast<uint64_t>(x < 0 ? -x : x);
    switch (what) {
      case term::product:
        if (is_signed)
          sum += x * y;
        else
          sum += static_cast<uint64_t>(x) * static_cast<uint64_t>(y);
        break;
      case term::squared_difference: sum += apart * apart; break;
      case term::absolute_difference: sum += apart; break;
      case term::absolute: sum += size; break;
      case term::square: sum += size * size; break;
      default: sum += x;
    }
  }
  __device__ exact_sum total() const { return widened_sum(sum); }
};

template <>
struct thread_sum<8> {
  exact_sum sum{};
  // a * b, or its negative.
  __device__ void add(uint64_t a, uint64_t b, bool negative) {
    const uint64_t low = a * b, high = __umul64hi(a, b), flip = negative ? ~0ull : 0;
    sum.add(low ^ flip, high ^ flip, flip);
    if (negative) sum.add(1, 0, 0);
  }
  template <term what, meaning k>
  __device__ void take(const uint32_t* xs, const uint32_t* ys) {
    [[maybe_unused]] constexpr bool is_signed = k == meaning::signed_number;
    const uint64_t x = static_cast<uint64_t>(xs[1]) << 32 | xs[0], y = static_cast<uint64_t>(ys[1]) << 32 | ys[0];
    if (k == meaning::truth || k == meaning::float_truth)
      return add((x & (k == meaning::truth ? ~0ull : ~0ull >> 1)) != 0 ? 1 : 0, 1, false);
    const bool below_x = is_signed && static_cast<int64_t>(x) < 0, below_y = is_signed && static_cast<int64_t>(y) < 0;
    const uint64_t size_x = below_x ? -x : x, size_y = below_y ? -y : y;
    const bool less = is_signed ? static_cast<int64_t>(x) < static_cast<int64_t>(y) : x < y;
    const uint64_t apart = less ? y - x : x - y;
    switch (what) {
      case term::product: return add(size_x, size_y, below_x != below_y);
      case term::squared_difference: return add(apart, apart, false);
      case term::absolute_difference: return add(apart, 1, false);
      case term::absolute: return add(size_x, 1, false);
      case term::square: return add(size_x, size_x, false);
      default: return add(size_x, 1, below_x);
    }
  }
  __device__ exact_sum total() const { return sum; }
};

template <int bytes>
struct exact_terms : exact_results {
  using unsigned_element =
      std::conditional_t<bytes == 1, uint8_t,
                         std::conditional_t<bytes == 2, uint16_t, std::conditional_t<bytes == 4, uint32_t, uint64_t>>>;

  template <term what, meaning kind>
  __device__ static partial run(const term_sums& d, const pair_places& at, int64_t first, int n, int t,
                                const partial& so_far) {
    using E = unsigned_element;
    constexpr bool two = what <= term::absolute_difference;
    constexpr int V = 16 / bytes, words = bytes == 8 ? 2 : 1, ahead = two ? 4 : 8;
    const E* x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    const E* y = two ? static_cast<const E*>(d.other) + at.other + first * d.other_element_stride : x;
    const int64_t stride_y = two ? d.other_element_stride : d.element_stride;
    thread_sum<bytes> sum;
    const auto load = [&](const E* from, int v) { return __ldg(reinterpret_cast<const uint4*>(from) + v); };
    const auto take = [&](const uint4& a, const uint4& b) {
      const uint32_t xs[4] = {a.x, a.y, a.z, a.w}, ys[4] = {b.x, b.y, b.z, b.w};
#pragma unroll
      for (int w = 0; w < 4; w += words) sum.template take<what, kind>(xs + w, ys + w);
    };
    int done = 0;  // elements
    if (whole_units(x, d.element_stride, 16) && whole_units(y, stride_y, 16)) {
      const int vectors = n / V;
#pragma unroll 1
      for (int v = t; v < vectors; v += ahead * 32) {
        uint4 a[ahead], b[ahead];
#pragma unroll
        for (int k = 0; k < ahead;
             ++k) {  // the last ones again, not taken: loads under a condition wait for each other
          a[k] = load(x, min(v + k * 32, vectors - 1));
          b[k] = two ? load(y, min(v + k * 32, vectors - 1)) : a[k];
        }
#pragma unroll
        for (int k = 0; k < ahead; ++k)
          if (v + k * 32 < vectors) take(a[k], b[k]);
      }
      done = vectors * V;
    }
    for (int i = done + t; i < n; i += 32) {  // what a word has beside the element adds nothing
      const uint64_t a = x[i * d.element_stride], b = y[i * stride_y];
      const uint32_t xs[2] = {static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32)};
      const uint32_t ys[2] = {static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32)};
      sum.template take<what, kind>(xs, ys);
    }
    return so_far + sum.total();
  }

  template <meaning kind>
  __device__ static partial run_of(const term_sums& d, const pair_places& at, int64_t first, int n, int t,
                                   const partial& so_far) {
    switch (d.kind) {
      case term::product: return run<term::product, kind>(d, at, first, n, t, so_far);
      case term::squared_difference: return run<term::squared_difference, kind>(d, at, first, n, t, so_far);
      case term::absolute_difference: return run<term::absolute_difference, kind>(d, at, first, n, t, so_far);
      case term::absolute: return run<term::absolute, kind>(d, at, first, n, t, so_far);
      case term::square: return run<term::square, kind>(d, at, first, n, t, so_far);
      default: return run<term::plain, kind>(d, at, first, n, t, so_far);
    }
  }
  // Terms and signs are asked once per run, not once per word.
  __device__ static partial leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t,
                                 const partial& so_far) {
    if (d.kind == term::truth)
      return is_float(d.dtype) ? run<term::plain, meaning::float_truth>(d, at, first, n, t, so_far)
                               : run<term::plain, meaning::truth>(d, at, first, n, t, so_far);
    if constexpr (bytes == 1)
      if (d.dtype == LOCKSTEP_BOOL) return run_of<meaning::truth>(d, at, first, n, t, so_far);
    return d.dtype == LOCKSTEP_I8 || d.dtype == LOCKSTEP_I16 || d.dtype == LOCKSTEP_I32 || d.dtype == LOCKSTEP_I64
               ? run_of<meaning::signed_number>(d, at, first, n, t, so_far)
               : run_of<meaning::number>(d, at, first, n, t, so_far);
  }
};

}  // namespace

lockstep_status sum_exactly(lockstep_queue& queue, const term_sums& d, void* workspace) {
  switch (dtype_bytes(d.dtype)) {
    case 1: return launch_sums<exact_terms<1>, exact_results>(queue, d, workspace);
    case 2: return launch_sums<exact_terms<2>, exact_results>(queue, d, workspace);
    case 4: return launch_sums<exact_terms<4>, exact_results>(queue, d, workspace);
    default: return launch_sums<exact_terms<8>, exact_results>(queue, d, workspace);
  }
}

}  // namespace lockstep::cuda
