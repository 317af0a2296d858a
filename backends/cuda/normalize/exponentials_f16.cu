// exponentials_f16.cu - softmax and its kin of rows of F16.
#include "exponentials_launch.cuh"

namespace lockstep::cuda {
lockstep_status exponentials_f16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_exponential_kind<half16, true>(queue, call)
              : launch_exponential_kind<half16, false>(queue, call);
}
}  // namespace lockstep::cuda
