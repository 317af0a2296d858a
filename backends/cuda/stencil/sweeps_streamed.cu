// sweeps_streamed.cu - row sweeps_streamed: many sweeps of a plane in one pass over memory; rank 2, radius 1 and 2.
// Idea    a warp streams down a strip, 8 (f64: 4) neighbouring columns a lane. A row that arrives adds its taps to the
//         2r + 1 rows of the first sweep that it touches, whose partial sums wait in registers; the row that this ends
//         arrives at the second sweep at once, and so on. Columns of a neighbouring lane come by shuffles; no warp
//         waits for another.
// Moves   each element in once and out once a pass; strips overlap by twice the radius times the sweeps, chunks of rows
//         by as much; 4r + 1 fma per point and sweep
// Limit   fused multiply-adds, and device memory where there are few sweeps
// Watch   a boundary folds in every sweep, not once before the first: tiles in shared memory take the results near the
//         plane's edges. WRAP continues the plane with the same chain of operations and VALID ends it.
// Source  order.hpp; star.cu for the queue of partial sums; Matsumura et al., AN5D, CGO 2020: many sweeps in one stream
#include "../index/sweeps.hpp"
#include "async.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int warps = 4, block = 32 * warps;
constexpr int of_lane = 2;                            // vectors of 16 bytes
constexpr int stages = 8;                             // rows of a strip in shared memory, on their way or in use
constexpr int row_bytes = 512 * of_lane;              // of a strip
constexpr int warp_bytes = (stages + 1) * row_bytes;  // and a row on its way out
constexpr int most_depth_of(int radius) { return radius == 1 ? 8 : 4; }  // sweeps of a pass: registers end there

template <class T>
constexpr int points = of_lane * 16 / static_cast<int>(sizeof(T));  // of a lane
template <class T>
constexpr int columns = 32 * points<T>;
template <class T>
constexpr int vector = 16 / static_cast<int>(sizeof(T));
// Elements of a tile in shared memory, of which there are two.
template <class T>
constexpr int tile_room = warps* warp_bytes / 2 / static_cast<int>(sizeof(T));

// Blocks per SM: registers for the partial sums of so many sweeps, and about 70 for the rest.
constexpr int blocks_of(int radius, int depth) {
  const int sums = 8 * of_lane * radius * depth;
  return sums > 100 ? 2 : sums > 64 ? 3 : sums > 40 ? 4 : 5;
}

struct alignments {
  int32_t src, dst;  // strips' rows start on 16 bytes
};

// A row arrives at a sweep: x in, and out the row that it ends, radius rows before. part[k] holds the sums over taps
// 0 ... k of the output k + 1 rows ahead of its end.
template <int R, class T, int P>
__device__ __forceinline__ void take_row(T (&x)[P], T (&part)[2 * R][P], const taps<T, 4 * R + 1>& t) {
  const auto along_y = [&](int k) { return t.c[k < R ? k : k + 2 * R]; };
  T w[P + 2 * R];
#pragma unroll
  for (int k = 0; k < R; ++k) {
    w[k] = __shfl_up_sync(~0u, x[P - R + k], 1);
    w[R + P + k] = __shfl_down_sync(~0u, x[k], 1);
  }
#pragma unroll
  for (int i = 0; i < P; ++i) w[R + i] = x[i];
#pragma unroll
  for (int i = 0; i < P; ++i) {
    x[i] = fma_rn(along_y(2 * R), w[R + i], part[2 * R - 1][i]);
#pragma unroll
    for (int k = 2 * R - 1; k > R; --k) part[k][i] = fma_rn(along_y(k), w[R + i], part[k - 1][i]);
    T acc = part[R - 1][i];
#pragma unroll
    for (int k = 0; k < 2 * R + 1; ++k) acc = fma_rn(t.c[R + k], w[i + k], acc);
    part[R][i] = acc;
#pragma unroll
    for (int k = R - 1; k > 0; --k) part[k][i] = fma_rn(along_y(k), w[R + i], part[k - 1][i]);
    part[0][i] = mul_rn(along_y(0), w[R + i]);
  }
}

