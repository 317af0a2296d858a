// sequences.hpp - what every reduction runs on: where the sequences of a call lie, whichever operation it is of, and
// the chunks that they are cut into.
//
// A reduction R (reductions.hpp) has
//   value     the result of a chunk;  chunk  elements of a chunk (order::leaf for float sums)
//   rows(packed_rows, count, value*)           whole sequences of at most a chunk
//   chunks(src, count, n, first, value*)       parts of one sequence, packed, from element first on
//   two(a, b, count, first_a, first_b, value*, value*)  optional: whole chunks at two places of one sequence at once
//   columns(src, n, ld, width, first, value*)  parts of several adjacent sequences
//   at(s)     optional: the reduction of sequence s and those behind it, where a second array belongs to them
//   join      push(value, level), total(): chunks, or aligned subtrees of 2^level chunks, in order
//   column_join  the same for arrays of column_block values
#pragma once

#include <algorithm>
#include <cstring>

#include "axis_list.hpp"
#include "bits/order.hpp"
#include "queue.hpp"
#include "reduce_kernels.hpp"
#include "transpose_kernels.hpp"

namespace lockstep::cpu {

// Sequences whose elements lie along the reduced axes, one for each element of the kept axes.
struct along_axes : split_axes {
  const transpose_kernels* moves;

  along_axes(const lockstep_reduce_axes_desc& d, const kernel_set& kernels)
      : split_axes(d), moves(&transpose_kernels_of(kernels)) {
    if (reduced.count == 0) reduced = {1, {1}, {1}};
  }
};

// One sequence of n elements; each is multiplied by scale if that is not 1 (f64). With along its elements lie as its
// axes say, not stride apart.
struct vector_view {
  const char* begin;
  int64_t n, stride, bytes;
  double scale = 1;
  const along_axes* along = nullptr;

  bool as_is() const { return stride == 1 && scale == 1 && along == nullptr; }
  // Elements [first, first + m): their address, or a copy in buffer.
  const void* chunk(int64_t first, int64_t m, void* buffer) const {
    if (along != nullptr) return from_axes(first, m, buffer);
    const char* from = begin + first * stride * bytes;
    if (as_is()) return from;
    if (scale != 1) {
      for (int64_t i = 0; i < m; ++i)
        static_cast<double*>(buffer)[i] = reinterpret_cast<const double*>(from)[i * stride] * scale;
      return buffer;
    }
    gather(from, stride, m, buffer);
    return buffer;
  }

 private:
  void gather(const char* from, int64_t apart, int64_t m, void* buffer) const {
    const auto copy = [&](auto* to) {
      const auto* elements = reinterpret_cast<const std::remove_pointer_t<decltype(to)>*>(from);
      for (int64_t i = 0; i < m; ++i) to[i] = elements[i * apart];
    };
    if (bytes == 1) copy(static_cast<uint8_t*>(buffer));
    if (bytes == 2) copy(static_cast<uint16_t*>(buffer));
    if (bytes == 4) copy(static_cast<uint32_t*>(buffer));
    if (bytes == 8) copy(static_cast<uint64_t*>(buffer));
  }
  // Run by run along the last axis; where one holds them all, they stay where they are.
  const void* from_axes(int64_t first, int64_t m, void* buffer) const {
    const axis_list& axes = along->reduced;
    const int last = axes.count - 1;
    if (axes.stride[last] == 1 && scale == 1 && first % axes.shape[last] + m <= axes.shape[last])
      return begin + axes.place(first) * bytes;
    copy(first, m, static_cast<char*>(buffer));
    if (scale != 1)
      for (int64_t i = 0; i < m; ++i) static_cast<double*>(buffer)[i] *= scale;
    return buffer;
  }

 public:
  // Elements [first, first + m) along axes, unscaled.
  void copy(int64_t first, int64_t m, char* to) const {
    const axis_list& axes = along->reduced;
    const int64_t apart = axes.stride[axes.count - 1], row = axes.count > 1 ? axes.stride[axes.count - 2] : 0;
    axes.pieces(first, m, [&](int64_t place, int64_t n, int64_t rows) {
      const char* from = begin + place * bytes;
      if (apart == 1)
        along->moves->copies(from, row * bytes, to, n * bytes, n * bytes, rows);
      else
        for (int64_t k = 0; k < rows; ++k) gather(from + k * row * bytes, apart, n, to + k * n * bytes);
      to += rows * n * bytes;
    });
  }
};

// The sequences of a call, and where their results go. Along axes the strides of d do not hold.
struct sequences {
  lockstep_reduce_desc d;
  const char* src;
  void *dst, *workspace;
  int64_t bytes;
  const along_axes* along = nullptr;
  const lockstep_sums_desc* pairs = nullptr;  // of a reduction that may take the elements of a second array

