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
// Limit   0.71 of copy (512 cubed, r = 4, f32): DRAM traffic is the copy's, but one
//         block of 16 warps per SM, all its registers, cannot hide shared
//         memory's latency, the copies' and the barrier's (issue slots 0.65 used)
// Watch   partial sums need compile-time indices; the copies' addresses are worked out
//         once per tile: doing it once per plane took as many instructions as the sums
//         (0.50 of copy); src off 16-byte alignment is copied element by element; a tile's
//         ragged end can be wider than the lanes left over
// Tuned   3-D f32 r = 4, 512 / 1000 cubed: 8 warps x 2 blocks 0.64 / 0.53, 12 x 1 0.62 / 0.59,
//         16 x 1 0.71 / 0.63, 8 x 1 with 4 rows a thread 0.62 / 0.56; stages 3 4 5: 0.69 0.71 0.71; f64 gains by 8 x 2
//         but for r = 5 and 6
// Source  Micikevicius, "3D finite difference computation on GPUs using CUDA" (2009),
//         for streaming; the order of the sums is this library's
#include <algorithm>

#include "async.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

struct tiles {
  int64_t x, y, chunks, chunk;   // tiles along x and y, chunks along the streamed axis and their length
  int32_t aligned, dst_aligned;  // src can be read, dst written 16 bytes at a time
};

// The streamed axis is z for rank 3 and y for rank 2; a plane is ROWS_A_THREAD x
// WARPS rows of 32 vectors, for rank 2 one row of WARPS x 32 vectors.
template <class T, int RANK, int R>
struct shape {
  static constexpr int V = 16 / sizeof(T);
  static constexpr int warps = RANK == 2 ? 4 : R <= 2 || (sizeof(T) == 8 && (R <= 4 || R >= 7)) ? 8 : 16;
  static constexpr int threads = warps * 32;
  static constexpr int rows_a_thread = RANK == 3 && R <= 4 ? 2 : 1;
  static constexpr int tx = RANK == 3 ? 32 * V : threads * V;
  static constexpr int ty = RANK == 3 ? warps * rows_a_thread : 1;
  static constexpr int halo_y = RANK == 3 ? R : 0;
  static constexpr int halo_x = (R + V - 1) / V * V;  // whole vectors
  static constexpr int pitch = tx + 2 * halo_x;
  static constexpr int stages = 4;  // planes in the ring
  static constexpr int plane = (ty + 2 * halo_y) * pitch;
  static constexpr int bytes = stages * plane * static_cast<int>(sizeof(T));
};

// What one thread copies of every plane. The rows of the tile go round the warps, a
// vector a lane (element by element where src is off 16 bytes or the array ends within
// a vector); the halos left and right, where an index may fold, are at most one vector
// (tiles off the edge) or one element (tiles at it) a thread.
template <class T, int RANK, int R>
struct feeder {
  using S = shape<T, RANK, R>;
  static constexpr int rows = S::ty + 2 * S::halo_y;
  static constexpr int B = sizeof(T);
  static constexpr int64_t value = -1, nothing = -2;  // in place of an offset
  int64_t x;                                          // source coordinate of this thread's first element in each row
  int64_t side_from;          // offset in the plane of this thread's piece of a side, or value or nothing
  uint32_t side_to, easy_to;  // in bytes: its place in the ring's plane, and the first vector's of an easy tile
  int64_t easy_from;          // offset in the plane of this thread's first vector, for easy tiles
  int32_t span, width;        // elements of a row that are the tile's own, and those of them in whole vectors
  bool side_vector;
  bool easy;  // whole vectors and rows inside the array: no table, no test

