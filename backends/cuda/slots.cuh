// slots.cuh - partial results that one block of a launch hands to another.
//
// Idea    A slot is 16 bytes, 8 of a value and a word that says that they are there, written and
//         read by one access each. So a block stores its result and ends: no fence, no counter, no
//         wait for either's way to the L2 and back. The block that joins asks until all are there.
// Moves   a partial result a block, written and read through the L2; every slot is 0 before and after.
// Limit   a store's way to the L2 and a load's there and back: 0.7 us of the 1.0 that 1 Mi elements take longer
//         than without a join (H200). A counter took 1.4, and kept every block's place for as long.
// Watch   Who waits must be sure that the others run. A block apart is the only one that waits, and any chip
//         has places for more than one; else a sequence's last task waits for those before it, which have
//         started, as blocks do in the order of their numbers (CUB's scan rests on that too). And
//         aligned accesses of 16 bytes must be whole, which the PTX ISA does not promise for vectors; from
//         sm_70 on they are, and CUB's look-back needs it.
// Source  this repository; the look-back of Merrill and Garland, "Single-pass Parallel Prefix Scan" (2016).
#pragma once

#include "leaf.cuh"
#include "queue.hpp"

namespace lockstep::cuda {

template <class P>
constexpr int words_of = (sizeof(P) + 7) / 8;

__device__ __forceinline__ void write_slot(slot* at, uint64_t word, uint64_t full) {
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(at), "l"(word), "l"(full) : "memory");
}
__device__ __forceinline__ slot read_slot(const slot* at) {
  slot s;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(s.word), "=l"(s.full) : "l"(at) : "memory");
  return s;
}

template <class P>
__device__ __forceinline__ void put(slot* at, const P& value) {
  uint64_t words[words_of<P>] = {};
  memcpy(words, &value, sizeof value);
#pragma unroll
  for (int k = 0; k < words_of<P>; ++k) {
    if (LOCKSTEP_DEVICE_MUTANT("slot_full_before_its_word")) {
      write_slot(at + k, 0, 1);
      __nanosleep(50000);
    }
    write_slot(at + k, words[k], 1);
  }
}

// Takes the values of `many` slots 32 apart, n at most, leaving them empty; waits for them, all at once so
// that their loads overlap. Of the others value keeps what it had.
template <int n, class P>
__device__ __forceinline__ void take(slot* first, int many, P (&value)[n]) {
  constexpr int W = words_of<P>;
  bool there;
  do {
    there = true;
    slot s[n][W];
#pragma unroll
    for (int j = 0; j < n; ++j)
#pragma unroll
      for (int k = 0; k < W; ++k)
        if (j < many) s[j][k] = read_slot(first + 32 * j * W + k);
#pragma unroll
    for (int j = 0; j < n; ++j) {
      if (j >= many) continue;
      uint64_t words[W];
#pragma unroll
      for (int k = 0; k < W; ++k) there = there && s[j][k].full != 0, words[k] = s[j][k].word;
      memcpy(&value[j], words, sizeof value[j]);
    }
  } while (!there);
  if (LOCKSTEP_DEVICE_MUTANT("slots_not_emptied")) return;
#pragma unroll
  for (int j = 0; j < n; ++j)
#pragma unroll
    for (int k = 0; k < W; ++k)
      if (j < many) write_slot(first + 32 * j * W + k, 0, 0);
}

// The tree over n rows of 32 values, of each of which thread t has the one whose place is t with its bits
// reversed: the two threads of a step have the halves of two rows and give one away, so that 8 rows take
// 12 shuffles, not 43.
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

// The value of `here` tasks from slot `first` on, a power of two up to most_chunk or the last ones, by a warp.
constexpr int most_chunk = 1024;
template <class Fold>
__device__ __forceinline__ typename Fold::partial collect(const Fold& fold, slot* slots, int64_t first, int here,
                                                          int t) {
  using P = typename Fold::partial;
  constexpr int W = words_of<P>, n = W < 4 ? 4 / W : 1;  // values a thread at once; 8 spill in 64 registers
  slot* const at = slots + first * W;
  if (here <= 32) {
    P value[1] = {fold.none()};
    if (t < here) LOCKSTEP_SEEN(read_partial, slots, at + t * W);
    take<1>(at + t * W, here > t, value);
    return join_warp(fold, value[0]);
  }
  P mine = fold.none();  // ordered: of thread k the k-th 32 n tasks'
  for (int k = 0; k * 32 * n < here; ++k) {
    P value[n];
#pragma unroll
    for (int j = 0; j < n; ++j) value[j] = fold.none();
    const int i = k * 32 * n + (Fold::ordered ? static_cast<int>(__brev(static_cast<unsigned>(t)) >> 27) : t);
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
