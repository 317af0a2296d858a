// kernels.cuh - dst = src * scale as another float type: a tile, runs, single elements.
//
// Idea    A thread takes 4 x 4 elements: a quad of each of four rows of src, converted, becomes a quad of each of four
//         rows of dst by the choice of registers. A shared tile in dst's layout stands between, so that both sides are
//         read and written by 256 bytes of a row, 8 to 32 bytes a thread.
// Moves   every element once in, once out.
// Limit   DRAM; the ceiling is a copy of as many bytes.
// Watch   The chunk of a tile's row is XORed with a mix of its number: lanes that store a quad have rows four apart,
//         lanes that load single elements neighbouring ones, and neither may meet in a bank. Without a factor no
//         double is touched unless a side is F64: many chips have a few units for doubles.
// Source  lockstep.h
#pragma once

#include "../normalize/quad.cuh"
#include "convert.hpp"

namespace lockstep::cuda {

// ---- arithmetic ------------------------------------------------------------------------
// y of four elements as R.
template <class R>
__device__ __forceinline__ quad<R> cast_quad(const float (&y)[4]) {
  quad<R> q{};
  if constexpr (sizeof(R) == 2) {
    constexpr bool half = std::is_same_v<R, half16>;
    constexpr uint16_t quiet = half ? order::nan_f16 : order::nan_bf16;
#pragma unroll
    for (int k = 0; k < 2; ++k) {
      if constexpr (half) {
        const __half2 two = __floats2half2_rn(y[2 * k], y[2 * k + 1]);
        memcpy(&q.word[k], &two, 4);
      } else {
        const __nv_bfloat162 two = __floats2bfloat162_rn(y[2 * k], y[2 * k + 1]);
        memcpy(&q.word[k], &two, 4);
      }
    }
#pragma unroll
    for (int j = 0; j < 4; ++j)
      if (y[j] != y[j] && !LOCKSTEP_DEVICE_MUTANT("cuda_convert_hardware_nan")) set_element(q, j, R{quiet});
  } else {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if constexpr (sizeof(R) == 4)
        set_element(q, j, y[j] != y[j] ? __uint_as_float(order::nan_f32) : y[j]);
      else
        set_element(q, j, rounded_to<double>::of(static_cast<double>(y[j])));
    }
  }
  return q;
}

// Element `lane` of each of four quads, converted.
template <class E, class R, bool scaled>
__device__ __forceinline__ quad<R> converted(const quad<E> (&x)[4], int lane, double scale) {
  if constexpr (scaled || sizeof(E) == 8) {
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = scaled ? __dmul_rn(value(x[j], lane), scale) : value(x[j], lane);
    return rounded_quad<R>(y);
  } else {
    const float y[4] = {narrow_value(x[0], lane), narrow_value(x[1], lane), narrow_value(x[2], lane),
                        narrow_value(x[3], lane)};
    return cast_quad<R>(y);
  }
}
// The elements of one quad, converted.
template <class E, class R, bool scaled>
__device__ __forceinline__ quad<R> converted(const quad<E>& x, double scale) {
  if constexpr (scaled || sizeof(E) == 8) {
    double y[4];
#pragma unroll
    for (int j = 0; j < 4; ++j) y[j] = scaled ? __dmul_rn(value(x, j), scale) : value(x, j);
    return rounded_quad<R>(y);
  } else {
    const float y[4] = {narrow_value(x, 0), narrow_value(x, 1), narrow_value(x, 2), narrow_value(x, 3)};
    return cast_quad<R>(y);
  }
}

