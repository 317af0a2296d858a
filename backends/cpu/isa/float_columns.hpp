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

// The bits of i, at most 8, the last one first.
inline int reversed(int i, int bits) {
  i = (i & 0x0F) << 4 | (i & 0xF0) >> 4;
  i = (i & 0x33) << 2 | (i & 0xCC) >> 2;
  i = (i & 0x55) << 1 | (i & 0xAA) >> 1;
  return i >> (8 - bits);
}

// Joins the lane above with those below that wait for it, if lane i of its level has come.
template <class K>
inline void join_above(double* stack, int64_t pitch, int i, int& top) {
  for (; (i & 1) != 0; i >>= 1) {
    --top;
    double *const below = stack + (top - 1) * pitch, *const above = stack + top * pitch;
    for (int64_t c = 0; c < pitch; c += W) {
      vd x, y;
      memcpy(&x, below + c, sizeof x);
      memcpy(&y, above + c, sizeof y);
      x = joined<K>(x, y);
      memcpy(below + c, &x, sizeof x);
    }
  }
}

constexpr int64_t stack_room = 4096;  // doubles of the partial sums of a block of columns: 32 KiB

// Lanes l, l + apart, ... of `width` columns, `count` of them of up to `deep` elements each, joined to one. The columns
// beside them, probably the next block, are prefetched into the L2.
template <class K, int count, int deep, class At>
inline void short_lanes(const typename K::element* p, int64_t n, int64_t l, int64_t apart, At at, int64_t width,
                        double* out) {
  constexpr int bits = count == 8 ? 3 : count == 4 ? 2 : 1;
  const typename K::element* row[count][deep];
  for (int k = 0; k < count; ++k)
    for (int d = 0; d < deep; ++d) {
      const int64_t r = l + reversed(k, bits) * apart + d * lanes;  // in the order of their joins
      row[k][d] = r < n ? p + at[r] : padding<K>.of;
    }
  const auto join = [&](int64_t c, const auto& load) {
    const auto lane = [&](int k) {
      vd acc = splat(none<K>);
      for (int d = 0; d < deep; ++d) acc = K::enter(acc, load(row[k][d] + c));
      return acc;
    };
    const auto two = [&](int k) { return joined<K>(lane(k), lane(k + 1)); };
    const auto four = [&](int k) { return joined<K>(two(k), two(k + 2)); };
    vd all;
    if constexpr (count == 2) all = two(0);
    if constexpr (count == 4) all = four(0);
    if constexpr (count == 8) all = joined<K>(four(0), four(4));
    memcpy(out + c, &all, sizeof all);
  };
  const auto load = [](const typename K::element* q) { return K::load(q); };
  constexpr int of_line = 64 / static_cast<int>(sizeof(typename K::element));
  int64_t c = 0;
  for (; c + of_line <= width; c += of_line) {
    if constexpr (!std::is_same_v<At, listed>)
      for (int k = 0; k < count * deep; ++k) __builtin_prefetch(row[k / deep][k % deep] + c + width, 0, 2);
    for (int k = 0; k < of_line; k += W) join(c + k, load);
  }
  for (; c + W <= width; c += W) join(c, load);
  if (c < width) join(c, [=](const typename K::element* q) { return load_part<K>(q, width - c); });
}

// Columns of at most `deep` times 128 elements; lanes beyond the next power of two have none.
template <class K, int deep, class At>
void short_columns(const typename K::element* p, int64_t n, At at, int64_t width, double* out) {
  alignas(64) double stack[5 * column_block];
  const int64_t pitch = (width + W - 1) / W * W;
  int bits = deep > 1 ? 4 : 0, top = 0;  // of the number of steps by eight lanes
  while (bits < 4 && n > int64_t{8} << bits) ++bits;
  for (int i = 0; i < 1 << bits; ++i) {
    short_lanes<K, 8, deep>(p, n, reversed(i, bits), int64_t{1} << bits, at, width, stack + top++ * pitch);
    join_above<K>(stack, pitch, i, top);
  }
  memcpy(out, stack, static_cast<size_t>(width) * sizeof(double));
}

// Adds `count` rows of `width` columns to their sums, or begins these with them. What lies `ahead` of them, in
// elements, is prefetched.
template <class K, int count, bool begins>
inline void add_rows(const typename K::element* const* q, const int64_t* ahead, int64_t width, double* sums) {
  const auto add = [=](int64_t c, const auto& load) {
    vd acc = splat(none<K>);
    if constexpr (!begins) memcpy(&acc, sums + c, sizeof acc);
    for (int k = 0; k < count; ++k) acc = K::enter(acc, load(q[k] + c));
    memcpy(sums + c, &acc, sizeof acc);
  };
  const auto load = [](const typename K::element* x) { return K::load(x); };
  constexpr int of_line = 64 / static_cast<int>(sizeof(typename K::element));
  int64_t c = 0;
  for (; c + of_line <= width; c += of_line) {
    for (int k = 0; k < count; ++k) __builtin_prefetch(q[k] + ahead[k] + c);
    for (int k = 0; k < of_line; k += W) add(c + k, load);
  }
  for (; c + W <= width; c += W) add(c, load);
  if (c < width) add(c, [=](const typename K::element* x) { return load_part<K>(x, width - c); });
}

