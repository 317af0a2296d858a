// scan.cpp - the float sums of a scan within a leaf: groups of 8, rows of 16 groups, 16 rows.
// Idea    a group's sums by doubling: shifted by 1, 2 and 4 lanes and added. What stands before it in its row is one
//         addition per group, what stands before the row another one a row: the only chains, 16 links each.
// Moves   elements and results once
// Limit   conversions and shifts in L2; the copy limit in DRAM
// Watch   in place a result may stand where a later element is: shifted leaves are copied first (../scan.cpp)
// Source  lib/bits/order_rows.hpp
#include "../scan_kernels.hpp"
#include "bits/order_rows.hpp"
#include "results.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

constexpr int parts = order::scan_group / W;  // vectors of a group

// W lanes of low and high side by side, from lane `from` of low on.
template <int from>
inline vd across(vd low, vd high) {
  vd out;
  for (int i = 0; i < W; ++i) out[i] = from + i < W ? low[from + i] : high[from + i - W];
  return out;
}
#if defined(LOCKSTEP_ISA_AVX512)
#define LOCKSTEP_ACROSS(from)                                                                                    \
  template <>                                                                                                    \
  inline vd across<from>(vd low, vd high) {                                                                      \
    return reinterpret_cast<vd>(                                                                                 \
        _mm512_maskz_alignr_epi64(0xFF, reinterpret_cast<__m512i>(high), reinterpret_cast<__m512i>(low), from)); \
  }
LOCKSTEP_ACROSS(7)
LOCKSTEP_ACROSS(6)
LOCKSTEP_ACROSS(4)
#undef LOCKSTEP_ACROSS
#elif defined(LOCKSTEP_ISA_AVX2)
template <>
inline vd across<3>(vd low, vd high) {
  return _mm256_shuffle_pd(_mm256_permute2f128_pd(low, high, 0x21), high, 0x5);
}
template <>
inline vd across<2>(vd low, vd high) {
  return _mm256_permute2f128_pd(low, high, 0x21);
}
#endif

// Every lane more than d - 1 from the group's first plus the one d before it.
template <int d>
inline void doubled(vd (&x)[parts]) {
  const vd none = splat(-0.0);
  for (int k = parts - 1; k >= 0; --k) {
    if constexpr (d % W == 0) {
      if (k - d / W >= 0) x[k] += x[k - d / W];
    } else {
      x[k] += across<W - d % W>(k > 0 ? x[k - 1] : none, x[k]);
    }
  }
}

// A whole vector, or the first m elements of one, none where m is negative.
template <class E>
inline vd load_some(const typename E::type* p, int64_t m) {
  return m >= W ? E::load(p) : load_few<E>(p, m < 0 ? 0 : m);
}
template <class R>
inline void put_some(typename R::type* to, vd y, int64_t m) {
  const auto out = rounded<R>(y);
  if (m >= W)
    memcpy(to, &out, sizeof out);
  else
    store_few<R>(to, out, m < 0 ? 0 : m);
}
inline vd load_state(const double* p, int64_t m) { return load_some<f64_element>(p, m); }
inline void put_state(double* p, vd x, int64_t m) {
  if (m >= W)
    memcpy(p, &x, sizeof x);
  else
    store_few<f64_element>(p, x, m);
}

// The sums of each group, by its index in the leaf, and what stands before its row: use(i, m, sum, before), m elements.
template <class E, class Use>
inline void groups(const typename E::type* p, int64_t n, double total, const Use& use) {
  constexpr int group = order::scan_group;
  vd rows = splat(-0.0), row = splat(-0.0), before{};
  for (int64_t i = 0; i < n; i += group) {
    if (i % order::lanes == 0) {
      rows += row;
      before = splat(total) + rows;
      row = splat(-0.0);
    }
    vd x[parts];
    for (int k = 0; k < parts; ++k) x[k] = load_some<E>(p + i + k * W, n - i - k * W);
    doubled<1>(x);
    doubled<2>(x);
    doubled<4>(x);
    const vd last = splat(x[parts - 1][W - 1]);
    for (int k = 0; k < parts; ++k) x[k] += row;
    use(i, x, before);
    row += last;
  }
}

