// turn.cu - permutations as turns of small tiles, for arrays of any axes.
#include <algorithm>

#include "../element.cuh"
#include "../mutant.cuh"
#include "../queue.hpp"
#include "turn.hpp"

namespace lockstep::cuda {
namespace {

// A pointer that the compiler adds to as it is, in one instruction.
template <class T>
__device__ __forceinline__ T* settled(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}

template <int bytes, int word_i, int word_j, int rounds>
__global__ void __launch_bounds__(turn_threads) move_turn(const __grid_constant__ turn_plan plan) {
  using element = typename element_of<bytes>::type;
  using word_of_src = typename element_of<bytes * word_i>::type;
  using word_of_dst = typename element_of<bytes * word_j>::type;
  extern __shared__ uint4 shared[];
  auto* const image = reinterpret_cast<element*>(shared);
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  uint32_t j0 = blockIdx.x;
  uint32_t i0 = plan.tiles_j.split(j0);
  uint32_t rest = plan.tiles_i.split(i0);
  i0 *= plan.tile_i, j0 *= plan.tile_j;
  const uint32_t here_i = min(plan.count_i - i0, plan.tile_i), here_j = min(plan.count_j - j0, plan.tile_j);
  uint32_t from = i0 * plan.inner.d, to = j0 * plan.inner.d;
#pragma unroll 1
  for (int k = 0; k < plan.outer; ++k) {
    uint32_t index = rest;
    rest = plan.out[k].count.split(index);
    from += index * plan.out[k].src, to += index * plan.out[k].dst;
  }
  uint32_t column = threadIdx.x;
  uint32_t row = plan.lanes_i.split(column);
  column *= word_i;
  uint32_t rows = row < plan.groups_i && column < here_i * plan.inner.d ? here_j : 0;
  const auto* const src = settled(reinterpret_cast<const element*>(plan.src) + (from + column));
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  word_of_src held[rounds];
#pragma unroll
  for (int p = 0; p < rounds; ++p) {
    const uint32_t j = row + p * plan.groups_i;
    const auto* const at = reinterpret_cast<const word_of_src*>(src + plan.j.offset(j0 + j));
    if (j < rows) held[p] = __ldg(at);
  }
#pragma unroll
  for (int p = 0; p < rounds; ++p) {
    const uint32_t j = row + p * plan.groups_i;
    auto* const at = image + (j * plan.pitch + (word_j > 1 ? j / word_j * plan.skew : 0) + column);
    if (j < rows) *reinterpret_cast<word_of_src*>(at) = held[p];
  }
  column = threadIdx.x;
  row = plan.lanes_j.split(column);
  column *= word_j;
  rows = row < plan.groups_j && column < here_j * plan.inner.d ? here_i : 0;
  const element* at[word_j];
#pragma unroll
  for (int k = 0; k < word_j; ++k) {
    uint32_t within = column + k;
    const uint32_t j = plan.inner.split(within);
    at[k] = image + (j * plan.pitch + (word_j > 1 ? j / word_j * plan.skew : 0) + plan.within.offset(within) +
                     row * plan.inner.d);
  }
  auto* const dst = settled(reinterpret_cast<element*>(plan.dst) + (to + column));
  if (!LOCKSTEP_DEVICE_MUTANT("turn_barrier_dropped"))
    __syncthreads();  // the tile is in place before any thread reads it along j
#pragma unroll
  for (int p = 0; p < rounds; ++p) {
    const uint32_t i = row + p * plan.groups_j, place = p * (plan.groups_j * plan.inner.d);
    auto* const to_row = reinterpret_cast<word_of_dst*>(dst + plan.i.offset(i0 + i));
    if (i < rows) {
      if constexpr (word_j == 1)
        *to_row = at[0][place];
      else if constexpr (word_j == 2)
        *to_row = at[0][place] | static_cast<uint32_t>(at[1][place]) << 16;
      else
        *to_row = __byte_perm(at[0][place] | static_cast<uint32_t>(at[1][place]) << 8,
                              at[2][place] | static_cast<uint32_t>(at[3][place]) << 8, 0x5410);
    }
  }
}

// Lanes along dst: for arrays so small that a launch is most of it, and for runs that stay contiguous.
template <int bytes, int levels>
__global__ void __launch_bounds__(turn_threads) move_gather(const __grid_constant__ gather_plan plan) {
  using element = typename element_of<bytes>::type;
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
  uint32_t from[gather_rounds], to[gather_rounds];
  const uint32_t first = blockIdx.x * (blockDim.x * gather_rounds) + threadIdx.x;
#pragma unroll
  for (int p = 0; p < gather_rounds; ++p) {
    uint32_t rest = first + p * blockDim.x;
    from[p] = to[p] = 0;
#pragma unroll
    for (int k = 0; k < levels; ++k) {
      uint32_t index = rest;
      if (k + 1 < levels) rest = plan.axis[k].count.split(index);
      from[p] += index * plan.axis[k].src, to[p] += index * plan.axis[k].dst;
    }
  }
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  element held[gather_rounds];
#pragma unroll
  for (int p = 0; p < gather_rounds; ++p)
    if (first + p * blockDim.x < plan.elements) held[p] = __ldg(reinterpret_cast<const element*>(plan.src) + from[p]);
#pragma unroll
  for (int p = 0; p < gather_rounds; ++p)
    if (first + p * blockDim.x < plan.elements) reinterpret_cast<element*>(plan.dst)[to[p]] = held[p];
}

template <class Plan>
lockstep_status launch_early(lockstep_queue& queue, void (*kernel)(Plan), uint32_t blocks, uint32_t threads,
                             size_t shared, const Plan& plan, bool early) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(blocks), config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared, config.stream = queue.stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute, config.numAttrs = early ? 1 : 0;
  LOCKSTEP_CUDA(cudaLaunchKernelEx(&config, kernel, plan));
  return LOCKSTEP_OK;
}

template <int rounds>
lockstep_status launch_rounds(lockstep_queue& queue, int element_bytes, const turn_choice& choice,
                              const turn_plan& plan, bool early) {
  const auto go = [&](auto kernel) {
    return launch_early(queue, kernel, plan.blocks, turn_threads, plan.image, plan, early);
  };
  const int words = (choice.word_i > 1 ? 1 : 0) + (choice.word_j > 1 ? 2 : 0);
  switch (element_bytes) {
    case 1:
      switch (words) {
        case 0: return go(move_turn<1, 1, 1, rounds>);
        case 1: return go(move_turn<1, 4, 1, rounds>);
        case 2: return go(move_turn<1, 1, 4, rounds>);
        default: return go(move_turn<1, 4, 4, rounds>);
      }
    case 2:
      switch (words) {
        case 0: return go(move_turn<2, 1, 1, rounds>);
        case 1: return go(move_turn<2, 2, 1, rounds>);
        case 2: return go(move_turn<2, 1, 2, rounds>);
        default: return go(move_turn<2, 2, 2, rounds>);
      }
    case 4: return go(move_turn<4, 1, 1, rounds>);
    case 8: return go(move_turn<8, 1, 1, rounds>);
    default: return go(move_turn<16, 1, 1, rounds>);
  }
}

}  // namespace

lockstep_status launch_turn_plan(lockstep_queue& queue, int element_bytes, const turn_choice& choice,
                                 const turn_plan& plan, bool early) {
  return choice.rounds == 4   ? launch_rounds<4>(queue, element_bytes, choice, plan, early)
         : choice.rounds == 8 ? launch_rounds<8>(queue, element_bytes, choice, plan, early)
                              : launch_rounds<16>(queue, element_bytes, choice, plan, early);
}

lockstep_status launch_gather_plan(lockstep_queue& queue, int element_bytes, const gather_plan& plan, bool early) {
  const auto go = [&](auto few, auto many) {
    return launch_early(queue, plan.levels <= 3 ? few : many, plan.blocks, plan.threads, 0, plan, early);
  };
  switch (element_bytes) {
    case 1: return go(move_gather<1, 3>, move_gather<1, gather_levels>);
    case 2: return go(move_gather<2, 3>, move_gather<2, gather_levels>);
    case 4: return go(move_gather<4, 3>, move_gather<4, gather_levels>);
    case 8: return go(move_gather<8, 3>, move_gather<8, gather_levels>);
    default: return go(move_gather<16, 3>, move_gather<16, gather_levels>);
  }
}

}  // namespace lockstep::cuda
