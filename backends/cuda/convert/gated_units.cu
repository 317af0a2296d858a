// gated_units.cu - a function of BF16 times a second array: the function's values of usual arguments from a table.
//
// Idea    A BF16 has few bits, so the arguments from 2^-16 to 64 of both signs are 5,632 patterns. One kernel computes
//         their values as doubles; blocks of the next copy them into shared memory, 44 KiB, look values up, multiply
//         and round. What lies outside takes the program.
// Moves   every element of both arrays once in, once out, and the table once per block
// Limit   DRAM; conversions between float and double, 16 per clock and SM
// Watch   Products are rounded to odd first (product_to_odd), as in every other way.
// Source  lockstep.h
#include "values.cuh"

namespace lockstep::cuda {
namespace {

constexpr uint32_t first_pattern = 0x3780, patterns = 0x4280 - first_pattern;  // of one sign
static_assert(unit_table_bytes == 2 * patterns * sizeof(double));

__device__ __noinline__ double by_program(int function, float x) {
  return function_of_four(function, {{x, x, x, x}}).x[0];
}

__global__ void __launch_bounds__(unit_threads) fill_units(const __grid_constant__ convert_walk walk) {
  const uint32_t first = (blockIdx.x * unit_threads + threadIdx.x) * 4;
  follow_on();
  if (first >= 2 * patterns) return;
  const uint32_t sign = first >= patterns ? 0x80000000u : 0;
  four_doubles v;
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) v.x[j] = __uint_as_float(sign | (first_pattern + first % patterns + j) << 16);
  v = function_of_four(walk.function, v);
#pragma unroll
  for (uint32_t j = 0; j < 4; ++j) static_cast<double*>(walk.dst)[first + j] = __dmul_rn(v.x[j], walk.scale);
}

template <class R>
__global__ void __launch_bounds__(unit_threads, 2)
    map_gated_units(const uint4* src, const uint4* times, R* dst, const uint4* table, int function, double scale,
                    uint32_t chunks) {
  extern __shared__ uint4 shared[];
  const auto* const values = reinterpret_cast<const double*>(shared);
  follow_on();
  for (int k = static_cast<int>(threadIdx.x); k < unit_table_bytes / 16; k += unit_threads)
    shared[k] = __ldcg(table + k);
  __syncthreads();  // the table is in place before any thread looks a value up
  const uint32_t step = gridDim.x * unit_threads * unit_chunks;
  for (uint32_t first = blockIdx.x * unit_threads * unit_chunks + threadIdx.x; first < chunks; first += step) {
    uint4 held[unit_chunks], factors[unit_chunks];
#pragma unroll
    for (int q = 0; q < unit_chunks; ++q)
      if (first + q * unit_threads < chunks)
        held[q] = __ldg(src + first + q * unit_threads), factors[q] = __ldg(times + first + q * unit_threads);
#pragma unroll
    for (int q = 0; q < unit_chunks; ++q) {
      if (first + q * unit_threads >= chunks) continue;
      R* const to = dst + int64_t{first + q * unit_threads} * 8;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const quad<bfloat16> x =
            half == 0 ? quad<bfloat16>{{held[q].x, held[q].y}} : quad<bfloat16>{{held[q].z, held[q].w}};
        const quad<bfloat16> b =
            half == 0 ? quad<bfloat16>{{factors[q].x, factors[q].y}} : quad<bfloat16>{{factors[q].z, factors[q].w}};
        double y[4];
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          const uint32_t bits = element(x, j).bits, pattern = (bits & 0x7FFF) - first_pattern;
          y[j] = pattern < patterns ? values[pattern + (bits >> 15) * patterns]
                                    : __dmul_rn(by_program(function, narrow_value(x, j)), scale);
          y[j] = functions::programs<functions::scalar>::product_to_odd(y[j], value(b, j));
        }
        store_whole(to + half * 4, rounded_quad<R>(y));
      }
    }
  }
}

template <class R>
lockstep_status launch_units(lockstep_queue& queue, const convert_walk& walk, const void* times, void* table,
                             uint32_t chunks) {
  const auto blocks = static_cast<unsigned>(queue.facts->processors * unit_blocks);
  return launch_soon(queue, "map_gated_units", map_gated_units<R>, dim3(blocks), dim3(unit_threads), unit_table_bytes,
                     static_cast<const uint4*>(walk.src), static_cast<const uint4*>(times), static_cast<R*>(walk.dst),
                     static_cast<const uint4*>(table), walk.function, walk.scale, chunks);
}

}  // namespace

lockstep_status gated_by_table(lockstep_queue& queue, const convert_walk& walk, const void* times,
                               lockstep_dtype result, void* table, uint32_t chunks) {
  convert_walk filled = walk;
  filled.dst = table;
  if (const lockstep_status status =
          launch_soon(queue, "fill_units", fill_units, dim3((2 * patterns / 4 - 1) / unit_threads + 1),
                      dim3(unit_threads), 0, filled);
      status != LOCKSTEP_OK)
    return status;
  switch (result) {
    case LOCKSTEP_F16: return launch_units<half16>(queue, walk, times, table, chunks);
    case LOCKSTEP_BF16: return launch_units<bfloat16>(queue, walk, times, table, chunks);
    default: return launch_units<float>(queue, walk, times, table, chunks);
  }
}

}  // namespace lockstep::cuda
