// columns.cuh - normalize along an axis that is not the last: rows that lie side by side, as columns.
//
//   columns_held      a block holds its columns in shared memory: their statistics, then their results
//   columns_extremes  of columns that are too long for that: one block per leaf of its columns, here its extremes
//   columns_leaves    its sums, squares or moments, and h where a residual is added
//   columns_join      one thread per column: the tree above its leaves, and what results take, or the one result
//   columns_apply     results, of statistics that are given too
//
// Idea    A block has 16 columns, of 16-bit elements whole sectors of memory. Thread (c, y) has the elements y, y + Y,
//         y + 2 Y ... of column c, which are those of its lanes of order id 1,
//         so that what a block holds is each thread's own. Lanes join in the thread first, the rest by shuffles
// Moves   held: every element once in and once out; long: twice in, of exponentials three times
// Limit   memory; of exponentials operations of doubles
// Watch   a block waits several times for all its threads: those beyond the last column or element wait too
// Source  lib/bits/order_rows.hpp
#pragma once

#include "columns.hpp"
#include "exponentials.cuh"
#include "normalized_rows.cuh"

namespace lockstep::cuda {

struct column_rows : exponential_rows {
  int64_t inner;
  bool exponential;
};

template <int W>
struct column_shape {
  static constexpr int Y = column_block / W, M = order::lanes / Y;  // threads of a column, lanes of a thread
};

// Where a thread works: column c of W from the block's first on, in block `outer` of the array.
template <int W>
struct column_of {
  int64_t outer, row;  // row: in given, found and labels
  int64_t column;      // of inner
  int c, y;
  bool valid;
  __device__ __forceinline__ column_of(const column_rows& d, int64_t block) {
    const int64_t across = (d.inner - 1) / W + 1;
    c = threadIdx.x % W, y = threadIdx.x / W;
    outer = block / across;
    const int64_t mine = (block - outer * across) * W + c;
    valid = mine < d.inner;
    column = min(mine, d.inner - 1);  // reads what is there, writes nothing
    row = outer * d.inner + column;
  }
  __device__ __forceinline__ int64_t at(const column_rows& d, int64_t stride, int64_t k) const {
    return outer * stride + k * d.inner + column;
  }
};

// h of element k, as it is stored. from_sum: it lies in sum.
template <class E, int W>
__device__ __forceinline__ E column_element(const column_rows& d, const column_of<W>& at, int64_t k, bool from_sum) {
  if (from_sum) return static_cast<const E*>(d.sum)[at.at(d, d.sum_stride, k)];
  const E x = static_cast<const E*>(d.src)[at.at(d, d.src_stride, k)];
  if (d.residual == nullptr) return x;
  few<E, 2> one{}, more{};
  set_element(one, 0, x);
  set_element(more, 0, static_cast<const E*>(d.residual)[at.at(d, d.residual_stride, k)]);
  return element(sum_of(one, more), 0);
}

// ---- over a column's threads ---------------------------------------------------------------
template <int W>
struct column_room {
  double parts[column_shape<W>::Y][W + 1];
  double joined[W];
};
// What the threads of a column have, joined; every thread of the block calls it. Neighbours in the tree of lanes are a
// half, a quarter ... of the threads apart.
template <int W, class Join>
__device__ __forceinline__ double over_column(column_room<W>& room, int c, int y, double mine, const Join& join) {
  constexpr int Y = column_shape<W>::Y;
  room.parts[y][c] = mine;
  __syncthreads();  // a warp joins what others have put
  const int of = threadIdx.x / Y, part = threadIdx.x % Y;
  double value = room.parts[part][of];
#pragma unroll
  for (int d = Y / 2; d >= 1; d /= 2) value = join(value, from_xor(value, d));
  if (part == 0) room.joined[of] = value;
  __syncthreads();  // all read what is joined
  return room.joined[c];
}
template <int W>
__device__ __forceinline__ double sum_over_column(column_room<W>& room, int c, int y, double mine) {
  return over_column(room, c, y, mine, [](double a, double b) { return __dadd_rn(a, b); });
}

// The sum of a leaf of n elements: enter(acc, k, j) takes element k, the thread's j-th of four at once, into its lane;
// ready(k, missing) is told of the four before.
template <int W, class Ready, class Enter>
__device__ __forceinline__ double sum_of_leaf(column_room<W>& room, int c, int y, int n, const Ready& ready,
                                              const Enter& enter) {
  constexpr int Y = column_shape<W>::Y, M = column_shape<W>::M;
  double lane[M];
#pragma unroll
  for (int m = 0; m < M; ++m) lane[m] = -0.0;
#pragma unroll 1
  for (int first = y; first < n; first += order::lanes) {
#pragma unroll
    for (int m = 0; m < M; m += 4) {
      if (first + Y * m >= n) break;
      ready(first + Y * m, Y, n);
#pragma unroll
      for (int j = 0; j < 4; ++j)
        if (first + Y * (m + j) < n) lane[m + j] = enter(lane[m + j], j);
    }
  }
#pragma unroll
  for (int half = M / 2; half >= 1; half /= 2)
#pragma unroll
    for (int m = 0; m < half; ++m) lane[m] = __dadd_rn(lane[m], lane[m + half]);
  return sum_over_column(room, c, y, lane[0]);
}

// The tree over at most held_column_leaves.
template <class P>
struct few_leaves {
  P part[4];
  int count = 0;
  __device__ __forceinline__ void push(P value) {
    bool carries = true;
#pragma unroll
    for (int level = 0; level < 4; ++level) {
      if (!carries) continue;
      if ((count >> level & 1) != 0) {
        value = joined(part[level], value);
      } else {
        part[level] = value;
        carries = false;
      }
    }
    ++count;
  }
  __device__ __forceinline__ P total() const {
    P sum{};
    bool first = true;
#pragma unroll
    for (int level = 0; level < 4; ++level) {
      if ((count >> level & 1) == 0) continue;
      sum = first ? part[level] : joined(part[level], sum);
      first = false;
    }
    return sum;
  }
};

// ---- values of a leaf; at(k): element k of it ------------------------------------------------
template <int W, class At>
__device__ __forceinline__ double plain_leaf(column_room<W>& room, int c, int y, int n, const At& at,
                                             double (*term)(double, double, double), double extra) {
  double x[4];
  return sum_of_leaf(
      room, c, y, n,
      [&](int k, int step, int end) {
#pragma unroll
        for (int j = 0; j < 4; ++j) x[j] = k + j * step < end ? widened(at(k + j * step)) : 0.0;
      },
      [&](double acc, int j) { return term(acc, x[j], extra); });
}
struct column_terms {
  static __device__ __forceinline__ double plain(double acc, double x, double) { return __dadd_rn(acc, x); }
  static __device__ __forceinline__ double square(double acc, double x, double) { return __fma_rn(x, x, acc); }
  static __device__ __forceinline__ double about(double acc, double x, double mean) {
    const double off = __dsub_rn(x, mean);
    return __fma_rn(off, off, acc);
  }
  static __device__ __forceinline__ double scaled(double acc, double x, double down) {
    const double less = __dmul_rn(x, down);
    return __fma_rn(less, less, acc);
  }
};
template <class E, int W, class At>
__device__ __forceinline__ void leaf_value(column_room<W>& room, const column_rows&, int c, int y, int n, const At& at,
                                           double, double& squares) {
  squares = plain_leaf(room, c, y, n, at, column_terms::square, 0.0);
}
template <class E, int W, class At>
__device__ __forceinline__ void leaf_value(column_room<W>& room, const column_rows&, int c, int y, int n, const At& at,
                                           double, order::moments& m) {
  const double sum = plain_leaf(room, c, y, n, at, column_terms::plain, 0.0);
  const double mean = __ddiv_rn(sum, static_cast<double>(n));
  m = {static_cast<double>(n), sum, plain_leaf(room, c, y, n, at, column_terms::about, mean), 0.0};
  if constexpr (sizeof(E) == 8) {
    const double first = at(0);
    double other = order::may_all_be(first, mean) ? 0.0 : 1.0;
    for (int k = y; k < n && other == 0; k += column_shape<W>::Y)
      if (at(k) != first) other = 1.0;
    other = over_column(room, c, y, other, [](double a, double b) { return fmax(a, b); });
    if (other == 0) m.equal = first;
  }
}
struct exponential_sum {  // of a leaf
  double of;
};
template <class E, int W, class At>
__device__ __forceinline__ void leaf_value(column_room<W>& room, const column_rows& d, int c, int y, int n,
                                           const At& at, double centre, exponential_sum& sum) {
  double e[4];
  sum.of = sum_of_leaf(
      room, c, y, n,
      [&](int k, int step, int end) {
        double below[4];
#pragma unroll
        for (int j = 0; j < 4; ++j)
          below[j] = k + j * step < end ? __dmul_rn(__dsub_rn(widened(at(k + j * step)), centre), d.scale) : 0.0;
        exponentials_of(below, e);
      },
      [&](double acc, int j) { return __dadd_rn(acc, e[j]); });
}
__device__ __forceinline__ exponential_sum joined(exponential_sum a, exponential_sum b) {
  return {__dadd_rn(a.of, b.of)};
}

template <class E, int W, class At>
__device__ __forceinline__ double column_centre(column_room<W>& room, const column_rows& d, int c, int y, int64_t n,
                                                const At& at) {
  const bool negated = d.scale < 0;
  double most = -HUGE_VAL;
  for (int64_t k = y; k < n; k += column_shape<W>::Y) {
    const double x = widened(at(k));
    most = larger(most, negated ? -x : x);
  }
  return over_column(room, c, y, most, [](double a, double b) { return larger(a, b); });
}

// ---- results ----------------------------------------------------------------------------------
// s: the mean and the divisor; of exponentials the extreme and part_of.
template <class E>
__device__ __forceinline__ double factor_of(const column_rows& d, const spread& s) {
  return d.exponential ? s.divisor : scale_of<E>(s.divisor);
}
template <class E>
__device__ __forceinline__ double column_result(const column_rows& d, double x, double mean, double factor, int64_t k) {
  double y = __dsub_rn(x, mean);
  y = sizeof(E) == 8 ? __ddiv_rn(y, factor) : __dmul_rn(y, factor);
  const auto column = [&](const void* at) {
    return d.f32_weight ? static_cast<double>(__ldg(static_cast<const float*>(at) + k))
                        : widened(static_cast<const E*>(at)[k]);
  };
  if (d.bias != nullptr) return __fma_rn(y, d.weight != nullptr ? column(d.weight) : 1.0, column(d.bias));
  return d.weight != nullptr ? __dmul_rn(y, column(d.weight)) : y;
}
// Of elements k, k + step ... four at once, below end. at(k): the element.
template <class E, int W, class At>
__device__ __forceinline__ void write_four(const column_rows& d, const column_of<W>& where, int64_t k, int step,
                                           int64_t end, double mean, double factor, const At& at) {
  double y[4];
  if (d.exponential) {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      y[j] = k + j * step < end ? __dmul_rn(__dsub_rn(widened(at(k + j * step)), mean), d.scale) : 0.0;
    if (d.kind == LOCKSTEP_NORMALIZE_SOFTMAX) {
      double e[4];
      exponentials_of(y, e);
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dmul_rn(e[j], factor);
    } else {
#pragma unroll
      for (int j = 0; j < 4; ++j) y[j] = __dsub_rn(y[j], factor);
    }
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (k + j * step < end) y[j] = column_result<E>(d, widened(at(k + j * step)), mean, factor, k + j * step);
  }
  if (!where.valid) return;
#pragma unroll
  for (int j = 0; j < 4; ++j)
    if (k + j * step < end) store_float(d.dst, d.result, where.at(d, d.dst_stride, k + j * step), y[j]);
}
// The one result of a column, by one thread.
template <class E, int W>
__device__ __forceinline__ void store_one_of(const column_rows& d, const column_of<W>& where, double m, double part) {
  store_one(
      d, where.row, d.length, [&](int64_t k) { return widened(column_element<E>(d, where, k, d.sum != nullptr)); }, m,
      part);
}

// The norm of F64 columns whose plain squares leave the range of a double, else of the plain ones. leaf(at, term,
// extra) sums a column again.
__device__ __forceinline__ double scaled_norm(double plain, double most, double scaled) {
  const bool rescales = order::needs_rescale(plain, most);
  const int e = order::rescale_exponent(static_cast<uint64_t>(__double_as_longlong(most)));
  return rescales ? __dmul_rn(__dsqrt_rn(scaled), scaled_sum::power_of_two(e)) : __dsqrt_rn(plain);
}

// ---- held --------------------------------------------------------------------------------------
// P: double, order::moments or exponential_sum.
template <class E, class P, int W>
__global__ __launch_bounds__(column_block, 3) void columns_held(const column_rows d) {
  constexpr int Y = column_shape<W>::Y;
  extern __shared__ uint4 tile_room[];
  __shared__ column_room<W> room;
  E* const tile = reinterpret_cast<E*>(tile_room);
  const column_of<W> where(d, blockIdx.x);
  const int c = where.c, y = where.y, n = static_cast<int>(d.length);
  follow_on();
  const auto held = [&](int64_t k) { return tile[k * W + c]; };
  constexpr int ahead = 8;
  for (int first = y; first < n; first += ahead * Y) {
    E x[ahead];
#pragma unroll
    for (int j = 0; j < ahead; ++j) x[j] = column_element<E>(d, where, min(first + j * Y, n - 1), false);
#pragma unroll
    for (int j = 0; j < ahead; ++j) {
      const int k = first + j * Y;
      if (k >= n) continue;
      tile[k * W + c] = x[j];
      if (d.sum != nullptr && where.valid) static_cast<E*>(d.sum)[where.at(d, d.sum_stride, k)] = x[j];
    }
  }
  if constexpr (sizeof(E) == 8) __syncthreads();  // all compare elements with the first
  constexpr bool exponential = std::is_same_v<P, exponential_sum>;
  double centre = 0;
  if constexpr (exponential) {
    centre = column_centre<E>(room, d, c, y, n, held);
    if (d.scale < 0) centre = -centre;
  }
  few_leaves<P> tree;
  const auto each_leaf = [&](const auto& visit) {
    for (int first = 0; first < n; first += static_cast<int>(order::leaf))
      visit(min(n - first, static_cast<int>(order::leaf)), [&, first](int k) { return held(first + k); });
  };
  each_leaf([&](int here, const auto& at) {
    P value;
    leaf_value<E>(room, d, c, y, here, at, centre, value);
    tree.push(value);
  });
  spread s;
  if constexpr (exponential) {
    s = {centre, part_of(d, centre, tree.total().of)};
    if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || d.kind == LOCKSTEP_NORMALIZE_PICKED) {
      __syncthreads();  // sum, which a label's element is read from, is written
      if (y == 0 && where.valid) store_one_of<E>(d, where, s.mean, s.divisor);
      return;
    }
  } else {
    s = spread_of(d, tree.total());
    if constexpr (sizeof(E) == 8 && std::is_same_v<P, double>) {
      const bool again = d.kind == LOCKSTEP_NORMALIZE_L2 && norm_sum::needs_again(tree.total());
      if (__syncthreads_or(again)) {
        double most = 0;
        for (int k = y; k < n; k += Y) most = fmax(most, fabs(held(k)));
        most = over_column(room, c, y, most, [](double a, double b) { return fmax(a, b); });
        const int e = order::rescale_exponent(static_cast<uint64_t>(__double_as_longlong(most)));
        few_leaves<double> scaled;
        each_leaf([&](int here, const auto& at) {
          scaled.push(plain_leaf(room, c, y, here, at, column_terms::scaled, scaled_sum::power_of_two(-e)));
        });
        if (again) s = spread_of_norm(d, scaled_norm(tree.total(), most, scaled.total()));
      }
    }
  }
  const double factor = factor_of<E>(d, s);
  for (int64_t k = y; k < n; k += 4 * Y) write_four<E>(d, where, k, Y, n, s.mean, factor, held);
}

