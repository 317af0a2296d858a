// f16.cu - convert from F16.
#include "kernels.cuh"

namespace lockstep::cuda {
lockstep_status convert_from_f16(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  return launch_from<half16>(queue, job, result);
}
}  // namespace lockstep::cuda
