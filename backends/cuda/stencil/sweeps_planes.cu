// sweeps_planes.cu - row sweeps_planes: several sweeps of a cube in one pass over memory; rank 3, radius 1.
// Idea    a block streams along z over a tile of xy, a thread 4 rows of 16 bytes. A plane that arrives adds its taps to
//         three planes of the first sweep, whose partial sums wait in registers; the plane that this ends arrives at
//         the second sweep a step later. Columns of a neighbouring lane come by shuffles, rows of a neighbouring warp
//         through shared memory, for all sweeps at one barrier a step.
// Moves   each element in once and out once a pass; tiles overlap by twice the sweeps, chunks of planes by as much; 7
// fma
//         a point and sweep
// Limit   latency: one block per SM waits at a barrier a plane, and the faces' boxes take their share; 512
// cubed
//         in f64 is 1.3 times as fast as single sweeps, in f32 no faster
// Watch   a boundary folds in every sweep, not once before the first: boxes in shared memory take the results near the
//         cube's faces. WRAP continues the cube with the same chain of operations and VALID ends it.
// Source  order.hpp; star.cu for the queue of partial sums; Zhang et al., EBISU, ICS 2023: few blocks, deep in
// registers
#include "../index/sweeps_cube.hpp"
#include "async.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int warps = 8, block = 32 * warps;
constexpr int rows = 4;             // of a thread
constexpr int stages = 4;           // planes of a tile in shared memory, on their way or in use
constexpr int row_bytes = 32 * 16;  // of a tile
constexpr int tile_y = warps * rows;
constexpr int ring_bytes = stages * tile_y * row_bytes;
constexpr int most_depth = 3;  // sweeps of a pass: registers end there

template <class T>
constexpr int vector = 16 / static_cast<int>(sizeof(T));
template <class T>
constexpr int tile_x = 32 * vector<T>;
// A warp's first and last row of each sweep, twice.
constexpr int edge_bytes(int depth) { return 2 * depth * warps * 2 * row_bytes; }
constexpr int shared_bytes(int depth) { return ring_bytes + edge_bytes(depth); }
// Elements of a box in shared memory, of which there are two.
template <class T, int D>
constexpr int box_room = shared_bytes(D) / 2 / static_cast<int>(sizeof(T));

struct alignments {
  int32_t src, dst;  // tiles' rows start on 16 bytes
};

