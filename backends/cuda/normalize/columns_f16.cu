// columns_f16.cu - normalize along an axis that is not the last, and with statistics that are given, of F16.
#include "columns_launch.cuh"
#include "given.cuh"

namespace lockstep::cuda {
lockstep_status columns_f16(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_columns<half16>(queue, call, held);
}
lockstep_status given_f16(lockstep_queue& queue, const lockstep_call& call) {
  return call.normalize.result == call.normalize.dtype ? launch_given<half16, true>(queue, call)
                                                       : launch_given<half16, false>(queue, call);
}
}  // namespace lockstep::cuda
