// stencil.cu - the rows of the stencil table; kernels and launchers are in stencil/.
#include "../ops.hpp"
#include "rows.hpp"
#include "sweep.cuh"

namespace lockstep::cuda {
namespace {

using namespace stencil;

const char* one_axis(const lockstep_queue*, const lockstep_call* call) {
  return call->stencil.rank == 1 ? nullptr : "is for rank 1";
}
const char* symmetric_axis(const lockstep_queue*, const lockstep_call* call) {
  const lockstep_stencil_desc& d = call->stencil;
  if (d.rank != 1) return "is for rank 1";
  for (int k = 1; k <= d.radius; ++k)
    if (d.coefficients[d.radius - k] != d.coefficients[d.radius + k]) return "needs symmetric coefficients";
  return nullptr;
}

constexpr uint32_t folded = LOCKSTEP_LESSON | LOCKSTEP_OWN_ORDER;

const lockstep_variant rows[] = {
    {"sweeps_registers", "many sweeps of a line in one pass: a warp's stretch in registers, neighbours by shuffles", 0,
     registers_refuses, registers_yields, registers_workspace, on_device<launch_registers>},
    {"sweeps_streamed", "many sweeps of a plane in one pass: warps stream down strips, a queue of partial sums a sweep",
     0, sweeps_streamed_refuses, sweeps_streamed_yields, sweeps_streamed_workspace, on_device<launch_sweeps_streamed>},
    {"sweeps_planes",
     "several sweeps of a cube in one pass: blocks stream tiles, partial sums of each sweep in registers", 0,
     sweeps_planes_refuses, sweeps_planes_yields, sweeps_planes_workspace, on_device<launch_sweeps_planes>},
    {"direct", "arrays in the L2: a few outputs of a row a thread, all taps loaded at once", 0, direct_refuses,
     direct_yields, sweeps_workspace, on_device<launch_direct>},
    {"marched", "a thread walks along the outermost axis, partial sums in registers; taps of a plane from the L1", 0,
     marched_refuses, marched_yields, sweeps_workspace, on_device<launch_marched>},
    {"planes", "short rows or planes, whole in shared memory as they lie; a thread one place of 8 of them", 0,
     planes_refuses, planes_yields, sweeps_workspace, on_device<launch_planes>},
    {"wide", "C4: 16 bytes of outputs a thread from registers, no shared memory: L1 serves the halo", 0, one_axis,
     nullptr, sweeps_workspace, on_device<launch_wide>},
    {"streamed", "planes streamed through shared memory once, partial sums of 2r + 1 outputs in registers", 0,
     streamed_refuses, streamed_yields, sweeps_workspace, on_device<launch_streamed>},
    {"folded", "c_k * (x[-k] + x[+k]): half the multiplications, other bits", LOCKSTEP_OWN_ORDER, symmetric_axis,
     nullptr, sweeps_workspace, on_device<launch_folded>},
    {"shared_param", "C2 with the coefficients as kernel parameters: constant memory too, but private to the launch",
     LOCKSTEP_LESSON, one_axis, nullptr, sweeps_workspace, on_device<launch_shared<coefficients::parameter, 256>>},
    {"shared_constant", "C2: shared tile with halos, coefficients in __constant__ memory, 256 threads a block",
     LOCKSTEP_LESSON, constant_refuses, nullptr, sweeps_workspace,
     on_device<launch_shared<coefficients::constant, 256>>},
    {"shared_ldg", "C3: the same, coefficients through the read-only cache by __ldg", LOCKSTEP_LESSON, one_axis,
     nullptr, shared_workspace, on_device<launch_shared<coefficients::ldg, 256>>},
    {"shared_restrict", "C3: the same, coefficients through the read-only cache by const __restrict__", LOCKSTEP_LESSON,
     one_axis, nullptr, shared_workspace, on_device<launch_shared<coefficients::restricted, 256>>},
    {"folded_constant_32",
     "C2 as published: r + 1 coefficients of x[+k] + x[-k] (- for derivatives) in __constant__ memory; blocks of 32",
     folded, folded_constant_refuses, nullptr, sweeps_workspace,
     on_device<launch_shared<coefficients::constant, 32, true>>},
    {"folded_ldg_32",
     "C3 as published: folded_constant_32, coefficients by __ldg: 1.067 times its time on a K40, 1.003 on an H200",
     folded, folded_refuses, nullptr, shared_workspace, on_device<launch_shared<coefficients::ldg, 32, true>>},
    {"folded_restrict_32", "C3 as published: folded_constant_32, coefficients by const __restrict__", folded,
     folded_refuses, nullptr, shared_workspace, on_device<launch_shared<coefficients::restricted, 32, true>>},
    {"shared_constant_32", "C2 in blocks of 32 threads, one output each, all 2r + 1 coefficients", LOCKSTEP_LESSON,
     constant_refuses, nullptr, sweeps_workspace, on_device<launch_shared<coefficients::constant, 32>>},
    {"shared_ldg_32", "C3 by __ldg in blocks of 32 threads, one output each", LOCKSTEP_LESSON, one_axis, nullptr,
     shared_workspace, on_device<launch_shared<coefficients::ldg, 32>>},
    {"shared_restrict_32", "C3 by const __restrict__ in blocks of 32 threads, one output each", LOCKSTEP_LESSON,
     one_axis, nullptr, shared_workspace, on_device<launch_shared<coefficients::restricted, 32>>},
    {"global", "C1: one thread an output, every tap from global memory; any rank", 0, nullptr, nullptr,
     sweeps_workspace, on_device<launch_global>},
};

}  // namespace

const lockstep_table stencil_table = {rows, sizeof rows / sizeof *rows};

}  // namespace lockstep::cuda