template <class T, int D>
__device__ __forceinline__ void sweep_column(const sweep<T>& s, const taps<T, 7>& t, const cut_cube& cut,
                                             const alignments& aligned, int64_t cube, int64_t number, uint32_t shared) {
  constexpr int V = vector<T>, B = sizeof(T);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t nz = s.n[0], ny = s.n[1], nx = s.n[2];
  int64_t tile_at_x, tile_at_y;
  const int64_t chunk = divide(divide(number, cut.tiles[1], tile_at_x), cut.tiles[0], tile_at_y);
  const int64_t begin_x = cut.inner.from[2] + tile_at_x * (tile_x<T> - 2 * cut.halo[2]) - cut.halo[2];
  const int64_t begin_y = cut.inner.from[1] + tile_at_y * (tile_y - 2 * cut.halo[1]) - cut.halo[1];
  const int64_t z0 = cut.inner.from[0] + chunk * cut.chunk;
  const int count = static_cast<int>(cut.inner.to[0] - z0 < cut.chunk ? cut.inner.to[0] - z0 : cut.chunk);
  const int my_y = warp * rows, my_x = lane * V;
  // Vectors that begin within a row: of the last one, what the row has.
  const bool wraps = s.boundary == LOCKSTEP_BOUNDARY_WRAP;
  const bool by_vectors = aligned.src != 0 && ((begin_x >= 0 && begin_x + tile_x<T> <= nx) ||
                                               (begin_x % V == 0 && (!wraps || nx % V == 0)));
  const auto wrapped = [](int64_t i, int64_t n) { return i < 0 ? n - 1 - (-i - 1) % n : i % n; };
  int64_t from_row[rows];  // in a plane of src
  uint32_t bytes[rows];
#pragma unroll
  for (int r = 0; r < rows; ++r) {
    const int64_t y = wraps ? wrapped(begin_y + my_y + r, ny) : begin_y + my_y + r;
    const int64_t x = wraps ? wrapped(begin_x + my_x, nx) : begin_x + my_x;
    const bool outside = y < 0 || y >= ny || x < 0 || x >= nx;
    from_row[r] = outside ? 0 : y * s.src_stride[1] + x;
    bytes[r] = outside ? 0 : nx - x < V ? static_cast<uint32_t>(nx - x) * B : 16;
  }
  const int planes = count + 2 * D;

  // Starts copying the next plane into the ring, each thread its own part of it.
  int64_t arriving = z0 - D;
  if (arriving < 0) arriving = nz - 1 - (-arriving - 1) % nz;
  const T* const src = s.src + cube * s.src_batch;
  const uint32_t mine = shared + threadIdx.x * 16;
  const auto fetch = [&](int plane) {
    if (plane < planes) {
      const T* const from = src + arriving * s.src_stride[0];
      const uint32_t to = mine + plane % stages * (tile_y * row_bytes);
      if (by_vectors) {
#pragma unroll
        for (int r = 0; r < rows; ++r) copy_async_part(to + r * block * 16, from + from_row[r], bytes[r]);
      } else {
#pragma unroll 1
        for (int e = 0; e < rows * V; ++e) {
          const int r = e / V, v = e % V;
          const uint32_t place = to + r * block * 16 + v * B;
          const int64_t y = wraps ? wrapped(begin_y + my_y + r, ny) : begin_y + my_y + r;
          const int64_t x = wraps ? wrapped(begin_x + my_x + v, nx) : begin_x + my_x + v;
          if (y >= 0 && y < ny && x >= 0 && x < nx)
            copy_async<B>(place, from + y * s.src_stride[1] + x);
          else
            store_shared(place, T(0));
        }
      }
      if (++arriving == nz) arriving = 0;
    }
    copies_end_group();  // one group a plane, empty or not: the wait below counts them
  };
  const auto arrived = [&](int plane, T(&x)[rows][V]) {
#pragma unroll
    for (int r = 0; r < rows; ++r) load_shared(x[r], mine + plane % stages * (tile_y * row_bytes) + r * block * 16);
  };
  for (int plane = 0; plane < stages - 1; ++plane) fetch(plane);

  T x[D][rows][V];        // the plane that is about to arrive at each sweep
  T part[D][2][rows][V];  // sums over the taps of the plane before, and of that and the one after
#pragma unroll
  for (int d = 0; d < D; ++d)
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v) x[d][r][v] = part[d][0][r][v] = part[d][1][r][v] = T(0);

  // Where a warp's first or last row of a sweep lies for the other warps; `turn` alternates.
  const uint32_t edges = shared + ring_bytes + lane * 16;
  const auto edge = [&](int turn, int d, int of_warp, int last) {
    return edges + (((turn * D + d) * warps + of_warp) * 2 + last) * row_bytes;
  };
  const auto show = [&](int turn) {
#pragma unroll
    for (int d = 0; d < D; ++d) {
      store_vector(edge(turn, d, warp, 0), x[d][0]);
      store_vector(edge(turn, d, warp, 1), x[d][rows - 1]);
    }
  };
  const int above = warp > 0 ? warp - 1 : warp, below = warp < warps - 1 ? warp + 1 : warp;  // stale at the tile's ends

  copies_wait_but<stages - 2>();
  arrived(0, x[0]);
  fetch(stages - 1);
  show(0);

  const int64_t last_x =
      cut.inner.to[2] - begin_x < tile_x<T> - cut.halo[2] ? cut.inner.to[2] - begin_x : tile_x<T> - cut.halo[2];
  const int64_t last_y =
      cut.inner.to[1] - begin_y < tile_y - cut.halo[1] ? cut.inner.to[1] - begin_y : tile_y - cut.halo[1];
  T* to = s.dst + cube * s.dst_batch + (z0 - s.origin) * s.dst_stride[0] +
          (begin_y + my_y - s.origin) * s.dst_stride[1] + (begin_x + my_x - s.origin);
  // Sweep d takes plane step - 2 d; the last sweep's first result is that of step 3 D - 1.
  const int steps = planes + D - 1;
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    const int turn = step % 2;
    __syncthreads();  // all warps' rows of this step are there; those of the last one have been read
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
      T up[V], down[V];
      load_shared(up, edge(turn, d, above, 1));
      load_shared(down, edge(turn, d, below, 0));
      T done[rows][V];
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        T w[V + 2];
        w[0] = __shfl_up_sync(~0u, x[d][r][V - 1], 1);
        w[V + 1] = __shfl_down_sync(~0u, x[d][r][0], 1);
