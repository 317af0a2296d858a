// transpose.cu - dst[j][i] = src[i][j], row-major, any shape, batches: the lessons, and squares in place. What is fast
// from src to dst is in moves/.
//
// Idea    The lessons show what coalescing, the tile and the pad are worth. In place a block turns two mirrored tiles.
// Moves   every element once in, once out; no arithmetic.
// Limit   DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   65,535 blocks in y: all grids are one-dimensional, tile numbers 64 bits
//         wide. The in-block step stays along the row on both sides: a tile swaps its
//         *block* index, not the thread's. tiled: 32 lanes read one column of a 32
//         wide tile, all in one bank; tiled_padded and tiled_swizzled mend that.
// Source  Ruetsch and Micikevicius, "Optimizing matrix transpose in CUDA", 2009;
//         figures in tests/results.
#include "../kernel/element.cuh"
#include "../kernel/record.cuh"
#include "transpose.hpp"

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

}  // namespace

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
template lockstep_status launch_tiled<layout::plain>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_tiled<layout::padded>(lockstep_queue&, const lockstep_call&);
template lockstep_status launch_tiled<layout::swizzled>(lockstep_queue&, const lockstep_call&);

lockstep_status launch_swap_tiles(lockstep_queue& queue, const lockstep_call& call) {
  square_job job = job_of(call);
  job.tiles_of_matrix = job.tiles_j * (job.tiles_j + 1) / 2;
  job.tiles = job.tiles_of_matrix * call.transpose.batch;
  return by_element(call.transpose.element_bytes, [&](auto element) {
    return launch(queue, "transpose_swap_tiles", transpose_swap_tiles<decltype(element)>, grid_of(job),
                  dim3(side, block_rows), 0, job);
  });
}

}  // namespace lockstep::cuda
