// float_sums.cpp - leaves of the fixed order: sums and sums of squares in double.
// Idea    rows: 128 lanes are 16 AVX-512 registers, one pass; AVX2 makes four passes of 32 lanes over a leaf in L1. W
//         rows finish together, so that the last joins work on full registers.
//         columns: float_columns.hpp.
// Moves   every element read once; one double written per leaf
// Limit   L2 and L3: conversions to double (16 per row of 128 f32); DRAM: the read limit
// Watch   missing lanes are -0.0, never +0.0: joins skip them. A vector beyond the row's end is never read.
// Source  lib/bits/order.hpp
#include "../reduce_kernels.hpp"
#include "bits/order.hpp"
#include "float_columns.hpp"
#include "float_terms.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

// ---- rows -----------------------------------------------------------------------
template <int... V>
struct constants {};
constexpr int vectors = lanes / W;  // of one row of lanes

// A row of lanes is held in `vectors` of V with `width` elements each, at_once of them in registers.
template <class K>
struct by_vectors : K {
  typedef vd V;
  static constexpr int width = W, vectors = lanes / W;
  static constexpr int at_once = W == 8 ? vectors : 8;  // 16 of 32 registers, 8 of 16
};
// How whole leaves are held: stream_by for two streams, near_by for cached data.
template <class K, size_t bytes = sizeof(typename K::element)>
struct stream_by : by_vectors<K> {};
template <class K, size_t bytes = sizeof(typename K::element)>
struct near_by : stream_by<K> {};
#if defined(LOCKSTEP_ISA_AVX512_HALVES)
// Zen 4 converts eight floats to doubles faster four at a time than all at once. Of the 32 vectors four are in memory.
template <class K>
struct stream_by<K, 4> : K {
  typedef v4d V;
  static constexpr int width = 4, vectors = lanes / 4, at_once = vectors;
  static v4d load(const float* p) { return K::four(p); }
};
// Also faster for data in L3.
template <class K>
struct near_by<K, 4> : stream_by<K> {};
// Doubles in L2 are loaded by whole lines, which is faster than by halves.
template <class K>
struct near_by<K, 8> : by_vectors<K> {
  static vd load(const double* p) { return _mm512_loadu_pd(p); }
};
#endif

// lane[]: the lanes of a leaf's first `full` rows, held as H says.
template <class H, bool fetched = true>
inline void full_rows(const typename H::element* p, int64_t full, typename H::V* lane) {
  constexpr int at_once = H::at_once;
  for (int first = 0; first < H::vectors; first += at_once) {
    typename H::V acc[at_once];
#pragma GCC unroll 32
    for (int k = 0; k < at_once; ++k) acc[k] = all_lanes<typename H::V>(-0.0);
    const typename H::element* q = p + first * H::width;
    for (int64_t r = 0; r < full; ++r, q += lanes) {
      constexpr int bytes = fetched ? at_once * H::width * static_cast<int>(sizeof(*q)) : 0;
      for (int b = 0; b < bytes; b += 64) fetch(reinterpret_cast<const char*>(q) + tuned.read_ahead + b);
#pragma GCC unroll 32
      for (int k = 0; k < at_once; ++k) acc[k] = H::enter(acc[k], H::load(q + k * H::width));
    }
#pragma GCC unroll 32
    for (int k = 0; k < at_once; ++k) lane[first + k] = acc[k];
  }
}

// enter(k, x[k]) for the vectors of one piece of a row, chosen by comparisons, whose branches follow a pattern. A jump
// table is sometimes mispredicted, depending on the address of the code, and then takes more than twice the time.
template <class K, int first, int pieces, int at_once>
inline void enter_piece(int piece, const vd (&x)[at_once], vd* lane) {
  if constexpr (pieces == 1) {
#pragma GCC unroll 8
    for (int k = 0; k < at_once; ++k) lane[first * at_once + k] = K::enter(lane[first * at_once + k], x[k]);
  } else if (piece >= first + pieces / 2) {
    enter_piece<K, first + pieces / 2, pieces / 2>(piece, x, lane);
  } else {
    enter_piece<K, first, pieces / 2>(piece, x, lane);
  }
}

