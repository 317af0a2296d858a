// mailbox.cuh - partial results that one block of a launch hands to another.
//
// Idea    A mailbox is 16 bytes, 8 of a value and a word that says that they are there, written and
//         read by one access each. So a block stores its result and ends: no fence, no counter, no
//         wait for either's way to the L2 and back. The block that joins asks until all are there.
// Moves   a partial result a block, written and read through the L2; every mailbox is 0 before and after.
// Limit   a store's way to the L2 and a load's there and back, half of what a counter in its place costs, for
//         which every block would have to stay.
// Watch   Who waits must be sure that the others run. A sequence's last task waits for those before it, which have
//         started, as blocks do in the order of their numbers (CUB's scan rests on that too); a block apart,
//         the first of its grid, waits only where it cannot take the last place (may_wait_apart). And
//         16 bytes must be written at once: .b128 is a scalar type of PTX's memory model. Before CUDA 12.3 there
//         is only a vector of two words, which promises less but compiles to the same instruction.
// Source  this repository; the look-back of Merrill and Garland, "Single-pass Parallel Prefix Scan" (2016).
#pragma once

#include "../device/queue.hpp"
#include "leaf.cuh"

namespace lockstep::cuda {

template <class P>
constexpr int words_of = (sizeof(P) + 7) / 8;

#if __CUDACC_VER_MAJOR__ > 12 || __CUDACC_VER_MINOR__ >= 3
__device__ __forceinline__ void write(mailbox* at, uint64_t word, uint64_t full) {
  asm volatile("{ .reg .b128 v; mov.b128 v, {%1, %2}; st.relaxed.gpu.global.b128 [%0], v; }" ::"l"(at), "l"(word),
               "l"(full)
               : "memory");
}
__device__ __forceinline__ mailbox read(const mailbox* at) {
  mailbox m;
  asm volatile("{ .reg .b128 v; ld.relaxed.gpu.global.b128 v, [%2]; mov.b128 {%0, %1}, v; }"
               : "=l"(m.word), "=l"(m.full)
               : "l"(at)
               : "memory");
  return m;
}
#else
__device__ __forceinline__ void write(mailbox* at, uint64_t word, uint64_t full) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(word), "l"(full) : "memory");
}
__device__ __forceinline__ mailbox read(const mailbox* at) {
  mailbox m;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(m.word), "=l"(m.full) : "l"(at) : "memory");
  return m;
}
#endif

template <class P>
__device__ __forceinline__ void hand_over(mailbox* at, const P& value) {
  uint64_t words[words_of<P>] = {};
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (int k = 0; k < words_of<P>; ++k) {
    write(at + k, words[k], 1);
  }
}

// Takes `many` values 32 apart, n at most, and leaves their mailboxes empty; waits for them, all at once so
// that their loads overlap. Beyond `many`, value keeps what it had.
template <int n, class P>
__device__ __forceinline__ void take(mailbox* first, int many, P (&value)[n]) {
  constexpr int W = words_of<P>;
  bool there;
  do {
    there = true;
    mailbox box[n][W];
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
      for (int k = 0; k < W; ++k)
        if (j < many) box[j][k] = read(first + 32 * j * W + k);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (j >= many) continue;
      uint64_t words[W];
#pragma unroll
      for (int k = 0; k < W; ++k) there = there && box[j][k].full != 0, words[k] = box[j][k].word;
      memcpy(&value[j], words, sizeof value[j]);
    }
  } while (!there);
#pragma unroll
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int k = 0; k < W; ++k)
      if (j < many) write(first + 32 * j * W + k, 0, 0);
}

// The tree over n rows of 32 values, of each of which thread t has the one whose place is t with its bits
// reversed: the two threads of a step have the halves of two rows and give one away, so that 4 rows take
// 8 shuffles, not 22.
template <int n, int mask = 16, class Fold, class P>
__device__ __forceinline__ P join_reversed(const Fold& fold, const P (&value)[n], int t) {
  if constexpr (n > 1) {
    P half[n / 2];
#pragma unroll
    for (int m = 0; m < n / 2; ++m) half[m] = split_join(fold, value[2 * m], value[2 * m + 1], t, mask);
    return join_reversed<n / 2, mask / 2>(fold, half, t);
  } else {
    P joined = value[0];
#pragma unroll
    for (int m = mask; m >= 1; m /= 2) joined = fold.join(joined, from_xor(joined, m));
#pragma unroll
    for (int m = 16; m > mask; m /= 2) joined = fold.join(joined, from_xor(joined, m));  // the rows
    return joined;
  }
}

__device__ __forceinline__ int reversed_place(int t) {
  return static_cast<int>(__brev(static_cast<unsigned>(t)) >> 27);
}

// The value of `here` tasks from `first` on, a power of two up to most_chunk or the last ones, by a warp.
constexpr int most_chunk = 1024;
template <class Fold>
__device__ __forceinline__ typename Fold::partial collect(const Fold& fold, mailbox* boxes, int64_t first, int here,
                                                          int t) {
  using P = typename Fold::partial;
  constexpr int W = words_of<P>, n = W < 4 ? 4 / W : 1;  // values per thread at once; 8 spill in 64 registers
  mailbox* const at = boxes + first * W;
  if (here <= 32) {
    P value[1] = {fold.none()};
    if (t < here) LOCKSTEP_SEEN(read_partial, boxes, at + t * W);
    take<1>(at + t * W, here > t, value);
    return join_warp(fold, value[0]);
  }
  P mine = fold.none();  // ordered: of thread k the k-th 32 n tasks'
  for (int k = 0; k * 32 * n < here; ++k) {
    P value[n];
#pragma unroll
    for (int j = 0; j < n; ++j) value[j] = fold.none();
    const int i = k * 32 * n + (Fold::ordered ? reversed_place(t) : t);
    take<n>(at + i * W, (here - i + 31) / 32, value);
    if constexpr (Fold::ordered) {
      const P joined = join_reversed(fold, value, t);
      if (t == k) mine = joined;
    } else {
#pragma unroll
      for (int j = 0; j < n; ++j) mine = fold.join(mine, value[j]);
    }
  }
  return join_warp(fold, mine, Fold::ordered ? most_chunk / (32 * n) : 32);
}

}  // namespace lockstep::cuda