template <class T, int R, int D>
__device__ __forceinline__ void sweep_strip(const sweep<T>& s, const taps<T, 4 * R + 1>& t, const cut_plane& cut,
                                            const alignments& aligned, int64_t plane, const strip_walk& walk,
                                            uint32_t ring) {
  constexpr int P = points<T>, V = vector<T>, W = columns<T>, B = sizeof(T);
  const int lane = threadIdx.x % 32;
  const int64_t ny = s.n[1], nx = s.n[2];
  const bool wraps = s.boundary == LOCKSTEP_BOUNDARY_WRAP, inside = walk.begin >= 0 && walk.begin + W <= nx;
  // Vectors that begin within the row: of the last one, what the row has.
  const bool by_vectors = aligned.src != 0 && (inside || (walk.begin % V == 0 && (!wraps || nx % V == 0)));
  int64_t column[of_lane];  // from the strip's first
  uint32_t bytes[of_lane];
  // Places in a row of shared memory: of the vectors that this lane copies, and of its points.
  uint32_t copied[of_lane], own[of_lane];
#pragma unroll
  for (int k = 0; k < of_lane; ++k) {
    const int v = k * 32 + lane;
    int64_t x = walk.begin + v * V;
    if (wraps && !inside) x = x < 0 ? nx - 1 - (-x - 1) % nx : x % nx;
    const bool outside = x < 0 || x >= nx;
    column[k] = outside ? -walk.begin : x - walk.begin;
    bytes[k] = outside ? 0 : nx - x < V ? static_cast<uint32_t>(nx - x) * B : 16;
    copied[k] = vector_place(v, of_lane) * 16;
    own[k] = vector_place(of_lane * lane + k, of_lane) * 16;
    asm volatile("" : "+r"(copied[k]), "+r"(own[k]));  // worked out once, not for each row
  }
  const int reach = R * D;
  const int steps = walk.count + 2 * reach;

  // Starts copying the next row into the ring. Rows leave the plane under WRAP only.
  int64_t arriving = walk.y0 - reach;
  if (arriving < 0) arriving = ny - 1 - (-arriving - 1) % ny;
  int until_first = ny - arriving < steps ? static_cast<int>(ny - arriving) : steps;  // rows up to the plane's end
  const T* from = s.src + plane * s.src_batch + walk.begin + arriving * s.src_stride[1];
  int to_come = steps;
  const auto fetch = [&](uint32_t to) {
    if (to_come > 0) {
      --to_come;
      if (by_vectors) {
        if (inside) {
#pragma unroll
          for (int k = 0; k < of_lane; ++k) copy_async<16>(to + copied[k], from + (k * 32 + lane) * V);
        } else {
#pragma unroll
          for (int k = 0; k < of_lane; ++k) copy_async_part(to + copied[k], from + column[k], bytes[k]);
        }
      } else if (inside) {
#pragma unroll
        for (int k = 0; k < P; ++k) {
          const int e = k * 32 + lane;
          copy_async<B>(to + vector_place(e / V, of_lane) * 16 + e % V * B, from + e);
        }
      } else {
#pragma unroll 1
        for (int e = lane; e < W; e += 32) {
          const uint32_t place = to + vector_place(e / V, of_lane) * 16 + e % V * B;
          int64_t x = walk.begin + e;
          if (wraps) {
            while (x < 0) x += nx;
            while (x >= nx) x -= nx;
          }
          if (x >= 0 && x < nx)
            copy_async<B>(place, from + (x - walk.begin));
          else
            store_shared(place, T(0));
        }
      }
      from += s.src_stride[1];
      if (--until_first == 0) {
        from -= ny * s.src_stride[1];
        until_first = ny < to_come ? static_cast<int>(ny) : to_come;
      }
    }
    copies_end_group();  // one group a step, empty or not: the wait below counts them
  };
  for (int step = 0; step < stages - 1; ++step) fetch(ring + step * row_bytes);

  T part[D][2 * R][P];
#pragma unroll
  for (int d = 0; d < D; ++d)
#pragma unroll
    for (int k = 0; k < 2 * R; ++k)
#pragma unroll
      for (int i = 0; i < P; ++i) part[d][k][i] = T(0);

  T* to = s.dst + plane * s.dst_batch + (walk.y0 - s.origin) * s.dst_stride[1] + (walk.begin - s.origin);
  int sent[of_lane];  // results of the vectors that this lane sends out
#pragma unroll
  for (int k = 0; k < of_lane; ++k) {
    const int e = (k * 32 + lane) * V;
    sent[k] = e < cut.halo || e >= walk.last ? 0 : walk.last - e < V ? walk.last - e : V;
  }
  const uint32_t out = ring + stages * row_bytes;
  uint32_t taken = ring;                              // the row that arrives
  uint32_t filled = ring + (stages - 1) * row_bytes;  // the row before it, whose place is free
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    copies_wait_but<stages - 2>();
    // Each lane's copies of this row have landed, and each is done with the row before it and with the row on its way
    // out, whose places are taken next.
    __syncwarp();
    fetch(filled);
    filled = taken;
    T x[P];
#pragma unroll
    for (int k = 0; k < of_lane; ++k) {
      T e[V];
      load_shared(e, taken + own[k]);
#pragma unroll
      for (int v = 0; v < V; ++v) x[k * V + v] = e[v];
    }
    taken = taken == out - row_bytes ? ring : taken + row_bytes;
#pragma unroll
    for (int d = 0; d < D; ++d) take_row<R>(x, part[d], t);
    if (step < 2 * reach) continue;
#pragma unroll
    for (int i = 0; i < P; ++i) x[i] = canonical(x[i]);
#pragma unroll
    for (int k = 0; k < of_lane; ++k) store_vector(out + own[k], x + k * V);
    __syncwarp();  // a lane sends out what others have put there
#pragma unroll
    for (int k = 0; k < of_lane; ++k) {
      T e[V];
      load_shared(e, out + copied[k]);
      T* const at = to + (k * 32 + lane) * V;
      if (aligned.dst != 0 && sent[k] == V) {
        *reinterpret_cast<int4*>(at) = *reinterpret_cast<const int4*>(e);
      } else {
#pragma unroll
        for (int i = 0; i < V; ++i)
          if (i < sent[k]) at[i] = e[i];
      }
    }
    to += s.dst_stride[1];
  }
  copies_wait_but<0>();
  __syncwarp();  // the ring is read to the end before the next strip's rows arrive
}

