// gradients_f64.cu - the gradients of rows of F64.
#include "gradients_launch.cuh"

namespace lockstep::cuda {
lockstep_status gradients_f64(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_gradients<double>(queue, call, held);
}
}  // namespace lockstep::cuda
