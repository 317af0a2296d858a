// unit.cuh - a square of V x V elements in a thread's registers, V rows of `chunk` bytes.
#pragma once

#include <cstdint>

namespace lockstep::cuda {

// Element k of row v becomes element v of row k: renaming for elements of 4 bytes and more,
// byte permutes below.
template <int bytes, int chunk>
__device__ inline void transpose_unit(uint32_t (&w)[chunk / bytes][chunk / 4]) {
  constexpr int V = chunk / bytes, words = chunk / 4;
  uint32_t t[V][words];
  if constexpr (bytes >= 4) {
    constexpr int each = bytes / 4;
#pragma unroll
    for (int v = 0; v < V; ++v)
#pragma unroll
      for (int k = 0; k < V; ++k)
#pragma unroll
        for (int x = 0; x < each; ++x) t[k][v * each + x] = w[v][k * each + x];
  } else if constexpr (bytes == 2) {
#pragma unroll
    for (int p = 0; p < words; ++p)
#pragma unroll
      for (int c = 0; c < words; ++c) {
        t[2 * c][p] = __byte_perm(w[2 * p][c], w[2 * p + 1][c], 0x5410);
        t[2 * c + 1][p] = __byte_perm(w[2 * p][c], w[2 * p + 1][c], 0x7632);
      }
  } else {
#pragma unroll
    for (int p = 0; p < words; ++p)
#pragma unroll
      for (int c = 0; c < words; ++c) {
        const uint32_t ab_low = __byte_perm(w[4 * p][c], w[4 * p + 1][c], 0x5140);
        const uint32_t ab_high = __byte_perm(w[4 * p][c], w[4 * p + 1][c], 0x7362);
        const uint32_t cd_low = __byte_perm(w[4 * p + 2][c], w[4 * p + 3][c], 0x5140);
        const uint32_t cd_high = __byte_perm(w[4 * p + 2][c], w[4 * p + 3][c], 0x7362);
        t[4 * c][p] = __byte_perm(ab_low, cd_low, 0x5410);
        t[4 * c + 1][p] = __byte_perm(ab_low, cd_low, 0x7632);
        t[4 * c + 2][p] = __byte_perm(ab_high, cd_high, 0x5410);
        t[4 * c + 3][p] = __byte_perm(ab_high, cd_high, 0x7632);
      }
  }
#pragma unroll
  for (int v = 0; v < V; ++v)
#pragma unroll
    for (int x = 0; x < words; ++x) w[v][x] = t[v][x];
}

}  // namespace lockstep::cuda