// ---- long columns --------------------------------------------------------------------------------
// A leaf of its columns per block. Values lie leaf by leaf, those of all columns together.
struct leaf_of_columns {
  int64_t leaf, first;
  int n;
  column_of<column_width> where;
  __device__ __forceinline__ explicit leaf_of_columns(const column_rows& d)
      : leaf_of_columns(d, order::leaves(d.length)) {}
  __device__ __forceinline__ leaf_of_columns(const column_rows& d, int64_t leaves)
      : leaf(blockIdx.x % leaves),
        first(leaf * order::leaf),
        n(static_cast<int>(min(d.length - first, order::leaf))),
        where(d, blockIdx.x / leaves) {}
};
template <class E>
__global__ __launch_bounds__(column_block) void columns_extremes(const column_rows d, double* extremes) {
  __shared__ column_room<column_width> room;
  const leaf_of_columns at(d);
  const column_of<column_width>& where = at.where;
  const auto first_read = [&](int64_t k) {
    const E x = column_element<E>(d, where, at.first + k, false);
    if (d.sum != nullptr && where.valid) static_cast<E*>(d.sum)[where.at(d, d.sum_stride, at.first + k)] = x;
    return x;
  };
  const double most = column_centre<E>(room, d, where.c, where.y, at.n, first_read);
  if (where.y == 0 && where.valid) extremes[at.leaf * d.count + where.row] = most;
}
static __global__ __launch_bounds__(column_block) void columns_centre(const column_rows d, const double* extremes,
                                                                      spread* found) {
  const int64_t row = int64_t{blockIdx.x} * column_block + threadIdx.x;
  if (row >= d.count) return;
  double most = extremes[row];
  for (int64_t k = 1; k < order::leaves(d.length); ++k) most = larger(most, extremes[k * d.count + row]);
  found[row].mean = d.scale < 0 ? -most : most;
}

