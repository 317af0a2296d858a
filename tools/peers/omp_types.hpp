// omp_types.hpp - 16-bit floats for plain loops, and loops that several files of peer_omp share.
#pragma once

#include <omp.h>

#include <bit>
#include <cmath>

#include "peer.hpp"

namespace lockstep::peers {

typedef _Float16 f16;
struct bf16 {
  uint16_t bits;
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};
// To nearest even; of numbers.
template <class To, class From>
To rounded(From x) {
  if constexpr (std::is_same_v<To, bf16>) {
    const auto all = std::bit_cast<uint32_t>(static_cast<float>(x));
    return {static_cast<uint16_t>((all + 0x7FFFu + (all >> 16 & 1u)) >> 16)};
  } else {
    return static_cast<To>(x);
  }
}

// dst by blocks of 16 x 16 of the axis that is dense in src and the one that is dense in dst. If that is the same axis,
// by rows. n: dst's sizes, from: src's strides in that order, to: dst's; the last of dst is dense.
template <class From, class To>
void permute(const From* src, To* dst, int rank, const int64_t* n, const int64_t* from, const int64_t* to) {
  constexpr int64_t side = 16;
  const int last = rank - 1;
  int dense = last;
  for (int k = 0; k <= last; ++k)
    if (from[k] == 1 && n[k] > 1) dense = k;
  int64_t outer = 1;
  for (int k = 0; k < last; ++k)
    if (k != dense) outer *= n[k];
  const bool rows = dense == last;
  // A single row is divided among the threads.
  const int64_t piece = outer < 64 ? 16384 : n[last];
  const int64_t blocks = rows ? (n[last] + piece - 1) / piece : (n[dense] + side - 1) / side;
#pragma omp parallel for schedule(static)
  for (int64_t task = 0; task < outer * blocks; ++task) {
    int64_t rest = task / blocks, src_at = 0, dst_at = 0;
    for (int k = last - 1; k >= 0; --k) {
      if (k == dense) continue;
      src_at += rest % n[k] * from[k], dst_at += rest % n[k] * to[k];
      rest /= n[k];
    }
    if (rows) {
      const int64_t first = task % blocks * piece, count = std::min(piece, n[last] - first);
      const From* x = src + src_at + first;
      To* y = dst + dst_at + first;
      if constexpr (std::is_same_v<From, To>)
        std::memcpy(y, x, static_cast<size_t>(count) * sizeof(To));
      else
        for (int64_t i = 0; i < count; ++i) y[i] = rounded<To>(x[i]);
      continue;
    }
    const int64_t i0 = task % blocks * side, ni = std::min(side, n[dense] - i0), step = to[dense];
    for (int64_t j0 = 0; j0 < n[last]; j0 += side) {
      const From* x = src + src_at + i0 + j0 * from[last];
      To* y = dst + dst_at + i0 * step + j0;
      const int64_t nj = std::min(side, n[last] - j0);
      if (ni == side && nj == side) {
        From tile[side][side];
        for (int64_t j = 0; j < side; ++j)
          for (int64_t i = 0; i < side; ++i) tile[i][j] = x[j * from[last] + i];
        for (int64_t i = 0; i < side; ++i)
          for (int64_t j = 0; j < side; ++j) y[i * step + j] = rounded<To>(tile[i][j]);
      } else {
        for (int64_t i = 0; i < ni; ++i)
          for (int64_t j = 0; j < nj; ++j) y[i * step + j] = rounded<To>(x[j * from[last] + i]);
      }
    }
  }
}

}  // namespace lockstep::peers
