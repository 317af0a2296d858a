// sweeps_planes.cu - row sweeps_planes: several sweeps of a cube in one pass over memory; rank 3, radius 1.
// Idea    a block streams along z over a tile of xy, a thread 4 rows of 16 bytes. A plane that arrives adds its taps to
//         three planes of the first sweep, whose partial sums wait in registers; the plane that this ends arrives at
//         the second sweep a step later. Columns of a neighbouring lane come by shuffles, rows of a neighbouring warp
//         through shared memory, for all sweeps at one barrier a step.
// Moves   each element in once and out once per pass; tiles overlap by twice the sweeps, chunks of planes by as much;
//         7 fma per point and sweep
// Limit   instructions and latencies of few warps per SM; registers end at three sweeps
// Watch   a boundary folds in every sweep, not once before the first. Along y the row beyond an end is read from the
//         row that it equals, along x it is chosen in registers, along z the plane beyond is the last one again, the
//         one before it, or a value. Under MIRROR a sum of the first plane begins with the second one.
// Source  order.hpp; star.cu for the queue of partial sums; Zhang et al., EBISU, ICS 2023: few blocks, deep in
//         registers
#include "../index/sweeps_cube.hpp"
#include "async.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int warps = 8, block = 32 * warps;
constexpr int rows = 4;             // of a thread
constexpr int stages = 4;           // planes of src in shared memory, on their way or in use
constexpr int row_bytes = 32 * 16;  // of a tile
constexpr int most_depth = 3;       // sweeps of a pass: registers end there

template <class T>
constexpr int vector = 16 / static_cast<int>(sizeof(T));
template <class T>
constexpr int tile_x = 32 * vector<T>;
constexpr int tile_y = warps * rows;
constexpr int plane_bytes = (tile_y + 1) * row_bytes;  // a tile, and a row of the value beyond the cube's ends
// The ring, and two planes of each later sweep.
constexpr int planes_held(int depth) { return stages + 2 * (depth - 1); }
constexpr int shared_bytes(int depth) { return planes_held(depth) * plane_bytes; }

// What lies beyond an end of an axis: the element at the end, the one before it, or a value.
enum class beyond { nearest, mirrored, value };
inline beyond beyond_of(int32_t boundary) {
  switch (boundary) {
    case LOCKSTEP_BOUNDARY_NEAREST:
    case LOCKSTEP_BOUNDARY_REFLECT: return beyond::nearest;
    case LOCKSTEP_BOUNDARY_MIRROR: return beyond::mirrored;
    case LOCKSTEP_BOUNDARY_CONSTANT: return beyond::value;
    default: return beyond::nearest;  // no end is met
  }
}

struct alignments {
  int32_t src, dst;  // tiles' rows start on 16 bytes
};

