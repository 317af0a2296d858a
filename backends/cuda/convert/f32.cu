// f32.cu - convert from F32.
#include "kernels.cuh"

namespace lockstep::cuda {
lockstep_status convert_from_f32(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  return launch_from<float>(queue, job, result);
}
}  // namespace lockstep::cuda
