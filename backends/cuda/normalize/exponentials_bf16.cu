// exponentials_bf16.cu - softmax and its kin of rows of BF16.
#include "exponentials_launch.cuh"

namespace lockstep::cuda {
lockstep_status exponentials_bf16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return held ? launch_exponential_kind<bfloat16, true>(queue, call)
              : launch_exponential_kind<bfloat16, false>(queue, call);
}
}  // namespace lockstep::cuda
