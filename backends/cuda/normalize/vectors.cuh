// vectors.cuh - rows by 16 bytes per load: a block has a row or some of its leaves, a cluster of blocks the others.
//
// Idea    Elements, weights and biases of a row are on their way at once, and a thread has few of them: loops that are
//         unrolled are short, and a result follows the divisor at once. The elements go through shared memory to the
//         threads that have their lanes. Few rows are spread over many SMs, a leaf each; of more rows a thread has
//         twice as many elements, so that all rows still run at once
// Moves   every element once in and once out
// Limit   latencies where rows are few, else memory
// Watch   in place: barriers lie between the last load of a row and its first result
// Source  lib/bits/order_rows.hpp
#pragma once

#include "../kernel/cluster.cuh"
#include "../kernel/resident.cuh"
#include "pairs.cuh"

namespace lockstep::cuda {

constexpr int vector_leaves = 8;  // of a row
// Elements of a thread. Twice as many, of 16 bits, where only then all blocks run at once.
constexpr int vector_elements = 8, more_elements = 2 * vector_elements;

// Threads of a block at most, and such blocks per SM at least, where it holds as many threads; both bound the
// registers.
template <class E, class P, int elements>
constexpr int vector_threads = elements > vector_elements                     ? (std::is_same_v<P, double> ? 640 : 512)
                               : sizeof(E) == 4 && !std::is_same_v<P, double> ? 512
                                                                              : 1024;
template <class E, class P, int elements>
constexpr int vector_blocks =
    elements > vector_elements && 2 * vector_threads<E, P, elements> <= resident_threads ? 2 : 1;

template <class T>
using vector = few<T, 16 / sizeof(T)>;

// In shared memory, before lanes and elements: what warps and blocks tell one another.
struct vectors_meet {
  double values[2 * vector_leaves];  // leaves' sums, then the squares about their means
  spread found;
  uint64_t landed, unused;
};
constexpr size_t vector_head = sizeof(vectors_meet);

// ---- elements --------------------------------------------------------------------------
// By a predicate, as load_pair.
template <bool once, class T>
__device__ __forceinline__ vector<T> load_vector(const T* from, bool wanted) {
  vector<T> x{};
  uint32_t(&w)[4] = x.word;
  const int loaded = wanted;
  if constexpr (once)
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
                 : "l"(from), "r"(loaded)
                 : "memory");
  else
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4]; }"
                 : "+r"(w[0]), "+r"(w[1]), "+r"(w[2]), "+r"(w[3])
                 : "l"(from), "r"(loaded));
  return x;
}
template <class T>
__device__ __forceinline__ void store_vector(T* at, bool wanted, const vector<T>& x) {
  const int stored = wanted;
  asm volatile("{ .reg .pred p; setp.ne.s32 p, %5, 0; @p st.global.v4.u32 [%0], {%1, %2, %3, %4}; }" ::"l"(at),
               "r"(x.word[0]), "r"(x.word[1]), "r"(x.word[2]), "r"(x.word[3]), "r"(stored)
               : "memory");
}
// Pair k of a vector.
template <class T>
__device__ __forceinline__ pair<T> pair_of(const vector<T>& x, int k) {
  pair<T> out{};
  constexpr int words = sizeof(T) / 2;
#pragma unroll
  for (int j = 0; j < words; ++j) out.word[j] = x.word[k * words + j];
  return out;
}

