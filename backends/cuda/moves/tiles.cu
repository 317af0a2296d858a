// tiles.cu - permutations by small tiles, whatever the axes and the alignment of their rows.
//
// Idea    A tile is a stretch of the run that is contiguous in src by a stretch of the one that is contiguous in
//         dst; either may be two axes joined. Lanes lie along the one when src is read, along the other when dst is
//         written, and shared memory stands between; elements of 1 and 2 bytes go by words where rows allow. The
//         tile's shape is a number, not a type: small arrays get tiles for every SM. What a block does before
//         its first load is about a hundred instructions, for an array that sits in the L2 takes little more than a
//         launch.
// Moves   every element once in, once out, and once through shared memory.
// Limit   a launch, then the L2, then DRAM; the ceiling is a device-to-device copy of the same bytes.
// Watch   Code and parameters that a block meets for the first time are waited for: loops over axes, inlined and
//         unrolled, cost a small array a third of its time. So a run has one axis or two, each a straight piece of
//         code, only the outer axes are a loop, and 1 is no special case of a division.
// Source  this repository; figures in tests/results/tries.md.
#include <cmath>

#include "../device/queue.hpp"
#include "../kernel/element.cuh"
#include "moves.hpp"

namespace lockstep::cuda {
namespace {

// A pointer or address that the compiler adds to as it is, in one instruction, and does not make anew for each use.
template <class T>
__device__ __forceinline__ T* settled(T* pointer) {
  asm volatile("" : "+l"(pointer));
  return pointer;
}
__device__ __forceinline__ uint32_t settled(uint32_t address) {
  asm volatile("" : "+r"(address));
  return address;
}

// Shared memory by its own addresses.
template <class T>
__device__ __forceinline__ void put(uint32_t at, const T& x) {
  if constexpr (sizeof(T) == 1)
    asm volatile("st.shared.u8 [%0], %1;" ::"r"(at), "r"(static_cast<uint32_t>(x)) : "memory");
  else if constexpr (sizeof(T) == 2)
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(at), "h"(x) : "memory");
  else if constexpr (sizeof(T) == 4)
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(at), "r"(x) : "memory");
  else if constexpr (sizeof(T) == 8)
    asm volatile("st.shared.v2.u32 [%0], {%1, %2};" ::"r"(at), "r"(x.x), "r"(x.y) : "memory");
  else
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w)
                 : "memory");
}
// Narrow elements come as words.
template <int bytes>
__device__ __forceinline__ auto get(uint32_t at) {
  if constexpr (bytes <= 4) {
    uint32_t x;
    if constexpr (bytes == 1)
      asm volatile("ld.shared.u8 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    else if constexpr (bytes == 2)
      asm volatile("{ .reg .u16 h; ld.shared.u16 h, [%1]; cvt.u32.u16 %0, h; }" : "=r"(x) : "r"(at) : "memory");
    else
      asm volatile("ld.shared.u32 %0, [%1];" : "=r"(x) : "r"(at) : "memory");
    return x;
  } else if constexpr (bytes == 8) {
    uint2 x;
    asm volatile("ld.shared.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "r"(at) : "memory");
    return x;
  } else {
    uint4 x;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x.x), "=r"(x.y), "=r"(x.z), "=r"(x.w)
                 : "r"(at)
                 : "memory");
    return x;
  }
}

