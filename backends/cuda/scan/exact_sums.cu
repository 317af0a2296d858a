// exact_sums.cu - scans by SUM of integers.
#include "launch.cuh"

namespace lockstep::cuda {
lockstep_status scan_exact_sums(lockstep_queue& queue, const lockstep_call& call, scan_by how) {
  if (call.scan.dtype == LOCKSTEP_I32) return launch_scan(queue, call, exact_scan<int32_t>{queue.report}, how);
  return launch_scan(queue, call, exact_scan<int64_t>{queue.report}, how);
}
}  // namespace lockstep::cuda