// full_rows by a loop with few loads. Zen 4's prefetcher tells streams apart by the load instruction, so a loop over a
// whole row of lanes, with 32 loads, defeats it.
template <class K>
inline void full_rows_by_pieces(const typename K::element* p, int64_t full, vd* to) {
  constexpr int step = tuned.leaf_step / static_cast<int>(sizeof(*p)), at_once = step / W, pieces = lanes / step;
  vd lane[vectors];
#pragma GCC unroll 16
  for (int k = 0; k < vectors; ++k) lane[k] = splat(-0.0);
#pragma GCC unroll 1
  for (int piece = 0; piece < full * pieces; ++piece, p += step) {
    vd x[at_once];
#pragma GCC unroll 8
    for (int k = 0; k < at_once; ++k) x[k] = held(K::load(p + k * W));
    enter_piece<K, 0, pieces>(piece & (pieces - 1), x, lane);
  }
#pragma GCC unroll 16
  for (int k = 0; k < vectors; ++k) to[k] = lane[k];
}

// Rows that may come from beyond L2.
template <class K>
inline void far_rows(const typename K::element* p, int64_t full, vd* lane) {
  if constexpr (tuned.halves)
    full_rows_by_pieces<K>(p, full, lane);
  else
    full_rows<by_vectors<K>>(p, full, lane);
}

// Joins whole vectors of lanes down to one; `live` of the lanes are not missing.
inline vd join_vectors(vd* lane, int live) {
  if (live == vectors)
#pragma GCC unroll 8
    for (int d = vectors / 2; d >= 1; d /= 2)
#pragma GCC unroll 32
      for (int k = 0; k < d; ++k) lane[k] += lane[k + d];
  else
    for (int d = vectors / 2; d >= 1; d /= 2)
      for (int k = 0; k + d < live && k < d; ++k) lane[k] += lane[k + d];
  return lane[0];
}

// Rows of up to V vectors without a branch on their length: masked loads read
// nothing past the end, and what they fill in changes no lane.
template <class K, int V>
inline vd masked_row(const typename K::element* p, int64_t n) {
  vd lane[V];
#pragma GCC unroll 8
  for (int k = 0; k < V; ++k) {
    const int64_t m = n - k * W;
    lane[k] = K::enter(splat(-0.0), load_first(p + k * W, first_lanes(m < 0 ? 0 : m < W ? m : W), K::pad));
  }
#pragma GCC unroll 4
  for (int d = V / 2; d >= 1; d /= 2)
#pragma GCC unroll 8
    for (int k = 0; k < d; ++k) lane[k] += lane[k + d];
  return lane[0];
}

template <class K>
vd leaf_vector(const typename K::element* p, int64_t n) {
  if constexpr (sizeof(typename K::element) > 2 && W > 2) {
    if (n <= 4 * W) return masked_row<K, 4>(p, n);
    if (n <= 8 * W) return masked_row<K, 8>(p, n);
  }
  vd lane[vectors];
  const int64_t full = n / lanes, rest = n % lanes;
  if (full > 0) far_rows<K>(p, full, lane);
  p += full * lanes;
  const int whole = static_cast<int>(rest / W), part = static_cast<int>(rest % W);
  const int live = full > 0 ? vectors : whole + (part != 0);
  const auto start = [&](int k) { return full > 0 ? lane[k] : splat(-0.0); };
  for (int k = 0; k < whole; ++k) lane[k] = K::enter(start(k), K::load(p + k * W));
  if (part != 0) lane[whole] = K::enter(start(whole), load_part<K>(p + whole * W, part));
  return live == 0 ? splat(-0.0) : join_vectors(lane, live);
}

// W lanes; those that V does not have are missing.
inline vd widened(vd x) { return x; }
#if defined(LOCKSTEP_ISA_AVX512_HALVES)
inline vd widened(v4d x) { return _mm512_insertf64x4(splat(-0.0), x, 0); }
#endif

// A whole leaf: everything a constant, so that all of it stays in registers.
template <class H, bool fetched>
inline vd whole_leaf(const typename H::element* p) {
  typename H::V lane[H::vectors];
  full_rows<H, fetched>(p, order::rows, lane);
#pragma GCC unroll 8
  for (int d = H::vectors / 2; d >= 1; d /= 2)
#pragma GCC unroll 32
    for (int k = 0; k < d; ++k) lane[k] += lane[k + d];
  return widened(lane[0]);
}

