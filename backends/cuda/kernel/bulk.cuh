// bulk.cuh - the copy engine of sm_90: a run of global memory lands in shared memory by one
// instruction of one thread, and an mbarrier tells when. Older chips have no such engine;
// kernels that use it are only launched where there is one.
// Watch   The engine moves whole 16 bytes from and to multiples of 16. It is another party
//         to shared memory: barriers are fenced after their init, and words that threads
//         wrote by hand are before the engine writes there again.
// Source  PTX ISA, cp.async.bulk and mbarrier.
#pragma once

#include <cstdint>

namespace lockstep::cuda {

__device__ __forceinline__ uint32_t shared_address(const void* at) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(at));
}

__device__ __forceinline__ void init_barrier([[maybe_unused]] uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(barrier)) : "memory");
#endif
}

// What threads did to shared memory comes before what the engine does next.
__device__ __forceinline__ void fence_engine() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
}

// bytes: a multiple of 16; with 0 the barrier completes at once.
__device__ __forceinline__ void start_copy([[maybe_unused]] void* to, [[maybe_unused]] const void* from,
                                           [[maybe_unused]] int bytes, [[maybe_unused]] uint64_t* barrier) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes)
               : "memory");
  if (bytes > 0)
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
#endif
}

__device__ __forceinline__ void wait_landed([[maybe_unused]] uint64_t* barrier, [[maybe_unused]] unsigned phase) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n\t"
      ".reg .pred landed;\n\t"
      "again:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 landed, [%0], %1;\n\t"
      "@!landed bra again;\n\t"
      "}" ::"r"(shared_address(barrier)),
      "r"(phase)
      : "memory");
#endif
}

}  // namespace lockstep::cuda