// ---- sums ------------------------------------------------------------------------------
// Lane s of n elements in shared memory.
template <class E, class Enter>
__device__ __forceinline__ double lane_of_vectors(const E* x, int n, bool full, int s, const Enter& enter) {
  double lane = -0.0;
  if (full) {
#pragma unroll
    for (int r = 0; r < order::rows; ++r) lane = enter(lane, widened(x[r * order::lanes + s]));
  } else {
    constexpr int step = 4;  // loads that overlap
#pragma unroll 1
    for (int r0 = 0; r0 * order::lanes < n; r0 += step) {
#pragma unroll
      for (int r = 0; r < step; ++r) {
        const int i = (r0 + r) * order::lanes + s;
        const double with = enter(lane, widened(x[min(i, n - 1)]));
        if (i < n) lane = with;
      }
    }
  }
  return lane;
}
__device__ __forceinline__ double lanes_joined(const double* of, int t) {
  double sum = __dadd_rn(__dadd_rn(of[t], of[t + 64]), __dadd_rn(of[t + 32], of[t + 96]));
#pragma unroll
  for (int mask = 16; mask >= 1; mask /= 2) sum = __dadd_rn(sum, from_xor(sum, mask));
  return sum;
}

// ---- results ------------------------------------------------------------------------------
// step: elements from a vector of the thread to its next.
template <class E, bool layer, bool weighed, bool biased, int V>
__device__ __forceinline__ void write_vectors(E* at, int left, int step, const spread& row, const vector<E> (&x)[V],
                                              const vector<E> (&weight)[V], const vector<E> (&bias)[V]) {
  constexpr int pairs = 8 / sizeof(E);
  if constexpr (sizeof(E) == 4) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      vector<E> out{};
#pragma unroll
      for (int k = 0; k < pairs; ++k) {
        const pair<E> two = pair_by_double<E, layer, weighed, biased>(row, pair_of<E>(x[v], k),
                                                                      pair_of<E>(weight[v], k), pair_of<E>(bias[v], k));
        out.word[2 * k] = two.word[0], out.word[2 * k + 1] = two.word[1];
      }
      store_vector(at + v * step, v * step < left, out);
    }
  } else {
    const float_scales in_float = scales_in_float(layer ? row.mean : 0.0, row.divisor);
    uint32_t doubted = 0;  // bit v: vector v
#pragma unroll
    for (int v = 0; v < V; ++v) {
      vector<E> out{};
      float_doubt<E> doubt;
#pragma unroll
      for (int k = 0; k < pairs; ++k)
        out.word[k] = pair_by_float<E, layer, weighed, biased>(in_float, pair_of<E>(x[v], k), pair_of<E>(weight[v], k),
                                                               pair_of<E>(bias[v], k), doubt)
                          .word[0];
      store_vector(at + v * step, v * step < left, out);
      if ((!in_float.usable | doubt.of_rounding() | doubt.of_magnitude()) & (v * step < left)) doubted |= 1u << v;
    }
    // What is in doubt is written again.
#pragma unroll 1
    for (; doubted != 0; doubted &= doubted - 1) {
      const int mine = __ffs(static_cast<int>(doubted)) - 1;
      vector<E> own[3] = {x[0], weight[0], bias[0]};
#pragma unroll
      for (int v = 1; v < V; ++v)
        if (v == mine) own[0] = x[v], own[1] = weight[v], own[2] = bias[v];
#pragma unroll 1
      for (int k = 0; k < pairs; ++k) {
        const pair<E> two[3] = {{{own[0].word[0]}}, {{own[1].word[0]}}, {{own[2].word[0]}}};
        float_doubt<E> doubt;
        const pair<E> out = pair_by_float<E, layer, weighed, biased>(in_float, two[0], two[1], two[2], doubt);
        const bool sure = in_float.usable && !doubt.of_rounding() &&
                          (!doubt.of_magnitude() || (!layer && only_zeros<E, E, weighed>(two[0], two[1], out)));
        if (!sure)
          store_pair<true>(at + mine * step, 2 * k, left, true,
                           pair_by_double<E, layer, weighed, biased>(row, two[0], two[1], two[2]));
#pragma unroll
        for (vector<E>& one : own) one.word[0] = one.word[1], one.word[1] = one.word[2], one.word[2] = one.word[3];
      }
    }
  }
}

