// wide.cu - row C4: a thread computes 16 bytes of outputs from registers; rank 1.
// Idea    a thread loads the aligned 16-byte vectors that cover its window, shifts
//         them into place when src and dst are aligned differently, and stores one
//         vector; neighbours' windows overlap and L1 serves them, so there is no
//         shared memory, no barrier, no halo
// Moves   bytes read + written once; 2r + 1 fma per output: 9 flops per byte for r = 4 f32
// Limit   device memory; the ceiling is the copy
// Watch   windows at a row's ends fold tap by tap; vectors never leave the row, so
//         nothing outside src is read; dst is aligned, src may be off by any element
// Source  ladder row C4
#include "../kernel/resident.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int block = 256;  // of stencil_wide

template <class T>
struct alignas(16) vector_of {
  T e[16 / sizeof(T)];
};
__device__ __forceinline__ vector_of<float> load(const float* p) {
  const float4 v = __ldg(reinterpret_cast<const float4*>(p));
  return {{v.x, v.y, v.z, v.w}};
}
__device__ __forceinline__ vector_of<double> load(const double* p) {
  const double2 v = __ldg(reinterpret_cast<const double2*>(p));
  return {{v.x, v.y}};
}
__device__ __forceinline__ void store(float* p, const float* e) {
  __stcs(reinterpret_cast<float4*>(p), make_float4(e[0], e[1], e[2], e[3]));
}
__device__ __forceinline__ void store(double* p, const double* e) {
  __stcs(reinterpret_cast<double2*>(p), make_double2(e[0], e[1]));
}

// Moves a window down by STEP elements if off has that bit.
template <int STEP, class T, int N>
__device__ __forceinline__ void shift_down(T (&w)[N], int32_t off) {
  if ((off & STEP) == 0) return;
#pragma unroll
  for (int e = 0; e + STEP < N; ++e) w[e] = w[e + STEP];
}

// acc[v] = the canonical result over w[LEFT + v ...], tap by tap for all v at once.
template <int R, bool EXACT, bool FOLD, int LEFT, class T, int N, int V>
__device__ __forceinline__ void weigh(const T (&w)[N], const taps<T, most_taps_1d>& t, int radius, T (&acc)[V]) {
  if constexpr (FOLD) {  // c0 x[0], then c_k (x[-k] + x[+k])
#pragma unroll
    for (int v = 0; v < V; ++v) acc[v] = mul_rn(t.c[radius], w[LEFT + v + R]);
#pragma unroll
    for (int k = 1; k <= R; ++k)
      if (EXACT || k <= radius) {
#pragma unroll
        for (int v = 0; v < V; ++v) acc[v] = fma_rn(t.c[radius + k], w[LEFT + v + R - k] + w[LEFT + v + R + k], acc[v]);
      }
  } else {
#pragma unroll
    for (int v = 0; v < V; ++v) acc[v] = T(-0.0);  // fma(c, x, -0.0) is the rounded product
#pragma unroll
    for (int k = 0; k < 2 * R + 1; ++k)
      if (EXACT || (k >= R - radius && k <= R + radius)) {
#pragma unroll
        for (int v = 0; v < V; ++v) acc[v] = fma_rn(t.c[EXACT ? k : k - (R - radius)], w[LEFT + v + k], acc[v]);
      }
  }
#pragma unroll
  for (int v = 0; v < V; ++v) acc[v] = canonical(acc[v]);
}

