// float_sums.cu - scans by SUM of floats.
#include "launch.cuh"

namespace lockstep::cuda {
namespace {

template <class E>
lockstep_status by_result(lockstep_queue& queue, const lockstep_call& call) {
  if (call.scan.result == LOCKSTEP_F64) return launch_scan(queue, call, float_scan<E, double>{});
  if (call.scan.result == LOCKSTEP_F32) return launch_scan(queue, call, float_scan<E, float>{});
  return launch_scan(queue, call, float_scan<E, E>{});
}

}  // namespace

lockstep_status scan_float_sums(lockstep_queue& queue, const lockstep_call& call) {
  switch (call.scan.dtype) {
    case LOCKSTEP_F16: return by_result<half16>(queue, call);
    case LOCKSTEP_BF16: return by_result<bfloat16>(queue, call);
    case LOCKSTEP_F32: return by_result<float>(queue, call);
    default: return by_result<double>(queue, call);
  }
}

}  // namespace lockstep::cuda
