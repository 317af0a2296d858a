// gather.cu - permutations with lanes along dst, element by element from wherever src has it.
//
// Idea    No tile: what a line of src has for other warps the caches keep. That is the fastest way where runs stay
//         contiguous, where a warp's elements lie in few lines of src, and for arrays so small that a launch is most
//         of it. It takes any axes, and so is what remains where tiles do not fit.
// Moves   every element once in, once out.
// Limit   a launch, then the lines of src that a warp touches.
// Watch   Index arithmetic: a division per axis, each a multiplication and a shift.
// Source  this repository; figures in tests/results/tries.md.
#include "../device/queue.hpp"
#include "../kernel/element.cuh"
#include "moves.hpp"

namespace lockstep::cuda {
namespace {

template <int bytes, int levels>
__global__ void __launch_bounds__(move_threads) move_gather(const __grid_constant__ gather_plan plan) {
  using element = typename element_of<bytes>::type;
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
  follow_on();
  element held[gather_rounds];
#pragma unroll
  for (int p = 0; p < gather_rounds; ++p)
    if (first + p * blockDim.x < plan.elements) held[p] = __ldg(reinterpret_cast<const element*>(plan.src) + from[p]);
#pragma unroll
  for (int p = 0; p < gather_rounds; ++p)
    if (first + p * blockDim.x < plan.elements) reinterpret_cast<element*>(plan.dst)[to[p]] = held[p];
}

}  // namespace

lockstep_status launch_gather(lockstep_queue& queue, const axes& all) {
  return in_parts(all, [&](const axes& a) {
    const gather_plan plan = plan_gather(a, queue.facts->tuned.moves);
    return by_element(static_cast<size_t>(a.element_bytes), [&](auto element) {
      constexpr int bytes = sizeof element;
      const auto kernel = plan.levels <= 3 ? move_gather<bytes, 3> : move_gather<bytes, LOCKSTEP_MAX_RANK>;
      return launch_early(queue, "move_gather", kernel, dim3(plan.grid), dim3(plan.threads), 0, plan);
    });
  });
}

}  // namespace lockstep::cuda