// R: the radius when EXACT, else its upper bound; then taps beyond the radius are
// skipped by a branch that is the same for all threads.
// U items a thread: 1 2 4 tried, 0.84 0.74 0.49 of copy.
template <class T, int R, bool EXACT, bool FOLD, int U>
__global__ void __launch_bounds__(block)
    stencil_wide(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps_1d> t,
                 const __grid_constant__ items cut) {
  constexpr int V = 16 / sizeof(T), window = V + 2 * R, vectors = window_vectors(V, R);
  const int radius = EXACT ? R : s.radius;
  const int64_t step = int64_t{block} * U * gridDim.x;
  for (int64_t first = output_of(blockIdx.x, block * U, threadIdx.x); first < cut.total; first += step) {
    T w[U][vectors * V];  // w[e] is the element that tap e - v of output v means
    T* to[U];
    int32_t begin[U], end[U];  // outputs of the item that exist
#pragma unroll
    for (int u = 0; u < U; ++u) {
      const int64_t item = first + u * block;
      begin[u] = end[u] = 0;
      if (item >= cut.total) continue;
      int64_t j = item;
      const int64_t row = cut.a_row == cut.total ? 0 : divide(item, cut.a_row, j);
      const item_at at = locate_item(cut, V, R, row, j, s.out[2], s.n[2], s.origin);
      if (at.i >= s.out[2]) continue;
      const T* from = s.src + row * s.src_batch;
      to[u] = s.dst + row * s.dst_batch + at.i;
      begin[u] = at.begin;
      end[u] = at.end;
      if (at.inside) {
#pragma unroll
        for (int k = 0; k < vectors; ++k) {
          if (vector_is_needed(V, R, k, at.off)) {
            LOCKSTEP_SEEN(read_src, s.src, reinterpret_cast<const vector_of<T>*>(from + vector_at(at, V, k)));
            const vector_of<T> v = load(from + vector_at(at, V, k));
#pragma unroll
            for (int e = 0; e < V; ++e) w[u][k * V + e] = v.e[e];
          }
        }
        shift_down<1>(w[u], at.off);
        if constexpr (V == 4) shift_down<2>(w[u], at.off);
      } else {
#pragma unroll
        for (int e = 0; e < window; ++e)
          if (EXACT || (e >= R - radius && e < V + R + radius))
            w[u][e] = tap(from, 1, at.left + e, s.n[2], s.boundary, s.value);
      }
    }
#pragma unroll
    for (int u = 0; u < U; ++u) {
      T acc[V];
      weigh<R, EXACT, FOLD, 0>(w[u], t, radius, acc);
      if (begin[u] == 0 && end[u] == V) {
        LOCKSTEP_SEEN(write_dst, s.dst, reinterpret_cast<vector_of<T>*>(to[u]));
        store(to[u], acc);
      } else {
#pragma unroll
        for (int v = 0; v < V; ++v)
          if (v >= begin[u] && v < end[u]) {
            LOCKSTEP_SEEN(write_dst, s.dst, &to[u][v]);
            to[u][v] = acc[v];
          }
      }
    }
  }
}

// The same for rows that are long and aligned alike: one vector a thread, no index
// arithmetic to speak of, and few registers, so that an SM is full. Blocks
// at a row's ends fold every tap.
template <class T, int R, bool FOLD, int BLOCK>
__global__ void __launch_bounds__(BLOCK, (R <= 4 ? resident_threads : resident_threads / 2) / BLOCK)
    stencil_wide_aligned(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps_1d> t,
                         int64_t blocks_a_row) {
  constexpr int V = 16 / sizeof(T), H = aligned_halo(R, V);
  const int64_t all = blocks_a_row * s.batch;
  for (int64_t id = blockIdx.x; id < all; id += gridDim.x) {
    int64_t chunk = id;
    const int64_t row = blocks_a_row == all ? 0 : divide(id, blocks_a_row, chunk);
    chunk = aligned_chunk(chunk, blocks_a_row);
    const int64_t begin = chunk * (BLOCK * V);
    const T* const from = s.src + row * s.src_batch + s.origin;
    T* const to = s.dst + row * s.dst_batch;
    if (chunk_is_inside(begin, s.origin, s.n[2], BLOCK * V, H)) {
      const int64_t i = aligned_output(begin, threadIdx.x, V);
      T w[V + 2 * H], acc[V];
      walk_window(V, H, i, [&](int k, int64_t element) {
        LOCKSTEP_SEEN(read_src, s.src, reinterpret_cast<const vector_of<T>*>(from + element));
        const vector_of<T> v = load(from + element);
#pragma unroll
        for (int e = 0; e < V; ++e) w[k + e] = v.e[e];
      });
      weigh<R, true, FOLD, H - R>(w, t, R, acc);
      LOCKSTEP_SEEN(write_dst, s.dst, reinterpret_cast<vector_of<T>*>(to + i));
      store(to + i, acc);
    } else {
      const int64_t end = begin + BLOCK * V < s.out[2] ? begin + BLOCK * V : s.out[2];
      walk_end(begin, end, BLOCK, threadIdx.x, [&](int64_t i) {
        const auto x = [&](int k) { return tap(from - s.origin, 1, i + s.origin + k, s.n[2], s.boundary, s.value); };
        T acc = FOLD ? mul_rn(t.c[R], x(0)) : T(-0.0);
#pragma unroll 1
        for (int k = FOLD ? 1 : -R; k <= R; ++k) acc = fma_rn(t.c[k + R], FOLD ? x(-k) + x(k) : x(k), acc);
        LOCKSTEP_SEEN(write_dst, s.dst, &to[i]);
        to[i] = canonical(acc);
      });
    }
  }
}