// Results near the plane's edges: a tile of them in shared memory, where every sweep folds anew.
template <class T, int R>
__device__ __noinline__ void sweep_edge(const sweep<T>& s, const taps<T, 4 * R + 1>& t, const cut_plane& cut,
                                        int64_t plane, int64_t number, T* shared) {
  const int64_t ny = s.n[1], nx = s.n[2];
  const edge_tile tile = edge_tile_of(cut, number, ny, nx);
  const int height = static_cast<int>(tile.high_y - tile.low_y), width = static_cast<int>(tile.high_x - tile.low_x);
  const int pitch = edge_pitch(tile, R);
  // Lanes go along the longer axis.
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const bool down = height > width;
  const auto each = [&](int ya, int yb, int xa, int xb, const auto& body) {
    if (down)
      for (int x = xa + warp; x < xb; x += warps)
        for (int y = ya + lane; y < yb; y += 32) body(y, x);
    else
      for (int y = ya + warp; y < yb; y += warps)
        for (int x = xa + lane; x < xb; x += 32) body(y, x);
  };
  T *now = shared + R * pitch + R, *next = now + tile_room<T>;
  const T* const from = s.src + plane * s.src_batch + tile.low_y * s.src_stride[1] + tile.low_x;
  each(0, height, 0, width, [&](int y, int x) { now[y * pitch + x] = __ldg(from + y * s.src_stride[1] + x); });
  // Beyond the plane's edges lie R rows and columns that are filled anew for each sweep, from these rows and columns.
  const bool top = tile.low_y == 0, bottom = tile.high_y == ny, left = tile.low_x == 0, right = tile.high_x == nx;
  constexpr int none = -1 << 20;
  int above[R], below[R], before[R], behind[R];
  const auto find = [&](int32_t boundary) {
    const auto folded = [&](int64_t i, int64_t n, int64_t low) {
      const int64_t at = source_index(i, n, boundary);
      return at < 0 ? none : static_cast<int>(at - low);
    };
#pragma unroll
    for (int k = 0; k < R; ++k) {
      above[k] = top ? folded(-1 - k, ny, 0) : none;
      below[k] = bottom ? folded(ny + k, ny, tile.low_y) : none;
      before[k] = left ? folded(-1 - k, nx, 0) : none;
      behind[k] = right ? folded(nx + k, nx, tile.low_x) : none;
    }
  };
  find(s.boundary);
#pragma unroll 1
  for (int k = 1; k <= cut.depth; ++k) {
    __syncthreads();  // all of a sweep is there before it is folded
#pragma unroll
    for (int j = 0; j < R; ++j) {
      for (int x = threadIdx.x; x < width; x += block) {
        if (top) now[(-1 - j) * pitch + x] = above[j] == none ? s.value : now[above[j] * pitch + x];
        if (bottom) now[(height + j) * pitch + x] = below[j] == none ? s.value : now[below[j] * pitch + x];
      }
      for (int y = threadIdx.x; y < height; y += block) {
        T* const row = now + y * pitch;
        if (left) row[-1 - j] = before[j] == none ? s.value : row[before[j]];
        if (right) row[width + j] = behind[j] == none ? s.value : row[behind[j]];
      }
    }
    __syncthreads();  // and folded before the next one reads it
    each(top ? 0 : R * k, bottom ? height : height - R * k, left ? 0 : R * k, right ? width : width - R * k,
         [&](int y, int x) {
           const T* const centre = now + y * pitch + x;
           T acc = mul_rn(t.c[0], centre[-R * pitch]);
#pragma unroll
           for (int j = 1; j < R; ++j) acc = fma_rn(t.c[j], centre[(j - R) * pitch], acc);
#pragma unroll
           for (int j = 0; j < 2 * R + 1; ++j) acc = fma_rn(t.c[R + j], centre[j - R], acc);
#pragma unroll
           for (int j = 1; j <= R; ++j) acc = fma_rn(t.c[3 * R + j], centre[j * pitch], acc);
           next[y * pitch + x] = acc;
         });
    T* const swap = now;
    now = next;
    next = swap;
  }
  __syncthreads();  // the last sweep's results, by whichever thread
  T* const to = s.dst + plane * s.dst_batch + tile.low_y * s.dst_stride[1] + tile.low_x;
  each(static_cast<int>(tile.y0 - tile.low_y), static_cast<int>(tile.y1 - tile.low_y),
       static_cast<int>(tile.x0 - tile.low_x), static_cast<int>(tile.x1 - tile.low_x),
       [&](int y, int x) { to[y * s.dst_stride[1] + x] = canonical(now[y * pitch + x]); });
  __syncthreads();  // the next tile overwrites them
}