template <class E, class R>
void scan(const scanned_leaf& leaf, double total) {
  const int64_t wanted = leaf.n - leaf.shifted;
  for (int64_t s = 0; s < leaf.count; ++s) {
    auto* to = static_cast<typename R::type*>(leaf.dst) + s * leaf.dst_stride + leaf.shifted;
    groups<E>(
        static_cast<const typename E::type*>(leaf.src) + s * leaf.src_stride, leaf.n,
        total, [&](int64_t i, const vd(&sum)[parts], vd before) __attribute__((always_inline)) {
          for (int k = 0; k < parts; ++k) put_some<R>(to + i + k * W, before + sum[k], wanted - i - k * W);
        });
  }
}

template <class E>
double last(const void* src, int64_t n, double total) {
  double result = 0;
  groups<E>(static_cast<const typename E::type*>(src), n, total, [&](int64_t i, const vd(&sum)[parts], vd before) {
    if (i + order::scan_group < n) return;
    const auto at = static_cast<int>(n - i - 1);
    result = before[0] + sum[at / W][at % W];
  });
  return result;
}

// Columns side by side: a lane has a column, so a group's eight elements lie in eight vectors. A group of all columns,
// then the next one: memory is read and written in its own order.
template <class E, class R>
void columns(const scanned_columns& c) {
  constexpr int group = order::scan_group;
  const auto* src = static_cast<const typename E::type*>(c.src);
  auto* dst = static_cast<typename R::type*>(c.dst);
  double rows_before[scan_columns], row_before[scan_columns];
  for (int64_t k = 0; k < c.count; ++k) rows_before[k] = row_before[k] = -0.0;
  for (int64_t i = 0; i < c.n; i += group) {
    const int64_t here = c.n - i < group ? c.n - i : group;
    const bool first_row = i < order::lanes, row_begins = i % order::lanes == 0;
    for (int64_t v = 0; v < c.count; v += W) {
      const int64_t m = c.count - v;
      vd rows = load_state(rows_before + v, m), row = load_state(row_before + v, m);
      if (row_begins && i > 0) {
        rows += row;
        put_state(rows_before + v, rows, m);
        row = splat(-0.0);
      }
      const vd before = load_state(c.total + v, m) + rows;
      vd x[group];
      for (int64_t j = 0; j < group; ++j) x[j] = j < here ? load_some<E>(src + (i + j) * c.stride + v, m) : splat(-0.0);
      if (c.sums != nullptr) {
        double* lane = c.lanes + i % order::lanes * c.count + v;
        for (int64_t j = 0; j < here; ++j, lane += c.count)
          put_state(lane, first_row ? x[j] : load_state(lane, m) + x[j], m);
      }
      for (int d = 1; d < group; d *= 2)
        for (int j = group - 1; j >= d; --j) x[j] = x[j - d] + x[j];
      vd entering = load_state(c.entering + v, m);
      for (int64_t j = 0; j < here; ++j) {
        const vd y = before + (x[j] + row);
        put_some<R>(dst + (i + j) * c.dst_stride + v, c.shifted ? entering : y, m);
        entering = y;
      }
      put_state(c.entering + v, entering, m);
      put_state(row_before + v, row + x[group - 1], m);
    }
  }
  if (c.sums == nullptr) return;
  for (int64_t d = order::lanes / 2; d >= 1; d /= 2)
    for (int64_t k = 0; k < d * c.count; ++k) c.lanes[k] += c.lanes[d * c.count + k];
  for (int64_t k = 0; k < c.count; ++k) c.sums[k] = c.lanes[k];
}

template <class R>
void put_one(void* dst, double y) {
  store_few<R>(static_cast<typename R::type*>(dst), rounded<R>(splat(y)), 1);
}

typedef f16_element A;
typedef bf16_element B;
typedef f32_element C;
typedef f64_element D;
}  // namespace

extern const scan_kernels scanners_table;
const scan_kernels scanners_table = {
    {
        {{scan<A, A>, nullptr, scan<A, C>, scan<A, D>},
         last<A>,
         {columns<A, A>, nullptr, columns<A, C>, columns<A, D>}},
        {{nullptr, scan<B, B>, scan<B, C>, scan<B, D>},
         last<B>,
         {nullptr, columns<B, B>, columns<B, C>, columns<B, D>}},
        {{nullptr, nullptr, scan<C, C>, scan<C, D>}, last<C>, {nullptr, nullptr, columns<C, C>, columns<C, D>}},
        {{nullptr, nullptr, scan<D, C>, scan<D, D>}, last<D>, {nullptr, nullptr, columns<D, C>, columns<D, D>}},
    },
    {put_one<A>, put_one<B>, put_one<C>, put_one<D>}};

}  // namespace lockstep::cpu::LOCKSTEP_ISA
