// shuffle.cpp - CUDA's warp shuffles over arrays of 32-lane warps.
// Idea    every warp has the same permutation: compute the 32 source lanes once, then
//         use two-register permutes (AVX-512) or a load and a store for each lane.
// Moves   each element in once, out once; no arithmetic.
// Limit   the copy of the same size.
// Watch   in place a warp must be read whole before it is written.
// Source  CUDA C++ Programming Guide, "Warp Shuffle Functions"; order.hpp.
#include <atomic>

#include "bits/order.hpp"
#include "ops.hpp"
#include "parallel.hpp"
#include "shuffle_kernels.hpp"

namespace lockstep::cpu {
namespace {

template <class T>
void permute_warps(const lockstep_queue& queue, const lockstep_call& call, shuffle_kernel<T> kernel, bool stream) {
  const lockstep_shuffle_desc& d = call.shuffle;
  T source[32];
  for (int lane = 0; lane < 32; ++lane)
    source[lane] = static_cast<T>(order::source_lane(static_cast<order::shuffle>(d.kind), lane, d.width, d.operand));
  over_ranges(queue, d.count / 32, queue.tuned->moves.shuffle_grain_warps, [&](int64_t first, int64_t last) {
    kernel(static_cast<const T*>(call.src) + first * 32, static_cast<T*>(call.dst) + first * 32, last - first, source,
           stream);
    if (stream) std::atomic_thread_fence(std::memory_order_seq_cst);  // orders non-temporal stores
  });
}

template <bool stream>
lockstep_status launch(lockstep_queue* queue, const lockstep_call* call) {
  const shuffle_kernels& kernels = shuffle_kernels_of(queue->kernels);
  if (call->shuffle.element_bytes == 4)
    permute_warps(*queue, *call, kernels.four, stream);
  else
    permute_warps(*queue, *call, kernels.eight, stream);
  return LOCKSTEP_OK;
}

const char* not_streamed(const lockstep_queue* queue, const lockstep_call* call) {
  if (call->src == call->dst) return "does not shuffle in place";
  if (reinterpret_cast<uintptr_t>(call->dst) % 64 != 0) return "needs dst at a cache line, a multiple of 64";
  return shuffle_kernels_of(queue->kernels).streams ? nullptr : "needs AVX-512";
}
int fits_caches(const lockstep_queue* queue, const lockstep_call* call) {
  const auto bytes = static_cast<int64_t>(call->shuffle.element_bytes);
  return call->shuffle.count < queue->tuned->moves.shuffle_stream_bytes / 2 / bytes;
}

const lockstep_variant rows[] = {
    {"streamed", "as permuted, results past the caches by non-temporal stores, for arrays larger than them", 0,
     not_streamed, fits_caches, nullptr, launch<true>},
    {"permuted", "one table of 32 source lanes, each warp permuted in registers", 0, nullptr, nullptr, nullptr,
     launch<false>},
    {"ref", "plain loops: the definition in code", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_shuffle},
};
}  // namespace
const lockstep_table shuffle_table = {rows, sizeof rows / sizeof *rows};
}  // namespace lockstep::cpu
