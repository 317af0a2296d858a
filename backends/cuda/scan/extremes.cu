// extremes.cu - scans by MIN and MAX.
#include "launch.cuh"

namespace lockstep::cuda {
namespace {

template <class E>
lockstep_status of(lockstep_queue& queue, const lockstep_call& call, scan_by how) {
  return launch_scan(queue, call, extreme_scan<E>{lib::kind_of(call.scan.reduction).by == lib::join::smallest ? -1 : 0},
                     how);
}

}  // namespace

lockstep_status scan_extremes(lockstep_queue& queue, const lockstep_call& call, scan_by how) {
  switch (call.scan.dtype) {
    case LOCKSTEP_F16: return of<half16>(queue, call, how);
    case LOCKSTEP_BF16: return of<bfloat16>(queue, call, how);
    case LOCKSTEP_F32: return of<float>(queue, call, how);
    case LOCKSTEP_F64: return of<double>(queue, call, how);
    case LOCKSTEP_I32: return of<int32_t>(queue, call, how);
    default: return of<int64_t>(queue, call, how);
  }
}

}  // namespace lockstep::cuda
