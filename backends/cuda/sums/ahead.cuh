// ahead.cuh - elements that a thread holds in registers, 16 bytes of each row of lanes, while its next ones are on
// their way to shared memory.
//
//   terms_of_columns    one block per leaf of neighbouring columns of one array or two, 64 bytes of each row
//   sums_of_few_parts   one thread per sequence: the tree above few leaves
//   sums_of_warp_parts  one warp per sequence: of up to 32. Of more, sums_of_parts of kernels.cuh
//
// Idea    A thread copies what it will hold next into slots of its own: it waits for no other thread, and memory is
//         never idle while others add
// Moves   every element once
// Limit   memory reads; far beyond the L2 pieces of 64 bytes have two thirds of its speed (ahead_yields)
// Watch   a slot is written again as soon as its thread has read it
// Source  lib/bits/order.hpp
#pragma once

#include "../normalize/rows.cuh"
#include "../stencil/async.cuh"
#include "ahead.hpp"
#include "kernels.cuh"

namespace lockstep::cuda {

constexpr int slot_words = order::rows * ahead_threads;  // of 16 bytes, of a block

// A thread's slots, divided into stages of N of 16 bytes each.
template <int N>
struct slots_ahead {
  static constexpr int stages = order::rows / N;
  uint32_t at;
  int stage = 0;

  __device__ explicit slots_ahead(const void* shared)
      : at(stencil::address_of(static_cast<const uint4*>(shared) + threadIdx.x)) {}
  __device__ uint32_t slot(int k) const { return at + static_cast<uint32_t>((stage * N + k) * ahead_threads * 16); }
  __device__ __forceinline__ void start(int k, const void* from, int bytes) const {
    stencil::copy_async_part(slot(k), from, static_cast<uint32_t>(bytes));
  }
  __device__ __forceinline__ void started() {
    stencil::copies_end_group();
    if (++stage == stages) stage = 0;
  }
  // word_of(k): where the words of slot k of the stage that was started first go.
  template <class Words>
  __device__ __forceinline__ void take(const Words& words_of) const {
    stencil::copies_wait_but<stages - 1>();
#pragma unroll
    for (int k = 0; k < N; ++k) {
      uint32_t(&w)[4] = words_of(k).word;
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3])
                   : "r"(slot(k))
                   : "memory");
    }
  }
};

// Keeps the compiler from holding what it has made of these words too.
template <class T, int N, int R>
__device__ __forceinline__ void made_again(few<T, N> (&q)[R]) {
#pragma unroll
  for (few<T, N>& x : q)
#pragma unroll
    for (uint32_t& word : x.word) asm volatile("" : "+r"(word));
}

// A block's columns and the lanes of a leaf of each, which its threads put there. Thread (chunk, l) has lane l of V
// columns.
static_assert(order::lanes * ahead_chunks == ahead_threads);
template <class E>
struct columns_ahead {
  static constexpr int V = 16 / static_cast<int>(sizeof(E)), columns = ahead_chunks * V;
  double lanes[columns][order::lanes + (V == 2 ? 2 : 1)];  // the gap keeps threads of a warp out of one bank

  static __host__ __device__ int64_t groups(const term_sums& d) { return (d.count + columns - 1) / columns; }
  // Of a column, in each thread of a warp.
  __device__ __forceinline__ double joined(int column, int t) const {
    const double* lane = lanes[column];
    double sum = __dadd_rn(__dadd_rn(lane[t], lane[t + 64]), __dadd_rn(lane[t + 32], lane[t + 96]));
#pragma unroll
    for (int mask = 16; mask >= 1; mask /= 2) sum = __dadd_rn(sum, from_xor(sum, mask));
    return sum;
  }
};

// The steps of a block through the leaves of its columns: groups of neighbouring columns, then leaves.
template <class E>
struct column_steps {
  static constexpr int V = columns_ahead<E>::V, C = columns_ahead<E>::columns;
  static constexpr int step_elements = step_rows * order::lanes;
  int chunk = threadIdx.x % ahead_chunks, l = threadIdx.x / ahead_chunks;
  int64_t groups, all;
  int steps;  // of a leaf; of the last one too, where some bring nothing
  int64_t work, first, column;
  int n, step, bytes;