// A grid has an x for each row and a y for each of the row's blocks, which are a cluster; a block has an x for each
// thread of a leaf and a y for each of its leaves. P: double for squares, order::moments. Missing weights and biases as
// in pairs.cuh.
template <class E, class P, int of_thread>
__global__ __launch_bounds__(vector_threads<E, P, of_thread>,
                             vector_blocks<E, P, of_thread>) void normalize_vectors(const normalized_rows d) {
  constexpr bool layer = std::is_same_v<P, order::moments>;
  constexpr int N = 16 / sizeof(E), V = of_thread / N;
  extern __shared__ uint4 room[];
  const int seat = static_cast<int>(threadIdx.y), s = static_cast<int>(threadIdx.x), t = s % 32;
  const int seats = static_cast<int>(blockDim.y), leaves = static_cast<int>(order::leaves(d.length));
  const int64_t row = blockIdx.x;
  const int first = (static_cast<int>(blockIdx.y) * seats + seat) * static_cast<int>(order::leaf);
  // Seats beyond the row's end have no elements.
  const int n = max(min(static_cast<int>(order::leaf), static_cast<int>(d.length) - first), 0);
  // Compared in 64 bits: with `n == order::leaf`, code of ptxas 13.0 took rows of less than a leaf as full ones.
  const bool full = d.length - first >= order::leaf;
  const int at = s * N, step = static_cast<int>(blockDim.x) * N, left = n - at;
  const int held = leaves == 1 ? static_cast<int>(d.length) : static_cast<int>(order::leaf);  // elements of a seat

  auto* const head = reinterpret_cast<vectors_meet*>(room);
  double* const values = head->values;
  double* const lanes = reinterpret_cast<double*>(head + 1) + seat * order::lanes * (layer ? 2 : 1);
  E* const elements =
      reinterpret_cast<E*>(reinterpret_cast<double*>(head + 1) + seats * order::lanes * (layer ? 2 : 1)) + seat * held;

  const bool clustered = gridDim.y > 1;
  if (clustered) {
    if (seat == 0 && s == 0) expect_values(&head->landed, leaves * static_cast<int>(sizeof(double)) * (layer ? 2 : 1));
    cluster_begins();
  }
  follow_on();
  vector<E> x[V], weight[V], bias[V];
  {
    const E* const src = static_cast<const E*>(d.src) + row * d.src_stride + first + at;
#pragma unroll
    for (int v = 0; v < V; ++v) x[v] = load_vector<true>(src + v * step, v * step < left);
  }
  vector<E> more[V];
  if (d.residual != nullptr) {
    const E* const residual = static_cast<const E*>(d.residual) + row * d.residual_stride + first + at;
#pragma unroll
    for (int v = 0; v < V; ++v) more[v] = load_vector<true>(residual + v * step, v * step < left);
  }
  if (d.weight != nullptr) {
#pragma unroll
    for (int v = 0; v < V; ++v)
      weight[v] = load_vector<false>(static_cast<const E*>(d.weight) + first + at + v * step, v * step < left);
  } else if constexpr (layer) {
    fill_words(weight, std::is_same_v<E, half16> ? 0x3C003C00u : sizeof(E) == 2 ? 0x3F803F80u : 0x3F800000u);
  }
  if constexpr (layer) {
    if (d.bias != nullptr) {
#pragma unroll
      for (int v = 0; v < V; ++v)
        bias[v] = load_vector<false>(static_cast<const E*>(d.bias) + first + at + v * step, v * step < left);
    } else {
      fill_words(bias, sizeof(E) == 2 ? 0x80008000u : 0x80000000u);
    }
  }
  if (d.residual != nullptr) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      x[v] = sum_of(x[v], more[v]);
      if (d.sum != nullptr)
        store_vector(static_cast<E*>(d.sum) + row * d.sum_stride + first + at + v * step, v * step < left, x[v]);
    }
  }
