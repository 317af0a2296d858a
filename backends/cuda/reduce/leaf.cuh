// leaf.cuh - order id 1 on a GPU: a leaf is a warp's, its 128 lanes four a thread;
// what joins lanes, leaves and subtrees, for every fold (fold.cuh).
//
// Thread t of a warp holds lanes lane_of<V>(t, 0..3), V neighbours a load: V = 4
// reads 16 bytes of f32, V = 2 of f64, V = 1 takes any alignment and stride. The
// joins d = 64, 32, ..., 1 of order.hpp then need 5 to 8 shuffles: a step whose
// partners sit in two threads with several lanes each is split between the two.
// All joins commute to the bit (a + b is b + a), so both partners may do one.
#pragma once

#include "../../../lib/bits/order.hpp"
#include "../index/leaf.hpp"
#include "../kernel/cache.cuh"
#include "../kernel/record.cuh"
#include "../kernel/warp.cuh"

namespace lockstep::cuda {

constexpr unsigned all_lanes = 0xffffffffu;

// Shuffles of any type of whole 4-byte words.
template <class P, class Shuffle>
__device__ __forceinline__ P by_words(P value, Shuffle shuffle) {
  static_assert(sizeof(P) % 4 == 0);
  unsigned word[sizeof(P) / 4];
  if constexpr (sizeof(P) == 16 && requires { value >> 64; }) {  // memcpy of a 128-bit integer goes through the stack
    const auto high = by_words(static_cast<uint64_t>(value >> 64), shuffle);
    return static_cast<P>(high) << 64 | by_words(static_cast<uint64_t>(value), shuffle);
  } else {
    memcpy(word, &value, sizeof(P));
#pragma unroll
    for (unsigned k = 0; k < sizeof(P) / 4; ++k) word[k] = shuffle(word[k]);
    memcpy(&value, word, sizeof(P));
    return value;
  }
}
template <class P>
__device__ __forceinline__ P from_xor(P value, int mask) {
  LOCKSTEP_SEEN(exchange, int{sizeof(P)}, int64_t{static_cast<int>(threadIdx.x % 32) ^ mask});
  return by_words(value, [mask](unsigned word) { return __shfl_xor_sync(all_lanes, word, mask); });
}
template <class P>
__device__ __forceinline__ P from_thread(P value, int thread) {
  return by_words(value, [thread](unsigned word) { return __shfl_sync(all_lanes, word, thread); });
}

// The largest or smallest of a warp's integers, in every thread: one instruction from sm_80 on.
__device__ __forceinline__ int32_t largest_of_warp(int32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_max_sync(all_lanes, x);
#else
  for (int mask = 16; mask >= 1; mask /= 2) x = max(x, from_xor(x, mask));
  return x;
#endif
}
__device__ __forceinline__ uint32_t smallest_of_warp(uint32_t x) {
#if __CUDA_ARCH__ >= 800
  return __reduce_min_sync(all_lanes, x);
#else
  for (int mask = 16; mask >= 1; mask /= 2) x = min(x, from_xor(x, mask));
  return x;
#endif
}

// The values of two slots, one of which goes to the partner: threads with the
// mask's bit keep the second.
template <class Fold, class P>
__device__ __forceinline__ P split_join(const Fold& fold, P first, P second, int t, int mask) {
  const bool upper = (t & mask) != 0;
  const P kept = upper ? second : first, sent = upper ? first : second;
  return fold.join(kept, from_xor(sent, mask));
}

// The lanes of `several` rows at once (their shuffles overlap), each row's joined by
// a group of `threads` threads with four lanes each: a whole leaf's 128 by 32, or
// 4 * threads of a shorter row. Every thread of the group gets the values. V = 4
// needs 4 threads or more, V = 2 all 32.
template <int V, int several, class Fold, class P>
__device__ __forceinline__ void join_rows(const Fold& fold, P (&lane)[several][4], P (&value)[several], int t,
                                          int threads = 32) {
  const auto by_xor = [&](int mask) {
#pragma unroll
    for (int b = 0; b < several; ++b) value[b] = fold.join(value[b], from_xor(value[b], mask));
  };
  const auto split = [&](int many, int mask) {
#pragma unroll
    for (int b = 0; b < several; ++b) {
      if (many == 2) {
        lane[b][0] = split_join(fold, lane[b][0], lane[b][2], t, mask);
        lane[b][1] = split_join(fold, lane[b][1], lane[b][3], t, mask);
      } else {
        value[b] = split_join(fold, lane[b][0], lane[b][1], t, mask);
      }
    }
  };
  if constexpr (V != 4) {
#pragma unroll
    for (int b = 0; b < several; ++b) {
      lane[b][0] = fold.join(lane[b][0], lane[b][2]);
      lane[b][1] = fold.join(lane[b][1], lane[b][3]);
      if constexpr (V == 1) value[b] = fold.join(lane[b][0], lane[b][1]);
    }
  }
  walk_joins<V>(threads, split, by_xor);
}

// The same for an exact fold, whose lanes are one accumulator a thread.
template <int several, class Fold>
__device__ __forceinline__ void join_rows_exactly(const Fold& fold, typename Fold::lane (&lane)[several][1],
                                                  typename Fold::partial (&value)[several], int threads) {
  if constexpr (requires { fold.pack(lane[0][0]); }) {
    int64_t packed[several];
#pragma unroll
    for (int b = 0; b < several; ++b) packed[b] = fold.pack(lane[b][0]);
    for (int mask = threads / 2; mask >= 1; mask /= 2)
#pragma unroll
      for (int b = 0; b < several; ++b) packed[b] = max(packed[b], from_xor(packed[b], mask));
#pragma unroll
    for (int b = 0; b < several; ++b) value[b] = fold.unpack(packed[b]);
  } else {
#pragma unroll
    for (int b = 0; b < several; ++b) value[b] = fold.close(lane[b][0], 0);
    for (int mask = threads / 2; mask >= 1; mask /= 2)
#pragma unroll
      for (int b = 0; b < several; ++b) value[b] = fold.join(value[b], from_xor(value[b], mask));
  }
}

// V neighbouring elements by one load; streams: by load_of_stream, which makes short rows slower.
template <int V, bool streams = false, class T>
__device__ __forceinline__ void load_neighbours(const T* at, T* out) {
  LOCKSTEP_SEEN(read_src, int{V * sizeof(T)}, seen_offset(at));
  if constexpr (V == 1) {
    out[0] = *at;
  } else if constexpr (sizeof(T) * V == 16) {
    const uint4* chunk = reinterpret_cast<const uint4*>(at);
    const uint4 bits = streams ? load_of_stream(chunk) : __ldg(chunk);
    memcpy(out, &bits, 16);
  } else {
    static_assert(sizeof(T) * V == 8);
    const uint2 bits = __ldg(reinterpret_cast<const uint2*>(at));
    memcpy(out, &bits, 8);
  }
}

// Folds with take_rows, and those of them with lane_after.
template <class Fold>
constexpr bool takes_rows = requires(const Fold& fold, typename Fold::lane& lane,
                                     const typename Fold::element (&x)[4][4]) {
  fold.template take_rows<1>(lane, x, 0, 0);
};
template <class Fold>
constexpr bool starts_from = requires(const Fold& fold, typename Fold::partial value) {
  fold.lane_after(value);
};

// The `end` elements of a short leaf, by loads of `step`, rows of lanes at a time. In place of missing elements the
// last ones are loaded again: for a load under a condition the compiler waits before it starts the next.
template <int V, int step, int rows, bool together, class Fold>
__device__ __forceinline__ void take_short_leaf(const Fold& fold, const typename Fold::element* at, int64_t stride,
                                                int end, int t, typename Fold::lane (&lane)[Fold::slots]) {
  using T = typename Fold::element;
#pragma unroll 1
  for (int row = 0; row * order::lanes < end; row += rows) {
    T x[rows][4];
    walk_rows<V, 32, step>(rows, row, t, [&](int r, int slot, int i) {
      load_neighbours<step>(at + min(i, end - step) * (step == 1 ? stride : 1), &x[r][slot]);
    });
    if constexpr (together) {  // an element twice does not matter: the first has the lower index
      fold.template take_rows<V>(lane[0], x, row, t);
    } else {
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int slot = 0; slot < 4; ++slot) {
          const int i = (row + r) * order::lanes + lane_of<V>(t, slot);
          fold.take_if(lane[slot % Fold::slots], x[r][slot], i, i < end);
        }
    }
  }
}

