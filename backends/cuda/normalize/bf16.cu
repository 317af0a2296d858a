// bf16.cu - normalize of rows of BF16.
#include "launch.cuh"

namespace lockstep::cuda {
lockstep_status normalize_bf16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_normalize<bfloat16, true>(queue, call) : launch_normalize<bfloat16, false>(queue, call);
}
}  // namespace lockstep::cuda
