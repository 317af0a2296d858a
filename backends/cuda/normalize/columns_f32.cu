// columns_f32.cu - normalize along an axis that is not the last, and with statistics that are given, of F32.
#include "columns_launch.cuh"
#include "given.cuh"

namespace lockstep::cuda {
lockstep_status columns_f32(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_columns<float>(queue, call, held);
}
lockstep_status given_f32(lockstep_queue& queue, const lockstep_call& call) {
  return call.normalize.result == call.normalize.dtype ? launch_given<float, true>(queue, call)
                                                       : launch_given<float, false>(queue, call);
}
}  // namespace lockstep::cuda
