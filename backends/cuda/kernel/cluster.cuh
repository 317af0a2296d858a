// cluster.cuh - blocks of a cluster, which run at once and read each other's shared memory. sm_90 has them; on chips
// before it nothing is launched in clusters.
// Watch   a block must not end while another may still read its shared memory: cluster_leaves when it has read, and
//         cluster_left before it ends
// Source  PTX ISA, barrier.cluster and mapa.
#pragma once

#include "../device/queue.hpp"
#include "bulk.cuh"

namespace lockstep::cuda {

// All threads of the cluster meet; what each wrote is seen by all.
__device__ __forceinline__ void cluster_leaves() {
#if __CUDA_ARCH__ >= 900
  __syncwarp();
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_left() {
#if __CUDA_ARCH__ >= 900
  __syncwarp();
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_meets() {
  cluster_leaves();
  cluster_left();
}

// What the block of this rank has at `at` of its shared memory.
__device__ __forceinline__ double of_other_block([[maybe_unused]] const double* at, [[maybe_unused]] int rank) {
#if __CUDA_ARCH__ >= 900
  double x;
  asm volatile(
      "{\n\t"
      ".reg .u32 there;\n\t"
      "mapa.shared::cluster.u32 there, %1, %2;\n\t"
      "ld.shared::cluster.f64 %0, [there];\n\t"
      "}"
      : "=d"(x)
      : "r"(shared_address(at)), "r"(rank)
      : "memory");
  return x;
#else
  return 0;
#endif
}

// A block expects bytes that other blocks of its cluster send, and says so to them: one thread calls expect_values,
// then all of both blocks cluster_begins and, before the first is sent, cluster_left.
__device__ __forceinline__ void expect_values([[maybe_unused]] uint64_t* landed, [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
  init_barrier(landed);
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(landed)), "r"(bytes)
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}
__device__ __forceinline__ void cluster_begins() {
#if __CUDA_ARCH__ >= 900
  __syncwarp();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
#endif
}
// To `at` of the block of this rank, whose wait_landed ends when all that it expects is there.
__device__ __forceinline__ void send_value([[maybe_unused]] double x, [[maybe_unused]] const double* at,
                                           [[maybe_unused]] const uint64_t* landed, [[maybe_unused]] int rank) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n\t"
      ".reg .u32 there, barrier;\n\t"
      "mapa.shared::cluster.u32 there, %0, %3;\n\t"
      "mapa.shared::cluster.u32 barrier, %1, %3;\n\t"
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], %2, [barrier];\n\t"
      "}" ::"r"(shared_address(at)),
      "r"(shared_address(landed)), "l"(__double_as_longlong(x)), "r"(rank)
      : "memory");
#endif
}

// As launch_soon, in clusters, of at most 8 blocks.
template <class... Parameters, class... Arguments>
lockstep_status launch_clusters(const lockstep_queue& queue, const char* name, void (*kernel)(Parameters...), dim3 grid,
                                dim3 block, size_t shared_bytes, dim3 cluster, Arguments&&... arguments) {
  if (cluster.x * cluster.y == 1)
    return launch_soon(queue, name, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
  cudaLaunchAttribute of_launch[2]{};
  of_launch[0].id = cudaLaunchAttributeClusterDimension;
  of_launch[0].val.clusterDim.x = cluster.x, of_launch[0].val.clusterDim.y = cluster.y;
  of_launch[0].val.clusterDim.z = 1;
  of_launch[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  of_launch[1].val.programmaticStreamSerializationAllowed = 1;
  const bool early = int64_t{grid.x} * grid.y <= int64_t{early_blocks} * queue.facts->processors;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes, config.stream = queue.stream;
  config.attrs = of_launch, config.numAttrs = early ? 2 : 1;
  const cudaError_t code = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  return code == cudaSuccess ? LOCKSTEP_OK : failed(code, name);
}

}  // namespace lockstep::cuda
