// floats.cu - sums of terms of floats, in double and in the fixed order.
// Idea    a warp a leaf: thread t holds lanes 4t to 4t + 3 and loads rows of both arrays before it uses the first; of
//         few leaves one thread per lane.
//         Which term is asked once for several rows, so that one kernel has all
// Moves   every element of both arrays once
// Limit   memory reads; of 16-bit elements the conversions to double
// Watch   elements of src and other belong together by their index in the sequence
// Source  lib/bits/order.hpp
#include "ahead.cuh"
#include "short_columns.cuh"

namespace lockstep::cuda {
namespace {

// What all kinds store; joins of tasks need no element type.
struct float_results {
  using partial = double;
  static constexpr bool ordered = true, commutes = true;
  static constexpr int blocks = 2;
  __device__ static double none() { return -0.0; }
  __device__ static double join(double a, double b) { return __dadd_rn(a, b); }
  __device__ static void store(const term_sums& d, int64_t s, double sum, int64_t) {
    store_float(d.dst, d.result, s, d.reduction.to == lib::finish::root ? __dsqrt_rn(sum) : sum);
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) { store_float(d.dst, d.result, s, 0.0); }
};

// Finite 16-bit elements as doubles by a shift and a multiplication, beside the conversions' pipe, which has a quarter
// of the speed: of two arrays one goes each way.
template <class E>
constexpr uint16_t infinity_of = std::is_same_v<E, half16> ? 0x7C00 : 0x7F80;
template <class E, int R>
__device__ __forceinline__ bool all_finite(const quad<E> (&q)[R]) {
  uint32_t most = 0;
#pragma unroll
  for (int r = 0; r < R; ++r)
    for (const uint32_t word : q[r].word) most = __vmaxu2(most, word & 0x7FFF7FFFu);
  return (most & 0xFFFFu) < infinity_of<E> && most >> 16 < infinity_of<E>;
}
template <class E>
__device__ __forceinline__ double finite_value(const quad<E>& q, int j) {
  if constexpr (sizeof(E) != 2)
    return value(q, j);
  else
    return __dmul_rn(scaled_value(q, j), unscaled<E>);
}

template <class E>
struct float_terms : float_results {
  // Rows of lanes that a thread loads at once: 256 bytes in all, or a leaf.
  template <bool two>
  static constexpr int rows_ahead = std::min((two ? 32 : 64) / static_cast<int>(sizeof(E)), order::rows);

  // body(enter), where enter(acc, x, y) takes an element of each array into a lane: the term is asked once.
  template <bool two, class Body>
  __device__ __forceinline__ static void by_term(term kind, const Body& body) {
    if constexpr (two) {
      switch (kind) {
        case term::product: return body([](double acc, double x, double y) { return __fma_rn(x, y, acc); });
        case term::squared_difference:
          return body([](double acc, double x, double y) {
            const double apart = __dsub_rn(x, y);
            return __fma_rn(apart, apart, acc);
          });
        default: return body([](double acc, double x, double y) { return __dadd_rn(acc, fabs(__dsub_rn(x, y))); });
      }
    } else {
      switch (kind) {
        case term::absolute: return body([](double acc, double x, double) { return __dadd_rn(acc, fabs(x)); });
        case term::square: return body([](double acc, double x, double) { return __fma_rn(x, x, acc); });
        case term::number: return body([](double acc, double x, double) { return __dadd_rn(acc, x == x ? x : 0.0); });
        default: return body([](double acc, double x, double) { return __dadd_rn(acc, x); });
      }
    }
  }

