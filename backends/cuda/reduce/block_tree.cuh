// block_tree.cuh - the order's tree over values in memory, by a block.
#pragma once

#include "../../../lib/bits/order_rows.hpp"
#include "leaf.cuh"

namespace lockstep::cuda {

__device__ __forceinline__ double joined(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ order::moments joined(const order::moments& a, const order::moments& b) { return a + b; }

// Over `leaves` values by a block of `threads`, in thread 0: aligned subtrees, one a thread, then those above them.
template <int threads, class P>
__device__ __forceinline__ P tree_of_block(const P* values, int64_t leaves, P* subtrees) {
  int64_t each = 1;
  while (each * threads < leaves) each *= 2;
  const int c = threadIdx.x, count = static_cast<int>((leaves + each - 1) / each);
  if (c < count) {
    order::tree<P> tree;
    constexpr int ahead = 4;  // loads that overlap
    const int64_t end = min(leaves, (c + 1) * each);
    for (int64_t k = c * each; k < end; k += ahead) {
      P next[ahead];
#pragma unroll
      for (int j = 0; j < ahead; ++j) next[j] = values[min(k + j, end - 1)];
#pragma unroll
      for (int j = 0; j < ahead; ++j)
        if (k + j < end) tree.push(next[j]);
    }
    subtrees[c] = tree.total();
  }
  for (int step = 1; step < count; step *= 2) {
    __syncthreads();  // the level below is whole
    if (c % (2 * step) == 0 && c + step < count) subtrees[c] = joined(subtrees[c], subtrees[c + step]);
  }
  return subtrees[0];
}

}  // namespace lockstep::cuda