template <class T, int D, beyond FOLD>
__device__ __forceinline__ void sweep_column(const sweep<T>& s, const taps<T, 7>& t, const cut_cube& cut,
                                             const alignments& aligned, int64_t cube, int64_t number, uint32_t shared) {
  constexpr int V = vector<T>, B = sizeof(T);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int64_t nz = s.n[0], ny = s.n[1], nx = s.n[2];
  const bool wraps = s.boundary == LOCKSTEP_BOUNDARY_WRAP, folds = !wraps && s.boundary != LOCKSTEP_BOUNDARY_VALID;
  int64_t tile_at_x, tile_at_y;
  const chunk_walk z =
      chunk_of(cut, divide(divide(number, cut.tiles[1], tile_at_x), cut.tiles[0], tile_at_y), nz, folds);
  const int64_t begin_x = tile_begin(cut, 2, tile_at_x, tile_x<T>), begin_y = tile_begin(cut, 1, tile_at_y, tile_y);
  const int my_y = warp * rows, my_x = lane * V;
  const int planes = static_cast<int>(z.last - z.first);
  const int end = z.at_last ? planes : 1 << 30;  // the plane beyond the cube, counted from the first

  // Elements outside a folding cube are never used: what lies nearest to them comes in their place.
  const auto inside = [&](int64_t i, int64_t n) {
    return wraps ? (i < 0 ? n - 1 - (-i - 1) % n : i % n) : i < 0 ? 0 : i < n ? i : n - 1;
  };
  const bool by_vectors = aligned.src != 0 && ((begin_x >= 0 && begin_x + tile_x<T> <= nx) ||
                                               (begin_x % V == 0 && (!wraps || nx % V == 0)));
  const int last_vector = nx % V == 0 ? 16 : static_cast<int>(nx % V) * B;  // bytes
  const bool short_vectors = last_vector < 16 && begin_x + tile_x<T> > nx;
  const T* from[rows];
  uint32_t bytes = 16;
  {
    const int64_t first = inside(z.first, nz);
    int64_t x = begin_x + my_x;
    if (wraps) {
      x = inside(x, nx);
    } else if (by_vectors) {
      const int64_t last_x = nx - (nx % V == 0 ? V : nx % V);
      if (x >= last_x) bytes = last_vector;
      x = x < 0 ? 0 : x < last_x ? x : last_x;
    }
#pragma unroll
    for (int r = 0; r < rows; ++r)
      from[r] = s.src + cube * s.src_batch + first * s.src_stride[0] +
                inside(begin_y + my_y + r, ny) * s.src_stride[1] + (by_vectors ? x : 0);
  }
  const uint32_t mine = shared + my_y * row_bytes + lane * 16;

  // Starts copying the next plane into the ring, each thread its own part of it.
  int64_t until_wrap = wraps ? nz - inside(z.first, nz) : -1;
  const auto fetch = [&](int plane) {
    if (plane < planes) {
      const uint32_t to = mine + plane % stages * plane_bytes;
      if (!by_vectors) {
#pragma unroll 1
        for (int v = 0; v < V; ++v) {
          const int64_t x = inside(begin_x + my_x + v, nx);
#pragma unroll
          for (int r = 0; r < rows; ++r) copy_async<B>(to + r * row_bytes + v * B, from[r] + x);
        }
      } else if (short_vectors) {
#pragma unroll
        for (int r = 0; r < rows; ++r) copy_async_part(to + r * row_bytes, from[r], bytes);
      } else {
#pragma unroll
        for (int r = 0; r < rows; ++r) copy_async<16>(to + r * row_bytes, from[r]);
      }
#pragma unroll
      for (int r = 0; r < rows; ++r) from[r] += s.src_stride[0];
      if (--until_wrap == 0) {
        until_wrap = nz;
#pragma unroll
        for (int r = 0; r < rows; ++r) from[r] -= nz * s.src_stride[0];
      }
    }
    copies_end_group();  // one group a plane, empty or not: the wait below counts them
  };
  const auto load = [&](T(&x)[rows][V], uint32_t plane) {
#pragma unroll
    for (int r = 0; r < rows; ++r) load_shared(x[r], plane + r * row_bytes);
  };
  // Where a thread's part of sweep d's plane lies at a step, and the plane before it.
  const auto plane_of = [&](int d, int step) {
    return mine + (d == 0 ? step % stages : stages + 2 * (d - 1) + step % 2) * plane_bytes;
  };

  // Where the tile meets ends of the cube, along x lanes and along y rows. The row beyond an end is read from the row
  // that it equals: by the warp beside it, or by the warp that would hold it.
  const auto clamped = [](int64_t i) { return static_cast<int>(i < -rows ? -rows : i < 64 ? i : 64); };
  const int x_end = clamped(nx - begin_x - my_x), y_end = clamped(ny - begin_y - my_y),
            y_begin = clamped(-begin_y - my_y);
  const bool first_x = folds && begin_x + my_x == 0, last_x_of_row = folds && x_end == V;
  const bool short_rows = folds && nx % V != 0 && begin_x + tile_x<T> > nx;
  const bool at_ends = folds && (begin_x <= 0 || begin_x + tile_x<T> >= nx || begin_y <= 0 || begin_y + tile_y >= ny);
  uint32_t to_above = warp > 0 ? 0u - row_bytes : 0u, to_below = (warp < warps - 1 ? rows : rows - 1) * row_bytes;
  int low_row = rows, high_row = rows;  // rows of the thread that lie beyond an end and beside one within
  uint32_t to_low = 0, to_high = 0;
  if (folds) {
    const uint32_t value_row = (tile_y - my_y) * row_bytes;
    if (y_begin == 0) to_above = FOLD == beyond::nearest ? 0 : FOLD == beyond::mirrored ? row_bytes : value_row;
    if (y_end == rows)
      to_below = FOLD == beyond::nearest    ? (rows - 1) * row_bytes
                 : FOLD == beyond::mirrored ? (rows - 2) * row_bytes
                                            : value_row;
    if (y_begin > 0 && y_begin < rows) {
      low_row = y_begin - 1;
      to_low = FOLD == beyond::value ? value_row : (low_row + (FOLD == beyond::nearest ? 1 : 2)) * row_bytes;
    }
    if (y_end > 0 && y_end < rows) {
      high_row = y_end;
      to_high = FOLD == beyond::value ? value_row : (high_row - (FOLD == beyond::nearest ? 1 : 2)) * row_bytes;
    }
  }
  const auto beside = [&](T end, T inner) {
    return FOLD == beyond::nearest ? end : FOLD == beyond::mirrored ? inner : s.value;
  };

  // sum += the five taps within a plane x, which lies at `at` for the other warps.
  const auto add_taps = [&](bool ends, T(&sum)[rows][V], T(&x)[rows][V], uint32_t at) {
    T above[V], below[V];
    load_shared(above, at + to_above);
    load_shared(below, at + to_below);
    if (ends) {
#pragma unroll
      for (int r = 0; r < rows; ++r) {
        if (r < rows - 1 && r == low_row) load_shared(x[r], at + to_low);
        if (r > 0 && r == high_row) load_shared(x[r], at + to_high);
      }
      if (short_rows) {
#pragma unroll
        for (int r = 0; r < rows; ++r)
#pragma unroll
          for (int v = 1; v < V; ++v)
            if (v == x_end)
              x[r][v] = FOLD == beyond::mirrored && v == 1 ? x[r][v] : beside(x[r][v - 1], x[r][v > 1 ? v - 2 : 0]);
      }
    }
#pragma unroll
    for (int r = 0; r < rows; ++r) {
      T w[V + 2];
      w[0] = __shfl_up_sync(~0u, x[r][V - 1], 1);
      w[V + 1] = __shfl_down_sync(~0u, x[r][0], 1);
#pragma unroll
      for (int v = 0; v < V; ++v) w[1 + v] = x[r][v];
      if (ends) {
        if (FOLD == beyond::mirrored && V > 1 && x_end == 1) w[2] = w[0];
        if (first_x) w[0] = beside(w[1], w[2]);
        if (last_x_of_row) w[V + 1] = beside(w[V], w[V - 1]);
      }
#pragma unroll
      for (int v = 0; v < V; ++v) {
        T acc = fma_rn(t.c[1], r == 0 ? above[v] : x[r == 0 ? 0 : r - 1][v], sum[r][v]);
        acc = fma_rn(t.c[2], w[v], acc);
        acc = fma_rn(t.c[3], x[r][v], acc);
        acc = fma_rn(t.c[4], w[v + 2], acc);
        sum[r][v] = fma_rn(t.c[5], r == rows - 1 ? below[v] : x[r == rows - 1 ? r : r + 1][v], acc);
      }
    }
  };
  const auto begin_sums = [&](T(&sum)[rows][V], const T(&x)[rows][V]) {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v) sum[r][v] = mul_rn(t.c[0], x[r][v]);
  };
  const auto fill = [&](T(&x)[rows][V], T value) {
#pragma unroll
    for (int r = 0; r < rows; ++r)
#pragma unroll
      for (int v = 0; v < V; ++v) x[r][v] = value;
  };

  T x[D][rows][V];  // the plane that arrives at each sweep
  T part[D][2][rows]
        [V];  // sums over the tap of the plane before the one that arrives, and of that before it with its own
