// looked_up.cu - a function of 16-bit floats as 16-bit floats: the values of all 65,536 bit patterns, then looked up.
//
// Idea    A program takes tens of operations on doubles for each element, a look-up two instructions. One kernel
//         computes the table; blocks of the next, one per SM, each copy it into shared memory and walk the array.
// Moves   every element once in, once out, and the table, 128 KiB, once per SM
// Limit   DRAM; bits at random meet in the banks of shared memory about 3.5 at a time
// Watch   The table is computed by the same program, so it needs no proof of its own.
// Source  lockstep.h
#include "values.cuh"

namespace lockstep::cuda {
namespace {

constexpr int fill_threads = 128;

// The values of the patterns 4 i to 4 i + 3 to walk.dst.
template <class E, class R>
__global__ void __launch_bounds__(fill_threads) fill_values(const __grid_constant__ convert_walk walk) {
  const uint32_t first = (blockIdx.x * fill_threads + threadIdx.x) * 4;
  follow_on();
  quad<E> x{};
  x.word[0] = first | (first + 1) << 16, x.word[1] = (first + 2) | (first + 3) << 16;
  store_whole(static_cast<R*>(walk.dst) + first, mapped::of<R>(x, x, walk));
}

// Both elements of a word.
__device__ __forceinline__ uint32_t looked_up(const uint16_t* values, uint32_t word) {
  return values[word & 0xFFFF] | static_cast<uint32_t>(values[word >> 16]) << 16;
}

__global__ void __launch_bounds__(look_up_threads)
    convert_look_up(const uint16_t* src, uint16_t* dst, const uint4* table, uint32_t elements) {
  extern __shared__ uint4 values[];
  const auto* const of = reinterpret_cast<const uint16_t*>(values);
  follow_on();
  for (int k = static_cast<int>(threadIdx.x); k < table_bytes / 16; k += look_up_threads) values[k] = __ldcg(table + k);
  __syncthreads();  // the table is in place before any thread looks a value up
  const auto* const from = reinterpret_cast<const uint4*>(src);
  auto* const to = reinterpret_cast<uint4*>(dst);
  const uint32_t chunks = elements / 8, step = gridDim.x * look_up_threads * look_up_chunks;
  for (uint32_t first = blockIdx.x * look_up_threads * look_up_chunks + threadIdx.x; first < chunks; first += step) {
    uint4 held[look_up_chunks];
#pragma unroll
    for (int q = 0; q < look_up_chunks; ++q)
      if (first + q * look_up_threads < chunks) held[q] = __ldg(from + first + q * look_up_threads);
#pragma unroll
    for (int q = 0; q < look_up_chunks; ++q) {
      const uint4 x = held[q];
      if (first + q * look_up_threads < chunks)
        to[first + q * look_up_threads] =
            make_uint4(looked_up(of, x.x), looked_up(of, x.y), looked_up(of, x.z), looked_up(of, x.w));
    }
  }
  const uint32_t last = chunks * 8 + threadIdx.x;
  if (blockIdx.x == 0 && last < elements) dst[last] = of[src[last]];
}

template <class E>
lockstep_status fill(lockstep_queue& queue, const convert_walk& walk, lockstep_dtype result) {
  const auto kernel = result == LOCKSTEP_F16 ? fill_values<E, half16> : fill_values<E, bfloat16>;
  return launch_soon(queue, "fill_values", kernel, dim3(65536 / 4 / fill_threads), dim3(fill_threads), 0, walk);
}

}  // namespace

lockstep_status convert_by_table(lockstep_queue& queue, const convert_walk& walk, lockstep_dtype dtype,
                                 lockstep_dtype result, void* table, uint32_t elements) {
  convert_walk filled = walk;
  filled.dst = table;
  if (const lockstep_status status =
          dtype == LOCKSTEP_F16 ? fill<half16>(queue, filled, result) : fill<bfloat16>(queue, filled, result);
      status != LOCKSTEP_OK)
    return status;
  if (const lockstep_status status = allow_shared(queue, convert_look_up, table_bytes); status != LOCKSTEP_OK)
    return status;
  return launch_soon(queue, "convert_look_up", convert_look_up, dim3(static_cast<unsigned>(queue.facts->processors)),
                     dim3(look_up_threads), table_bytes, static_cast<const uint16_t*>(walk.src),
                     static_cast<uint16_t*>(walk.dst), static_cast<const uint4*>(table), elements);
}

}  // namespace lockstep::cuda
