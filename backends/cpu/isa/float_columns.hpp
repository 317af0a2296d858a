// float_columns.hpp - leaves of neighbouring columns of a matrix: a vector holds neighbouring columns. Lanes are
// visited in bit-reversed order, so that joins need a stack of eight partial sums and not 128 accumulators.
#pragma once

#include <type_traits>

#include "../reduce_kernels.hpp"
#include "bits/order.hpp"
#include "few_columns.hpp"
#include "float_terms.hpp"

namespace lockstep::cpu::LOCKSTEP_ISA {
namespace {

using order::lanes;

// Where row r of a matrix begins, in elements: every ld elements, or as a list says.
struct spaced {
  int64_t ld;
  int64_t operator[](int64_t r) const { return r * ld; }
};
typedef const int64_t* listed;

// One lane of `width` columns: elements l, l + 128, ... of each. The row `next` rows on is prefetched with each.
template <class K, class At>
inline void lane_of_columns(const typename K::element* p, int64_t n, int64_t l, At at, int64_t width, int64_t next,
                            double* out) {
  constexpr int together = 4;  // vectors: 4 chains of adds in flight
  int64_t c = 0;
  for (; c + together * W <= width; c += together * W) {
    vd acc[together];
    for (int k = 0; k < together; ++k) acc[k] = splat(none<K>);
    for (int64_t r = l; r < n; r += lanes) {
      const typename K::element* q = p + at[r] + c;
      constexpr int bytes = together * W * static_cast<int>(sizeof(*q));
      if constexpr (!std::is_same_v<At, listed>)  // of listed rows there may be no such row
        for (int b = 0; b < bytes; b += 64) __builtin_prefetch(reinterpret_cast<const char*>(q + at[next]) + b);
      for (int k = 0; k < together; ++k) acc[k] = K::enter(acc[k], K::load(q + k * W));
    }
    memcpy(out + c, acc, sizeof acc);
  }
  for (; c < width; c += W) {
    vd acc = splat(none<K>);
    const int64_t m = width - c < W ? width - c : W;
    for (int64_t r = l; r < n; r += lanes) {
      const typename K::element* q = p + at[r] + c;
      acc = K::enter(acc, m == W ? K::load(q) : load_part<K>(q, m));
    }
    memcpy(out + c, &acc, sizeof acc);
  }
}

// Columns of at most `most` elements, each a lane of its own.
template <class K, int most, class At>
inline void short_columns(const typename K::element* p, int64_t n, At at, int64_t width, double* out) {
  for (int64_t c = 0; c < width; c += W) {
    const int64_t m = width - c;
    vd lane[most];
    for (int64_t k = 0; k < n; ++k) {
      const typename K::element* q = p + at[k] + c;
      lane[k] = K::enter(splat(none<K>), m >= W ? K::load(q) : load_part<K>(q, m));
    }
    for (int64_t d = most / 2; d >= 1; d /= 2)
      for (int64_t k = 0; k < d && k + d < n; ++k) lane[k] = joined<K>(lane[k], lane[k + d]);
    memcpy(out + c, &lane[0], sizeof lane[0]);
  }
}

// A row of elements that change no lane.
template <class K>
struct padded_row {
  typename K::element of[column_block] = {};
  constexpr padded_row() {
    for (auto& x : of) x = K::pad;
  }
};
template <class K>
constexpr padded_row<K> padding = {};

// Lanes l, l + 64, l + 32 ..., l + 112 of `width` columns, of one element each or none, joined to one.
template <class K, class At>
inline void eight_lanes(const typename K::element* p, int64_t n, int64_t l, At at, int64_t width, double* out) {
  constexpr int apart[] = {0, 64, 32, 96, 16, 80, 48, 112};  // in the order of their joins
  const typename K::element* row[8];
  for (int k = 0; k < 8; ++k) row[k] = l + apart[k] < n ? p + at[l + apart[k]] : padding<K>.of;
  const auto join = [&](int64_t c, const auto& load) {
    const auto lane = [&](int k) { return K::enter(splat(none<K>), load(row[k] + c)); };
    const auto four = [&](int k) {
      return joined<K>(joined<K>(lane(k), lane(k + 1)), joined<K>(lane(k + 2), lane(k + 3)));
    };
    const vd all = joined<K>(four(0), four(4));
    memcpy(out + c, &all, sizeof all);
  };
  int64_t c = 0;
  for (; c + W <= width; c += W) join(c, [](const typename K::element* q) { return K::load(q); });
  if (c < width) join(c, [=](const typename K::element* q) { return load_part<K>(q, width - c); });
}

template <class K, class At>
void leaf_of_columns(const typename K::element* p, int64_t n, At at, int64_t width, double* out) {
  if (n <= 16) return short_columns<K, 16>(p, n, at, width, out);
  if (are_few_columns(n, width)) {
    const auto enter = [=](vd acc, int64_t r, int64_t c, int64_t m) {
      const typename K::element* q = p + at[r] + c;
      return K::enter(acc, m >= W ? K::load(q) : load_part<K>(q, m));
    };
    return few_columns<K>(n, width, enter, out);
  }
  constexpr int depth = 8;
  alignas(64) double stack[depth][column_block];
  bool missing[depth];
  int top = 0;
  // If rows of the matrix are short, the next leaf's memory is prefetched in order, a part
  // with each lane, because the lanes themselves read it in scattered order.
  const int64_t row_bytes = at[1] * static_cast<int64_t>(sizeof(*p)), share = order::rows * row_bytes;
  const bool narrow = !std::is_same_v<At, listed> && n == order::leaf && row_bytes <= tuned.narrow_row;
  const char* after = reinterpret_cast<const char*>(p) + order::leaf * row_bytes;
  const auto reversed = [](int i) {
    int l = 0;
    for (int b = 0; b < 7; ++b) l |= ((i >> b) & 1) << (6 - b);
    return l;
  };
  const auto join_above = [&](int i) {  // lane i of its level has come
    for (; (i & 1) != 0; i >>= 1) {
      --top;
      if (missing[top]) continue;
      for (int64_t c = 0; c < width; c += W) {
        vd x, y;
        memcpy(&x, stack[top - 1] + c, sizeof x);
        memcpy(&y, stack[top] + c, sizeof y);
        x = joined<K>(x, y);
        memcpy(stack[top - 1] + c, &x, sizeof x);
      }
    }
  };
  for (int i = 0; n <= lanes && i < lanes; i += 8) {
    missing[top] = false;
    eight_lanes<K>(p, n, reversed(i), at, width, stack[top++]);
    join_above(i / 8);
  }
  for (int i = 0; n > lanes && i < lanes; ++i) {
    const int l = reversed(i);
    missing[top] = l >= n;
    int64_t next = 0;  // distance to the next lane, whose rows are prefetched
    for (int j = i + 1; j < lanes && next == 0 && !missing[top]; ++j)
      if (reversed(j) < n) next = reversed(j) - l;
    if (narrow)
      for (int64_t b = 0; b < share; b += 64) __builtin_prefetch(after + i * share + b);
    if (!missing[top]) lane_of_columns<K>(p, n, l, at, width, next, stack[top]);
    ++top;
    join_above(i);
  }
  memcpy(out, stack[0], static_cast<size_t>(width) * sizeof(double));
}

template <class K>
void columns(const void* src, int64_t n, int64_t ld, int64_t width, double* out) {
  leaf_of_columns<K>(static_cast<const typename K::element*>(src), n, spaced{ld}, width, out);
}
template <class K>
void listed_columns(const void* src, int64_t n, const int64_t* at, int64_t width, double* out) {
  leaf_of_columns<K>(static_cast<const typename K::element*>(src), n, listed{at}, width, out);
}

}  // namespace
}  // namespace lockstep::cpu::LOCKSTEP_ISA
