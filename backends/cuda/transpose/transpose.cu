// transpose.cu - dst[j][i] = src[i][j], row-major, any shape, batches.
//
// Idea    `wide` (wide.cuh): 16-byte accesses on both sides, the turn in registers,
//         shared memory only to hand rows of dst to neighbouring lanes. Small arrays,
//         rows that begin anywhere and what pads such a tile too much go as permutations
//         do: `tiles`, `gather`. In place `swap_tiles` turns two mirrored
//         tiles of a square, `through_workspace` copies any other matrix first. The rows
//         below are the lesson: what coalescing, the tile, the pad are worth.
// Moves   every element once in, once out; no arithmetic.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   65,535 blocks in y: all grids are one-dimensional, tile numbers 64 bits
//         wide. The in-block step stays along the row on both sides: a tile swaps its
//         *block* index, not the thread's. tiled: 32 lanes read one column of a 32
//         wide tile, all in one bank; tiled_padded and tiled_swizzled mend that.
// Source  Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA", 2009;
//         figures in tests/results.
#include <algorithm>

#include "../index/transpose.hpp"
#include "../kernel/element.cuh"
#include "../kernel/record.cuh"
#include "../moves/moves.hpp"
#include "../ops.hpp"
#include "../permute/pixels.hpp"
#include "wide.hpp"