  explicit sequences(const lockstep_call& call) : sequences(call, call.reduce) {}
  sequences(const lockstep_call& call, const lockstep_reduce_desc& described)
      : d(described),
        src(static_cast<const char*>(call.src)),
        dst(call.dst),
        workspace(call.workspace),
        bytes(static_cast<int64_t>(lockstep_dtype_bytes(d.dtype))) {}
  sequences(const lockstep_call& call, const along_axes& axes)
      : sequences(call, {sizeof(lockstep_reduce_desc), call.reduce_axes.reduction, call.reduce_axes.dtype,
                         call.reduce_axes.result, axes.count, axes.length, 1, 0, nullptr}) {
    along = &axes;
  }
  sequences(const lockstep_call& call, const lockstep_sums_desc& sums)
      : sequences(call, {sizeof(lockstep_reduce_desc), LOCKSTEP_SUM, sums.dtype, sums.result, sums.count, sums.length,
                         sums.element_stride, sums.sequence_stride, sums.offsets}) {
    pairs = &sums;
  }
  // A plan asks before its offsets are checked: those that no int64_t measures will be refused when it is executed.
  int64_t elements() const {
    if (d.offsets == nullptr) return d.count * d.length;
    int64_t between = 0;
    return __builtin_sub_overflow(d.offsets[d.count], d.offsets[0], &between) ? 0 : between;
  }
  int64_t length(int64_t s) const { return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length; }
  const char* begin(int64_t s) const {
    if (along != nullptr) return src + along->kept.place(s) * bytes;
    if (d.offsets != nullptr && length(s) == 0) return src;  // the offset of an empty segment may be any number
    return src + (d.offsets != nullptr ? d.offsets[s] * d.element_stride : s * d.sequence_stride) * bytes;
  }
  bool packed() const {
    return d.element_stride == 1 && along == nullptr && (pairs == nullptr || pairs->other_element_stride == 1);
  }
  // Sequences [first, first + run) lie side by side, first any multiple of run.
  int64_t run_beside() const {
    if (along == nullptr) return d.sequence_stride == 1 ? d.count : 1;
    const axis_list& kept = along->kept;
    return kept.count > 0 && kept.stride[kept.count - 1] == 1 ? kept.shape[kept.count - 1] : 1;
  }
  // Of sequences along axes: copies of `count` of them, one after the other, in buffer.
  const void* copies(int64_t s, int64_t count, char* buffer) const {
    const axis_list& kept = along->kept;
    const int64_t apart = kept.count > 0 ? kept.stride[kept.count - 1] : 0;
    char* to = buffer;
    kept.runs(s, count, [&](int64_t place, int64_t n) {
      for (int64_t k = 0; k < n; ++k, to += d.length * bytes)
        vector_view{src + (place + k * apart) * bytes, d.length, 1, bytes, 1, along}.copy(0, d.length, to);
    });
    return buffer;
  }
  vector_view view(int64_t s) const { return {begin(s), length(s), d.element_stride, bytes, 1, along}; }
  // The elements of the second array that belong to sequence s; nowhere if there is none.
  vector_view other(int64_t s) const {
    const char* const from = static_cast<const char*>(pairs->other);
    const int64_t at =
        d.offsets != nullptr ? d.offsets[s] * pairs->other_element_stride : s * pairs->other_sequence_stride;
    const bool none = from == nullptr || length(s) == 0;
    return {none ? nullptr : from + at * bytes, length(s), pairs->other_element_stride, bytes};
  }
};
template <class R>
decltype(auto) reduction_at(const R& r, int64_t s) {
  if constexpr (requires { r.at(s); })
    return r.at(s);
  else
    return r;
}

// Chunks [first, last) of a sequence, one after the other.
template <class R, class Join>
void push_chunks(const R& r, const vector_view& v, int64_t first, int64_t last, Join& join) {
  typename R::value values[chunks_together];
  alignas(64) unsigned char buffer[R::chunk * 8];
  for (int64_t c = first; c < last;) {
    const int64_t at = c * R::chunk, left = v.n - at;
    int64_t count = 1;
    if (v.as_is() && left >= R::chunk) {
      count = left / R::chunk;
      if (count > last - c) count = last - c;
      if (count > chunks_together) count = chunks_together;
      r.chunks(v.begin + at * v.bytes, count, R::chunk, at, values);
    } else {
      const int64_t m = left < R::chunk ? left : R::chunk;
      r.chunks(v.chunk(at, m, buffer), 1, m, at, values);
    }
    for (int64_t k = 0; k < count; ++k) {
      join.push(values[k], 0);
    }
    c += count;
  }
}

template <class R>
int64_t chunks_of(int64_t n) {
  return n / R::chunk + (n % R::chunk != 0);
}

// The level at which `chunks` form at most `most` aligned subtrees.
inline int subtree_level(int64_t chunks, int64_t most) {
  int level = 0;
  while (((chunks - 1) >> level) + 1 > most) ++level;
  return level;
}

}  // namespace lockstep::cpu
