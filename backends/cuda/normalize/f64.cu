// f64.cu - normalize of rows of F64.
#include "launch.cuh"

namespace lockstep::cuda {
lockstep_status normalize_f64(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_normalize<double, true>(queue, call) : launch_normalize<double, false>(queue, call);
}
}  // namespace lockstep::cuda