  __device__ column_steps(const term_sums& d, int64_t leaves, int64_t start)
      : groups(columns_ahead<E>::groups(d)),
        all(groups * leaves),
        steps(static_cast<int>(min((d.length + step_elements - 1) / step_elements, order::leaf / step_elements))) {
    go_to(d, start);
  }
  __device__ __forceinline__ void go_to(const term_sums& d, int64_t to) {
    const int64_t leaf = to / groups;
    work = to, first = leaf * order::leaf, column = (to - leaf * groups) * C + chunk * V, step = 0;
    n = work < all ? static_cast<int>(min(d.length - first, order::leaf)) : 0;
    bytes = static_cast<int>(min(d.count - column, int64_t{V})) * static_cast<int>(sizeof(E));
    if (bytes <= 0) n = 0;
  }
  // body(r, element of the sequences) for the rows of this step that are there.
  template <class Body>
  __device__ __forceinline__ void each_row(const term_sums& d, const Body& body) const {
    const int from = step * step_elements + l;
#pragma unroll
    for (int r = 0; r < step_rows; ++r)
      if (from + r * order::lanes < n) body(r, first + from + r * order::lanes);
  }
  __device__ __forceinline__ void advance(const term_sums& d) {
    if (++step == steps) go_to(d, work + gridDim.x);
  }
};

// Fold::by_term<two>(kind, body) gives body what enters an element of each array into a lane.
template <class Fold, class E, bool two>
__global__ __launch_bounds__(ahead_threads, 1) void terms_of_columns(const term_sums d, const int64_t leaves,
                                                                     double* partials) {
  constexpr int V = columns_ahead<E>::V, C = columns_ahead<E>::columns, warps = ahead_threads / 32;
  constexpr int R = step_rows, arrays = two ? 2 : 1;
  extern __shared__ uint4 shared_slots[];
  auto* const rooms = reinterpret_cast<columns_ahead<E>*>(shared_slots + slot_words);
  slots_ahead<R * arrays> slots(shared_slots);
  column_steps<E> next(d, leaves, blockIdx.x);
  const int chunk = next.chunk, l = next.l, t = threadIdx.x % 32, warp = threadIdx.x / 32;
  const auto start = [&] {
    next.each_row(d, [&](int r, int64_t i) {
      slots.start(r, static_cast<const E*>(d.src) + i * d.element_stride + next.column, next.bytes);
      if constexpr (two)
        slots.start(R + r, static_cast<const E*>(d.other) + i * d.other_element_stride + next.column, next.bytes);
    });
    slots.started();
    next.advance(d);
  };
  const int steps = next.steps;
  const int64_t groups = next.groups, all = next.all;
  follow_on();
#pragma unroll 1
  for (int k = 0; k < slots.stages; ++k) start();
  int room = 0;
#pragma unroll 1
  for (int64_t work = blockIdx.x; work < all; work += gridDim.x, room ^= 1) {
    const int64_t leaf = work / groups, column = (work - leaf * groups) * C;
    const int n = static_cast<int>(min(d.length - leaf * order::leaf, order::leaf));
    double lane[V];
#pragma unroll
    for (double& x : lane) x = -0.0;
#pragma unroll 1
    for (int k = 0; k < steps; ++k) {
      const int from = k * R * order::lanes + l;
      few<E, V> q[arrays][R];
      slots.take([&](int i) -> few<E, V>& { return q[i / R][i % R]; });
      start();
      Fold::template by_term<two>(d.kind, [&](const auto& enter) {
#pragma unroll
        for (int r = 0; r < R; ++r)
          if (from + r * order::lanes < n) {
#pragma unroll
            for (int j = 0; j < V; ++j)
              lane[j] = enter(lane[j], value(q[0][r], j), two ? value(q[arrays - 1][r], j) : 0.0);
          }
      });
    }
#pragma unroll
    for (int j = 0; j < V; ++j) rooms[room].lanes[chunk * V + j][l] = lane[j];
    __syncthreads();  // a warp joins a column's lanes of all threads; the next ones go to the other room
#pragma unroll
    for (int c = warp; c < C; c += warps) {
      const double sum = rooms[room].joined(c, t);
      const int64_t s = column + c;
      if (t != 0 || s >= d.count) continue;
      if (leaves == 1)
        Fold::store(d, s, sum, d.length);
      else
        partials[s * leaves + leaf] = sum;
    }
  }
}