// ---- memory ----------------------------------------------------------------------------
template <class E>
__device__ __forceinline__ quad<E> load_whole(const E* at) {
  quad<E> q;
  if constexpr (sizeof(E) == 2) {
    const uint2 x = __ldg(reinterpret_cast<const uint2*>(at));
    q.word[0] = x.x, q.word[1] = x.y;
  } else {
#pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(E)); k += 4) {
      const uint4 x = __ldg(reinterpret_cast<const uint4*>(at) + k / 4);
      q.word[k] = x.x, q.word[k + 1] = x.y, q.word[k + 2] = x.z, q.word[k + 3] = x.w;
    }
  }
  return q;
}
// Chunks of a quad, in global or shared memory.
template <class R>
__device__ __forceinline__ void store_whole(void* at, const quad<R>& q) {
  if constexpr (sizeof(R) == 2) {
    *static_cast<uint2*>(at) = make_uint2(q.word[0], q.word[1]);
  } else {
#pragma unroll
    for (int k = 0; k < static_cast<int>(sizeof(R)); k += 4)
      static_cast<uint4*>(at)[k / 4] = make_uint4(q.word[k], q.word[k + 1], q.word[k + 2], q.word[k + 3]);
  }
}
struct convert_place {
  int64_t src, dst;  // elements
};
// Of index on the walk's axes.
__device__ __forceinline__ convert_place place_of(const convert_walk& walk, uint32_t index) {
  convert_place at{0, 0};
#pragma unroll 1
  for (int k = 0; k < walk.axes; ++k) {
    uint32_t here = index;
    index = walk.axis[k].count.split(here);
    at.src += int64_t{here} * walk.axis[k].src, at.dst += int64_t{here} * walk.axis[k].dst;
  }
  return at;
}

// ---- tiles -----------------------------------------------------------------------------
template <class E, class R>
struct tile_shape {
  static constexpr int cols = convert_row / static_cast<int>(sizeof(E)),
                       rows = convert_row / static_cast<int>(sizeof(R));
  static constexpr int across = cols / convert_quad, down = rows / convert_quad;  // quads; also chunks of a row of dst
  static constexpr int units = across * down, threads = units < 256 ? units : 256, each = units / threads;
  static constexpr int bytes = cols * convert_row;
  // Of chunk c of row j.
  static __device__ __forceinline__ int place(int j, int c) {
    constexpr int shift = sizeof(R) == 2 ? 2 : 1;
    const int mix = (j >> 2) ^ ((j & 3) << shift);
    return j * convert_row + ((c ^ mix) & (down - 1)) * convert_quad * static_cast<int>(sizeof(R));
  }
};