  // Also writes row_at[rows]: the offset of each row in a plane, or value or nothing.
  __device__ feeder(const sweep<T>& s, const tiles& cut, int64_t x0, int64_t y0, int64_t* row_at) {
    const int thread = threadIdx.x;
    x = x0 + (RANK == 3 ? thread % 32 : thread) * S::V;
    const int64_t left = s.n[2] - x0;
    span = static_cast<int32_t>(left < S::tx ? left : S::tx);
    width = cut.aligned ? span / S::V * S::V : 0;
    easy = width == S::tx && y0 >= S::halo_y && (RANK == 2 || y0 + S::ty + S::halo_y <= s.n[1]);
    easy_from = (RANK == 3 ? (y0 - S::halo_y + thread / 32) * s.src_stride[1] : 0) + x;
    easy_to = ((RANK == 3 ? thread / 32 : 0) * S::pitch + S::halo_x + (RANK == 3 ? thread % 32 : thread) * S::V) * B;
    const auto row_offset = [&](int row) {
      const int64_t y = y0 - S::halo_y + row;
      if (RANK == 2) return int64_t{0};
      if (y >= s.n[1] + R) return nothing;
      const int64_t from = source_index(y, s.n[1], s.boundary);
      return from >= 0 ? from * s.src_stride[1] : s.boundary == LOCKSTEP_BOUNDARY_VALID ? nothing : value;
    };
    for (int row = thread; row < rows; row += S::threads) row_at[row] = row_offset(row);
    side_vector = cut.aligned && x0 >= S::halo_x && left >= S::tx + S::halo_x;
    const int unit = side_vector ? S::V : 1;
    const int a_row = 2 * S::halo_x / unit;
    const int row = S::halo_y + thread / a_row, e = thread % a_row * unit;
    static_assert(S::ty * 2 * S::halo_x <= S::threads, "one piece of a side a thread");
    side_from = nothing;
    side_to = 0;
    if (row >= S::halo_y + S::ty) return;
    const int64_t at = e < S::halo_x ? e - S::halo_x : span + e - S::halo_x;  // counted from the tile's first element
    const int64_t line = row_offset(row);
    if (line == nothing) return;
    const int64_t j = source_index(x0 + at, s.n[2], s.boundary);
    side_from = j >= 0 && line >= 0 ? line + j : s.boundary == LOCKSTEP_BOUNDARY_VALID ? nothing : value;
    side_to = static_cast<uint32_t>(row * S::pitch + S::halo_x + at) * B;
  }

  // Starts copying one plane into the ring, with its halos if outputs are due there.
  // plane nullptr: beyond the array under CONSTANT.
  __device__ __forceinline__ void copy(const sweep<T>& s, const tiles& cut, const T* plane, uint32_t ring,
                                       const int64_t* row_at, bool halos) const {
    const int lane = RANK == 3 ? threadIdx.x % 32 : threadIdx.x, warp = RANK == 3 ? threadIdx.x / 32 : 0;
    constexpr int step = RANK == 3 ? S::warps : 1;
    const int begin = halos ? 0 : S::halo_y, end = rows - begin;
    if (easy && plane != nullptr) {
      const T* from = plane + easy_from + (RANK == 3 ? begin * s.src_stride[1] : 0);
      uint32_t to = ring + easy_to + begin * S::pitch * B;
#pragma unroll
      for (int k = 0; k < (rows + step - 1) / step; ++k) {
        if (begin + warp + k * step < end) copy_async<16>(to, from);
        from += step * s.src_stride[1];
        to += step * S::pitch * B;
      }
    } else {
#pragma unroll 1
      for (int row = begin + warp; row < end; row += step) {
        const int64_t at = plane != nullptr ? row_at[row] : value;
        const uint32_t to = ring + (row * S::pitch + S::halo_x) * B;
        if (at >= 0) {
          if (lane * S::V < width) copy_async<16>(to + lane * 16, plane + at + x);
#pragma unroll 1
          for (int e = width + lane; e < span; e += S::tx / S::V)
            copy_async<B>(to + e * B, plane + at + x + (e - lane * S::V));
        } else if (at == value) {
#pragma unroll 1
          for (int e = lane; e < span; e += S::tx / S::V) store_shared(to + e * B, s.value);
        }
      }
    }
    if (!halos || side_from == nothing) return;
    if (side_from == value)
      store_shared(ring + side_to, s.value);
    else if (side_vector)
      copy_async<16>(ring + side_to, plane + side_from);
    else
      copy_async<B>(ring + side_to, plane + side_from);
  }
};

