// results.cuh - results of any type: floats rounded once from double, integers from exact sums of 192 bits.
#pragma once

#include "../normalize/quad.cuh"
#include "block_tree.cuh"
#include "norm.cuh"

namespace lockstep::cuda {

// Two's complement.
struct exact_sum : wide_sum {};
__device__ __forceinline__ exact_sum operator+(exact_sum a, const exact_sum& b) {
  a.add(b.word[0], b.word[1], b.word[2]);
  return a;
}
__device__ __forceinline__ exact_sum joined(const exact_sum& a, const exact_sum& b) { return a + b; }

// As I64 or U64. The nearest value where it does not fit, and a report.
__device__ __forceinline__ void store_exact(void* dst, lockstep_dtype result, int64_t s, const exact_sum& sum,
                                            report_word faults) {
  const bool negative = static_cast<int64_t>(sum.word[2]) < 0;
  const uint64_t above = negative ? ~0ull : 0;
  bool fits = sum.word[1] == above && sum.word[2] == above;
  uint64_t value = sum.word[0];
  if (result == LOCKSTEP_U64) {
    fits = fits && !negative;
    if (!fits) value = negative ? 0 : ~0ull;
  } else {
    fits = fits && (static_cast<int64_t>(value) < 0) == negative;
    if (!fits) value = static_cast<uint64_t>(negative ? INT64_MIN : INT64_MAX);
  }
  static_cast<uint64_t*>(dst)[s] = value;
  if (!fits) report(faults, fault::overflow, s);
}

}  // namespace lockstep::cuda