template <class E, class R, bool scaled>
__global__ void __launch_bounds__(tile_shape<E, R>::threads) convert_tile(const __grid_constant__ convert_tiles plan) {
  using shape = tile_shape<E, R>;
  constexpr int threads = shape::threads, each = shape::each;
  extern __shared__ uint4 shared[];
  auto* const tile = reinterpret_cast<unsigned char*>(shared);
  uint32_t number = blockIdx.x;
  const uint32_t matrix = plan.by_matrix.split(number);
  const uint32_t band = plan.by_band.split(number);
  const bool last = (band + 1) * plan.group > plan.tiles_i;
  const uint32_t tile_j = (last ? plan.by_last_group : plan.by_group).split(number);
  const uint32_t i0 = (band * plan.group + number) * shape::rows, j0 = tile_j * shape::cols;
  const convert_place at = place_of(plan.walk, matrix);
  const E* const src = static_cast<const E*>(plan.walk.src) + at.src + int64_t{i0} * plan.src_ld + j0;
  R* const dst = static_cast<R*>(plan.walk.dst) + at.dst + int64_t{j0} * plan.dst_ld + i0;
  const int rows_left = static_cast<int>(min(plan.rows - i0, static_cast<uint32_t>(shape::rows)));
  const int cols_left = static_cast<int>(min(plan.cols - j0, static_cast<uint32_t>(shape::cols)));

  follow_on();
  if (plan.whole_src) {
    quad<E> held[each][4];
#pragma unroll
    for (int p = 0; p < each; ++p) {
      const int unit = static_cast<int>(threadIdx.x) + p * threads, uj = unit % shape::across,
                ui = unit / shape::across;
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int i = ui * 4 + v;
        held[p][v] = i < rows_left && uj * 4 < cols_left
                         ? load_whole(src + static_cast<int64_t>(i) * plan.src_ld + uj * 4)
                         : quad<E>{};
      }
    }
#pragma unroll
    for (int p = 0; p < each; ++p) {
      const int unit = static_cast<int>(threadIdx.x) + p * threads, uj = unit % shape::across,
                ui = unit / shape::across;
#pragma unroll
      for (int v = 0; v < 4; ++v)
        store_whole(tile + shape::place(uj * 4 + v, ui), converted<E, R, scaled>(held[p], v, plan.walk.scale));
    }
  } else {
    quad<E> held[each * 4];  // four rows of a column
#pragma unroll
    for (int p = 0; p < each * 4; ++p) {
      const int item = static_cast<int>(threadIdx.x) + p * threads, j = item % shape::cols, ui = item / shape::cols;
      held[p] = quad<E>{};
#pragma unroll
      for (int v = 0; v < 4; ++v) {
        const int i = ui * 4 + v;
        if (i < rows_left && j < cols_left) set_element(held[p], v, src[static_cast<int64_t>(i) * plan.src_ld + j]);
      }
    }
#pragma unroll
    for (int p = 0; p < each * 4; ++p) {
      const int item = static_cast<int>(threadIdx.x) + p * threads, j = item % shape::cols, ui = item / shape::cols;
      store_whole(tile + shape::place(j, ui), converted<E, R, scaled>(held[p], plan.walk.scale));
    }
  }
  if (!LOCKSTEP_DEVICE_MUTANT("cuda_convert_barrier_dropped"))
    __syncthreads();  // the tile is in place before any thread reads a row of dst
  if (plan.whole_dst) {
    // Neighbouring threads write neighbouring 16 bytes: two to a quad of doubles.
    constexpr int parts = sizeof(R) == 8 ? 2 : 1, chunks = shape::down * parts;
#pragma unroll
    for (int p = 0; p < each * 4 * parts; ++p) {
      const int item = static_cast<int>(threadIdx.x) + p * threads, c = item % chunks, j = item / chunks;
      const int i = c * convert_quad / parts;
      if (j >= cols_left || i >= rows_left) continue;
      R* const to = dst + static_cast<int64_t>(j) * plan.dst_ld + i;
      const unsigned char* const from = tile + shape::place(j, c / parts) + c % parts * 16;
      if constexpr (sizeof(R) == 2)
        *reinterpret_cast<uint2*>(to) = *reinterpret_cast<const uint2*>(from);
      else
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(from);
    }
  } else if constexpr (sizeof(R) == 2) {  // by words; the first and the last element of a row may be alone
    constexpr int words = shape::rows / 2 + 1;
#pragma unroll 4
    for (int item = static_cast<int>(threadIdx.x); item < shape::cols * words; item += threads) {
      const int j = item / words, w = item % words;
      if (j >= cols_left) break;
      R* const row = dst + static_cast<int64_t>(j) * plan.dst_ld;
      const int i = 2 * w - static_cast<int>(reinterpret_cast<uintptr_t>(row) / 2 % 2);
      const auto one = [&](int k) { return reinterpret_cast<const R*>(tile + shape::place(j, k / 4))[k % 4]; };
      if (i >= 0 && i + 1 < rows_left)
        *reinterpret_cast<uint32_t*>(row + i) = one(i).bits | static_cast<uint32_t>(one(i + 1).bits) << 16;
      else if (i >= 0 && i < rows_left)
        row[i] = one(i);
      else if (i < 0 && rows_left > 0)
        row[0] = one(0);
    }
  } else {
#pragma unroll 4
    for (int p = 0; p < each * 16; ++p) {
      const int item = static_cast<int>(threadIdx.x) + p * threads, i = item % shape::rows, j = item / shape::rows;
      if (j >= cols_left || i >= rows_left) continue;
      const auto* const row = reinterpret_cast<const R*>(tile + shape::place(j, i / 4));
      dst[static_cast<int64_t>(j) * plan.dst_ld + i] = row[i % 4];
    }
  }
}