template <class E, class P>
__global__ __launch_bounds__(column_block) void columns_leaves(const column_rows d, const spread* found, P* values) {
  __shared__ column_room<column_width> room;
  const leaf_of_columns at(d);
  const column_of<column_width>& where = at.where;
  constexpr bool exponential = std::is_same_v<P, exponential_sum>;
  double centre = 0;
  if constexpr (exponential)
    centre = found[where.row].mean;
  else if (d.sum != nullptr) {
    for (int k = where.y; k < at.n; k += column_shape<column_width>::Y) {
      const E x = column_element<E>(d, where, at.first + k, false);
      if (where.valid) static_cast<E*>(d.sum)[where.at(d, d.sum_stride, at.first + k)] = x;
    }
    __syncthreads();  // the leaf's elements are read again, the first one by all
  }
  P value;
  leaf_value<E>(
      room, d, where.c, where.y, at.n,
      [&](int64_t k) { return column_element<E>(d, where, at.first + k, d.sum != nullptr && where.valid); }, centre,
      value);
  if (where.y == 0 && where.valid) values[at.leaf * d.count + where.row] = value;
}

// F64 columns whose norm needs it are walked again, by their thread alone: they are rare.
template <class E>
__device__ __forceinline__ double norm_of_column(const column_rows& d, const column_of<1>& where, double plain) {
  if constexpr (sizeof(E) == 8) {
    const auto at = [&](int64_t k) { return column_element<E>(d, where, k, d.sum != nullptr); };
    double most = 0;
    for (int64_t k = 0; k < d.length; ++k) most = fmax(most, fabs(at(k)));
    if (order::needs_rescale(plain, most)) {
      const int e = order::rescale_exponent(static_cast<uint64_t>(__double_as_longlong(most)));
      const double down = scaled_sum::power_of_two(-e);
      order::tree<double> tree;
      for (int64_t first = 0; first < d.length; first += order::leaf) {
        double lane[order::lanes];
        for (double& l : lane) l = -0.0;
        for (int64_t k = first; k < min(d.length, first + order::leaf); ++k)
          lane[(k - first) % order::lanes] = column_terms::scaled(lane[(k - first) % order::lanes], at(k), down);
        tree.push(order::join_lanes(lane));
      }
      return scaled_norm(plain, most, tree.total());
    }
  }
  return __dsqrt_rn(plain);
}

