// gradients_f16.cu - the gradients of rows of F16.
#include "gradients_launch.cuh"

namespace lockstep::cuda {
lockstep_status gradients_f16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_gradients<half16>(queue, call, held);
}
}  // namespace lockstep::cuda