template <class T>
items cut_rows(const sweep<T>& s) {
  constexpr int V = 16 / sizeof(T);
  const auto skew = [](const T* p) {
    return static_cast<int32_t>(reinterpret_cast<uintptr_t>(p) / sizeof(T) & (V - 1));
  };
  return stencil::cut_rows(V, s.out[2], s.batch, skew(s.src), skew(s.dst), s.src_batch, s.dst_batch);
}

// Whether whole blocks of vectors fit the rows and every row's outputs and window
// start on 16 bytes.
template <class T>
bool aligned_rows(const sweep<T>& s) {
  constexpr int64_t V = 16 / sizeof(T);
  return s.out[2] >= least_aligned_outputs && reinterpret_cast<uintptr_t>(s.src + s.origin) % 16 == 0 &&
         reinterpret_cast<uintptr_t>(s.dst) % 16 == 0 &&
         (s.batch == 1 || (s.src_batch % V == 0 && s.dst_batch % V == 0));
}

template <class T, int R, bool FOLD, int BLOCK = 128>  // 64 to 1024 tried: 0.79 0.99 0.98 0.95 0.90 of copy
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  // Rows that are short or aligned differently share few kernels: radius bounds 1 2 3 4 8 16.
  constexpr int bound = radius_bound(R);
  const taps<T, most_taps_1d> t = rounded<T, most_taps_1d>(call.stencil);
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    if constexpr (!FOLD || R <= 4) {
      if (aligned_rows(s)) {
        const int64_t blocks_a_row = ceil_div(s.out[2], BLOCK * (16 / int64_t{sizeof(T)}));
        return launch(queue, "stencil_wide_aligned", stencil_wide_aligned<T, R, FOLD, BLOCK>,
                      grid_of(blocks_a_row * s.batch), BLOCK, 0, s, t, blocks_a_row);
      }
    }
    const items cut = cut_rows(s);
    return launch(queue, "stencil_wide", stencil_wide<T, bound, R <= 4, FOLD, 1>, grid_of(ceil_div(cut.total, block)),
                  block, 0, s, t, cut);
  });
}

template <class T, bool FOLD>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.stencil.radius) {
    case 1: return run<T, 1, FOLD>(queue, call);
    case 2: return run<T, 2, FOLD>(queue, call);
    case 3: return run<T, 3, FOLD>(queue, call);
    case 4: return run<T, 4, FOLD>(queue, call);
    case 5: return run<T, 5, FOLD>(queue, call);
    case 6: return run<T, 6, FOLD>(queue, call);
    case 7: return run<T, 7, FOLD>(queue, call);
    case 8: return run<T, 8, FOLD>(queue, call);
    case 9: return run<T, 9, FOLD>(queue, call);
    case 10: return run<T, 10, FOLD>(queue, call);
    case 11: return run<T, 11, FOLD>(queue, call);
    case 12: return run<T, 12, FOLD>(queue, call);
    case 13: return run<T, 13, FOLD>(queue, call);
    case 14: return run<T, 14, FOLD>(queue, call);
    case 15: return run<T, 15, FOLD>(queue, call);
    default: return run<T, 16, FOLD>(queue, call);
  }
}

}  // namespace

lockstep_status launch_wide(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_radius<float, false>(queue, call)
                                            : by_radius<double, false>(queue, call);
}
lockstep_status launch_folded(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_radius<float, true>(queue, call)
                                            : by_radius<double, true>(queue, call);
}

}  // namespace lockstep::cuda::stencil