// Whole leaves starting at a and at b, read at the same time: with 32 registers all lanes of two leaves are
// accumulators. No prefetches, because two streams keep the hardware's prefetchers busy.
template <class H>
inline void two_leaves(const typename H::element* p, const typename H::element* q, vd& one, vd& two) {
  constexpr int vectors = H::vectors;
  typename H::V a[vectors], b[vectors];
  constexpr int piece = tuned.stream_piece / static_cast<int>(lanes * sizeof(*p));  // rows
#pragma GCC unroll 32
  for (int k = 0; k < vectors; ++k) a[k] = b[k] = all_lanes<typename H::V>(-0.0);
  const auto load = [](const typename H::element* from) {
    if constexpr (sizeof(*from) == 8)
      return load_of_stream<vd>(from);  // narrower ones come by half a line or less
    else
      return H::load(from);
  };
  // The other leaf's lanes wait in L1, because with all lanes in registers none is left for an element's square.
  const auto take = [&](const auto* from, typename H::V(&lane)[vectors]) {
#pragma GCC unroll 1
    for (int i = 0; i < piece; ++i, from += lanes)
#pragma GCC unroll 32
      for (int k = 0; k < vectors; ++k) lane[k] = H::enter(lane[k], load(from + k * H::width));
    asm volatile("" : "+m"(lane));
  };
#pragma GCC unroll 1
  for (int r = 0; r < order::rows; r += piece) take(p + r * lanes, a), take(q + r * lanes, b);
#pragma GCC unroll 8
  for (int d = vectors / 2; d >= 1; d /= 2)
#pragma GCC unroll 16
    for (int k = 0; k < d; ++k) a[k] += a[k + d], b[k] += b[k + d];
  one = widened(a[0]), two = widened(b[0]);
}

// A row of V vectors, the last of m elements.
template <class K, int V>
inline vd short_row(const typename K::element* p, int64_t m) {
  vd lane[V];
#pragma GCC unroll 16
  for (int k = 0; k < V - 1; ++k) lane[k] = K::enter(splat(-0.0), K::load(p + k * W));
  lane[V - 1] = K::enter(splat(-0.0), m == W ? K::load(p + (V - 1) * W) : load_part<K>(p + (V - 1) * W, m));
#pragma GCC unroll 4
  for (int d = 8; d >= 1; d /= 2)
#pragma GCC unroll 8
    for (int k = 0; k < d; ++k)
      if (k + d < V) lane[k] += lane[k + d];
  return lane[0];
}

// Stores results, a NaN as the canonical one, because a row's result may go straight to the caller.
template <class V>
inline void store_sums(double* out, V sums, int64_t count = sizeof(V) / sizeof(double)) {
  sums = sums == sums ? sums : all_lanes<V>(__builtin_nan(""));
  memcpy(out, &sums, static_cast<size_t>(count) * sizeof(double));
}

// together: code for W rows side by side.
template <bool together, class Row>
inline void each_row(int64_t count, double* out, const Row& row) {
  int64_t s = 0;
  if constexpr (together)
    for (; s + W <= count; s += W) {
      vd v[W];
#pragma GCC unroll 8
      for (int i = 0; i < W; ++i) v[i] = row(s + i);
      store_sums(out + s, join_lanes(v));
    }
  for (; s < count; s += W) {
    const int some = count - s < W ? static_cast<int>(count - s) : W;
    vd v[W] = {};
#pragma GCC unroll 1
    for (int i = 0; i < some; ++i) v[i] = row(s + i);
    store_sums(out + s, join_lanes(v), some);
  }
}

template <class T>
inline void ahead_of(const T* row, int64_t length) {
  for (int64_t b = 0; b < length * static_cast<int64_t>(sizeof(T)); b += 64)
    fetch(reinterpret_cast<const char*>(row) + tuned.read_ahead + b);
}

#if defined(LOCKSTEP_ISA_AVX512_HALVES)
// Rows of V vectors of four floats, one row for each iteration, so that the loop has few loads as in
// full_rows_by_pieces. Four rows in each iteration take twice the time.
template <class K, int V>
void rows_by_fours(const packed_rows& r, int64_t count, double* out) {
  const auto* p = static_cast<const float*>(r.src);
  const int64_t stride = r.stride;
  v4d row[4] = {};
#pragma GCC unroll 1
  for (int64_t s = 0; s < count; ++s, p += stride) {
    v4d lane[V];
#pragma GCC unroll 32
    for (int k = 0; k < V; ++k) {  // alternating between the halves of a row is a little faster
      const int at = k / 2 + k % 2 * (V / 2);
      lane[at] = held(K::four(p + 4 * at));
    }
#pragma GCC unroll 32
    for (int k = 0; k < V; ++k) lane[k] = K::term(lane[k]);
#pragma GCC unroll 5
    for (int d = 16; d >= 1; d /= 2)
#pragma GCC unroll 16
      for (int k = 0; k < d; ++k)
        if (k + d < V) lane[k] += lane[k + d];
    const v4d x = held(lane[0]);
    if ((s & 2) == 0) {
      if ((s & 1) == 0)
        row[0] = x;
      else
        row[1] = x;
    } else if ((s & 1) == 0) {
      row[2] = x;
    } else {
      row[3] = x;
      store_sums(out + s - 3, join_lanes(row));
    }
  }
  if (count % 4 != 0) store_sums(out + count - count % 4, join_lanes(row), count % 4);
}
#endif