#pragma unroll
  for (int v = 0; v < V; ++v)
    if (v * step < left)
      *reinterpret_cast<uint4*>(elements + at + v * step) =
          make_uint4(x[v].word[0], x[v].word[1], x[v].word[2], x[v].word[3]);
  __syncthreads();  // threads read their lanes

  const bool sums = s < order::lanes, joins = s < 32;
  P total{};
  if constexpr (layer) {
    if (sums)
      lanes[s] = lane_of_vectors(elements, n, full, s, [](double acc, double value) { return __dadd_rn(acc, value); });
    __syncthreads();  // warps join lanes
    const double sum = lanes_joined(lanes, t);
    if (sums) {
      const double mean = __ddiv_rn(sum, static_cast<double>(n));
      lanes[order::lanes + s] = lane_of_vectors(elements, n, full, s, [mean](double acc, double value) {
        const double off = __dsub_rn(value, mean);
        return __fma_rn(off, off, acc);
      });
    }
    __syncthreads();  // warps join lanes
    if (joins) total = {static_cast<double>(n), sum, lanes_joined(lanes + order::lanes, t), 0.0};
  } else {
    if (sums)
      lanes[s] =
          lane_of_vectors(elements, n, full, s, [](double acc, double value) { return __fma_rn(value, value, acc); });
    __syncthreads();  // warps join lanes
    if (joins) total = lanes_joined(lanes, t);
  }

  const bool works = seat == 0 && s < 32;  // else every warp would divide
  if (leaves > 1) {
    const int leaf = static_cast<int>(blockIdx.y) * seats + seat;
    const auto value_of = [&](int k) {
      if constexpr (layer)
        return k == 0 ? total.sum : total.m2;
      else
        return total;
    };
    if (clustered) {
      cluster_left();  // every block expects values
      if (s < static_cast<int>(gridDim.y) && n > 0)
        for (int k = 0; k < (layer ? 2 : 1); ++k)
          send_value(value_of(k), values + k * vector_leaves + leaf, &head->landed, s);
      if (works) wait_landed(&head->landed, 0);  // the first warp reads all leaves' values
    } else {
      if (s == 0)
        for (int k = 0; k < (layer ? 2 : 1); ++k) values[k * vector_leaves + leaf] = value_of(k);
      __syncthreads();  // the first warp reads all leaves' values
    }
    if (works) {
      const int its = min(t, leaves - 1);
      if constexpr (layer) {
        const int count =
            min(static_cast<int>(order::leaf), static_cast<int>(d.length) - its * static_cast<int>(order::leaf));
        total = tree_of_warp(order::moments{static_cast<double>(count), values[its], values[vector_leaves + its], 0.0},
                             leaves, t);
      } else {
        total = tree_of_warp(values[its], leaves, t);
      }
    }
  }
  spread mine{};
  if (works) {
    mine = spread_of(d, total);
    mine.divisor = scale_of<E>(mine.divisor);
  }
  if (seat == 0 && s == 0) head->found = mine;
  __syncthreads();  // every thread reads the row's
  mine = head->found;

  E* const dst = opaque(static_cast<E*>(d.dst) + row * d.dst_stride + first + at);
  if constexpr (layer)
    write_vectors<E, true, true, true>(dst, left, step, mine, x, weight, bias);
  else if (d.weight != nullptr)
    write_vectors<E, false, true, false>(dst, left, step, mine, x, weight, bias);
  else
    write_vectors<E, false, false, false>(dst, left, step, mine, x, weight, bias);
}

// ---- the choice ---------------------------------------------------------------------------
template <class E>
inline bool aligned_vectors(const void* at, int64_t stride) {
  return reinterpret_cast<uintptr_t>(at) % 16 == 0 && stride * static_cast<int64_t>(sizeof(E)) % 16 == 0;
}