// The first n elements of a leaf at `at`, taken into thread t's accumulators; 32
// bytes of a row of lanes or more are in flight before the first is used. together: by
// take_rows. Short leaves come by whole loads where their length allows, elements of 2 bytes one by one.
template <int V, class Fold, int ahead, bool together, bool streams>
__device__ __forceinline__ void take_leaf(const Fold& fold, const typename Fold::element* at, int64_t stride, int64_t n,
                                          int t, typename Fold::lane (&lane)[Fold::slots]) {
  using T = typename Fold::element;
  if (n >= order::leaf) {
#pragma unroll 1
    for (int row = 0; row < order::rows; row += ahead) {
      T x[ahead][4];
      walk_rows<V>(ahead, row, t, [&](int r, int slot, int i) {
        load_neighbours<V, streams>(V == 1 ? at + i * stride : at + i, &x[r][slot]);
      });
      if constexpr (together) {
        fold.template take_rows<V>(lane[0], x, row, t);
      } else {
#pragma unroll
        for (int r = 0; r < ahead; ++r) {
          if constexpr (requires { fold.take_two(lane[0], x[r][0], x[r][1]); }) {
            fold.take_two(lane[0], x[r][0], x[r][1]);
            fold.take_two(lane[0], x[r][2], x[r][3]);
          } else {
#pragma unroll
            for (int slot = 0; slot < 4; ++slot)
              fold.take(lane[slot % Fold::slots], x[r][slot], (row + r) * order::lanes + lane_of<V>(t, slot));
          }
        }
      }
    }
    return;
  }
  const int end = static_cast<int>(n);
  if constexpr (V > 1 && sizeof(T) > 2)
    if (end % V == 0) return take_short_leaf<V, V, ahead, together>(fold, at, stride, end, t, lane);
  take_short_leaf<V, 1, 4, together>(fold, at, stride, end, t, lane);
}

