// columns_f64.cu - normalize along an axis that is not the last, and with statistics that are given, of F64.
#include "columns_launch.cuh"
#include "given.cuh"

namespace lockstep::cuda {
lockstep_status columns_f64(lockstep_queue& queue, const lockstep_call& call, bool held) {
  return launch_columns<double>(queue, call, held);
}
lockstep_status given_f64(lockstep_queue& queue, const lockstep_call& call) {
  return call.normalize.result == call.normalize.dtype ? launch_given<double, true>(queue, call)
                                                       : launch_given<double, false>(queue, call);
}
}  // namespace lockstep::cuda