template <class T>
struct vec {
  static constexpr int V = 16 / sizeof(T);
  T e[V];
  __device__ __forceinline__ static vec of(uint32_t shared) {
    vec v;
    load_shared(v.e, shared);
    return v;
  }
};

template <class T, int RANK, int R>
__global__ void __launch_bounds__(shape<T, RANK, R>::threads, RANK == 2                       ? 4
                                                              : R == 1                        ? 3
                                                              : shape<T, RANK, R>::warps == 8 ? 2
                                                                                              : 1)
    stencil_streamed(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps> t,
                     const __grid_constant__ tiles cut) {
  using S = shape<T, RANK, R>;
  constexpr int V = S::V, RY = S::rows_a_thread, first_axis = 3 - RANK;
  extern __shared__ int4 memory[];
  __shared__ int64_t row_at[feeder<T, RANK, R>::rows];
  const uint32_t ring = address_of(memory);
  constexpr uint32_t plane_bytes = S::plane * sizeof(T), row_bytes = S::pitch * sizeof(T);
  // Coefficient of tap k = 0 ... 2R of an axis: the taps of the streamed axis lie
  // around those of the plane, y's around x's.
  const auto along_z = [&](int k) { return t.c[k < R ? k : k + 2 * R * (RANK - 1)]; };
  const auto along_y = [&](int k) { return t.c[k < R ? R + k : 3 * R + k]; };
  const auto along_x = [&](int k) { return t.c[R * (RANK - 1) + k]; };

  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int my_x = (RANK == 3 ? lane : threadIdx.x) * V, my_y = RANK == 3 ? warp * RY : 0;
  const uint32_t own = ring + (my_y + S::halo_y) * row_bytes + (S::halo_x + my_x) * sizeof(T);
  const int64_t n_streamed = s.n[first_axis], out_streamed = s.out[first_axis];
  const int64_t all = s.batch * cut.chunks * cut.y * cut.x;

  follow_on();
  for (int64_t id = blockIdx.x; id < all; id += gridDim.x) {
    int64_t tile_x, tile_y = 0, chunk;
    int64_t rest = divide(id, cut.x, tile_x);
    if (RANK == 3) rest = divide(rest, cut.y, tile_y);
    const int64_t b = divide(rest, cut.chunks, chunk);
    const int64_t begin = chunk * cut.chunk, count = min(cut.chunk, out_streamed - begin);
    const int64_t x0 = tile_x * S::tx, y0 = tile_y * S::ty;
    const T* const src = s.src + b * s.src_batch;
    const int steps = static_cast<int>(count) + 2 * R;  // planes begin - R ... begin + count + R - 1

    const feeder<T, RANK, R> feed(s, cut, x0 + s.origin, y0 + (RANK == 3 ? s.origin : 0), row_at);
    __syncthreads();  // row_at is complete before any thread copies a row
    // Plane `step` of the chunk. Outputs of planes R ... R + count - 1 are due here.
    const auto fetch = [&](int step) {
      if (step < steps) {
        const int64_t z = source_index(begin + s.origin - R + step, n_streamed, s.boundary);
        feed.copy(s, cut, z < 0 ? nullptr : src + z * s.src_stride[first_axis], ring + (step % S::stages) * plane_bytes,
                  row_at, step >= R && step < R + count);
      }
      copies_end_group();  // one group a step, empty or not: the wait below counts them
    };
    for (int step = 0; step < S::stages - 1; ++step) fetch(step);

    const int64_t left = s.out[2] - x0 - my_x;  // outputs of this thread that exist: in x, and rows of them
    const int rows_due = left <= 0   ? 0
                         : RANK == 2 ? 1
                                     : static_cast<int>(min(int64_t{RY}, max(int64_t{0}, s.out[1] - y0 - my_y)));
    const bool whole = left >= V && cut.dst_aligned;
    T* to = s.dst + b * s.dst_batch + begin * s.dst_stride[first_axis] + x0 + my_x;
    if (RANK == 3) to += (y0 + my_y) * s.dst_stride[1];

    T part[2 * R][RY][V];  // part[k]: the sum over taps 0 ... k of the output k + 1 planes ahead of its end
#pragma unroll 1
    for (int step = 0; step < steps; ++step) {
      copies_wait_but<S::stages - 2>();
      // Everybody's copies of this plane have landed, and everybody is done with the
      // plane before it, whose place in the ring the next fetch takes.
      __syncthreads();
      fetch(step + S::stages - 1);
      const uint32_t mine = own + (step % S::stages) * plane_bytes;
      vec<T> x[RY];
#pragma unroll
      for (int y = 0; y < RY; ++y) x[y] = vec<T>::of(mine + y * row_bytes);

      // The oldest output gets its last tap and leaves.
      if (step >= 2 * R) {
#pragma unroll
        for (int y = 0; y < RY; ++y) {
          T out[V];
#pragma unroll
          for (int v = 0; v < V; ++v) out[v] = canonical(fma_rn(along_z(2 * R), x[y].e[v], part[2 * R - 1][y][v]));
          if (y >= rows_due) continue;
          T* const at = to + (RANK == 3 ? y * s.dst_stride[1] : 0);
          if (whole) {
            *reinterpret_cast<int4*>(at) = *reinterpret_cast<const int4*>(out);
          } else {
#pragma unroll
            for (int v = 0; v < V; ++v)
              if (v < left) at[v] = out[v];
          }
        }
        to += s.dst_stride[first_axis];
      }
      // From here to the end of the step there is no branch: loads move up among the
      // sums. Planes before and after the chunk's own compute an output nobody takes.
#pragma unroll
      for (int k = 2 * R - 1; k > R; --k)
#pragma unroll
        for (int y = 0; y < RY; ++y)
#pragma unroll
          for (int v = 0; v < V; ++v) part[k][y][v] = fma_rn(along_z(k), x[y].e[v], part[k - 1][y][v]);

      T(&acc)[RY][V] = part[R];  // this plane's own outputs: y-, x-, centre, x+, y+
#pragma unroll
      for (int y = 0; y < RY; ++y)
#pragma unroll
        for (int v = 0; v < V; ++v) acc[y][v] = part[R - 1][y][v];
      // Row `row` of the plane, counted from this thread's first, for all rows it is a tap of.
      const auto add_row = [&](int row, bool before) {
        const vec<T> line = row >= 0 && row < RY ? x[row] : vec<T>::of(mine + row * row_bytes);
#pragma unroll
        for (int y = 0; y < RY; ++y) {
          const int k = row - y;
          if (before ? k >= -R && k < 0 : k > 0 && k <= R)
#pragma unroll
            for (int v = 0; v < V; ++v) acc[y][v] = fma_rn(along_y(k + R), line.e[v], acc[y][v]);
        }
      };
      if constexpr (RANK == 3) {
#pragma unroll
        for (int row = -R; row < RY - 1; ++row) add_row(row, true);
      }
#pragma unroll
      for (int y = 0; y < RY; ++y) {
        T line[V + 2 * S::halo_x];
#pragma unroll
        for (int k = 0; k < V + 2 * S::halo_x; k += V) {
          const vec<T> piece =
              k == S::halo_x ? x[y] : vec<T>::of(mine + y * row_bytes + (k - S::halo_x) * static_cast<int>(sizeof(T)));
#pragma unroll
          for (int v = 0; v < V; ++v) line[k + v] = piece.e[v];
        }
#pragma unroll
        for (int k = 0; k < 2 * R + 1; ++k)
#pragma unroll
          for (int v = 0; v < V; ++v) acc[y][v] = fma_rn(along_x(k), line[S::halo_x - R + k + v], acc[y][v]);
      }
      if constexpr (RANK == 3) {
#pragma unroll
        for (int row = 1; row < RY + R; ++row) add_row(row, false);
      }
#pragma unroll
      for (int k = R - 1; k >= 0; --k)
#pragma unroll
        for (int y = 0; y < RY; ++y)
#pragma unroll
          for (int v = 0; v < V; ++v)  // fma(c, x, -0.0) is the rounded product
            part[k][y][v] = fma_rn(along_z(k), x[y].e[v], k == 0 ? T(-0.0) : part[k == 0 ? 0 : k - 1][y][v]);
    }
    copies_wait_but<0>();
    __syncthreads();  // the ring is read to the end before the next tile's planes arrive
  }
}