struct vector_shape {
  unsigned blocks, seats, threads;  // of a row; leaves of a block; of a leaf
  size_t bytes;                     // of a block
};
template <class E, class P, int of_thread>
vector_shape vector_shape_of(const lockstep_queue& queue, const normalized_rows& d) {
  const auto leaves = static_cast<int>(order::leaves(d.length)), lanes = static_cast<int>(order::lanes);
  const int64_t held = std::min(d.length, order::leaf);
  const int threads = std::max(lanes, (static_cast<int>((held - 1) / of_thread + 1) + 31) / 32 * 32);
  // A leaf a block as long as all blocks have an SM of their own.
  const int most = std::min(leaves, vector_threads<E, P, of_thread> / threads);
  const auto blocks_of = [leaves](int seats) { return (leaves - 1) / seats + 1; };
  int seats = queue.facts->early ? 1 : most;
  while (seats < most && d.count * blocks_of(seats) > queue.facts->processors) ++seats;
  const size_t leaf = order::lanes * 8 * (std::is_same_v<P, double> ? 1 : 2) + static_cast<size_t>(held) * sizeof(E);
  return {static_cast<unsigned>(blocks_of(seats)), static_cast<unsigned>(seats), static_cast<unsigned>(threads),
          vector_head + static_cast<size_t>(seats) * leaf};
}

// Whether all blocks run at once: a second round would wait for the first one's latencies.
template <class E, class P, int of_thread>
bool vectors_run_at_once(const lockstep_queue& queue, const normalized_rows& d) {
  const vector_shape shape = vector_shape_of<E, P, of_thread>(queue, d);
  if (shape.blocks > 1 && !queue.facts->early) return false;
  int resident = 0;
  return resident_blocks(queue, normalize_vectors<E, P, of_thread>, static_cast<int>(shape.threads * shape.seats),
                         shape.bytes, &resident) == LOCKSTEP_OK &&
         d.count * shape.blocks <= resident * int64_t{queue.facts->processors};
}

// Elements of a thread, 0: others take the rows.
template <class E, class P>
int suits_vectors(const lockstep_queue& queue, const lockstep_call& call, const normalized_rows& d) {
  constexpr bool layer = !std::is_same_v<P, double>;
  const int64_t leaves = order::leaves(d.length);
  // Pairs are faster for layers of 16 bits that they have shorter code for.
  const int64_t shortest = layer && sizeof(E) == 2 ? order::leaf / 2 : order::lanes;
  if (d.result != call.normalize.dtype || d.f32_weight || d.length <= shortest ||
      d.length % (16 / static_cast<int64_t>(sizeof(E))) != 0 || leaves > vector_leaves ||
      (!layer && d.bias != nullptr) || !aligned_vectors<E>(d.src, d.src_stride) ||
      !aligned_vectors<E>(d.residual, d.residual_stride) || !aligned_vectors<E>(d.dst, d.dst_stride) ||
      !aligned_vectors<E>(d.sum, d.sum_stride) || !aligned_vectors<E>(d.weight, 0) || !aligned_vectors<E>(d.bias, 0))
    return 0;
  if (d.count * leaves * pair_threads <=
          queue.facts->tuned.normalizations.pair_threads * int64_t{queue.facts->processors} &&
      vectors_run_at_once<E, P, vector_elements>(queue, d))
    return vector_elements;
  // Shorter rows would have as many threads, one for each lane, and pairs are as fast as long as all of theirs run.
  if constexpr (sizeof(E) == 2 && !layer) {
    const int64_t pair_rows = queue.facts->tuned.normalizations.pair_threads / (leaves * pair_threads);
    if (d.length > order::lanes * vector_elements && d.count > pair_rows * queue.facts->processors &&
        vectors_run_at_once<E, P, more_elements>(queue, d))
      return more_elements;
  }
  return 0;
}

template <class E, class P, int of_thread>
lockstep_status launch_vectors(lockstep_queue& queue, const normalized_rows& d) {
  const vector_shape shape = vector_shape_of<E, P, of_thread>(queue, d);
  const auto kernel = normalize_vectors<E, P, of_thread>;
  return launch_clusters(queue, "normalize_vectors", kernel, dim3(static_cast<unsigned>(d.count), shape.blocks),
                         dim3(shape.threads, shape.seats), shape.bytes, dim3(1, shape.blocks), d);
}

}  // namespace lockstep::cuda
