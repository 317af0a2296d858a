// star.cu - `streamed`: 2-D and 3-D stars, planes streamed along the outermost axis.
// Idea    a block walks along z over a tile of xy. Planes with their halos arrive in
//         a ring of shared memory by asynchronous copies, several planes ahead. Each
//         plane is used once and for all: it adds its tap to 2r + 1 outputs whose
//         partial sums wait in registers. An output's chain stays in increasing
//         memory address: z-r..z-1 as those planes pass, then its own plane's y- x-
//         centre x+ y+ from shared memory, then z+1..z+r. Every fma writes the next
//         output's register, so the queue moves without a move.
// Moves   bytes written once, read once and, for the halos of tile and chunk, again
//         from L2: (16 + 2r) / 16 in y, (128 + 2r) / 128 in x (f32, 3-D)
// Limit   device memory if the halos stay in L2; then shared-memory loads: 14 of 16
//         bytes for 8 outputs with r = 4
// Watch   partial sums need compile-time indices; vectors need x, the strides and src
//         aligned to 16 bytes, else elements are copied one by one; planes outside the
//         array are folded like any index
// Source  Micikevicius, "3D finite difference computation on GPUs using CUDA" (2009),
//         for streaming; the order of the sums is this library's
#include <cuda_pipeline_primitives.h>

#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

struct tiles {
  int64_t x, y, chunks, chunk;  // tiles along x and y, chunks along the streamed axis and their length
  int32_t aligned;              // src can be read 16 bytes at a time
};

// The streamed axis is z for rank 3 and y for rank 2; a plane is ROWS_A_THREAD x
// WARPS rows of 32 vectors, for rank 2 one row of WARPS x 32 vectors.
template <class T, int RANK, int R>
struct shape {
  static constexpr int V = 16 / sizeof(T);
  static constexpr int warps = RANK == 3 ? 8 : 4;
  static constexpr int threads = warps * 32;
  static constexpr int rows_a_thread = RANK == 3 && R <= 4 ? 2 : 1;
  static constexpr int tx = RANK == 3 ? 32 * V : threads * V;
  static constexpr int ty = RANK == 3 ? warps * rows_a_thread : 1;
  static constexpr int halo_y = RANK == 3 ? R : 0;
  static constexpr int halo_x = (R + V - 1) / V * V;  // whole vectors
  static constexpr int pitch = tx + 2 * halo_x;
  static constexpr int stages = 4;                    // planes in the ring; 3 and 6 tried
  static constexpr int plane = (ty + 2 * halo_y) * pitch;
  static constexpr int bytes = stages * plane * static_cast<int>(sizeof(T));
};

// Source coordinates of a plane's tile and where it lies.
template <class T>
struct plane_of {
  const T* base;    // element (0, 0) of the source plane; nullptr: CONSTANT's plane
  int64_t x0, y0;   // the tile's first output, as source coordinates
};

// Starts copying vector (row, v) of a tile into the ring; row and v count from the
// halo's corner. What no output needs is left out.
template <class T, int RANK, int R>
__device__ __forceinline__ void copy_vector(const sweep<T>& s, const tiles& cut, const plane_of<T>& p, T* ring, int row, int v) {
  using S = shape<T, RANK, R>;
  T* to = ring + row * S::pitch + v * S::V;
  const int64_t x = p.x0 - S::halo_x + v * S::V;
  int64_t y = p.y0 - S::halo_y + row;
  if (x >= s.n[2] + R || x + S::V <= -R || y >= s.n[1] + S::halo_y) return;
  y = source_index(y, s.n[1], s.boundary);
  const T* from = p.base + y * s.src_stride[1] + x;
  const bool inside = p.base != nullptr && y >= 0;
  if (inside && cut.aligned && x >= 0 && x + S::V <= s.n[2]) {
    __pipeline_memcpy_async(to, from, 16);
    return;
  }
#pragma unroll
  for (int e = 0; e < S::V; ++e) {
    const int64_t j = source_index(x + e, s.n[2], s.boundary);
    if (inside && j >= 0) __pipeline_memcpy_async(to + e, from - x + j, sizeof(T));
    else to[e] = s.value;
  }
}

