// float_sums.cu - scans by SUM of floats.
#include "launch.cuh"

namespace lockstep::cuda {
namespace {

template <class E>
lockstep_status by_result(lockstep_queue& queue, const lockstep_call& call, scan_by how) {
  if (call.scan.result == LOCKSTEP_F64) return launch_scan(queue, call, float_scan<E, double>{}, how);
  if (call.scan.result == LOCKSTEP_F32) return launch_scan(queue, call, float_scan<E, float>{}, how);
  return launch_scan(queue, call, float_scan<E, E>{}, how);
}

}  // namespace

lockstep_status scan_float_sums(lockstep_queue& queue, const lockstep_call& call, scan_by how) {
  switch (call.scan.dtype) {
    case LOCKSTEP_F16: return by_result<half16>(queue, call, how);
    case LOCKSTEP_BF16: return by_result<bfloat16>(queue, call, how);
    case LOCKSTEP_F32: return by_result<float>(queue, call, how);
    default: return by_result<double>(queue, call, how);
  }
}

}  // namespace lockstep::cuda
