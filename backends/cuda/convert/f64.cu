// f64.cu - convert from F64.
#include "kernels.cuh"

namespace lockstep::cuda {
lockstep_status convert_from_f64(lockstep_queue& queue, const convert_job& job, lockstep_dtype result) {
  return launch_from<double>(queue, job, result);
}
}  // namespace lockstep::cuda