// ---- runs ------------------------------------------------------------------------------
// A thread takes quads of runs, or single elements where quads are not aligned; neighbouring threads take neighbours.
template <class E, class R, bool scaled>
__global__ void __launch_bounds__(run_threads) convert_run(const __grid_constant__ convert_runs plan) {
  const uint32_t first = blockIdx.x * static_cast<uint32_t>(plan.whole ? run_quads : run_quads * 4) * run_threads;
  const auto* const src = static_cast<const E*>(plan.walk.src);
  auto* const dst = static_cast<R*>(plan.walk.dst);
  follow_on();
  quad<E> held[run_quads];
  if (plan.whole) {
    int64_t to[run_quads];
    int left[run_quads];  // elements of the quad, none beyond the last one
#pragma unroll
    for (int q = 0; q < run_quads; ++q) {
      uint32_t quad_of_run = first + threadIdx.x + q * run_threads;
      const bool there = quad_of_run < plan.items;
      const convert_place at = place_of(plan.walk, plan.by_run.split(quad_of_run));
      to[q] = at.dst + int64_t{quad_of_run} * 4;
      left[q] = there ? static_cast<int>(min(plan.length - quad_of_run * 4, 4u)) : 0;
      held[q] = quad<E>{};
      const E* const from = src + at.src + int64_t{quad_of_run} * 4;
      if (left[q] == 4) {
        held[q] = load_whole(from);
      } else {
#pragma unroll
        for (int k = 0; k < 3; ++k)
          if (k < left[q]) set_element(held[q], k, from[k]);
      }
    }
#pragma unroll
    for (int q = 0; q < run_quads; ++q) {
      const quad<R> y = converted<E, R, scaled>(held[q], plan.walk.scale);
      if (left[q] == 4) {
        store_whole(dst + to[q], y);
      } else if (!LOCKSTEP_DEVICE_MUTANT("cuda_convert_tail_lost")) {
#pragma unroll
        for (int k = 0; k < 3; ++k)
          if (k < left[q]) dst[to[q] + k] = element(y, k);
      }
    }
  } else {
    int64_t to[run_quads][4];
#pragma unroll
    for (int q = 0; q < run_quads; ++q) {
      held[q] = quad<E>{};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        uint32_t i = first + threadIdx.x + (q * 4 + k) * run_threads;
        const bool there = i < plan.items;
        const convert_place at = place_of(plan.walk, plan.by_run.split(i));
        to[q][k] = there ? at.dst + i : -1;
        if (there) set_element(held[q], k, src[at.src + i]);
      }
    }
#pragma unroll
    for (int q = 0; q < run_quads; ++q) {
      const quad<R> y = converted<E, R, scaled>(held[q], plan.walk.scale);
#pragma unroll
      for (int k = 0; k < 4; ++k)
        if (to[q][k] >= 0) dst[to[q][k]] = element(y, k);
    }
  }
}

// ---- elements --------------------------------------------------------------------------
template <class E, class R, bool scaled>
__global__ void __launch_bounds__(element_threads) convert_element(const __grid_constant__ convert_elements plan) {
  const uint32_t first = blockIdx.x * static_cast<uint32_t>(element_threads * element_steps) + threadIdx.x;
  const auto* const src = static_cast<const E*>(plan.walk.src);
  auto* const dst = static_cast<R*>(plan.walk.dst);
  follow_on();
  quad<E> held{};
  int64_t to[element_steps];
#pragma unroll
  for (int k = 0; k < element_steps; ++k) {
    const uint32_t index = first + k * element_threads;
    const convert_place at = place_of(plan.walk, min(index, plan.elements - 1));
    to[k] = at.dst;
    set_element(held, k, src[at.src]);
  }
  const quad<R> y = converted<E, R, scaled>(held, plan.walk.scale);
#pragma unroll
  for (int k = 0; k < element_steps; ++k)
    if (first + k * element_threads < plan.elements) dst[to[k]] = element(y, k);
}

// ---- launches --------------------------------------------------------------------------
template <class E, class R, bool scaled>
lockstep_status launch_convert(lockstep_queue& queue, const convert_job& job) {
  if (job.tiles != nullptr) {
    using shape = tile_shape<E, R>;
    return launch_soon(queue, "convert_tile", convert_tile<E, R, scaled>, dim3(job.tiles->grid), dim3(shape::threads),
                       shape::bytes, *job.tiles);
  }
  if (job.runs != nullptr)
    return launch_soon(queue, "convert_run", convert_run<E, R, scaled>, dim3(job.runs->grid), dim3(run_threads), 0,
                       *job.runs);
  return launch_soon(queue, "convert_element", convert_element<E, R, scaled>, dim3(job.elements->grid),
                     dim3(element_threads), 0, *job.elements);
}

template <class E, bool scaled>
lockstep_status launch_to(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  switch (result) {
    case LOCKSTEP_F16: return launch_convert<E, half16, scaled>(queue, job);
    case LOCKSTEP_BF16: return launch_convert<E, bfloat16, scaled>(queue, job);
    case LOCKSTEP_F32: return launch_convert<E, float, scaled>(queue, job);
    default: return launch_convert<E, double, scaled>(queue, job);
  }
}
template <class E>
lockstep_status launch_from(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  const double scale = job.tiles != nullptr  ? job.tiles->walk.scale
                       : job.runs != nullptr ? job.runs->walk.scale
                                             : job.elements->walk.scale;
  return scale == 1 ? launch_to<E, false>(queue, job, result) : launch_to<E, true>(queue, job, result);
}

}  // namespace lockstep::cuda
