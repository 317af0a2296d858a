// global.cu - row C1: one thread an output, every tap from global memory; any rank.
// Idea    the definition, in parallel; neighbours' taps overlap and L1 serves them
// Moves   bytes read + written once through DRAM, (taps + 1) x 4 through L1
// Limit   L1 throughput and index arithmetic: one load and one fma a tap
// Watch   64-bit index; a grid of more than 2^31 - 1 blocks strides
// Source  ladder row C1
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda::stencil {
namespace {

constexpr int block = 256;

template <class T, int RANK>
__global__ void __launch_bounds__(block)
    stencil_global(const __grid_constant__ sweep<T> s, const __grid_constant__ taps<T, most_taps> t, int64_t total) {
  const int64_t step = int64_t{block} * gridDim.x;
  for (int64_t i = output_of(blockIdx.x, block, threadIdx.x); i < total; i += step) {
    int64_t at[3] = {0, 0, 0}, b = 0, rest = i;  // z, y, x in dst, then in src
    if (RANK == 1) {
      b = divide(rest, s.out[2], at[2]);
    } else {
      rest = divide(rest, s.out[2], at[2]);
      rest = divide(rest, s.out[1], at[1]);
      b = divide(rest, s.out[0], at[0]);
    }
    T* to = s.dst + b * s.dst_batch + at[0] * s.dst_stride[0] + at[1] * s.dst_stride[1] + at[2];
    const int64_t stride[3] = {s.src_stride[0], s.src_stride[1], 1};
    const T* line[3];  // through this output's centre, along each axis
    for (int a = 3 - RANK; a < 3; ++a) at[a] += s.origin;
    const T* centre = s.src + b * s.src_batch + at[0] * stride[0] + at[1] * stride[1] + at[2];
    for (int a = 3 - RANK; a < 3; ++a) line[a] = centre - at[a] * stride[a];
    T acc = T(-0.0);  // fma(c, x, -0.0) is the rounded product
    walk_taps<RANK>(
        s.radius,
        [&](int a, int j, int k) {
          acc = fma_rn(t.c[k], tap(line[a], stride[a], at[a] + j, s.n[a], s.boundary, s.value), acc);
        },
        [&](int k) {
          LOCKSTEP_SEEN(read_src, s.src, centre);
          acc = fma_rn(t.c[k], __ldg(centre), acc);
        });
    LOCKSTEP_SEEN(write_dst, s.dst, to);
    *to = canonical(acc);
  }
}

template <class T>
lockstep_status run(lockstep_queue& queue, const lockstep_call& call) {
  const taps<T, most_taps> t = rounded<T, most_taps>(call.stencil);
  const auto kernel = call.stencil.rank == 1   ? stencil_global<T, 1>
                      : call.stencil.rank == 2 ? stencil_global<T, 2>
                                               : stencil_global<T, 3>;
  return for_each_sweep<T>(call, [&](const sweep<T>& s) {
    const int64_t total = s.batch * s.out[0] * s.out[1] * s.out[2];
    return launch(queue, "stencil_global", kernel, grid_of(ceil_div(total, block)), block, 0, s, t, total);
  });
}

}  // namespace

lockstep_status launch_global(lockstep_queue& queue, const lockstep_call& call) {
  return call.stencil.dtype == LOCKSTEP_F32 ? run<float>(queue, call) : run<double>(queue, call);
}

}  // namespace lockstep::cuda::stencil
