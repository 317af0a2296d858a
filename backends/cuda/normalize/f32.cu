// f32.cu - normalize of rows of F32.
#include "launch.cuh"

namespace lockstep::cuda {
lockstep_status normalize_f32(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_normalize<float, true>(queue, call) : launch_normalize<float, false>(queue, call);
}
}  // namespace lockstep::cuda