#pragma unroll
        for (int v = 0; v < V; ++v) w[1 + v] = x[d][r][v];
#pragma unroll
        for (int v = 0; v < V; ++v) {
          done[r][v] = fma_rn(t.c[6], w[1 + v], part[d][1][r][v]);
          T acc = fma_rn(t.c[1], r == 0 ? up[v] : x[d][r == 0 ? 0 : r - 1][v], part[d][0][r][v]);
          acc = fma_rn(t.c[2], w[v], acc);
          acc = fma_rn(t.c[3], w[v + 1], acc);
          acc = fma_rn(t.c[4], w[v + 2], acc);
          part[d][1][r][v] = fma_rn(t.c[5], r == rows - 1 ? down[v] : x[d][r == rows - 1 ? r : r + 1][v], acc);
          part[d][0][r][v] = mul_rn(t.c[0], w[1 + v]);
        }
      }
      if (d < D - 1) {
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int v = 0; v < V; ++v) x[d == D - 1 ? d : d + 1][r][v] = done[r][v];
      } else if (step >= 3 * D - 1) {
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          const int y = my_y + r;
          if (y < cut.halo[1] || y >= last_y || my_x < cut.halo[2] || my_x >= last_x) continue;
          T out[V];
#pragma unroll
          for (int v = 0; v < V; ++v) out[v] = canonical(done[r][v]);
          T* const at = to + r * s.dst_stride[1];
          if (aligned.dst != 0 && my_x + V <= last_x) {
            *reinterpret_cast<int4*>(at) = *reinterpret_cast<const int4*>(out);
          } else {
#pragma unroll
            for (int v = 0; v < V; ++v)
              if (my_x + v < last_x) at[v] = out[v];
          }
        }
        to += s.dst_stride[0];
      }
    }
    if (step + 1 < planes) {
      copies_wait_but<stages - 2>();
      arrived(step + 1, x[0]);
      fetch(step + stages);
    }
    show(1 - turn);
  }
  copies_wait_but<0>();
  __syncthreads();  // the last rows are read before the next column's are written
}