template <class T, int RANK, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  using S = shape<T, RANK, R>;
  const auto t = rounded<T, most_taps>(call.stencil);
  const auto kernel = stencil_streamed<T, RANK, R>;
  if (const lockstep_status status = allow_shared(queue, kernel, S::bytes); status != LOCKSTEP_OK) return status;
  int resident = 1;
  if (const lockstep_status status = resident_blocks(queue, kernel, S::threads, S::bytes, &resident);
      status != LOCKSTEP_OK)
    return status;
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    const int streamed = 3 - RANK;
    tiles cut{};
    cut.x = ceil_div(s.out[2], S::tx);
    cut.y = RANK == 3 ? ceil_div(s.out[1], S::ty) : 1;
    const stencil_tuning& tuned = queue.facts->tuned.stencils;
    cut.chunk =
        best_chunk(s.out[streamed], cut.x * cut.y * s.batch, int64_t{queue.facts->processors} * std::max(resident, 1),
                   tuned.streamed_chunks, tuned.streamed_halo * s.radius);
    cut.chunks = ceil_div(s.out[streamed], cut.chunk);
    const auto aligned = [&](const T* first, const int64_t* strides, int64_t batch_stride) {
      const auto whole = [](int64_t elements) { return elements % S::V == 0; };
      return reinterpret_cast<uintptr_t>(first) % 16 == 0 && whole(strides[1]) && (RANK == 2 || whole(strides[0])) &&
             (s.batch == 1 || whole(batch_stride));
    };
    cut.aligned = aligned(s.src + s.origin, s.src_stride, s.src_batch);  // VALID starts a radius further on
    cut.dst_aligned = aligned(s.dst, s.dst_stride, s.dst_batch);
    return launch_soon(queue, "stencil_streamed", kernel, grid_of(s.batch * cut.chunks * cut.y * cut.x), S::threads,
                       S::bytes, s, t, cut);
  });
}

