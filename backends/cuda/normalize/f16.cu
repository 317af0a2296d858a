// f16.cu - normalize of rows of F16.
#include "launch.cuh"

namespace lockstep::cuda {
lockstep_status normalize_f16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_normalize<half16, true>(queue, call) : launch_normalize<half16, false>(queue, call);
}
}  // namespace lockstep::cuda