template <int bytes, int word_i, int word_j, int rounds>
__global__ void __launch_bounds__(move_threads) move_tiles(const __grid_constant__ tiles_plan plan) {
  using element = typename element_of<bytes>::type;
  using word_of_src = typename element_of<bytes * word_i>::type;
  using word_of_dst = typename element_of<bytes * word_j>::type;
  extern __shared__ uint4 shared[];
  const uint32_t image = settled(static_cast<uint32_t>(__cvta_generic_to_shared(shared)));
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
  // One axis is the usual case, and one multiplication.
  const auto rows_of = [&](const tile_run& run, uint32_t first, uint32_t step, const auto& body) {
    if (run.multiplier == 0) {
      const uint32_t begin = first * run.first, each = step * run.first;
#pragma unroll
      for (int p = 0; p < rounds; ++p) body(p, begin + p * each);
    } else {
#pragma unroll
      for (int p = 0; p < rounds; ++p) body(p, run.offset(first + p * step));
    }
  };
  follow_on();
  word_of_src held[rounds];
  rows_of(plan.j, j0 + row, plan.groups_i, [&](int p, uint32_t offset) {
    const auto* const at = reinterpret_cast<const word_of_src*>(src + offset);
    if (row + p * plan.groups_i < rows) held[p] = __ldg(at);
  });
#pragma unroll
  for (int p = 0; p < rounds; ++p) {
    const uint32_t j = row + p * plan.groups_i;
    const uint32_t at = image + (j * plan.pitch + (word_j > 1 ? j / word_j * plan.skew : 0) + column) * bytes;
    if (j < rows) put(at, held[p]);
  }
  column = threadIdx.x;
  row = plan.lanes_j.split(column);
  column *= word_j;
  rows = row < plan.groups_j && column < here_j * plan.inner.d ? here_i : 0;
  uint32_t at[word_j];
#pragma unroll
  for (int k = 0; k < word_j; ++k) {
    uint32_t within = column + k;
    const uint32_t j = plan.inner.split(within);
    at[k] = image + (j * plan.pitch + (word_j > 1 ? j / word_j * plan.skew : 0) + plan.within.offset(within) +
                     row * plan.inner.d) *
                        bytes;
  }
  auto* const dst = settled(reinterpret_cast<element*>(plan.dst) + (to + column));
  __syncthreads();  // the tile is in place before any thread reads it along j
  const uint32_t next = plan.groups_j * plan.inner.d * bytes;
  rows_of(plan.i, i0 + row, plan.groups_j, [&](int p, uint32_t offset) {
    auto* const to_row = reinterpret_cast<word_of_dst*>(dst + offset);
    const uint32_t place = p * next;
    if (row + p * plan.groups_j < rows) {
      if constexpr (word_j == 1)
        *to_row = static_cast<word_of_dst>(get<bytes>(at[0] + place));
      else if constexpr (word_j == 2)
        *to_row = __byte_perm(get<bytes>(at[0] + place), get<bytes>(at[1] + place), 0x5410);
      else
        *to_row = __byte_perm(__byte_perm(get<bytes>(at[0] + place), get<bytes>(at[1] + place), 0x0040),
                              __byte_perm(get<bytes>(at[2] + place), get<bytes>(at[3] + place), 0x0040), 0x5410);
    }
  });
}

template <int rounds>
lockstep_status launch_rounds(lockstep_queue& queue, int element_bytes, const tiles_choice& choice,
                              const tiles_plan& plan) {
  const auto go = [&](auto kernel) {
    return launch_early(queue, "move_tiles", kernel, dim3(plan.grid), dim3(move_threads), plan.image, plan);
  };
  const int words = (choice.word_i > 1 ? 1 : 0) + (choice.word_j > 1 ? 2 : 0);
  switch (element_bytes) {
    case 1:
      switch (words) {
        case 0: return go(move_tiles<1, 1, 1, rounds>);
        case 1: return go(move_tiles<1, 4, 1, rounds>);
        case 2: return go(move_tiles<1, 1, 4, rounds>);
        default: return go(move_tiles<1, 4, 4, rounds>);
      }
    case 2:
      switch (words) {
        case 0: return go(move_tiles<2, 1, 1, rounds>);
        case 1: return go(move_tiles<2, 2, 1, rounds>);
        case 2: return go(move_tiles<2, 1, 2, rounds>);
        default: return go(move_tiles<2, 2, 2, rounds>);
      }
    case 4: return go(move_tiles<4, 1, 1, rounds>);
    case 8: return go(move_tiles<8, 1, 1, rounds>);
    default: return go(move_tiles<16, 1, 1, rounds>);
  }
}

}  // namespace

lockstep_status launch_tiles(lockstep_queue& queue, const axes& all) {
  return in_parts(all, [&](const axes& a) {
    struct made {
      bool fits;
      tiles_choice choice;
      tiles_plan plan;
    };
    thread_local recent<made> lately;
    const int processors = queue.facts->processors;
    const made* known = lately.find(a, processors);
    if (known == nullptr) {
      made now{};
      tiles_shape shape;
      now.fits = shape_tiles(a, pointers::as_given, shape) &&
                 std::isfinite(choose_tiles(a, shape, queue.facts->tuned.moves, now.choice)) &&
                 plan_tiles(a, shape, now.choice, now.plan);
      known = lately.add(a, processors, now);
    }
    if (!known->fits) return launch_gather(queue, a);
    const tiles_choice choice = known->choice;
    tiles_plan plan = known->plan;
    plan.src = a.src, plan.dst = a.dst;
    return choice.rounds == 4   ? launch_rounds<4>(queue, a.element_bytes, choice, plan)
           : choice.rounds == 8 ? launch_rounds<8>(queue, a.element_bytes, choice, plan)
                                : launch_rounds<16>(queue, a.element_bytes, choice, plan);
  });
}

}  // namespace lockstep::cuda
