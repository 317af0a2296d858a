// exponentials_f64.cu - softmax and its kin of rows of F64.
#include "exponentials_launch.cuh"

namespace lockstep::cuda {
lockstep_status exponentials_f64(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_exponential_kind<double, true>(queue, call)
              : launch_exponential_kind<double, false>(queue, call);
}
}  // namespace lockstep::cuda