template <class T, int R, int D>
__global__ void __launch_bounds__(block, blocks_of(R, D))
    stencil_sweeps_streamed(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 4 * R + 1> t,
                            const __grid_constant__ cut_plane cut, const __grid_constant__ alignments aligned) {
  __shared__ alignas(16) unsigned char shared[warps * warp_bytes];
  // Tiles at the edges come first: what is left then is even.
  const int64_t edges = cut.side_tiles * s.batch, walks = cut.strips * cut.chunks, all = walks * s.batch;
  const int64_t total = edges + (all + warps - 1) / warps;
  const uint32_t ring = address_of(shared) + threadIdx.x / 32 * warp_bytes;
  for (int64_t id = blockIdx.x; id < total; id += gridDim.x) {
    if (id < edges) {
      int64_t number;
      const int64_t plane = divide(id, cut.side_tiles, number);
      sweep_edge<T, R>(s, t, cut, plane, number, reinterpret_cast<T*>(shared));
    } else {
      const int64_t number = (id - edges) * warps + threadIdx.x / 32;
      if (number < all) {
        int64_t within, strip;
        const int64_t plane = divide(number, walks, within);
        const int64_t chunk = divide(within, cut.strips, strip);
        sweep_strip<T, R, D>(s, t, cut, aligned, plane, strip_of(cut, strip, chunk, columns<T>), ring);
      }
    }
    // A block goes on to another kind of work only from tiles to strips, after sweep_edge's last barrier.
  }
}

int32_t most_depth(const stencil_tuning& tuned, int32_t radius) {
  return std::clamp(tuned.swept_depth, 3, most_depth_of(radius));  // of 3 on no pass is left one sweep
}
// Vectors of 16 bytes lie all in the halo or all beyond it.
template <class T>
int32_t halo_of(int32_t radius, int32_t depth) {
  return static_cast<int32_t>(round_up(int64_t{radius} * depth, vector<T>));
}