// Starts copying one plane: the tile, and its halos if outputs of this plane are due.
template <class T, int RANK, int R>
__device__ __forceinline__ void copy_plane(const sweep<T>& s, const tiles& cut, const plane_of<T>& p, T* ring, bool halos) {
  using S = shape<T, RANK, R>;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  constexpr int left = S::halo_x / S::V, sides = 2 * left;
  if constexpr (RANK == 3) {
    const int begin = halos ? 0 : S::halo_y, end = halos ? S::ty + 2 * S::halo_y : S::ty + S::halo_y;
    for (int row = begin + warp; row < end; row += S::warps) copy_vector<T, RANK, R>(s, cut, p, ring, row, left + lane);
  } else {
    copy_vector<T, RANK, R>(s, cut, p, ring, 0, left + threadIdx.x);
  }
  if (halos)
    for (int k = threadIdx.x; k < S::ty * sides; k += S::threads) {
      const int side = k % sides;
      copy_vector<T, RANK, R>(s, cut, p, ring, S::halo_y + k / sides, side < left ? side : S::tx / S::V + side);
    }
}

template <class T>
struct vec {
  static constexpr int V = 16 / sizeof(T);
  T e[V];
  __device__ __forceinline__ static vec of(const T* p) {
    vec v;
    *reinterpret_cast<int4*>(v.e) = *reinterpret_cast<const int4*>(p);
    return v;
  }
};

