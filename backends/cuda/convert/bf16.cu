// bf16.cu - convert from BF16.
#include "kernels.cuh"

namespace lockstep::cuda {
lockstep_status convert_from_bf16(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  return launch_from<bfloat16>(queue, job, result);
}
}  // namespace lockstep::cuda