#pragma unroll
  for (int d = 0; d < D; ++d) fill(x[d], T(0)), fill(part[d][0], T(0)), fill(part[d][1], T(0));
  if (FOLD == beyond::value && warp < planes_held(D)) {
    T value[V];
    for (int v = 0; v < V; ++v) value[v] = s.value;
    store_vector(shared + warp * plane_bytes + tile_y * row_bytes + lane * 16, value);
  }
  for (int plane = 0; plane < stages - 1; ++plane) fetch(plane);

  const int last_x =
      static_cast<int>(cut.to[2] - begin_x < tile_x<T> - cut.halo[2] ? cut.to[2] - begin_x : tile_x<T> - cut.halo[2]);
  const int last_y =
      static_cast<int>(cut.to[1] - begin_y < tile_y - cut.halo[1] ? cut.to[1] - begin_y : tile_y - cut.halo[1]);
  T* to = s.dst + cube * s.dst_batch + (z.from - s.origin) * s.dst_stride[0] +
          (begin_y + my_y - s.origin) * s.dst_stride[1] + (begin_x + my_x - s.origin);
  // How many elements of a vector are results, in rows that hold some.
  const int wide = my_x < cut.halo[2] || my_x >= last_x ? 0 : my_x + V <= last_x ? V : last_x - my_x;
  const int first_r = my_y < cut.halo[1] ? cut.halo[1] - my_y : 0, last_r = wide == 0 ? 0 : last_y - my_y;
  const bool whole = aligned.dst != 0 && wide == V;
  // Plane step - 2 d arrives at sweep d and ends the sweep's result before it.
  const int results = static_cast<int>(z.from - z.first), steps = static_cast<int>(z.to - z.first) + 2 * D - 1;
  // One step; z_ends: a sweep may meet the cube's first or last plane; ends: the tile meets ends along x or y.
  const auto take = [&](int step, bool z_ends, bool ends) {
    bool reads_again = false;
    if (!z_ends || step != end)
      load(x[0], plane_of(0, step));
    else if (FOLD == beyond::mirrored)
      load(x[0], plane_of(0, step - 2 + stages));
    else if (FOLD == beyond::value)
      fill(x[0], s.value);
#pragma unroll
    for (int d = D - 1; d >= 0; --d) {
      const int plane = step - 2 * d;
      if (z_ends && FOLD == beyond::mirrored) {
        if (z.at_first && plane == 1) {
          // The first plane's sums begin with the second plane, which has only come now.
          T before[rows][V];
          const uint32_t at = plane_of(d, step + stages - 1);
          load(before, at);
          begin_sums(part[d][1], x[d]);
          add_taps(ends, part[d][1], before, at);
          reads_again = true;
        }
      } else if (z_ends) {
        if (z.at_first && plane == 0) {  // the plane before the first one
          if (FOLD == beyond::nearest)
            begin_sums(part[d][0], x[d]);
          else
            fill(part[d][0], mul_rn(t.c[0], s.value));
        }
      }
      T done[rows][V];
#pragma unroll
      for (int r = 0; r < rows; ++r)
#pragma unroll
        for (int v = 0; v < V; ++v) {
          done[r][v] = fma_rn(t.c[6], x[d][r][v], part[d][1][r][v]);
          part[d][1][r][v] = part[d][0][r][v];
        }
      begin_sums(part[d][0], x[d]);
      add_taps(ends, part[d][1], x[d], plane_of(d, step));
      if (d < D - 1) {
        constexpr int next = D > 1 ? D - 1 : 0;
        T(&y)[rows][V] = x[d + 1 < D ? d + 1 : next];
        if (!z_ends || plane != end + 1) {
#pragma unroll
          for (int r = 0; r < rows; ++r)
#pragma unroll
            for (int v = 0; v < V; ++v) y[r][v] = done[r][v];
        } else if (FOLD == beyond::mirrored) {
          load(y, plane_of(d + 1, step + 1));
        } else if (FOLD == beyond::value) {
          fill(y, s.value);
        }
      } else if (plane > results) {
#pragma unroll
        for (int r = 0; r < rows; ++r) {
          if (r < first_r || r >= last_r) continue;
          T out[V];
#pragma unroll
          for (int v = 0; v < V; ++v) out[v] = canonical(done[r][v]);
          T* const at = to + r * s.dst_stride[1];
          if (whole) {
            *reinterpret_cast<int4*>(at) = *reinterpret_cast<const int4*>(out);
          } else {
#pragma unroll
            for (int v = 0; v < V; ++v)
              if (v < wide) at[v] = out[v];
          }
        }
        to += s.dst_stride[0];
      }
    }
    if (z_ends && FOLD == beyond::mirrored && reads_again)
      __syncthreads();  // the planes before this step's were read once more
    fetch(step + stages - 1);
#pragma unroll
    for (int d = 1; d < D; ++d)
#pragma unroll
      for (int r = 0; r < rows; ++r) store_vector(plane_of(d, step + 1) + r * row_bytes, x[d][r]);
  };
