// async.cuh - copies from global to shared memory that no thread waits for, and shared
// memory by its 32-bit address.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace lockstep::cuda::stencil {

// The address, worked out once: through a pointer the compiler asks the hardware for
// the base again and again, right behind the barrier.
__device__ __forceinline__ uint32_t address_of(const void* shared) {
  auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("" : "+r"(address));
  return address;
}
// Starts copying BYTES (4, 8 or 16) from global memory; before sm_80 it simply copies.
template <int BYTES>
__device__ __forceinline__ void copy_async(uint32_t to, const void* from) {
#if __CUDA_ARCH__ >= 800
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
#else
  for (int k = 0; k < BYTES; k += 4)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + k), "r"(__ldg(static_cast<const int*>(from) + k / 4)) : "memory");
#endif
}
// The same for the first `bytes` of 16; the rest becomes 0, and nothing of it is read.
__device__ __forceinline__ void copy_async_part(uint32_t to, const void* from, uint32_t bytes) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(bytes) : "memory");
#else
  for (uint32_t k = 0; k < 16; k += 4)
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to + k),
                 "r"(k < bytes ? __ldg(static_cast<const int*>(from) + k / 4) : 0)
                 : "memory");
#endif
}
__device__ __forceinline__ void copies_end_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
template <int GROUPS>
__device__ __forceinline__ void copies_wait_but() {  // all but the last GROUPS groups have landed
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(GROUPS) : "memory");
#endif
}
__device__ __forceinline__ void store_shared(uint32_t to, float x) {
  asm volatile("st.shared.f32 [%0], %1;" ::"r"(to), "f"(x) : "memory");
}
__device__ __forceinline__ void store_shared(uint32_t to, double x) {
  asm volatile("st.shared.f64 [%0], %1;" ::"r"(to), "d"(x) : "memory");
}
__device__ __forceinline__ void store_vector(uint32_t to, const float* x) {
  asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x[0]), "f"(x[1]), "f"(x[2]), "f"(x[3])
               : "memory");
}
__device__ __forceinline__ void store_vector(uint32_t to, const double* x) {
  asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x[0]), "d"(x[1]) : "memory");
}
__device__ __forceinline__ void load_shared(float (&e)[4], uint32_t from) {
  asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(e[0]), "=f"(e[1]), "=f"(e[2]), "=f"(e[3])
               : "r"(from)
               : "memory");
}
__device__ __forceinline__ void load_shared(double (&e)[2], uint32_t from) {
  asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(e[0]), "=d"(e[1]) : "r"(from) : "memory");
}

}  // namespace lockstep::cuda::stencil