// One thread per sequence of few parts, and one warp: of a warp only the first thread has joined in order.
constexpr int few_parts = 8;
template <class Fold>
__global__ __launch_bounds__(sum_threads) void sums_of_few_parts(const term_sums d, const int tasks,
                                                                 const typename Fold::partial* partials) {
  const int64_t s = int64_t{blockIdx.x} * sum_threads + threadIdx.x;
  follow_on();
  if (s >= d.count) return;
  typename Fold::partial value[few_parts];
#pragma unroll
  for (int k = 0; k < few_parts; ++k) value[k] = k < tasks ? partials[s * tasks + k] : Fold::none();
#pragma unroll
  for (int step = 1; step < few_parts; step *= 2)
#pragma unroll
    for (int k = 0; k < few_parts; k += 2 * step) value[k] = Fold::join(value[k], value[k + step]);
  Fold::store(d, s, value[0], d.length);
}
template <class Fold>
__global__ __launch_bounds__(sum_threads) void sums_of_warp_parts(const term_sums d, const int tasks,
                                                                  const typename Fold::partial* partials) {
  const int t = threadIdx.x % 32;
  const int64_t s = (int64_t{blockIdx.x} * sum_threads + threadIdx.x) / 32;
  follow_on();
  if (s >= d.count) return;
  const auto total = join_warp(Fold{}, t < tasks ? partials[s * tasks + t] : Fold::none());
  if (t == 0) Fold::store(d, s, total, d.length);
}

// Of the leaves of sequences, or of chunks of leaves.
template <class Fold>
lockstep_status join_leaves(const lockstep_queue& queue, const term_sums& d, int64_t tasks,
                            const typename Fold::partial* partials) {
  const auto go = [&](const char* name, auto* kernel, int64_t a_block, auto parts) {
    const int64_t blocks = std::min<int64_t>((d.count + a_block - 1) / a_block, INT32_MAX);
    return launch_soon(queue, name, kernel, dim3(static_cast<unsigned>(blocks)), sum_threads, 0, d, parts, partials);
  };
  constexpr int64_t warps = sum_threads / 32;
  if (tasks <= few_parts && d.count >= queue.facts->processors * 8 && d.count <= INT32_MAX)
    return go("sums_of_few_parts", sums_of_few_parts<Fold>, sum_threads, static_cast<int>(tasks));
  if (tasks <= 32 && d.count >= queue.facts->processors && d.count <= INT32_MAX)
    return go("sums_of_warp_parts", sums_of_warp_parts<Fold>, warps, static_cast<int>(tasks));
  return go("sums_of_parts", sums_of_parts<Fold>, 1, tasks);
}

template <class Fold, class E, bool two>
lockstep_status launch_terms_of_columns(lockstep_queue& queue, const term_sums& d, int64_t leaves, double* partials) {
  const auto kernel = terms_of_columns<Fold, E, two>;
  constexpr size_t shared = size_t{16} * slot_words + 2 * sizeof(columns_ahead<E>);
  const lockstep_status status = allow_shared(queue, kernel, shared);
  if (status != LOCKSTEP_OK) return status;
  const int64_t blocks = std::min<int64_t>(columns_ahead<E>::groups(d) * leaves, queue.facts->processors);
  return launch_soon(queue, "terms_of_columns", kernel, dim3(static_cast<unsigned>(blocks)), ahead_threads, shared, d,
                     leaves, partials);
}

}  // namespace lockstep::cuda