// Results near the cube's faces: a box of them in shared memory, where every sweep folds anew.
template <class T, int D>
__device__ __noinline__ void sweep_box(const sweep<T>& s, const taps<T, 7>& t, const cut_cube& cut, int64_t cube,
                                       int64_t number, T* shared) {
  const face_box b = face_box_of(cut, number, s.n);
  int size[3];
#pragma unroll
  for (int a = 0; a < 3; ++a) size[a] = static_cast<int>(b.elements.to[a] - b.elements.from[a]);
  const int line = size[2] + 2, plane = (size[1] + 2) * line;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  // Warps take 32 points of a plane at a time, rows after one another.
  const auto each = [&](const int* from, const int* to, const auto& body) {
    const int wide = to[2] - from[2], points = (to[1] - from[1]) * wide, groups = (points + 31) / 32;
    // Small numbers over small ones: the upper half of a product with the reciprocal is exact.
    const auto reciprocal = [](int d) { return 0xFFFFFFFFu / static_cast<uint32_t>(d) + 1; };
    const auto over = [](int n, int d, uint32_t by) { return d == 1 ? n : static_cast<int>(__umulhi(n, by)); };
    const uint32_t by_wide = reciprocal(wide), by_groups = reciprocal(groups);
    for (int g = warp; g < (to[0] - from[0]) * groups; g += warps) {
      const int z = over(g, groups, by_groups), i = (g - z * groups) * 32 + lane;
      const int y = over(i, wide, by_wide);
      if (i < points) body(from[0] + z, from[1] + y, from[2] + i - y * wide);
    }
  };
  T *now = shared + plane + line + 1, *next = now + box_room<T, D>;
  const T* const src = s.src + cube * s.src_batch + b.elements.from[0] * s.src_stride[0] +
                       b.elements.from[1] * s.src_stride[1] + b.elements.from[2];
  const auto place = [&](int z, int y, int x) { return z * plane + y * line + x; };
  const int none[3] = {0, 0, 0};
  each(none, size,
       [&](int z, int y, int x) { now[place(z, y, x)] = __ldg(src + z * s.src_stride[0] + y * s.src_stride[1] + x); });
#pragma unroll 1
  for (int k = 1; k <= D; ++k) {
    __syncthreads();  // all of a sweep is there before it is folded
    int from[3], to[3];
#pragma unroll
    for (int a = 0; a < 3; ++a) {
      const bool low = b.elements.from[a] == 0, high = b.elements.to[a] == s.n[a];
      from[a] = low ? 0 : k, to[a] = high ? size[a] : size[a] - k;
      const int stride = a == 0 ? plane : a == 1 ? line : 1;
      // The layer beyond an end of this axis, from the one that the boundary says.
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        if (side == 0 ? !low : !high) continue;
        int first[3] = {0, 0, 0}, last[3] = {size[0], size[1], size[2]};
        first[a] = side == 0 ? -1 : size[a], last[a] = first[a] + 1;
        const int64_t folded = source_index(side == 0 ? -1 : s.n[a], s.n[a], s.boundary);
        const int by = folded < 0 ? 0 : (static_cast<int>(folded - b.elements.from[a]) - first[a]) * stride;
        each(first, last, [&](int z, int y, int x) {
          T* const at = now + place(z, y, x);
          *at = folded < 0 ? s.value : at[by];
        });
      }
    }
    __syncthreads();  // and folded before the next one reads it
    each(from, to, [&](int z, int y, int x) {
      const T* const centre = now + place(z, y, x);
      T acc = mul_rn(t.c[0], centre[-plane]);
      acc = fma_rn(t.c[1], centre[-line], acc);
      acc = fma_rn(t.c[2], centre[-1], acc);
      acc = fma_rn(t.c[3], centre[0], acc);
      acc = fma_rn(t.c[4], centre[1], acc);
      acc = fma_rn(t.c[5], centre[line], acc);
      next[place(z, y, x)] = fma_rn(t.c[6], centre[plane], acc);
    });
    T* const swap = now;
    now = next;
    next = swap;
  }
  __syncthreads();  // the last sweep's results, by whichever thread
  T* const dst = s.dst + cube * s.dst_batch + b.elements.from[0] * s.dst_stride[0] +
                 b.elements.from[1] * s.dst_stride[1] + b.elements.from[2];
  int from[3], to[3];
#pragma unroll
  for (int a = 0; a < 3; ++a) {
    from[a] = static_cast<int>(b.results.from[a] - b.elements.from[a]);
    to[a] = static_cast<int>(b.results.to[a] - b.elements.from[a]);
  }
  each(from, to, [&](int z, int y, int x) {
    dst[z * s.dst_stride[0] + y * s.dst_stride[1] + x] = canonical(now[place(z, y, x)]);
  });
  __syncthreads();  // the next box overwrites them
}

