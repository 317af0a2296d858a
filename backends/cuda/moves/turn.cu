// turn.cu - permutations as turns of small tiles, for arrays of any axes.
#include <algorithm>

#include "../element.cuh"
#include "../mutant.cuh"
#include "../queue.hpp"
#include "turn.hpp"

namespace lockstep::cuda {
namespace {

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
  uint32_t tile_j = blockIdx.x;
  uint32_t tile_i = plan.tiles_j.split(tile_j);
  uint32_t rest = plan.tiles_i.split(tile_i);
  const uint32_t i0 = tile_i * plan.tile_i, j0 = tile_j * plan.tile_j;
  uint32_t from = i0 * plan.inner.d, to = j0 * plan.inner.d;
  for (int k = 0; k < plan.outer; ++k) {
    uint32_t index = rest;
    rest = plan.out[k].count.split(index);
    from += index * plan.out[k].src, to += index * plan.out[k].dst;
  }
  const uint32_t here_i = min(plan.count_i - i0, plan.tile_i), here_j = min(plan.count_j - j0, plan.tile_j);

#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
  {
    uint32_t column = threadIdx.x;
    const uint32_t row = plan.lanes_i.split(column);
    column *= word_i;
    const auto* const src = reinterpret_cast<const element*>(plan.src) + from + column;
    const uint32_t rows = row < plan.groups_i && column < here_i * plan.inner.d ? here_j : 0;
    word_of_src held[rounds];
#pragma unroll
    for (int p = 0; p < rounds; ++p)
      if (const uint32_t j = row + p * plan.groups_i; j < rows)
        held[p] = *reinterpret_cast<const word_of_src*>(src + offset_of(plan.j, plan.levels_j, j0 + j));
#pragma unroll
    for (int p = 0; p < rounds; ++p)
      if (const uint32_t j = row + p * plan.groups_i; j < rows)
        *reinterpret_cast<word_of_src*>(image + j * plan.pitch + j / word_j * plan.skew + column) = held[p];
  }
  if (!LOCKSTEP_DEVICE_MUTANT("turn_barrier_dropped"))
    __syncthreads();  // the tile is in place before any thread reads it along j
  uint32_t column = threadIdx.x;
  const uint32_t row = plan.lanes_j.split(column);
  column *= word_j;
  auto* const dst = reinterpret_cast<element*>(plan.dst) + to + column;
  const uint32_t rows = row < plan.groups_j && column < here_j * plan.inner.d ? here_i : 0;
  const element* at[word_j];
#pragma unroll
  for (int k = 0; k < word_j; ++k) {
    uint32_t within = column + k;
    const uint32_t j = plan.inner.split(within);
    at[k] = image + j * plan.pitch + j / word_j * plan.skew + offset_of(plan.within, plan.levels_inner, within);
  }
#pragma unroll
  for (int p = 0; p < rounds; ++p)
    if (const uint32_t i = row + p * plan.groups_j; i < rows) {
      element x[word_j];
#pragma unroll
      for (int k = 0; k < word_j; ++k) x[k] = at[k][i * plan.inner.d];
      word_of_dst whole;
      if constexpr (word_j == 1)
        whole = x[0];
      else if constexpr (word_j == 2)
        whole = x[0] | static_cast<uint32_t>(x[1]) << 16;
      else
        whole = x[0] | static_cast<uint32_t>(x[1]) << 8 | static_cast<uint32_t>(x[2]) << 16 |
                static_cast<uint32_t>(x[3]) << 24;
      *reinterpret_cast<word_of_dst*>(dst + offset_of(plan.i, plan.levels_i, i0 + i)) = whole;
    }
}

template <int rounds>
lockstep_status launch_rounds(lockstep_queue& queue, int element_bytes, const turn_choice& choice,
                              const turn_plan& plan, bool early) {
  const auto go = [&](auto kernel) {
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(plan.blocks), config.blockDim = dim3(turn_threads);
    config.dynamicSmemBytes = plan.image, config.stream = queue.stream;
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute, config.numAttrs = early ? 1 : 0;
    LOCKSTEP_CUDA(cudaLaunchKernelEx(&config, kernel, plan));
    return LOCKSTEP_OK;
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

}  // namespace lockstep::cuda