// The depth of least cost: passes over memory, and the points that are computed twice.
template <class T>
int32_t depth_for(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const stencil_tuning& tuned = queue.facts->tuned.stencils;
  const int32_t most = most_depth(tuned, d.radius);
  int32_t best = 2;
  double least = 0;
  const int32_t fewest = (d.sweeps - 1) / most + 1;
  for (int32_t passes = fewest; passes <= fewest + most; ++passes) {
    const int32_t depth = (d.sweeps - 1) / passes + 1;
    if (depth < 2 || d.sweeps / passes < 2) break;  // each pass has a kernel
    const double twice = static_cast<double>(columns<T>) / (columns<T> - 2 * halo_of<T>(d.radius, depth));
    const double cost = passes * tuned.swept_copy + d.sweeps * (4 * d.radius + 1 + tuned.swept_shuffles) * twice;
    if (least == 0 || cost < least) least = cost, best = depth;
  }
  return best;
}
int32_t depth_of(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  return d.dtype == LOCKSTEP_F32 ? depth_for<float>(queue, d) : depth_for<double>(queue, d);
}

template <class T, int R, int D>
lockstep_status run_pass(lockstep_queue& queue, const sweep<T>& s, const taps<T, 4 * R + 1>& t) {
  const auto kernel = stencil_sweeps_streamed<T, R, D>;
  int resident = 1;
  if (const lockstep_status status = resident_blocks(queue, kernel, block, 0, &resident); status != LOCKSTEP_OK)
    return status;
  cut_plane cut = cut_sweeps(s.n[1], s.n[2], s.boundary, R, D, halo_of<T>(R, D), columns<T>, vector<T>, tile_room<T>);
  if (cut.strips > 0) {
    const int64_t slots = int64_t{queue.facts->processors} * std::max(resident, 1) * warps;
    cut.chunk = best_chunk(cut.y1 - cut.y0, cut.strips * s.batch, slots, queue.facts->tuned.stencils.swept_chunks,
                           2.0 * cut.reach);
    cut.chunks = ceil_div(cut.y1 - cut.y0, cut.chunk);
  }
  const auto whole = [](int64_t elements) { return elements % vector<T> == 0; };
  const auto at_16 = [&](const T* first, int64_t stride, int64_t batch_stride) {
    return reinterpret_cast<uintptr_t>(first) % 16 == 0 && whole(stride) && (s.batch == 1 || whole(batch_stride));
  };
  alignments aligned{};
  aligned.src = at_16(s.src + (cut.x0 - cut.halo), s.src_stride[1], s.src_batch);
  aligned.dst = at_16(s.dst + (cut.x0 - cut.halo - s.origin), s.dst_stride[1], s.dst_batch);
  const int64_t blocks = cut.side_tiles * s.batch + ceil_div(cut.strips * cut.chunks * s.batch, warps);
  return launch(queue, "stencil_sweeps_streamed", kernel, grid_of(blocks), block, 0, s, t, cut, aligned);
}
// Of 2 sweeps, and more up to D of them.
template <class T, int R, int D>
lockstep_status by_depth(lockstep_queue& queue, const sweep<T>& s, const taps<T, 4 * R + 1>& t, int32_t depth) {
  if constexpr (D > 2)
    if (depth < D) return by_depth<T, R, D - 1>(queue, s, t, depth);
  return run_pass<T, R, D>(queue, s, t);
}
template <class T, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const auto t = rounded<T, 4 * R + 1>(call.stencil);
  const int32_t most = depth_for<T>(queue, call.stencil);
  return for_each_pass<T>(call, most, [&](const sweep<T>& s, int32_t depth) {
    return by_depth<T, R, most_depth_of(R)>(queue, s, t, depth);
  });
}
template <class T>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.radius == 1 ? run<T, 1>(queue, call) : run<T, 2>(queue, call);
}

}  // namespace

const char* sweeps_streamed_refuses(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  return d.rank == 2 && d.radius >= 1 && d.radius <= 2 && d.sweeps > 1
             ? nullptr
             : "is for two or more sweeps of rank 2 and radius 1 and 2";
}

int sweeps_streamed_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  const lockstep_stencil_desc& d = call->stencil;
  const int64_t y = d.shape[0], x = d.shape[1];
  return x < tuned.swept_side || y < tuned.swept_side || (x < tuned.swept_x && d.batch * y > tuned.swept_many / x);
}

size_t sweeps_streamed_workspace(const lockstep_queue* queue, const lockstep_call* call) {
  const buffers b = needed(call->stencil, depth_of(*queue, call->stencil));
  return b.bytes[0] + b.bytes[1];
}

lockstep_status launch_sweeps_streamed(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_radius<float>(queue, call) : by_radius<double>(queue, call);
}

}  // namespace lockstep::cuda::stencil