template <class T, int D>
__global__ void __launch_bounds__(block, 1)
    stencil_sweeps_planes(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 7> t,
                          const __grid_constant__ cut_cube cut, const __grid_constant__ alignments aligned) {
  extern __shared__ __align__(16) unsigned char planes_shared[];
  // Boxes at the faces come first: what is left then is even.
  const int64_t boxes = cut.face_boxes * s.batch, columns = cut.tiles[0] * cut.tiles[1] * cut.chunks;
  const int64_t total = boxes + columns * s.batch;
  for (int64_t id = blockIdx.x; id < total; id += gridDim.x) {
    int64_t number;
    if (id < boxes) {
      const int64_t cube = divide(id, cut.face_boxes, number);
      sweep_box<T, D>(s, t, cut, cube, number, reinterpret_cast<T*>(planes_shared));
    } else {
      const int64_t cube = divide(id - boxes, columns, number);
      sweep_column<T, D>(s, t, cut, aligned, cube, number, address_of(planes_shared));
    }
  }
}

int32_t depth_of(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const int32_t most = std::clamp(queue.facts->tuned.stencils.stacked_depth, 2, most_depth);
  const int32_t passes = passes_of(d.sweeps, most);
  return (d.sweeps - 1) / passes + 1;
}

template <class T, int D>
lockstep_status run_pass(lockstep_queue& queue, const sweep<T>& s, const taps<T, 7>& t) {
  const auto kernel = stencil_sweeps_planes<T, D>;
  if (const lockstep_status status = allow_shared(queue, kernel, shared_bytes(D)); status != LOCKSTEP_OK) return status;
  const int32_t across = static_cast<int32_t>(round_up(D, vector<T>));
  const int32_t halo[3] = {D, D, across};
  const int32_t tile[2] = {tile_y, tile_x<T>};
  cut_cube cut = cut_sweeps(s.n, s.boundary, 1, D, halo, tile, vector<T>, box_room<T, D>);
  const int64_t tiles = cut.tiles[0] * cut.tiles[1];
  if (tiles > 0) {
    const int64_t deep = cut.inner.to[0] - cut.inner.from[0];
    cut.chunk = best_chunk(deep, tiles * s.batch, queue.facts->processors, queue.facts->tuned.stencils.streamed_chunks,
                           3.0 * D);
    cut.chunks = ceil_div(deep, cut.chunk);
  }
  const auto whole = [](int64_t elements) { return elements % vector<T> == 0; };
  const auto at_16 = [&](const T* first, const int64_t* strides, int64_t batch_stride) {
    return reinterpret_cast<uintptr_t>(first) % 16 == 0 && whole(strides[0]) && whole(strides[1]) &&
           (s.batch == 1 || whole(batch_stride));
  };
  alignments aligned{};
  aligned.src = at_16(s.src + (cut.inner.from[2] - across), s.src_stride, s.src_batch);
  aligned.dst = at_16(s.dst + (cut.inner.from[2] - across - s.origin), s.dst_stride, s.dst_batch);
  const int64_t blocks = (cut.face_boxes + tiles * cut.chunks) * s.batch;
  return launch(queue, "stencil_sweeps_planes", kernel, grid_of(blocks), block, shared_bytes(D), s, t, cut, aligned);
}
template <class T>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const auto t = rounded<T, 7>(call.stencil);
  return for_each_pass<T>(call, depth_of(queue, call.stencil), [&](const sweep<T>& s, int32_t depth) {
    switch (depth) {
      case 3: return run_pass<T, 3>(queue, s, t);
      case 2: return run_pass<T, 2>(queue, s, t);
      default: return run_pass<T, 1>(queue, s, t);
    }
  });
}

}  // namespace

const char* sweeps_planes_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  if (d.rank != 3 || d.radius != 1 || d.sweeps < 2) return "is for two or more sweeps of rank 3 and radius 1";
  return queue->facts->shared_bytes < shared_bytes(most_depth) ? "needs 112 KiB of shared memory a block" : nullptr;
}

int sweeps_planes_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  if (d.dtype == LOCKSTEP_F32) return 1;
  for (const int64_t n : d.shape)
    if (n < queue->facts->tuned.stencils.stacked_side_of_8) return 1;
  return 0;
}

size_t sweeps_planes_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const buffers b = needed(call->stencil, depth_of(*queue, call->stencil));
  return b.bytes[0] + b.bytes[1];
}

lockstep_status launch_sweeps_planes(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? run<float>(queue, call) : run<double>(queue, call);
}

}  // namespace lockstep::cuda::stencil