template <class E, class P>
__global__ __launch_bounds__(column_block) void columns_join(const column_rows d, const P* values, spread* found) {
  const int64_t row = int64_t{blockIdx.x} * column_block + threadIdx.x;
  if (row >= d.count) return;
  const int64_t leaves = order::leaves(d.length);
  order::tree<std::conditional_t<std::is_same_v<P, exponential_sum>, double, P>> tree;
  for (int64_t k = 0; k < leaves; ++k) {
    const P value = values[k * d.count + row];
    if constexpr (std::is_same_v<P, exponential_sum>)
      tree.push(value.of);
    else
      tree.push(value);
  }
  const auto total = tree.total();
  column_of<1> where(d, 0);
  where.outer = row / d.inner, where.column = row - where.outer * d.inner, where.row = row, where.valid = true;
  if constexpr (std::is_same_v<P, exponential_sum>) {
    const double m = found[row].mean, part = part_of(d, m, total);
    found[row].divisor = part;
    if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || d.kind == LOCKSTEP_NORMALIZE_PICKED)
      store_one_of<E>(d, where, m, part);
  } else if constexpr (std::is_same_v<P, double>) {
    const bool again = sizeof(E) == 8 && d.kind == LOCKSTEP_NORMALIZE_L2 && norm_sum::needs_again(total);
    found[row] = again ? spread_of_norm(d, norm_of_column<E>(d, where, total)) : spread_of(d, total);
  } else {
    found[row] = spread_of(d, total);
  }
}

