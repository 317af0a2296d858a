// leaf_in_shared.cuh - a leaf that a warp keeps in shared memory.
//
// Idea    Each thread finds its own quads again where it has put them, so that loops over a leaf's rows stay loops: in
//         registers they would be unrolled to thousands of instructions, and take the registers of other warps
// Watch   others' quads only after __syncwarp
#pragma once

#include "../stencil/async.cuh"
#include "quad.cuh"

namespace lockstep::cuda {

constexpr int step_rows = 4;  // rows of lanes at a time; what is left at the end of a leaf is two

template <class E>
__device__ __forceinline__ quad<E> quad_in_shared(const quad<E>* from) {
  quad<E> q;
  if constexpr (sizeof(E) == 2) {
    const uint2 x = *reinterpret_cast<const uint2*>(from);
    q.word[0] = x.x, q.word[1] = x.y;
  } else {
#pragma unroll
    for (int m = 0; m < static_cast<int>(sizeof(E)); m += 4) {
      const uint4 x = reinterpret_cast<const uint4*>(from)[m / 4];
      q.word[m] = x.x, q.word[m + 1] = x.y, q.word[m + 2] = x.z, q.word[m + 3] = x.w;
    }
  }
  return q;
}
template <class E>
__device__ __forceinline__ void put_in_shared(quad<E>* to, const quad<E>& q) {
  if constexpr (sizeof(E) == 2) {
    *reinterpret_cast<uint2*>(to) = make_uint2(q.word[0], q.word[1]);
  } else {
#pragma unroll
    for (int m = 0; m < static_cast<int>(sizeof(E)); m += 4)
      reinterpret_cast<uint4*>(to)[m / 4] = make_uint4(q.word[m], q.word[m + 1], q.word[m + 2], q.word[m + 3]);
  }
}

// A thread's quads: row r of lanes at at[32 * r].
template <class E>
struct staged_leaf {
  quad<E>* at;
  int rows;  // an even number; what lies beyond the leaf's end is its last quads again

  __device__ __forceinline__ quad<E> get(int r) const { return quad_in_shared(at + 32 * r); }
  __device__ __forceinline__ void put(int r, const quad<E>& q) const { put_in_shared(at + 32 * r, q); }
};

// n elements at `at`, as load_quads takes them; all have landed for the thread that copied them.
template <class E>
__device__ __forceinline__ void stage(const staged_leaf<E>& leaf, const E* at, int n, int t, bool whole,
                                      int64_t stride) {
  if (whole) {
    const E* const begin = opaque(at);
    const uint32_t room = stencil::address_of(leaf.at);
#pragma unroll 4
    for (int r = 0; r < leaf.rows; ++r) {
      const auto* from = reinterpret_cast<const char*>(begin + min((r * 32 + t) * 4, n - 4));
      const uint32_t to = room + static_cast<uint32_t>(32 * r * static_cast<int>(sizeof(quad<E>)));
      constexpr int bytes = sizeof(E) == 2 ? 8 : 16;
#pragma unroll
      for (int m = 0; m < static_cast<int>(sizeof(E)) * 4; m += bytes) stencil::copy_async<bytes>(to + m, from + m);
    }
    stencil::copies_end_group();
    stencil::copies_wait_but<0>();
  } else {
#pragma unroll 1
    for (int r0 = 0; r0 < leaf.rows; r0 += step_rows) {
      quad<E> x[step_rows];
      load_quads(at, (r0 * 32 + t) * 4, order::lanes, n, false, stride, x);
#pragma unroll
      for (int r = 0; r < step_rows; ++r)
        if (r0 + r < leaf.rows) leaf.put(r0 + r, x[r]);
    }
  }
}

// Rows of lanes of n elements, as a staged leaf counts them.
__host__ __device__ inline int staged_rows(int64_t n) {
  return static_cast<int>((n + 2 * order::lanes - 1) / (2 * order::lanes)) * 2;
}

}  // namespace lockstep::cuda