// R: the radius when EXACT, else its upper bound; then taps beyond the radius are
// skipped by branches that are the same for all threads.
template <class T, int RANK, int R, bool EXACT>
__global__ void __launch_bounds__(shape<T, RANK, R>::threads, RANK == 3 ? 2 : 4)
    stencil_streamed(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps> t,
                     const __grid_constant__ tiles cut) {
  using S = shape<T, RANK, R>;
  constexpr int V = S::V, RY = S::rows_a_thread, first_axis = 3 - RANK;
  extern __shared__ int4 memory[];
  T* const ring = reinterpret_cast<T*>(memory);
  const int radius = EXACT ? R : s.radius, skip = R - radius;
  const auto used = [&](int k) { return EXACT || (k >= skip && k <= R + radius); };  // k: 0 ... 2R along one axis
  // Coefficients of tap k of an axis: the 2r + 1 taps of the streamed axis lie
  // around those of the plane, y's around x's.
  const auto along_z = [&](int k) { return t.c[k < R ? k - skip : k - skip + 2 * radius * (RANK - 1)]; };
  const auto along_y = [&](int k) { return t.c[k < R ? radius + k - skip : k - skip + radius * 3]; };
  const auto along_x = [&](int k) { return t.c[radius * (RANK - 1) + k - skip]; };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int my_x = (RANK == 3 ? lane : threadIdx.x) * V, my_y = RANK == 3 ? warp * RY : 0;
  const T* const own = ring + (my_y + S::halo_y) * S::pitch + S::halo_x + my_x;
  const int64_t n_streamed = s.n[first_axis], out_streamed = s.out[first_axis];
  const int64_t all = s.batch * cut.chunks * cut.y * cut.x;

  for (int64_t id = blockIdx.x; id < all; id += gridDim.x) {
    int64_t tile_x, tile_y = 0, chunk;
    int64_t rest = divide(id, cut.x, tile_x);
    if (RANK == 3) rest = divide(rest, cut.y, tile_y);
    const int64_t b = divide(rest, cut.chunks, chunk);
    const int64_t begin = chunk * cut.chunk, count = min(cut.chunk, out_streamed - begin);
    const int64_t x0 = tile_x * S::tx, y0 = tile_y * S::ty;
    const T* const src = s.src + b * s.src_batch;
    const int steps = static_cast<int>(count) + 2 * R;  // planes begin - R ... begin + count + R - 1

    // Plane `step` of the chunk. Outputs of planes R ... R + count - 1 are due here.
    const auto fetch = [&](int step) {
      const int64_t z = begin + s.origin - R + step;
      if (step < steps && step >= skip && step < steps - skip) {
        const int64_t from = source_index(z, n_streamed, s.boundary);
        const plane_of<T> p{from < 0 ? nullptr : src + from * s.src_stride[first_axis], x0 + s.origin,
                            RANK == 3 ? y0 + s.origin : 0};
        copy_plane<T, RANK, R>(s, cut, p, ring + (step % S::stages) * S::plane, step >= R && step < R + count);
      }
      __pipeline_commit();  // one group a step, empty or not: the wait below counts them
    };
    for (int step = 0; step < S::stages - 1; ++step) fetch(step);

    T part[2 * R][RY][V];  // part[k]: the sum over taps 0 ... k of the output k + 1 planes ahead of its end
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      __pipeline_wait_prior(S::stages - 2);
      // Everybody's copies of this plane have landed, and everybody is done with the
      // plane before it, whose place in the ring the next fetch takes.
      __syncthreads();
      fetch(step + S::stages - 1);
      const T* const mine = own + (step % S::stages) * S::plane;
      vec<T> x[RY];
#pragma unroll
      for (int y = 0; y < RY; ++y) x[y] = vec<T>::of(mine + y * S::pitch);

      // The oldest output gets its last tap and leaves.
      if (step >= 2 * R) {
        const int64_t z = begin + step - 2 * R;
#pragma unroll
        for (int y = 0; y < RY; ++y) {
          T out[V];
#pragma unroll
          for (int v = 0; v < V; ++v)
            out[v] = canonical(used(2 * R) ? fma_rn(along_z(2 * R), x[y].e[v], part[2 * R - 1][y][v]) : part[2 * R - 1][y][v]);
          const int64_t left = s.out[2] - x0 - my_x;
          if (left > 0 && (RANK == 2 || y0 + my_y + y < s.out[1])) {
            T* to = s.dst + b * s.dst_batch + z * s.dst_stride[first_axis] + x0 + my_x;
            if (RANK == 3) to += (y0 + my_y + y) * s.dst_stride[1];
            if (left >= V && reinterpret_cast<uintptr_t>(to) % 16 == 0) {
              *reinterpret_cast<int4*>(to) = *reinterpret_cast<const int4*>(out);
            } else {
#pragma unroll
              for (int v = 0; v < V; ++v)
                if (v < left) to[v] = out[v];
            }
          }
        }
      }
#pragma unroll
      for (int k = 2 * R - 1; k > R; --k)
#pragma unroll
        for (int y = 0; y < RY; ++y)
#pragma unroll
          for (int v = 0; v < V; ++v)
            part[k][y][v] = used(k) ? fma_rn(along_z(k), x[y].e[v], part[k - 1][y][v]) : part[k - 1][y][v];

      if (step >= R && step < R + count) {  // this plane's own outputs: y-, x-, centre, x+, y+
        T (&acc)[RY][V] = part[R];
#pragma unroll
        for (int y = 0; y < RY; ++y)
#pragma unroll
          for (int v = 0; v < V; ++v) acc[y][v] = part[R - 1][y][v];
        if constexpr (RANK == 3) {
#pragma unroll
          for (int row = -R; row < RY - 1; ++row) {
            const vec<T> line = vec<T>::of(mine + row * S::pitch);
#pragma unroll
            for (int y = 0; y < RY; ++y)
              if (row - y >= -R && row - y < 0 && used(row - y + R))
#pragma unroll
                for (int v = 0; v < V; ++v) acc[y][v] = fma_rn(along_y(row - y + R), line.e[v], acc[y][v]);
          }
        }
#pragma unroll
        for (int y = 0; y < RY; ++y) {
          T line[V + 2 * S::halo_x];
#pragma unroll
          for (int k = 0; k < V + 2 * S::halo_x; k += V) {
            const vec<T> piece = k == S::halo_x ? x[y] : vec<T>::of(mine + y * S::pitch - S::halo_x + k);
#pragma unroll
            for (int v = 0; v < V; ++v) line[k + v] = piece.e[v];
          }
#pragma unroll
          for (int k = 0; k < 2 * R + 1; ++k)
            if (used(k))
#pragma unroll
              for (int v = 0; v < V; ++v) acc[y][v] = fma_rn(along_x(k), line[S::halo_x - R + k + v], acc[y][v]);
        }
        if constexpr (RANK == 3) {
#pragma unroll
          for (int row = 1; row < RY + R; ++row) {
            const vec<T> line = vec<T>::of(mine + row * S::pitch);
#pragma unroll
            for (int y = 0; y < RY; ++y)
              if (row - y > 0 && row - y <= R && used(row - y + R))
#pragma unroll
                for (int v = 0; v < V; ++v) acc[y][v] = fma_rn(along_y(row - y + R), line.e[v], acc[y][v]);
          }
        }
      }
#pragma unroll
      for (int k = R - 1; k >= 0; --k)
#pragma unroll
        for (int y = 0; y < RY; ++y)
#pragma unroll
          for (int v = 0; v < V; ++v) {
            const T before = k == 0 || !used(k - 1) ? T(-0.0) : part[k == 0 ? 0 : k - 1][y][v];
            part[k][y][v] = used(k) ? fma_rn(along_z(k), x[y].e[v], before) : T(-0.0);
          }
    }
    __pipeline_wait_prior(0);
    __syncthreads();  // the ring is read to the end before the next tile's planes arrive
  }
}

