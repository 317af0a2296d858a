// limits.cu - E14: limits that can be tried, beside those that the device states.
// Idea    a kernel with the most parameters, a block with the most threads
// Watch   parameters above 4 KiB need CUDA 12.1 and a device of capability 7.0
#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {
namespace {

template <int bytes>
struct parameters {
  uint32_t words[bytes / 4];
};

// All parameters together: the table, the pointer, and what alignment adds.
template <int bytes>
__global__ void e14_parameters_kernel(const __grid_constant__ parameters<bytes> p, outcome* out) {
  uint32_t sum = 0;
  stopwatch watch;
  for (int i = threadIdx.x; i < bytes / 4; i += blockDim.x) sum += p.words[i] * (i + 1);
  watch.stop(out, sum);
}

template <int bytes>
void try_parameters(bench& b, const char* name) {
  static parameters<bytes> p;
  uint32_t expected = 0;
  for (int i = 0; i < bytes / 4; ++i) {
    p.words[i] = word_value(static_cast<uint32_t>(i));
    expected += p.words[i] * static_cast<uint32_t>(i + 1);
  }
  const auto t = b.cycles(1, [&](outcome* out) { e14_parameters_kernel<bytes><<<1, 256>>>(p, out); });
  const double size = bytes + sizeof(outcome*);
  b.report(name, "e14_parameters_kernel", "B of parameters", NAN, {size, size, size}, t.sum, expected);
}

}  // namespace

void e14_limits(bench& b) {
  try_parameters<4096 - 8>(b, "parameters as taught");
#if CUDART_VERSION >= 12010
  try_parameters<32760 - 8>(b, "parameters today");  // of 32,764: the pointer is aligned to 8
#endif
}

}  // namespace lockstep::probe