namespace lockstep::cuda {
namespace {

constexpr int side = square_shape::side, block_rows = square_shape::block_rows;

struct square_job : square_extent {
  const void* src;
  void* dst;
};

// Lanes along a row of src: reads coalesce, writes go down a column of dst.
template <class T>
__global__ void __launch_bounds__(side* block_rows) transpose_naive_read(square_job job) {
  for (int64_t number = blockIdx.x; number < job.tiles; number += gridDim.x) {
    const square_tile at(square_shape{}, job, number);
    const T* src = static_cast<const T*>(job.src) + at.matrix * job.src_batch;
    T* dst = static_cast<T*>(job.dst) + at.matrix * job.dst_batch;
    walk_naive_read(square_shape{}, job, at, threadIdx.x, threadIdx.y, [&](int, int64_t from, int64_t to) {
      LOCKSTEP_SEEN(read_src, job.src, &src[from]);
      LOCKSTEP_SEEN(write_dst, job.dst, &dst[to]);
      dst[to] = src[from];
    });
  }
}

// Lanes along a row of dst: writes coalesce, reads go down a column of src.
template <class T>
__global__ void __launch_bounds__(side* block_rows) transpose_naive_write(square_job job) {
  for (int64_t number = blockIdx.x; number < job.tiles; number += gridDim.x) {
    const square_tile at(square_shape{}, job, number);
    const T* src = static_cast<const T*>(job.src) + at.matrix * job.src_batch;
    T* dst = static_cast<T*>(job.dst) + at.matrix * job.dst_batch;
    walk_naive_write(square_shape{}, job, at, threadIdx.x, threadIdx.y, [&](int, int64_t from, int64_t to) {
      LOCKSTEP_SEEN(read_src, job.src, &src[from]);
      LOCKSTEP_SEEN(write_dst, job.dst, &dst[to]);
      dst[to] = src[from];
    });
  }
}

template <class T, layout how>
__global__ void __launch_bounds__(side* block_rows) transpose_tiled(square_job job) {
  __shared__ T tile[side * tile_pitch<how>(square_shape{})];
  for (int64_t number = blockIdx.x; number < job.tiles; number += gridDim.x) {
    const square_tile at(square_shape{}, job, number);
    const T* src = static_cast<const T*>(job.src) + at.matrix * job.src_batch;
    T* dst = static_cast<T*>(job.dst) + at.matrix * job.dst_batch;
    walk_tile_in<how>(square_shape{}, job, at, threadIdx.x, threadIdx.y, [&](int, int64_t from, int place) {
      LOCKSTEP_SEEN(read_src, job.src, &src[from]);
      LOCKSTEP_SEEN(write_tile, tile, &tile[place]);
      tile[place] = src[from];
    });
    __syncthreads();  // all rows of the tile are in place before any thread reads a column
    walk_tile_out<how>(square_shape{}, job, at, threadIdx.x, threadIdx.y, [&](int, int place, int64_t to) {
      LOCKSTEP_SEEN(read_tile, tile, &tile[place]);
      LOCKSTEP_SEEN(write_dst, job.dst, &dst[to]);
      dst[to] = tile[place];
    });
    __syncthreads();  // all columns have been read before the next tile overwrites them
  }
}

// In place: tile (a, b) and its mirror (b, a), a >= b, change places. number counts
// the pairs of a matrix: row a of the lower triangle starts at a * (a + 1) / 2.
template <class T>
__global__ void __launch_bounds__(side* block_rows) transpose_swap_tiles(square_job job) {
  __shared__ T lower[side][side + 1], upper[side][side + 1];
  for (int64_t number = blockIdx.x; number < job.tiles; number += gridDim.x) {
    const int64_t pair = number % job.tiles_of_matrix;
    auto a = static_cast<int64_t>((sqrt(8.0 * static_cast<double>(pair) + 1) - 1) / 2);
    while (a * (a + 1) / 2 > pair) --a;  // the root is off by one at worst
    while ((a + 1) * (a + 2) / 2 <= pair) ++a;
    const int64_t i0 = a * side, j0 = (pair - a * (a + 1) / 2) * side;
    T* matrix = static_cast<T*>(job.dst) + number / job.tiles_of_matrix * job.dst_batch;
    const int lane = threadIdx.x;
    for (int step = threadIdx.y; step < side; step += block_rows) {
      if (i0 + step < job.rows && j0 + lane < job.rows)
        lower[step][lane] = matrix[(i0 + step) * job.dst_ld + j0 + lane];
      if (j0 + step < job.rows && i0 + lane < job.rows)
        upper[step][lane] = matrix[(j0 + step) * job.dst_ld + i0 + lane];
    }
    __syncthreads();  // both tiles have been read before either is overwritten
    for (int step = threadIdx.y; step < side; step += block_rows) {
      if (i0 + step < job.rows && j0 + lane < job.rows)
        matrix[(i0 + step) * job.dst_ld + j0 + lane] = upper[lane][step];
      if (j0 + step < job.rows && i0 + lane < job.rows)
        matrix[(j0 + step) * job.dst_ld + i0 + lane] = lower[lane][step];
    }
    __syncthreads();  // shared memory has been read before the next pair comes in
  }
}

square_job job_of(const lockstep_call& call) {
  const lockstep_transpose_desc& d = call.transpose;
  const int64_t tiles_i = (d.rows - 1) / side + 1, tiles_j = (d.cols - 1) / side + 1;
  square_job job{};
  job.rows = d.rows, job.cols = d.cols, job.src_ld = d.src_ld, job.dst_ld = d.dst_ld;
  job.src_batch = d.src_batch_stride, job.dst_batch = d.dst_batch_stride;
  job.tiles_j = tiles_j, job.tiles_of_matrix = tiles_i * tiles_j, job.tiles = tiles_i * tiles_j * d.batch;
  job.src = call.src, job.dst = call.dst;
  return job;
}

dim3 grid_of(const square_job& job) {
  const int64_t most = (int64_t{1} << 31) - 1;
  return dim3(static_cast<unsigned>(job.tiles < most ? job.tiles : most));
}

lockstep_status launch_naive_read(lockstep_queue& queue, const lockstep_call& call) {
  const square_job job = job_of(call);
  return by_element(call.transpose.element_bytes, [&](auto element) {
    return launch(queue, "transpose_naive_read", transpose_naive_read<decltype(element)>, grid_of(job),
                  dim3(side, block_rows), 0, job);
  });
}
lockstep_status launch_naive_write(lockstep_queue& queue, const lockstep_call& call) {
  const square_job job = job_of(call);
  return by_element(call.transpose.element_bytes, [&](auto element) {
    return launch(queue, "transpose_naive_write", transpose_naive_write<decltype(element)>, grid_of(job),
                  dim3(side, block_rows), 0, job);
  });
}
template <layout how>
lockstep_status launch_tiled(lockstep_queue& queue, const lockstep_call& call) {
  const square_job job = job_of(call);
  return by_element(call.transpose.element_bytes, [&](auto element) {
    return launch(queue, "transpose_tiled", transpose_tiled<decltype(element), how>, grid_of(job),
                  dim3(side, block_rows), 0, job);
  });
}
lockstep_status launch_swap_tiles(lockstep_queue& queue, const lockstep_call& call) {
  square_job job = job_of(call);
  job.tiles_of_matrix = job.tiles_j * (job.tiles_j + 1) / 2;
  job.tiles = job.tiles_of_matrix * call.transpose.batch;
  return by_element(call.transpose.element_bytes, [&](auto element) {
    return launch(queue, "transpose_swap_tiles", transpose_swap_tiles<decltype(element)>, grid_of(job),
                  dim3(side, block_rows), 0, job);
  });
}
wide_job wide_of(const lockstep_call& call) {
  const lockstep_transpose_desc& d = call.transpose;
  wide_job job;
  job.src = static_cast<const unsigned char*>(call.src);
  job.dst = static_cast<unsigned char*>(call.dst);
  job.element_bytes = d.element_bytes;
  job.rows = d.rows, job.cols = d.cols, job.src_ld = d.src_ld, job.dst_ld = d.dst_ld;
  if (d.batch > 1) job.outer[job.outer_axes++] = {d.batch, d.src_batch_stride, d.dst_batch_stride};
  return job;
}
lockstep_status launch_wide_tiles(lockstep_queue& queue, const lockstep_call& call) {
  return launch_wide(queue, wide_of(call));
}

bool in_place(const lockstep_call& call) { return call.src == call.dst; }

const char* refuses_in_place(const lockstep_queue*, const lockstep_call* call) {
  return in_place(*call) ? "src == dst: it writes where it has still to read" : nullptr;
}
const char* refuses_all_but_square_in_place(const lockstep_queue*, const lockstep_call* call) {
  if (!in_place(*call)) return "only for src == dst";
  return call->transpose.rows == call->transpose.cols ? nullptr : "only for square matrices";
}
size_t workspace_of_span(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_transpose_desc& d = call->transpose;
  return static_cast<size_t>((d.batch - 1) * d.src_batch_stride + (d.rows - 1) * d.src_ld + d.cols) * d.element_bytes;
}
lockstep_status launch_through_workspace(lockstep_queue& queue, const lockstep_call& call) {
  LOCKSTEP_CUDA(
      cudaMemcpyAsync(call.workspace, call.src, workspace_of_span(&queue, &call), cudaMemcpyDefault, queue.stream));
  lockstep_call copied = call;
  copied.src = call.workspace;
  return launch_wide_tiles(queue, copied);
}
int yields_out_of_place(const lockstep_queue*, const lockstep_call* call) { return !in_place(*call); }

// As a permutation.
axes axes_of_batch(const lockstep_call& call) {
  const lockstep_transpose_desc& d = call.transpose;
  axes a{static_cast<const unsigned char*>(call.src),
         static_cast<unsigned char*>(call.dst),
         static_cast<int>(d.element_bytes),
         0,
         {}};
  if (d.batch > 1) a.at[a.rank++] = {d.batch, d.src_batch_stride, d.dst_batch_stride};
  if (d.cols > 1) a.at[a.rank++] = {d.cols, 1, d.dst_ld};
  if (d.rows > 1) a.at[a.rank++] = {d.rows, d.src_ld, 1};
  return a;
}
axes axes_of_batch(const lockstep_call& call, pointers which) { return simplified(axes_of_batch(call), which); }

lockstep_status launch_all_tiles(lockstep_queue& queue, const lockstep_call& call) {
  return launch_tiles(queue, axes_of_batch(call, pointers::as_given));
}
lockstep_status launch_all_gather(lockstep_queue& queue, const lockstep_call& call) {
  return launch_gather(queue, axes_of_batch(call, pointers::as_given));
}
const char* refuses_tiles(const lockstep_queue* queue, const lockstep_call* call) {
  if (const char* why = refuses_in_place(queue, call); why != nullptr) return why;
  return tiles_fit(axes_of_batch(*call, pointers::assumed_aligned))
             ? nullptr
             : "needs contiguous rows, and such that stay together of at most 256 elements";
}
lockstep_status launch_images(lockstep_queue& queue, const lockstep_call& call) {
  const axes a = axes_of_batch(call, pointers::as_given);
  return in_chunks(call) && pixels_fit(a) ? launch_pixels(queue, a) : launch_tiles(queue, a);
}
const char* refuses_pixels(const lockstep_queue* queue, const lockstep_call* call) {
  if (const char* why = refuses_in_place(queue, call); why != nullptr) return why;
  return pixels_fit(axes_of_batch(*call, pointers::assumed_aligned)) ? nullptr : not_pixels;
}
int yields_pixels(const lockstep_queue* queue, const lockstep_call* call) {
  return !pixels_pay(*queue, axes_of_batch(*call, pointers::assumed_aligned)) || !in_chunks(*call);
}
template <move_by how>
int yields_unless(const lockstep_queue* queue, const lockstep_call* call) {
  const wide_job job = wide_of(*call);
  return fastest_move(*queue, axes_of_batch(*call, pointers::assumed_aligned), &job) != how;
}

const lockstep_variant rows[] = {
    {"pixels", "2 to 4 rows or columns: 16 bytes of each a thread, elements change places in registers", 0,
     refuses_pixels, yields_pixels, nullptr, on_device<launch_images>},
    {"tiles", "small tiles through shared memory, runs along src in, along dst out; shaped for the array's size", 0,
     refuses_tiles, yields_unless<move_by::tiles>, nullptr, on_device<launch_all_tiles>},
    {"gather", "lanes along dst, each element from where src has it; the caches keep a line's others", 0,
     refuses_in_place, yields_unless<move_by::gather>, nullptr, on_device<launch_all_gather>},
    {"wide", "A5: 16-byte accesses on both sides, the turn in registers, a swizzled tile that hands over rows of dst",
     0, refuses_in_place, nullptr, nullptr, on_device<launch_wide_tiles>},
    {"swap_tiles", "in place: a block turns two mirrored tiles and swaps them", 0, refuses_all_but_square_in_place,
     nullptr, nullptr, on_device<launch_swap_tiles>},
    {"through_workspace", "a copy to the workspace, then wide from there: in place for any packed matrix", 0, nullptr,
     yields_out_of_place, workspace_of_span, on_device<launch_through_workspace>},
    {"tiled_swizzled", "A4: 32 x 32 tile, columns XORed with the row: no bank conflict, no pad", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, on_device<launch_tiled<layout::swizzled>>},
    {"tiled_padded", "A4: 32 x 32 tile, rows one element longer: columns spread over all banks", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, on_device<launch_tiled<layout::padded>>},
    {"tiled", "A3: 32 x 32 tile: both sides coalesce, but a column lies in one bank (32-way conflict)", LOCKSTEP_LESSON,
     refuses_in_place, nullptr, nullptr, on_device<launch_tiled<layout::plain>>},
    {"naive_coalesced_write", "A2: one thread an element, lanes along dst's rows: the strided side is the read",
     LOCKSTEP_LESSON, refuses_in_place, nullptr, nullptr, on_device<launch_naive_write>},
    {"naive_coalesced_read", "A1: one thread an element, lanes along src's rows: the strided side is the write",
     LOCKSTEP_LESSON, refuses_in_place, nullptr, nullptr, on_device<launch_naive_read>},
};

}  // namespace

const lockstep_table transpose_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
