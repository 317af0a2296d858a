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

// As launch, in clusters of `blocks`, at most 8, along x.
template <class... Parameters, class... Arguments>
lockstep_status launch_clusters(const lockstep_queue& queue, const char* name, void (*kernel)(Parameters...), dim3 grid,
                                dim3 block, size_t shared_bytes, int blocks, Arguments&&... arguments) {
  cudaLaunchAttribute cluster{};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim.x = static_cast<unsigned>(blocks), cluster.val.clusterDim.y = cluster.val.clusterDim.z = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes, config.stream = queue.stream;
  config.attrs = &cluster, config.numAttrs = 1;
  const cudaError_t code = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  return code == cudaSuccess ? LOCKSTEP_OK : failed(code, name);
}

}  // namespace lockstep::cuda
