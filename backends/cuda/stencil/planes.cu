// planes.cu - `planes`: planes whose rows are short, and batches of short rows.
// Idea    A block brings some whole rows into shared memory as they lie, one run of memory; of a plane with r more on
//         either side. A thread computes one place of 8 rows: a table says once where a tap within the row folds to,
//         and of the taps across rows a window of 8 + 2r elements waits in registers.
// Moves   bytes written once, read once and (P + 2r) / P times from L2, P rows per block; an output of rank 2 loads
//         2r + 1 + 2r / 8 elements from shared memory
// Limit   shared memory: r = 4 takes 10 words per output, of which an SM loads 32 per cycle: 0.7 times a
//         copy's time
// Watch   src may start anywhere in 16 bytes; rows are packed in the tile whatever their strides
// Source  this repository; figures in tests/results/tries.md
#include <algorithm>

#include "../kernel/divide.hpp"
#include "async.cuh"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int block = 256;
constexpr int together = planes_together;  // planes of a thread

// How a sweep's rows follow each other.
struct row_cut {
  int64_t n, out, src_stride, dst_stride;  // of the axis of the rows; of rank 1, of the batch
  int64_t batch, tiles_a_batch;
  int32_t rows;      // outputs' rows of a tile, a multiple of `together`
  int32_t x, out_x;  // of a row of src and of dst
  int32_t tile_bytes;
  bool packed;    // rows follow each other without a gap
  divider a_row;  // outputs of a row
};

