// exponentials_f32.cu - softmax and its kin of rows of F32.
#include "exponentials_launch.cuh"

namespace lockstep::cuda {
lockstep_status exponentials_f32(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_exponential_kind<float, true>(queue, call) : launch_exponential_kind<float, false>(queue, call);
}
}  // namespace lockstep::cuda
