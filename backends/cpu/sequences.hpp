// sequences.hpp - the sequences of a lockstep_reduce_desc, and the chunks that they are cut into.
//
// A reduction R (reductions.hpp) has
//   value     the result of a chunk;  chunk  elements of a chunk (order::leaf for float sums)
//   rows(packed_rows, count, value*)           whole sequences of at most a chunk
//   chunks(src, count, n, first, value*)       parts of one sequence, packed, from element first on
//   two(a, b, count, first_a, first_b, value*, value*)  whole chunks at two places of one sequence
//   columns(src, n, ld, width, first, value*)  parts of several adjacent sequences
//   join      push(value, level), total(): chunks, or aligned subtrees of 2^level chunks, in order
//   column_join  the same for arrays of column_block values
#pragma once

#include "mutant.hpp"
#include "order.hpp"
#include "queue.hpp"
#include "reduce_kernels.hpp"

namespace lockstep::cpu {

// One sequence of n elements; each is multiplied by scale if that is not 1 (f64).
struct vector_view {
  const char* begin;
  int64_t n, stride, bytes;
  double scale = 1;

  bool as_is() const { return stride == 1 && scale == 1; }
  // Elements [first, first + m): their address, or a copy in buffer.
  const void* chunk(int64_t first, int64_t m, void* buffer) const {
    const char* from = begin + first * stride * bytes;
    if (as_is()) return from;
    if (scale != 1 && !LOCKSTEP_MUTANT("norm_not_scaled")) {
      for (int64_t i = 0; i < m; ++i)
        static_cast<double*>(buffer)[i] = reinterpret_cast<const double*>(from)[i * stride] * scale;
      return buffer;
    }
    const auto gather = [&](auto* to) {
      const auto* elements = reinterpret_cast<const std::remove_pointer_t<decltype(to)>*>(from);
      for (int64_t i = 0; i < m; ++i) to[i] = elements[i * stride];
    };
    if (bytes == 1) gather(static_cast<uint8_t*>(buffer));
    if (bytes == 2) gather(static_cast<uint16_t*>(buffer));
    if (bytes == 4) gather(static_cast<uint32_t*>(buffer));
    if (bytes == 8) gather(static_cast<uint64_t*>(buffer));
    return buffer;
  }
};

// Sequences as the call describes them, src as bytes.
struct sequences {
  const lockstep_reduce_desc& d;
  const char* src;
  int64_t bytes;

  explicit sequences(const lockstep_call& call)
      : d(call.reduce),
        src(static_cast<const char*>(call.src)),
        bytes(static_cast<int64_t>(lockstep_dtype_bytes(d.dtype))) {}
  int64_t elements() const { return d.offsets != nullptr ? d.offsets[d.count] - d.offsets[0] : d.count * d.length; }
  int64_t length(int64_t s) const { return d.offsets != nullptr ? d.offsets[s + 1] - d.offsets[s] : d.length; }
  const char* begin(int64_t s) const {
    if (d.offsets != nullptr && length(s) == 0) return src;  // the offset of an empty segment may be any number
    return src + (d.offsets != nullptr ? d.offsets[s] * d.element_stride : s * d.sequence_stride) * bytes;
  }
  bool packed() const { return d.element_stride == 1; }
  vector_view view(int64_t s) const { return {begin(s), length(s), d.element_stride, bytes}; }
};

constexpr int64_t together = 64;  // chunks for each call of a kernel

// Chunks [first, last) of a sequence, one after the other.
template <class R, class Join>
void push_chunks(const R& r, const vector_view& v, int64_t first, int64_t last, Join& join) {
  typename R::value values[together];
  alignas(64) unsigned char buffer[R::chunk * 8];
  for (int64_t c = first; c < last;) {
    const int64_t at = c * R::chunk, left = v.n - at;
    int64_t count = 1;
    if (v.as_is() && left >= R::chunk) {
      count = left / R::chunk;
      if (count > last - c) count = last - c;
      if (count > together) count = together;
      r.chunks(v.begin + at * v.bytes, count, R::chunk, at, values);
    } else {
      const int64_t m = left < R::chunk ? left : R::chunk;
      r.chunks(v.chunk(at, m, buffer), 1, m, at, values);
    }
    for (int64_t k = 0; k < count; ++k) {
      if (LOCKSTEP_MUTANT("tree_drops_the_odd_leaf") && c + k == last - 1 && c + k > first && (c + k) % 2 == 0)
        continue;
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
