// look_back.cuh - long sequences, one launch: one warp per leaf, which finds what stands before it in mailboxes.
//
// Idea    What stands before leaf k is the order's tree over k leaves: a subtree for each bit of k that is set. There
//         is a mailbox for the sum of each leaf, of each 32 leaves, of each 32^2 and so on; the last of them hands it
//         over. For each digit of k to the base of 32 a warp reads that many boxes at once and joins the subtrees of
//         its bits from them. Every mailbox has one value, whoever writes first.
// Moves   every element once in and once out; a mailbox a leaf, through the L2
// Limit   latencies of what a warp does with its leaf (staged.cuh), with 20 warps per SM; then the chain of
//         waits, as long as k has digits: fewer digits to the base of 32 are faster than to the base of 2
// Watch   blocks start in the order of their numbers, so whom a leaf waits for has started (mailbox.cuh). A subtree is
//         handed over before its leaf waits for what it needs for its own results
// Source  this repository; Merrill and Garland, "Single-pass Parallel Prefix Scan" (2016)
#pragma once

#include "../reduce/mailbox.cuh"
#include "leaf.cuh"

namespace lockstep::cuda {

struct scanned {
  const void* src;
  void* dst;
  int64_t count, length;
  int64_t element_stride, sequence_stride;
  const int64_t* offsets;
  int64_t dst_element_stride, dst_sequence_stride;
  bool whole_src, whole_dst, exclusive;
  const void* before;     // NULL, or what stands before each sequence (lockstep_scan_desc.before)
  int64_t leaves_before;  // of floats to be summed
  int64_t boxes_a_sequence;
  mailbox* boxes;  // of every sequence look_back's, then, for exclusive float sums, every leaf's last result
  int64_t kept;    // how many they are where they are the queue's own, then a count of leaves; else 0
};

template <class K>
constexpr int scan_warps = 4;
template <class K>
constexpr int scan_blocks = sizeof(typename K::element) == 8 ? 2 : 4;  // per SM: registers for a leaf a warp

// Waits for the mailboxes of the threads that want one.
template <class P>
__device__ __forceinline__ void wait_for(const mailbox* at, bool mine, P& value) {
  uint64_t words[words_of<P>];
  bool there;
  do {
    there = true;
    if (mine) {
#pragma unroll
      for (int w = 0; w < words_of<P>; ++w) {
        const mailbox box = read(at + w);
        words[w] = box.word;
        there = there && box.full != 0;
      }
    }
  } while (!__all_sync(all_lanes, there));
  if (mine) memcpy(&value, words, sizeof value);
}

// Mailboxes that the queue keeps are empty again after a call: each leaf tells when its warp has read its last one, and
// the last leaf to do so clears all.
__device__ __forceinline__ bool reads_last(const scanned& d, int64_t leaves, int t) {
  if (d.kept == 0) return false;
  __syncwarp();
  unsigned long long before = 0;
  if (t == 0) {
    __threadfence();  // this warp's reads, and what it handed over, come before what the last leaf clears
    before = atomicAdd(reinterpret_cast<unsigned long long*>(&d.boxes[d.kept].word), 1ull);
  }
  return __shfl_sync(all_lanes, before, 0) == static_cast<unsigned long long>(d.count * leaves - 1);
}
__device__ __forceinline__ void clear_boxes(const scanned& d, int t) {
  __threadfence();
  for (int64_t i = t; i <= d.kept; i += 32) write(d.boxes + i, 0, 0);
}

// The state of a sequence of float sums: its last result, and the sums of subtrees.
__device__ __forceinline__ const double* floats_before(const scanned& d, int64_t s) {
  return static_cast<const double*>(d.before) + s * (1 + __popcll(static_cast<uint64_t>(d.leaves_before)));
}
// Visits each aligned subtree of the leaves before, the largest first: its level and its sum.
template <class Visit>
__device__ __forceinline__ void each_subtree_before(const scanned& d, int64_t s, const Visit& visit) {
  const double* sum = floats_before(d, s);
  for (int level = 62; level >= 0; --level)
    if ((d.leaves_before >> level & 1) != 0) visit(level, *++sum);
}

// Leaves [first, leaves) of a sequence are here, k is one of them, and these are their boxes; total: its own, where a
// leaf follows. Gives what stands before it.
template <class K>
__device__ __forceinline__ typename K::partial look_back(const K& kind, mailbox* boxes, int64_t k, int64_t first,
                                                         int64_t leaves, typename K::partial total, int t) {
  using P = typename K::partial;
  constexpr int W = words_of<P>;
  P before = kind.none(), subtree = total;
  bool gives = k + 1 < leaves;  // this leaf ends a subtree of 32^level leaves
  if (gives && t == 0) hand_over(boxes + (k - first / 32 * 32) * W, subtree);
  for (int64_t at = k, level = leaves; at != 0; at /= 32, level /= 32) {
    const int digit = static_cast<int>(at % 32);
    const int64_t skipped = first / 32 * 32;  // boxes of this level that there are not
    P part = kind.none();
    wait_for(boxes + (at - digit - skipped + t) * W, t < digit, part);
    gives = gives && digit == 31;
    if (t == 31 && gives) part = subtree;
#pragma unroll
    for (int b = 0; b < 5; ++b) {  // by now a thread's part is of an aligned 2^b boxes
      const P value = from_thread(part, ((digit >> b) - 1) << b);
      if ((digit >> b & 1) != 0) before = kind.join(value, before);
      const P other = from_xor(part, 1 << b);
      part = kind.join((t >> b & 1) != 0 ? other : part, (t >> b & 1) != 0 ? part : other);
    }
    boxes += (level - skipped) * W;
    first /= 32;
    if (gives) {
      subtree = part;
      if (t == 0) hand_over(boxes + (at / 32 - first / 32 * 32) * W, subtree);
    }
  }
  return before;
}

// Hands over what stands before the first leaf, a warp a sequence: of each level the boxes that a leaf behind asks for.
// A subtree's sum is in the box of its first part, and in the others nothing.
template <class K>
__global__ __launch_bounds__(128) void scan_before(const scanned d) {
  const int t = threadIdx.x % 32;
  const int64_t s = (int64_t{blockIdx.x} * blockDim.x + threadIdx.x) / 32;
  if (s >= d.count) return;
  mailbox* boxes = d.boxes + s * d.boxes_a_sequence;
  const double* const sums = floats_before(d, s) + 1;
  int64_t level = d.leaves_before + order::leaves(d.length);
  int bit = 0;
  for (int64_t first = d.leaves_before; first != 0; first /= 32, level /= 32, bit += 5) {
    const int digit = static_cast<int>(first % 32);
    double sum = K::none();
    for (int b = 0; b < 5; ++b)
      if ((digit >> b & 1) != 0 && t == (digit >> b & ~1) << b)
        sum = sums[__popcll(static_cast<uint64_t>(d.leaves_before) >> (bit + b + 1))];
    if (t < digit) hand_over(boxes + t, sum);
    boxes += level - first / 32 * 32;
  }
}

template <class K>
__device__ __forceinline__ places<K> leaf_places(const scanned& d, int64_t s, int64_t k) {
  const int64_t first = k * order::leaf;
  const auto n = static_cast<int>(min(d.length - first, order::leaf));
  const bool quads = n % 4 == 0;
  return {static_cast<const typename K::element*>(d.src) + s * d.sequence_stride + first * d.element_stride,
          static_cast<typename K::result*>(d.dst) + s * d.dst_sequence_stride + first * d.dst_element_stride,
          d.element_stride,
          d.dst_element_stride,
          s,
          n,
          d.whole_src && quads,
          d.whole_dst && quads,
          d.exclusive};
}

}  // namespace lockstep::cuda