// Columns of more than 256 elements. Rows that follow each other without gaps are taken together, as many as the stack
// has room for: as one longer row of so many lanes. Up to four rows of a lane are added at a time and the next ones
// prefetched: more of them, multiples of 4 KiB apart, would evict each other from the L1.
template <class K, class At>
void long_columns(const typename K::element* p, int64_t n, At at, int64_t width, double* out) {
  constexpr bool list = std::is_same_v<At, listed>;
  constexpr int most_ahead = 8;
  int bits = 7;  // of the number of lanes
  int64_t together = 1;
  while (!list && at[1] == width && bits > 0 && bits * 2 * together * width <= stack_room) --bits, together *= 2;
  const int64_t row = together * width, whole = n / together, rest = n % together * width;
  const int64_t pitch = (row + W - 1) / W * W, rows = whole + (rest != 0);
  const int64_t row_bytes = row * static_cast<int64_t>(sizeof(*p));
  const int64_t ahead_rows = row_bytes * most_ahead < tuned.column_ahead ? most_ahead : tuned.column_ahead / row_bytes;
  // The rows in the order in which they are read, then some of the next leaf if there may be one.
  uint16_t order[order::leaf + most_ahead], *last = order;
  for (int i = 0; i < 1 << bits; ++i)
    for (int64_t r = reversed(i, bits); r < rows; r += int64_t{1} << bits) *last++ = static_cast<uint16_t>(r);
  for (int k = 0; k < most_ahead; ++k)
    last[k] = static_cast<uint16_t>(n == order::leaf && !list ? rows + (k << bits) : rows - 1);

  alignas(64) double stack[stack_room + 9 * W];
  const uint16_t* now = order;
  for (int i = 0, top = 0; i < 1 << bits; ++i) {
    double* const sums = stack + top++ * pitch;
    const uint16_t* const first = now;
    const auto add = [&]<int count>(int64_t columns) {
      const int64_t far = count > ahead_rows ? count : ahead_rows;
      const typename K::element* q[count];
      int64_t ahead[count];
      for (int j = 0; j < count; ++j) {
        const int64_t here = at[now[j] * together];
        const uint16_t* const then = now + j + far;
        q[j] = p + here, ahead[j] = at[(then < last + most_ahead ? *then : *last) * together] - here;
      }
      now == first ? add_rows<K, count, true>(q, ahead, columns, sums)
                   : add_rows<K, count, false>(q, ahead, columns, sums);
      now += count;
    };
    int64_t left = ((rows - 1 - *now) >> bits) + 1;
    const bool partial = rest != 0 && now[left - 1] == whole;
    left -= static_cast<int64_t>(partial);
    for (; left >= 4; left -= 4) add.template operator()<4>(row);
    if (left == 3) add.template operator()<3>(row);
    if (left == 2) add.template operator()<2>(row);
    if (left == 1) add.template operator()<1>(row);
    if (partial) add.template operator()<1>(rest);
    join_above<K>(stack, pitch, i, top);
  }
  for (int64_t d = row / 2; together > 1; d /= 2, together /= 2)
    for (int64_t c = 0; c < d; c += W) {
      vd x, y;
      memcpy(&x, stack + c, sizeof x);
      memcpy(&y, stack + c + d, sizeof y);
      x = joined<K>(x, y);
      memcpy(stack + c, &x, sizeof x);
    }
  memcpy(out, stack, static_cast<size_t>(width) * sizeof(double));
}

template <class K, class At>
void leaf_of_columns(const typename K::element* p, int64_t n, At at, int64_t width, double* out) {
  if (are_few_columns(n, width)) {
    const auto enter = [=](vd acc, int64_t r, int64_t c, int64_t m) {
      const typename K::element* q = p + at[r] + c;
      return K::enter(acc, m >= W ? K::load(q) : load_part<K>(q, m));
    };
    return few_columns<K>(n, width, enter, out);
  }
  if (n <= 2) return short_lanes<K, 2, 1>(p, n, 0, 1, at, width, out);
  if (n <= 4) return short_lanes<K, 4, 1>(p, n, 0, 1, at, width, out);
  if (n <= lanes) return short_columns<K, 1>(p, n, at, width, out);
  if (n <= 2 * lanes) return short_columns<K, 2>(p, n, at, width, out);
  long_columns<K>(p, n, at, width, out);
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