// R: the radius of rank 2; 0: rank 1, of any radius, whose rows are not each other's neighbours.
// Blocks per SM: said, so that ptxas keeps loads ahead of their use; left alone it saves registers.
template <class T, int R>
__global__ void __launch_bounds__(block, sizeof(T) == 4 ? 4 : 3)
    stencil_planes(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps> t,
                   const __grid_constant__ row_cut cut) {
  constexpr int V = 16 / sizeof(T), B = sizeof(T);
  extern __shared__ int4 memory[];
  const int radius = R > 0 ? R : s.radius;
  const bool constant = s.boundary == LOCKSTEP_BOUNDARY_CONSTANT;
  // Output x, tap k: place x + k -> element of the row, or -1: the constant.
  int* const along_x = reinterpret_cast<int*>(reinterpret_cast<char*>(memory) + cut.tile_bytes);
  for (int i = threadIdx.x; i < cut.out_x + 2 * radius; i += block)
    along_x[i] = static_cast<int>(source_index(i - radius + s.origin, cut.x, s.boundary));

  for (int64_t number = blockIdx.x; number < cut.batch * cut.tiles_a_batch; number += gridDim.x) {
    int64_t piece;
    const int64_t b = divide(number, cut.tiles_a_batch, piece);
    const int64_t begin = piece * cut.rows;  // the tile's first output, over row `left` + R of src
    const int here = static_cast<int>(min(int64_t{cut.rows}, cut.out - begin)), all = here + 2 * R;
    const int64_t left = begin + (R > 0 ? s.origin - R : 0);
    const T* const src = s.src + b * s.src_batch;

    // The rows within src, [low, high) of the tile, and those that fold.
    const int low = static_cast<int>(left < 0 ? min(-left, int64_t{all}) : 0);
    const int high = static_cast<int>(max(int64_t{low}, min(int64_t{all}, cut.n - left)));
    const T* const run = src + (left + low) * cut.src_stride;
    const uint64_t first_place = reinterpret_cast<uintptr_t>(run) / B - static_cast<unsigned>(low * cut.x);
    const int skew = static_cast<int>(first_place) & (V - 1);  // 16 bytes of the run are 16 bytes of the tile
    T* const tile = reinterpret_cast<T*>(memory) + skew;
    const uint32_t to = address_of(tile);
    const auto copy_rows = [&](int first, int last) {
      const bool folds = R > 0;
#pragma unroll 1
      for (int row = first + static_cast<int>(threadIdx.x / 32); row < last; row += block / 32) {
        const int64_t line = source_index(left + row, cut.n, folds ? s.boundary : LOCKSTEP_BOUNDARY_NEAREST);
        const T* const from = src + line * cut.src_stride;
        for (int x = threadIdx.x % 32; x < cut.x; x += 32) {
          if (line < 0)
            store_shared(to + (row * cut.x + x) * B, s.value);
          else
            copy_async<B>(to + (row * cut.x + x) * B, from + x);
        }
      }
    };
    if (cut.packed) {
      const int elements = (high - low) * cut.x, at = low * cut.x;
      const int head = min(elements, static_cast<int>(-(reinterpret_cast<uintptr_t>(run) / B) & (V - 1)));
      const int whole = (elements - head) / V * V, t0 = threadIdx.x;
      for (int e = head + t0 * V; e < head + whole; e += block * V) copy_async<16>(to + (at + e) * B, run + e);
      if (t0 < head) copy_async<B>(to + (at + t0) * B, run + t0);
      if (head + whole + t0 < elements) copy_async<B>(to + (at + head + whole + t0) * B, run + head + whole + t0);
      copy_rows(0, low);
      copy_rows(high, all);
    } else {
      copy_rows(0, all);
    }
    copies_end_group();
    copies_wait_but<0>();
    // Every thread reads what all have brought.
    __syncthreads();

    // Rank 1: rows far apart, so that a warp's places follow each other in memory.
    const int groups = (here + together - 1) / together, apart = R > 0 ? 1 : groups;
    const int step = apart * cut.x;
    const unsigned items = static_cast<unsigned>(groups * cut.out_x);
    for (unsigned item = threadIdx.x; item < items; item += block) {
      uint32_t column = item;
      const int group = static_cast<int>(cut.a_row.split(column)), x = static_cast<int>(column);
      const int q = R > 0 ? group * together : group;  // the first output's row
      const T* const line = tile + (q + R) * cut.x;
      T acc[together];
#pragma unroll
      for (int k = 0; k < together; ++k) acc[k] = T(-0.0);  // fma(c, x, -0.0) is the rounded product
      const auto add = [&](int from, T c) {
        const T* const at = line + max(from, 0);
        T v[together];
#pragma unroll
        for (int k = 0; k < together; ++k) v[k] = at[k * step];
        if (constant) {
#pragma unroll
          for (int k = 0; k < together; ++k) v[k] = from < 0 ? s.value : v[k];
        }
#pragma unroll
        for (int k = 0; k < together; ++k) acc[k] = fma_rn(c, v[k], acc[k]);
      };
      const auto add_x = [&](int k) { add(along_x[x + k], t.c[R + k]); };
      if constexpr (R > 0) {
        T w[together + 2 * R];
#pragma unroll
        for (int k = 0; k < together + 2 * R; ++k) w[k] = (line - R * cut.x)[k * cut.x + x + s.origin];
        const auto add_window = [&](int j, T c) {
#pragma unroll
          for (int k = 0; k < together; ++k) acc[k] = fma_rn(c, w[k + j], acc[k]);
        };
#pragma unroll
        for (int j = 0; j < R; ++j) add_window(j, t.c[j]);
#pragma unroll
        for (int j = 0; j < R; ++j) add_x(j);
        add_window(R, t.c[2 * R]);
#pragma unroll
        for (int j = R + 1; j <= 2 * R; ++j) add_x(j);
#pragma unroll
        for (int j = R + 1; j <= 2 * R; ++j) add_window(j, t.c[2 * R + j]);
      } else {
#pragma unroll 3
        for (int k = 0; k <= 2 * radius; ++k) add_x(k);
      }
      T* const out = s.dst + b * s.dst_batch + (begin + q) * cut.dst_stride + x;
#pragma unroll
      for (int k = 0; k < together; ++k)
        if (q + k * apart < here) out[k * apart * cut.dst_stride] = canonical(acc[k]);
    }
    __syncthreads();  // the tile is read to the end before the next one arrives
  }
}

// Rows of a tile: as many as leave room for six tiles per SM, at least 16 where two fit. 0: not even 8.
int rows_of_tile(const stencil_tuning& tuned, size_t row_bytes, int halo, size_t most) {
  const auto rows = [&](size_t bytes) {
    const int fit = static_cast<int>(std::min<size_t>(bytes / row_bytes, 1 << 20)) - halo;
    return fit / together * together;
  };
  const int few = rows(std::min(most, static_cast<size_t>(tuned.planes_tile)));
  if (few >= 2 * together) return few;
  return std::max(few, std::min(rows(std::min(most, static_cast<size_t>(tuned.planes_large_tile))), 2 * together));
}

