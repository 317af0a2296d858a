// gradient_sums.cu - the gradients of weight and bias from the sums of lanes that gradients.cuh leaves.
// Idea    A block has 32 columns of a leaf; each of its warps joins every eighth lane in registers, lanes far apart
//         first, and the warps' parts are joined in shared memory. The tree above the leaves is a thread's.
// Moves   8 bytes per lane and column in, 8 per leaf and column out and in
// Limit   L2
// Watch   lanes without a row count as -0.0
// Source  lib/bits/order.hpp
#include "../reduce/norm.cuh"
#include "gradients.hpp"

namespace lockstep::cuda {
namespace {

constexpr int columns = 32, parts = 8;

// Lanes part + parts * k of a leaf for k = first, first + step, ..., joined as the order has it.
template <int first, int step, class Load>
__device__ __forceinline__ double lanes_joined(const Load& load) {
  if constexpr (step * parts == order::lanes)
    return load(first);
  else
    return __dadd_rn(lanes_joined<first, 2 * step>(load), lanes_joined<first + step, 2 * step>(load));
}

// blockIdx.y: of weight or of bias, or which of them is wanted. leaves: sums of each leaf, `length` apart; where there
// is one leaf the result itself is written.
struct column_sums {
  const double* lanes[2];
  double* leaves[2];
  void* dst[2];
  int64_t count, length, blocks;  // count: of lanes, then of leaves; blocks: of the columns of a leaf
  lockstep_dtype dtype;
};

__global__ __launch_bounds__(columns* parts) void gradient_sums(const column_sums d, const bool one_leaf) {
  __shared__ double of_part[parts][columns];
  const int64_t leaf = blockIdx.x / d.blocks;
  const int column = threadIdx.x % columns, part = threadIdx.x / columns;
  const int64_t i = (blockIdx.x - leaf * d.blocks) * columns + column;
  const int64_t here = min(d.count - leaf * order::lanes, int64_t{order::lanes});
  const double* const from = d.lanes[blockIdx.y] + leaf * order::lanes * d.length + min(i, d.length - 1);
  follow_on();
  of_part[part][column] = lanes_joined<0, 1>([&](int k) {
    const int lane = part + parts * k;
    return lane < here ? from[lane * d.length] : -0.0;
  });
  for (int half = parts / 2; half >= 1; half /= 2) {
    __syncthreads();  // both parts are there
    if (part < half) of_part[part][column] = __dadd_rn(of_part[part][column], of_part[part + half][column]);
  }
  if (part != 0 || i >= d.length) return;
  if (one_leaf)
    store_float(d.dst[blockIdx.y], d.dtype, i, of_part[0][column]);
  else
    d.leaves[blockIdx.y][leaf * d.length + i] = of_part[0][column];
}

__global__ __launch_bounds__(columns* parts) void gradient_totals(const column_sums d) {
  const int64_t i = int64_t{blockIdx.x} * (columns * parts) + threadIdx.x;
  follow_on();
  if (i >= d.length) return;
  order::tree<double> tree;
  constexpr int ahead = 4;  // loads that overlap
  for (int64_t k = 0; k < d.count; k += ahead) {
    double next[ahead];
#pragma unroll
    for (int j = 0; j < ahead; ++j) next[j] = d.leaves[blockIdx.y][min(k + j, d.count - 1) * d.length + i];
#pragma unroll
    for (int j = 0; j < ahead; ++j)
      if (k + j < d.count) tree.push(next[j]);
  }
  store_float(d.dst[blockIdx.y], d.dtype, i, tree.total());
}

}  // namespace

lockstep_status sum_gradients(lockstep_queue& queue, const lockstep_normalize_desc& d, const gradient_room& room) {
  const int64_t leaves = order::leaves(d.count);
  column_sums sums{{}, {}, {}, gradient_lanes_of(d.count), d.length, (d.length - 1) / columns + 1, d.weight_dtype};
  unsigned kinds = 0;
  const auto add = [&](const double* lanes, void* dst) {
    if (lanes == nullptr) return;
    sums.lanes[kinds] = lanes, sums.leaves[kinds] = leaves == 1 ? nullptr : room.leaves + kinds * leaves * d.length,
    sums.dst[kinds] = dst;
    ++kinds;
  };
  add(room.of_weight, d.weight_gradient), add(room.of_bias, d.bias_gradient);
  if (kinds == 0) return LOCKSTEP_OK;
  const lockstep_status status =
      launch_soon(queue, "gradient_sums", gradient_sums, dim3(static_cast<unsigned>(sums.blocks * leaves), kinds),
                  dim3(columns * parts), 0, sums, leaves == 1);
  if (status != LOCKSTEP_OK || leaves == 1) return status;
  sums.count = leaves;
  return launch_soon(queue, "gradient_totals", gradient_totals,
                     dim3(static_cast<unsigned>((d.length - 1) / (columns * parts) + 1), kinds), dim3(columns * parts),
                     0, sums);
}

}  // namespace lockstep::cuda
