// split_rows.cuh - aligned rows of 8 to 128 elements of 4 bytes, a multiple of four, in registers.
//
// Idea    A warp loads eight times 16 bytes per thread, whole rows one after another; L
//         threads hold a row, of fewer than 4 * L elements the last ones nothing. A
//         join's two threads have the two halves of eight rows: each gives away half of
//         its rows and gets the other halves of the rest, so that every step joins whole
//         registers and halves what is left. After log2 L steps a thread holds its own
//         row, whose last two joins need no shuffle.
// Moves   n elements read once; 40 shuffles for the 1,024 elements of a warp (f32, rows of 32)
// Limit   memory: blocks start in the order of the rows, one window runs over src and dst.
//         16 Mi rows of 32: 0.96 of it; tiles staged by the copy engine (staged_rows.cuh) had
//         0.88 (H200, tests/results/tries.md)
// Watch   Which row a thread ends with: its position among L, bits reversed.
// Source  this repository; figures in tests/results/tries.md.
#pragma once

#include <bit>

#include "staged_rows.cuh"

namespace lockstep::cuda {

// The threads t and t ^ mask hold the halves of v[0 .. n-1]: each keeps every second of them, joined.
template <int n, int slots, class Join, class P>
__device__ __forceinline__ void split_halves(const Join& join, P (&v)[split_batches][slots], int t, int mask) {
#pragma unroll
  for (int m = 0; m < n / 2; ++m)
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) v[m][slot] = split_join(join, v[2 * m][slot], v[2 * m + 1][slot], t, mask);
}

// The steps mask, mask / 2, ..., 1 over n values; with one left both threads keep it.
template <int n, int mask, int slots, class Join, class P>
__device__ __forceinline__ void split_down(const Join& join, P (&v)[split_batches][slots], int t) {
  if constexpr (mask > 0 && n > 1) {
    split_halves<n>(join, v, t, mask);
    split_down<n / 2, mask / 2>(join, v, t);
  } else if constexpr (mask > 0) {
#pragma unroll
    for (int slot = 0; slot < slots; ++slot) v[0][slot] = join.join(v[0][slot], from_xor(v[0][slot], mask));
    split_down<n, mask / 2>(join, v, t);
  }
}

template <int L>
__device__ __forceinline__ int reversed(int part) {
  return static_cast<int>(__brev(static_cast<unsigned>(part)) >> (32 - __builtin_ctz(L)));
}

// Rows of more than 2 * L and up to 4 * L elements; src, its pitch and the length in whole 16 bytes.
template <class Fold, int L>
__global__ __launch_bounds__(split_threads) void reduce_split(Fold fold, const sequences all) {
  using T = typename Fold::element;
  using value_of = row_value<Fold>;
  static_assert(sizeof(T) == 4);
  constexpr int n = split_batches, rows = 32 / L, levels = __builtin_ctz(L);
  constexpr int left = levels < 3 ? n >> levels : 1;              // rows a thread ends with
  constexpr int idle = levels > 3 ? (1 << (levels - 3)) - 1 : 0;  // bits of t whose threads end with the same row
  const int t = threadIdx.x % 32, part = t % L;
  const int64_t first = (int64_t{blockIdx.x} * split_threads + threadIdx.x) / 32 * (rows * n);
  if (first >= all.count) return;
  const int here = static_cast<int>(min(int64_t{rows * n}, all.count - first));
  const int end = static_cast<int>(all.length);
  const bool mine = part * 4 < end;
  // Who holds nothing, or no row, loads what another does: under a condition loads wait for each other.
  const T* src = static_cast<const T*>(all.src) + first * all.sequence_stride + min(part * 4, end - 4);
  follow_on();
  T x[n][4];
#pragma unroll
  for (int b = 0; b < n; ++b) load_neighbours<4>(src + min(b * rows + t / L, here - 1) * all.sequence_stride, x[b]);
  const auto put = [&](int m, const typename Fold::partial& value) {
    const int row = (m << levels | reversed<L>(part)) * rows + t / L;
    if ((part & idle) == 0 && row < here) fold.store(value, first + row);
  };
  if constexpr (Fold::ordered) {
    const bool others = (part ^ L / 2) * 4 < end;
    typename Fold::partial v[n][4];
#pragma unroll
    for (int m = 0; m < n / 2; ++m)  // elements travel, not what they widen to
#pragma unroll
      for (int slot = 0; slot < 4; ++slot) {
        const bool upper = (part & L / 2) != 0;
        const T even = x[2 * m][slot],
                odd = x[2 * m + 1][slot];  // values: a choice of addresses puts x in local memory
        auto own = fold.empty_lane(), other = fold.empty_lane();
        fold.take_if(own, upper ? odd : even, 0, mine);
        fold.take_if(other, from_xor(upper ? even : odd, L / 2), 0, others);
        v[m][slot] = fold.join(own, other);
      }
    split_down<n / 2, L / 4>(fold, v, part);
#pragma unroll
    for (int m = 0; m < left; ++m) put(m, fold.join(fold.join(v[m][0], v[m][2]), fold.join(v[m][1], v[m][3])));
  } else {
    typename value_of::type v[n][1];
#pragma unroll
    for (int b = 0; b < n; ++b) {
      typename Fold::lane lane = fold.empty_lane();
      take_group<4>(
          fold, lane, x[b], 0, [&](int k) { return part * 4 + k; }, INT_MAX);
      v[b][0] = value_of::of(fold, mine || is_extreme<Fold> ? lane : fold.empty_lane());
    }
    split_down<n, L / 2>(value_of::joins(fold), v, part);
#pragma unroll
    for (int m = 0; m < left; ++m) put(m, value_of::partial(fold, v[m][0]));
  }
}

struct by_split_rows : way {
  static const char* refuses(const lockstep_queue&, const lockstep_call& call) {
    const lockstep_reduce_desc& d = call.reduce;
    if (element_bytes(d) != 4) return "needs elements of 4 bytes";
    if (const char* why = not_rows(d); why != nullptr) return why;
    if (d.length % 4 != 0 || d.length < 8 || d.length > 128) return "needs rows of 8 to 128 elements, a multiple of 4";
    const bool aligned = d.sequence_stride % 4 == 0 && reinterpret_cast<uintptr_t>(call.src) % 16 == 0;
    return aligned ? nullptr : "needs rows that begin at multiples of 16 bytes";
  }
  // Of fewer rows its blocks are too few for a chip.
  static bool yields(const lockstep_queue& queue, const lockstep_call& call) {
    return call.reduce.count < queue.facts->tuned.reductions.rows_from / call.reduce.length;
  }
  template <class Fold>
  static constexpr bool takes = sizeof(typename Fold::element) == 4;

  template <int L, class Fold>
  static lockstep_status run_by(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    return launch_soon(queue, "reduce_split", reduce_split<Fold, L>,
                       blocks_for(call.reduce.count, split_threads / L * split_batches), split_threads, 0, fold,
                       sequences_of(call));
  }
  template <class Fold>
  static lockstep_status run(lockstep_queue& queue, const lockstep_call& call, const Fold& fold) {
    switch (std::bit_ceil(static_cast<uint64_t>(call.reduce.length) / 4)) {
      case 2: return run_by<2>(queue, call, fold);
      case 4: return run_by<4>(queue, call, fold);
      case 8: return run_by<8>(queue, call, fold);
      case 16: return run_by<16>(queue, call, fold);
      default: return run_by<32>(queue, call, fold);
    }
  }
};

}  // namespace lockstep::cuda