// Rows of one length, V vectors.
template <class K, int V>
void short_rows(const packed_rows& r, int64_t count, double* out) {
#if defined(LOCKSTEP_ISA_AVX512_HALVES)
  if constexpr (sizeof(typename K::element) == 4)
    if (r.n == V * W) return rows_by_fours<K, 2 * V>(r, count, out);
#endif
  const auto* p = static_cast<const typename K::element*>(r.src);
  each_row<V <= 4>(count, out, [&](int64_t s) {
    ahead_of(p + s * r.stride, V * W);
    return short_row<K, V>(p + s * r.stride, r.n - (V - 1) * W);
  });
}
constexpr int most_vectors = 16;  // of short rows
template <class K, int... V>
constexpr auto short_rows_of(constants<V...>) {
  typedef void (*rows)(const packed_rows&, int64_t, double*);
  struct table {
    rows of[most_vectors];
  };
  return table{{short_rows<K, V>...}};
}

template <class K>
void rows(const packed_rows& r, int64_t count, double* out) {
  typedef typename K::element T;
  const auto* p = static_cast<const T*>(r.src);
  const int64_t n = r.n, stride = r.stride;
  if (r.offsets != nullptr)
    return each_row<false>(count, out, [&](int64_t s) {
      const int64_t length = r.offsets[s + 1] - r.offsets[s];
      if (length < 2 * lanes) ahead_of(p + r.offsets[s], length);
      return leaf_vector<K>(p + r.offsets[s], length);
    });
  if (n == order::leaf && r.cached)
    return each_row<false>(count, out, [&](int64_t s) { return whole_leaf<near_by<K>, false>(p + s * stride); });
  if (n == order::leaf)
    return each_row<false>(count, out, [&](int64_t s) {
      if constexpr (!tuned.halves) return whole_leaf<by_vectors<K>, true>(p + s * stride);
      vd lane[vectors];
      far_rows<K>(p + s * stride, order::rows, lane);
      return join_vectors(lane, vectors);
    });
  if (n > 0 && n <= most_vectors * W) {
    static constexpr auto table = short_rows_of<K>(constants<1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16>{});
    return table.of[(n - 1) / W](r, count, out);
  }
  each_row<false>(count, out, [&](int64_t s) {
    if (n < 2 * lanes) ahead_of(p + s * stride, n);
    return leaf_vector<K>(p + s * stride, n);
  });
}

template <class K>
void two(const void* a, const void* b, int64_t count, double* out_a, double* out_b) {
  if constexpr (W < 8) {  // a leaf alone fills the registers, four times over
    rows<K>({a, order::leaf, order::leaf, nullptr}, count, out_a);
    rows<K>({b, order::leaf, order::leaf, nullptr}, count, out_b);
  } else {
    const auto* p = static_cast<const typename K::element*>(a);
    const auto* q = static_cast<const typename K::element*>(b);
    for (int64_t s = 0; s < count; s += W) {
      const int some = count - s < W ? static_cast<int>(count - s) : W;
      vd of_a[W] = {}, of_b[W] = {};
#pragma GCC unroll 1
      for (int i = 0; i < some; ++i)
        two_leaves<stream_by<K>>(p + (s + i) * order::leaf, q + (s + i) * order::leaf, of_a[i], of_b[i]);
      const vd sums_a = join_lanes(of_a), sums_b = join_lanes(of_b);
      memcpy(out_a + s, &sums_a, static_cast<size_t>(some) * sizeof(double));
      memcpy(out_b + s, &sums_b, static_cast<size_t>(some) * sizeof(double));
    }
  }
}

}  // namespace

extern const float_sum_kernels float_sums_table;
const float_sum_kernels float_sums_table = {{
    {rows<f16_sum>, two<f16_sum>, columns<f16_sum>, listed_columns<f16_sum>},
    {rows<bf16_sum>, two<bf16_sum>, columns<bf16_sum>, listed_columns<bf16_sum>},
    {rows<f32_sum>, two<f32_sum>, columns<f32_sum>, listed_columns<f32_sum>},
    {rows<f64_sum>, two<f64_sum>, columns<f64_sum>, listed_columns<f64_sum>},
    {rows<f16_square>, two<f16_square>, columns<f16_square>, listed_columns<f16_square>},
    {rows<bf16_square>, two<bf16_square>, columns<bf16_square>, listed_columns<bf16_square>},
    {rows<f32_square>, two<f32_square>, columns<f32_square>, listed_columns<f32_square>},
    {rows<f64_square>, two<f64_square>, columns<f64_square>, listed_columns<f64_square>},
}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
