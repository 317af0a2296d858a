// gradients_bf16.cu - the gradients of rows of BF16.
#include "gradients_launch.cuh"

namespace lockstep::cuda {
lockstep_status gradients_bf16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_gradients<bfloat16>(queue, call, held);
}
}  // namespace lockstep::cuda