  // Rows `row` to row + R of a leaf; full: all their elements are there.
  template <int R, bool two, bool full>
  __device__ static void take(const term_sums& d, const E* x, const E* y, bool whole_x, bool whole_y, int row, int n,
                              int t, double (&lane)[4]) {
    quad<E> a[R], b[two ? R : 1];
    const int i = (row * 32 + t) * 4;
    load_quads(x, i, order::lanes, n, whole_x, d.element_stride, a);
    if constexpr (two) load_quads(y, i, order::lanes, n, whole_y, d.other_element_stride, b);
    constexpr bool halves = two && sizeof(E) == 2 && R > 1;
    if constexpr (halves)
      if (!all_finite(a)) {
#pragma unroll 1
        for (int r = 0; r < R; ++r) take<1, two, false>(d, x, y, whole_x, whole_y, row + r, n, t, lane);
        return;
      }
    by_term<two>(d.kind, [&](const auto& enter) {
#pragma unroll
      for (int r = 0; r < R; ++r)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          if (full || i + r * order::lanes + j < n)
            lane[j] =
                enter(lane[j], halves ? finite_value(a[r], j) : value(a[r], j), two ? value(b[two ? r : 0], j) : 0.0);
    });
  }

  template <bool two>
  __device__ static double leaf_of(const term_sums& d, const E* x, const E* y, int n, int t) {
    constexpr int R = rows_ahead<two>, unit = sizeof(E) == 2 ? 8 : 16;
    const bool whole_x = n % 4 == 0 && whole_units(x, d.element_stride, unit);
    const bool whole_y = two && n % 4 == 0 && whole_units(y, d.other_element_stride, unit);
    double lane[1][4] = {{-0.0, -0.0, -0.0, -0.0}}, sum[1];
    int row = 0;
#pragma unroll 1
    for (; (row + R) * order::lanes <= n; row += R) take<R, two, true>(d, x, y, whole_x, whole_y, row, n, t, lane[0]);
    constexpr int few = R < 8 ? R : 8;
#pragma unroll 1
    for (; (row + few) * order::lanes <= n; row += few)
      take<few, two, true>(d, x, y, whole_x, whole_y, row, n, t, lane[0]);
    if ((row + 2) * order::lanes < n) {  // its rows' loads overlap, though some come in vain
      take<few, two, false>(d, x, y, whole_x, whole_y, row, n, t, lane[0]);
      row += few;
    }
#pragma unroll 1
    for (; row * order::lanes < n; ++row) take<1, two, false>(d, x, y, whole_x, whole_y, row, n, t, lane[0]);
    join_rows<4>(float_results{}, lane, sum, t);
    return sum[0];
  }

  template <bool two, int Q, int S>
  __device__ static void short_rows_of(const term_sums& d, const pair_places (&at)[S], int n, int t, int threads,
                                       double (&value_of)[S]) {
    constexpr int unit = sizeof(E) == 2 ? 8 : 16;
    quad<E> a[S][Q], b[S][Q];
#pragma unroll
    for (int k = 0; k < S; ++k) {
      const E* x = static_cast<const E*>(d.src) + at[k].src;
      load_quads(x, t * 4, threads * 4, n, n % 4 == 0 && whole_units(x, d.element_stride, unit), d.element_stride,
                 a[k]);
      if constexpr (two) {
        const E* y = static_cast<const E*>(d.other) + at[k].other;
        load_quads(y, t * 4, threads * 4, n, n % 4 == 0 && whole_units(y, d.other_element_stride, unit),
                   d.other_element_stride, b[k]);
      }
    }
    by_term<two>(d.kind, [&](const auto& enter) {
      sum_short_rows<Q>(t, threads, value_of, [&](int k, int q, int j) {
        return (q * threads + t) * 4 + j < n ? enter(-0.0, value(a[k][q], j), two ? value(b[k][q], j) : 0.0) : -0.0;
      });
    });
  }
  template <int Q, int S>
  __device__ static void short_rows(const term_sums& d, const pair_places (&at)[S], int n, int t, int threads,
                                    double (&value_of)[S]) {
    d.other != nullptr ? short_rows_of<true, Q>(d, at, n, t, threads, value_of)
                       : short_rows_of<false, Q>(d, at, n, t, threads, value_of);
  }