template <class T, int RANK>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.stencil.radius) {
    case 1: return run<T, RANK, 1>(queue, call);
    case 2: return run<T, RANK, 2>(queue, call);
    case 3: return run<T, RANK, 3>(queue, call);
    case 4: return run<T, RANK, 4>(queue, call);
    case 5: return run<T, RANK, 5>(queue, call);
    case 6: return run<T, RANK, 6>(queue, call);
    case 7: return run<T, RANK, 7>(queue, call);
    default: return run<T, RANK, 8>(queue, call);
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

const char* streamed_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->stencil.rank == 1) return "is for rank 2 and 3";
  constexpr int most = std::max(shape<float, 3, 4>::bytes, shape<double, 3, 4>::bytes);
  return queue->facts->shared_bytes < most ? "needs 92 KiB of shared memory a block" : nullptr;
}

double streamed_cost(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const stencil_tuning& tuned = queue.facts->tuned.stencils;
  const bool wide = d.dtype == LOCKSTEP_F64;
  const int r = d.radius;
  // As in shape.
  const int64_t tile_x = wide ? 64 : 128;
  const int64_t tile_y = (r <= 2 || (wide && (r <= 4 || r >= 7)) ? 8 : 16) * (r <= 4 ? 2 : 1);
  const int64_t room =
      d.batch * d.shape[0] * (ceil_div(d.shape[1], tile_y) * tile_y) * (ceil_div(d.shape[2], tile_x) * tile_x);
  return tuned.streamed_start + static_cast<double>(room) / 1e6 * (tuned.streamed_million + tuned.streamed_radius * r) *
                                    (wide ? 2 : 1) * (ragged_rows(d) ? tuned.streamed_ragged : 1) *
                                    measured_processors / queue.facts->processors;
}

// Planes that fill little of a tile: one thread per output is faster.
int streamed_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  const lockstep_stencil_desc& d = call->stencil;
  return d.shape[d.rank - 1] < tuned.streamed_x || (d.rank == 3 && d.shape[1] < tuned.streamed_y);
}

}  // namespace lockstep::cuda::stencil
