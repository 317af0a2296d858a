// gradients_f32.cu - the gradients of rows of F32.
#include "gradients_launch.cuh"

namespace lockstep::cuda {
lockstep_status gradients_f32(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_gradients<float>(queue, call, held);
}
}  // namespace lockstep::cuda