  static constexpr int short_column_elements = 16, short_column_blocks = sizeof(E) == 8 ? 2 : 4;
  __device__ static double short_column(const term_sums& d, int64_t s, int n) {
    const E* x = static_cast<const E*>(d.src) + s;
    double sum;
    const auto by = [&]<bool two>(std::bool_constant<two>, const E* y) {
      by_term<two>(d.kind, [&](const auto& enter) {
        sum = sum_of_short_column<short_column_elements, two>(x, d.element_stride, y, d.other_element_stride, n, enter);
      });
    };
    d.other != nullptr ? by(std::true_type{}, static_cast<const E*>(d.other) + s * d.other_sequence_stride)
                       : by(std::false_type{}, x);
    return sum;
  }

  template <int C>
  __device__ static double column(const term_sums& d, const pair_places& at, int n, double (&room)[sum_threads],
                                  double (&)[C]) {
    const E* x = static_cast<const E*>(d.src) + at.src;
    double sum;
    const auto by = [&]<bool two>(std::bool_constant<two>, const E* y) {
      by_term<two>(d.kind, [&](const auto& enter) {
        sum = sum_of_column<C, two>(x, d.element_stride, y, d.other_element_stride, n, room, enter);
      });
    };
    d.other != nullptr ? by(std::true_type{}, static_cast<const E*>(d.other) + at.other) : by(std::false_type{}, x);
    return sum;
  }

  template <bool two>
  __device__ static double lane_of(const term_sums& d, const E* x, const E* y, int n) {
    E a[order::rows], b[order::rows];
    const int last = load_lane(x, n, a);
    if constexpr (two) load_lane(y, n, b);
    double lane = -0.0;
    by_term<two>(d.kind, [&](const auto& enter) {
#pragma unroll
      for (int row = 0; row < order::rows; ++row)
        if (row * order::lanes <= last) lane = enter(lane, widened(a[row]), two ? widened(b[row]) : 0.0);
    });
    return lane;
  }
  __device__ static double leaf_by_lanes(const term_sums& d, const pair_places& at, int64_t first, int n,
                                         double (&room)[order::lanes]) {
    const E* x = static_cast<const E*>(d.src) + at.src + first;
    const double lane = d.other == nullptr ? lane_of<false>(d, x, nullptr, n)
                                           : lane_of<true>(d, x, static_cast<const E*>(d.other) + at.other + first, n);
    return sum_of_lanes(lane, room);
  }

  __device__ static double leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t, const double&) {
    const E* x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    if (d.other == nullptr) return leaf_of<false>(d, x, nullptr, n, t);
    const E* y = static_cast<const E*>(d.other) + at.other + first * d.other_element_stride;
    return leaf_of<true>(d, x, y, n, t);
  }
};

}  // namespace

lockstep_status sum_floats(lockstep_queue& queue, const term_sums& d, void* workspace) {
  return by_float(d.dtype, [&]<class E>(E) {
    using fold = float_terms<E>;
    return are_short_columns<fold>(queue, d) ? launch_short_columns<fold>(queue, d)
                                             : launch_sums<fold, float_results>(queue, d, workspace);
  });
}

lockstep_status sum_floats_ahead(lockstep_queue& queue, const term_sums& d, void* workspace) {
  const auto go = [&]<class E>(E) {
    const int64_t leaves = order::leaves(d.length);
    auto* const partials = static_cast<double*>(workspace);
    const lockstep_status status = d.other != nullptr
                                       ? launch_terms_of_columns<float_terms<E>, E, true>(queue, d, leaves, partials)
                                       : launch_terms_of_columns<float_terms<E>, E, false>(queue, d, leaves, partials);
    return status != LOCKSTEP_OK || leaves == 1 ? status : join_leaves<float_results>(queue, d, leaves, partials);
  };
  switch (d.dtype) {
    case LOCKSTEP_F16: return go(half16{});
    case LOCKSTEP_BF16: return go(bfloat16{});
    default: return go(float{});
  }
}

}  // namespace lockstep::cuda