#pragma unroll 1
  for (int step = 0; step < steps; ++step) {
    copies_wait_but<stages - 2>();
    __syncthreads();  // all parts of this step's planes are there; those of the last step have been read
    if ((z.at_first && step < 2 * D) || step >= end)
      take(step, true, true);
    else if (at_ends)
      take(step, false, true);
    else
      take(step, false, false);
  }
  copies_wait_but<0>();
  __syncthreads();  // the last planes are read before the next column's are written
}

template <class T, int D, beyond FOLD>
__global__ void __launch_bounds__(block, 1)
    stencil_sweeps_planes(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, 7> t,
                          const __grid_constant__ cut_cube cut, const __grid_constant__ alignments aligned) {
  extern __shared__ __align__(16) unsigned char planes_shared[];
  const int64_t columns = cut.tiles[0] * cut.tiles[1] * cut.chunks, total = columns * s.batch;
  for (int64_t id = blockIdx.x; id < total; id += gridDim.x) {
    int64_t number;
    const int64_t cube = divide(id, columns, number);
    sweep_column<T, D, FOLD>(s, t, cut, aligned, cube, number, address_of(planes_shared));
  }
}

// Passes of 2 or 3 sweeps: a call has two or more.
int32_t depth_of(const lockstep_stencil_desc& d) { return (d.sweeps - 1) / passes_of(d.sweeps, most_depth) + 1; }