// A warp's leaf: for a fold that keeps the order its value, in every thread; for
// an exact one what this thread saw. so_far: what the warp's leaves before it gave.
template <int V, class Fold, int ahead = 32 / sizeof(typename Fold::element), bool together = false,
          bool streams = false>
__device__ __forceinline__ typename Fold::partial fold_leaf(const Fold& fold, const typename Fold::element* at,
                                                            int64_t stride, int64_t n, int64_t first_index, int t,
                                                            const typename Fold::partial& so_far = Fold::none()) {
  typename Fold::lane lane[1][Fold::slots];
  for (auto& l : lane[0]) l = fold.empty_lane();
  if constexpr (together && starts_from<Fold>) lane[0][0] = fold.lane_after(so_far);
  take_leaf<V, Fold, ahead, together, streams>(fold, at, stride, n, t, lane[0]);
  if constexpr (Fold::ordered) {
    typename Fold::partial value[1];
    join_rows<V>(fold, lane, value, t);
    return value[0];
  } else {
    return fold.close(lane[0][0], first_index);
  }
}

// A binary counter of subtrees across a warp: thread k keeps the digit of 2^k.
template <class Fold>
struct warp_counter {
  typename Fold::partial digit = Fold::none();
  unsigned count = 0;

  __device__ __forceinline__ void push(const Fold& fold, typename Fold::partial value, int t) {
    int level = 0;
    for (; (count >> level) & 1; ++level) value = fold.join(from_thread(digit, level), value);
    if (t == level) digit = value;
    ++count;
  }
  // The odd ones out join from the smallest subtree up.
  __device__ __forceinline__ typename Fold::partial total(const Fold& fold) const {
    typename Fold::partial sum = fold.none();
    for (int level = 0; (count >> level) != 0; ++level) {
      const auto value = from_thread(digit, level);
      if ((count >> level) & 1) sum = fold.join(value, sum);
    }
    return sum;
  }
};

// Rows that start m elements past a 16-byte boundary are read from the boundary, so
// that thread t, slot k holds lane_of(t, k) - m, around 128. This gives every lane
// back to the thread that joins it: m values of a thread come from the next one.
template <int V, class P>
__device__ __forceinline__ void unrotate(P (&lane)[4], int m, int t) {
  const int next = (t + 1) & 31;
  if constexpr (V == 2) {
    if (m == 0) return;
    const P a = from_thread(lane[0], next), b = from_thread(lane[2], next);
    lane[0] = lane[1];
    lane[2] = lane[3];
    lane[1] = t == 31 ? b : a;
    lane[3] = t == 31 ? a : b;
  } else {
    for (; m > 0; --m) {
      const P a = from_thread(lane[0], next);
      lane[0] = lane[1];
      lane[1] = lane[2];
      lane[2] = lane[3];
      lane[3] = a;
    }
  }
}

// Joins what the threads of a warp hold; every thread gets it.
template <class Fold, class P>
__device__ __forceinline__ P join_warp(const Fold& fold, P value, int threads = 32) {
  if constexpr (requires { fold.join_all(value); })
    if (threads == 32) return fold.join_all(value);
  for (int mask = 1; mask < threads; mask *= 2) value = fold.join(value, from_xor(value, mask));
  return value;
}

// The tree over up to 1,024 values that load(i) gives, by one warp: 32 at a time
// by shuffles, thread k keeping the k-th subtree; then the subtrees. Missing
// values are the identity, so the tree over a power of two is the order's.
template <class Fold, class Load>
__device__ __forceinline__ typename Fold::partial join_values(const Fold& fold, int count, int t, Load load) {
  using P = typename Fold::partial;
  if (count <= 32) return join_warp(fold, t < count ? load(t) : fold.none());
  if constexpr (!Fold::ordered) {  // any order: most joins need no shuffle
    P mine = load(t);
#pragma unroll 4
    for (int i = t + 32; i < count; i += 32) mine = fold.join(mine, load(i));
    return join_warp(fold, mine);
  }
  P subtree = fold.none();
#pragma unroll 4
  for (int k = 0; k * 32 < count; ++k) {
    const P value = join_warp(fold, k * 32 + t < count ? load(k * 32 + t) : fold.none());
    if (t == k) subtree = value;
  }
  return join_warp(fold, subtree);
}

// Reads what another block wrote before its fence: past the L1, which may hold
// the line as it was.
template <class P>
__device__ __forceinline__ P load_fresh(const P* at) {
  using word = std::conditional_t<sizeof(P) % 8 == 0, unsigned long long, unsigned>;
  word words[sizeof(P) / sizeof(word)];
#pragma unroll
  for (unsigned k = 0; k < sizeof(P) / sizeof(word); ++k) words[k] = __ldcg(reinterpret_cast<const word*>(at) + k);
  P value;
  memcpy(&value, words, sizeof(P));
  return value;
}

}  // namespace lockstep::cuda
