// columns_bf16.cu - normalize along an axis that is not the last, and with statistics that are given, of BF16.
#include "columns_launch.cuh"
#include "given.cuh"

namespace lockstep::cuda {
lockstep_status columns_bf16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_columns<bfloat16>(queue, call, held);
}
lockstep_status given_bf16(lockstep_queue& queue, const lockstep_call& call) {
  return call.normalize.result == call.normalize.dtype ? launch_given<bfloat16, true>(queue, call)
                                                       : launch_given<bfloat16, false>(queue, call);
}
}  // namespace lockstep::cuda