size_t row_bytes(const lockstep_stencil_desc& d) {
  return (d.dtype == LOCKSTEP_F32 ? 4 : 8) * static_cast<size_t>(std::clamp<int64_t>(d.shape[d.rank - 1], 1, 1 << 20));
}
// The table of an axis with its halos, 4 bytes an entry.
size_t table_bytes(const lockstep_stencil_desc& d) {
  return 16 + static_cast<size_t>(d.shape[d.rank - 1] + 2 * d.radius) * 4;
}
int rows_for(const lockstep_queue& queue, const lockstep_stencil_desc& d) {
  const size_t table = table_bytes(d), shared = static_cast<size_t>(queue.facts->shared_bytes);
  if (table >= shared || row_bytes(d) >= shared) return 0;
  return rows_of_tile(queue.facts->tuned.stencils, row_bytes(d), d.rank == 1 ? 0 : 2 * d.radius, shared - table);
}

template <class T, int R>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const lockstep_stencil_desc& d = call.stencil;
  const auto t = rounded<T, most_taps>(d);
  const auto kernel = stencil_planes<T, R>;
  const int most = rows_for(queue, d);
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    row_cut cut{};
    cut.n = s.rank == 1 ? s.batch : s.n[1];
    cut.out = s.rank == 1 ? s.batch : s.out[1];
    cut.src_stride = s.rank == 1 ? s.src_batch : s.src_stride[1];
    cut.dst_stride = s.rank == 1 ? s.dst_batch : s.dst_stride[1];
    cut.batch = s.rank == 1 ? 1 : s.batch;
    cut.x = static_cast<int32_t>(s.n[2]);
    cut.out_x = static_cast<int32_t>(s.out[2]);
    cut.packed = cut.src_stride == cut.x || cut.n == 1;
    cut.a_row = divider(cut.out_x);
    // Tiles for every SM, where there is work for them.
    const int64_t share =
        ceil_div(cut.out * cut.batch, queue.facts->processors * queue.facts->tuned.stencils.planes_tiles * together) *
        together;
    cut.rows = static_cast<int32_t>(std::min<int64_t>(most, share));
    cut.tiles_a_batch = ceil_div(cut.out, cut.rows);
    const int64_t tile = (cut.rows + 2 * R) * int64_t{cut.x} * static_cast<int64_t>(sizeof(T));
    cut.tile_bytes = static_cast<int32_t>((tile + 16 + 15) / 16 * 16);
    const size_t bytes = static_cast<size_t>(cut.tile_bytes) + table_bytes(d);
    if (const lockstep_status status = allow_shared(queue, kernel, bytes); status != LOCKSTEP_OK) return status;
    return launch(queue, "stencil_planes", kernel, grid_of(cut.batch * cut.tiles_a_batch), block, bytes, s, t, cut);
  });
}

template <class T>
lockstep_status by_radius(lockstep_queue& queue, const lockstep_call& call) {
  if (call.stencil.rank == 1) return run<T, 0>(queue, call);
  switch (call.stencil.radius) {
    case 1: return run<T, 1>(queue, call);
    case 2: return run<T, 2>(queue, call);
    case 3: return run<T, 3>(queue, call);
    case 4: return run<T, 4>(queue, call);
    case 5: return run<T, 5>(queue, call);
    case 6: return run<T, 6>(queue, call);
    case 7: return run<T, 7>(queue, call);
    default: return run<T, 8>(queue, call);
  }
}

}  // namespace

lockstep_status launch_planes(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? by_radius<float>(queue, call) : by_radius<double>(queue, call);
}

const char* planes_refuses(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->stencil.rank == 3) return "is for rank 1 and 2";
  return rows_for(*queue, call->stencil) > 0 ? nullptr
                                             : "needs 8 whole rows and their halos in a block's shared memory";
}

// Rows that fill enough of the other kernels' tiles, and that these read by 16 bytes.
int planes_yields(const lockstep_queue* queue, const lockstep_call* call) {
  const stencil_tuning& tuned = queue->facts->tuned.stencils;
  const lockstep_stencil_desc& d = call->stencil;
  const int64_t x = d.shape[d.rank - 1];
  if (d.rank == 1)
    return x > (d.dtype == LOCKSTEP_F32 ? tuned.planes_row_of_4 : tuned.planes_row_of_8) || d.batch < tuned.planes_rows;
  const int64_t tile = d.dtype == LOCKSTEP_F32 ? 512 : 256;
  return !ragged_rows(d) && static_cast<double>(x) >= tuned.planes_fill * static_cast<double>(ceil_div(x, tile) * tile);
}

}  // namespace lockstep::cuda::stencil