// Chunks along the streamed axis: as many as fill whole waves of blocks, weighed
// against the 2r planes that each chunk reads again.
int64_t best_chunk(int64_t planes, int64_t tiles_a_plane, int64_t slots, int radius) {
  int64_t best = planes;
  double least = 0;
  for (int64_t chunks = 1; chunks <= planes && chunks <= 256; ++chunks) {
    const int64_t chunk = ceil_div(planes, chunks);
    const double cost = static_cast<double>(ceil_div(tiles_a_plane * ceil_div(planes, chunk), slots)) *
                        (static_cast<double>(chunk) + 1.2 * radius);
    if (chunks == 1 || cost < least) least = cost, best = chunk;
  }
  return std::min<int64_t>(best, 1 << 30);
}

template <class T, int RANK, int R, bool EXACT>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  using S = shape<T, RANK, R>;
  const auto t = rounded<T, most_taps>(call.stencil);
  const auto kernel = stencil_streamed<T, RANK, R, EXACT>;
  if (const lockstep_status status = allow_shared(kernel, S::bytes); status != LOCKSTEP_OK) return status;
  int resident = 1;
  LOCKSTEP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, S::threads, S::bytes));
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    const int streamed = 3 - RANK;
    tiles cut{};
    cut.x = ceil_div(s.out[2], S::tx);
    cut.y = RANK == 3 ? ceil_div(s.out[1], S::ty) : 1;
    cut.chunk = best_chunk(s.out[streamed], cut.x * cut.y * s.batch, int64_t{queue.facts->processors} * std::max(resident, 1), s.radius);
    cut.chunks = ceil_div(s.out[streamed], cut.chunk);
    // x0 + origin must be a multiple of V for every tile: VALID moves the tile's
    // first source element by the radius.
    const auto whole = [](int64_t elements) { return elements % S::V == 0; };
    cut.aligned = reinterpret_cast<uintptr_t>(s.src + s.origin) % 16 == 0 && whole(s.src_stride[1]) &&
                  (RANK == 2 || whole(s.src_stride[0])) && (s.batch == 1 || whole(s.src_batch));
    return launch(queue, "stencil_streamed", kernel, grid_of(s.batch * cut.chunks * cut.y * cut.x), S::threads, S::bytes, s, t, cut);
  });
}

template <class T, int RANK>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.stencil.radius) {
    case 1: return run<T, RANK, 1, true>(queue, call);
    case 2: return run<T, RANK, 2, true>(queue, call);
    case 3: return run<T, RANK, 3, true>(queue, call);
    case 4: return run<T, RANK, 4, true>(queue, call);
    default: return run<T, RANK, 8, false>(queue, call);
  }
}
template <class T>
lockstep_status by_rank(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.rank == 3 ? by_radius<T, 3>(queue, call) : by_radius<T, 2>(queue, call);
}

}  // namespace

lockstep_status launch_streamed(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_rank<float>(queue, call) : by_rank<double>(queue, call);
}

// Planes that fill little of a tile: a thread an output is faster.
int streamed_yields(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  return d.shape[d.rank - 1] < 32 || (d.rank == 3 && d.shape[1] < 8);
}

}  // namespace lockstep::cuda::stencil