template <class T, int D, beyond FOLD>
lockstep_status run_pass(lockstep_queue& queue, const sweep<T>& s, const taps<T, 7>& t) {
  const auto kernel = stencil_sweeps_planes<T, D, FOLD>;
  if (const lockstep_status status = allow_shared(queue, kernel, shared_bytes(D)); status != LOCKSTEP_OK) return status;
  const int32_t across = static_cast<int32_t>(round_up(D, vector<T>));
  const int32_t halo[3] = {D, D, across};
  const int32_t tile[2] = {tile_y, tile_x<T>};
  cut_cube cut = cut_sweeps(s.n, s.boundary, D, halo, tile);
  const int64_t deep = cut.to[0] - cut.from[0], tiles = cut.tiles[0] * cut.tiles[1];
  cut.chunk =
      best_chunk(deep, tiles * s.batch, queue.facts->processors, queue.facts->tuned.stencils.streamed_chunks, 3.0 * D);
  cut.chunks = ceil_div(deep, cut.chunk);
  const auto whole = [](int64_t elements) { return elements % vector<T> == 0; };
  const auto at_16 = [&](const T* first, const int64_t* strides, int64_t batch_stride) {
    return reinterpret_cast<uintptr_t>(first) % 16 == 0 && whole(strides[0]) && whole(strides[1]) &&
           (s.batch == 1 || whole(batch_stride));
  };
  alignments aligned{};
  aligned.src = at_16(s.src + (cut.from[2] - across), s.src_stride, s.src_batch);
  aligned.dst = at_16(s.dst + (cut.from[2] - across - s.origin), s.dst_stride, s.dst_batch);
  return launch(queue, "stencil_sweeps_planes", kernel, grid_of(tiles * cut.chunks * s.batch), block, shared_bytes(D),
                s, t, cut, aligned);
}
template <class T, int D>
lockstep_status run_depth(lockstep_queue& queue, const sweep<T>& s, const taps<T, 7>& t) {
  switch (beyond_of(s.boundary)) {
    case beyond::mirrored: return run_pass<T, D, beyond::mirrored>(queue, s, t);
    case beyond::value: return run_pass<T, D, beyond::value>(queue, s, t);
    default: return run_pass<T, D, beyond::nearest>(queue, s, t);
  }
}
template <class T>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const auto t = rounded<T, 7>(call.stencil);
  return for_each_pass<T>(call, depth_of(call.stencil), [&](const sweep<T>& s, int32_t depth) {
    return depth == 3 ? run_depth<T, 3>(queue, s, t) : run_depth<T, 2>(queue, s, t);
  });
}

}  // namespace

const char* sweeps_planes_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  if (d.rank != 3 || d.radius != 1 || d.sweeps < 2) return "is for two or more sweeps of rank 3 and radius 1";
  if (d.boundary == LOCKSTEP_BOUNDARY_MIRROR && std::min({d.shape[0], d.shape[1], d.shape[2]}) < 2)
    return "needs two elements along each axis under MIRROR";
  return queue->facts->shared_bytes < shared_bytes(most_depth) ? "needs 132 KiB of shared memory a block" : nullptr;
}

int sweeps_planes_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  const auto& tuned = queue->facts->tuned.stencils;
  const int64_t vector = d.dtype == LOCKSTEP_F32 ? 4 : 2, plane = d.shape[1] * d.shape[2];
  const int64_t elements = d.batch * d.shape[0] * plane, depth = depth_of(d);
  if (elements < tuned.stacked_least) return 1;
  if (vector == 4 && ragged_rows(d) && elements < tuned.stacked_ragged) return 1;
  // Points of a plane that tiles compute.
  const int64_t high = ceil_div(d.shape[1], tile_y - 2 * depth) * tile_y;
  const int64_t wide = ceil_div(d.shape[2], 32 * vector - 2 * round_up(depth, vector)) * 32 * vector;
  return static_cast<double>(high * wide) > tuned.stacked_waste * static_cast<double>(plane);
}

size_t sweeps_planes_workspace(const lockstep_queue*, const lockstep_call* call) {
  const buffers b = needed(call->stencil, depth_of(call->stencil));
  return b.bytes[0] + b.bytes[1];
}

lockstep_status launch_sweeps_planes(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? run<float>(queue, call) : run<double>(queue, call);
}

}  // namespace lockstep::cuda::stencil
