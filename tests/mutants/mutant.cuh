// mutant.cuh - the switches of bugs planted in device code (mutant.hpp has the
// host's). Device code cannot read the environment: every .cu file with a bug keeps a
// hash of LOCKSTEP_MUTANT's value in a word of constant memory, which arm_mutants()
// writes when a queue opens.
#pragma once

#include <cuda_runtime_api.h>

#include "mutant.hpp"

namespace lockstep::cuda {

constexpr unsigned mutant_hash(const char* name) {  // FNV-1a
  unsigned hash = 2166136261u;
  for (; *name != '\0'; ++name) hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619u;
  return hash;
}

// The .cu files, each with the way to its own word.
struct mutant_file {
  cudaError_t (*arm)(unsigned hash);
  mutant_file* next;
  static inline mutant_file* first = nullptr;
  explicit mutant_file(cudaError_t (*how)(unsigned)) : arm(how), next(first) { first = this; }
};

inline cudaError_t arm_mutants() {
  const char* name = getenv("LOCKSTEP_MUTANT");
  for (mutant_file* file = mutant_file::first; file != nullptr; file = file->next)
    if (const cudaError_t code = file->arm(name != nullptr ? mutant_hash(name) : 0); code != cudaSuccess) return code;
  return cudaSuccess;
}

#if defined(__CUDACC__)
#if !defined(LOCKSTEP_MUTANT_SPACE)
#define LOCKSTEP_MUTANT_SPACE __constant__
#endif
namespace {
LOCKSTEP_MUTANT_SPACE unsigned planted_mutant;
[[maybe_unused]] const mutant_file this_file([](unsigned hash) {
  return cudaMemcpyToSymbol(planted_mutant, &hash, sizeof hash);
});

template <unsigned hash>
__device__ __forceinline__ bool planted() {
  return planted_mutant == hash;
}
}  // namespace
#endif

}  // namespace lockstep::cuda
#define LOCKSTEP_DEVICE_MUTANT(name) (::lockstep::cuda::planted<::lockstep::cuda::mutant_hash(name)>())