// given: m and S of each column, of exponentials.
template <class E>
__global__ __launch_bounds__(column_block) void columns_given(const column_rows d, const double* given, spread* found) {
  const int64_t row = int64_t{blockIdx.x} * column_block + threadIdx.x;
  if (row >= d.count) return;
  column_of<1> where(d, 0);
  where.outer = row / d.inner, where.column = row - where.outer * d.inner, where.row = row, where.valid = true;
  const double m = given[2 * row], part = part_of(d, m, given[2 * row + 1]);
  if (d.kind == LOCKSTEP_NORMALIZE_LOGSUMEXP || d.kind == LOCKSTEP_NORMALIZE_PICKED)
    store_one_of<E>(d, where, m, part);
  else
    found[row] = {m, part};
}

// A block takes apply_elements of each of its threads.
template <class E>
__global__ __launch_bounds__(column_block) void columns_apply(const column_rows d, const spread* found) {
  constexpr int Y = column_shape<column_width>::Y;
  constexpr int64_t each = int64_t{apply_elements} * Y;
  const int64_t parts = (d.length - 1) / each + 1;
  const column_of<column_width> where(d, blockIdx.x / parts);
  const int64_t first = blockIdx.x % parts * each;
  const spread s = found[where.row];
  const double factor = factor_of<E>(d, s);
  const bool from_sum = d.sum != nullptr;
#pragma unroll
  for (int j = 0; j < apply_elements; j += 4)
    write_four<E>(d, where, first + where.y + j * Y, Y, min(d.length, first + each), s.mean, factor,
                  [&](int64_t k) { return column_element<E>(d, where, k, from_sum); });
}

}  // namespace lockstep::cuda
