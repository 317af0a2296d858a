// integers.cu - convert from or to integers and BOOL, by the bytes of elements.
#include "integers.cuh"
#include "kernels.cuh"

namespace lockstep::cuda {
namespace {

template <class E>
lockstep_status to_bytes(lockstep_queue& queue, const convert_job& job, int64_t bytes) {
  switch (bytes) {
    case 1: return launch_convert<E, uint8_t, any_type>(queue, job);
    case 2: return launch_convert<E, uint16_t, any_type>(queue, job);
    case 4: return launch_convert<E, uint32_t, any_type>(queue, job);
    default: return launch_convert<E, uint64_t, any_type>(queue, job);
  }
}

}  // namespace

lockstep_status convert_integers(lockstep_queue& queue, const convert_job& job, int64_t from_bytes, int64_t bytes) {
  switch (from_bytes) {
    case 1: return to_bytes<uint8_t>(queue, job, bytes);
    case 2: return to_bytes<uint16_t>(queue, job, bytes);
    case 4: return to_bytes<uint32_t>(queue, job, bytes);
    default: return to_bytes<uint64_t>(queue, job, bytes);
  }
}

}  // namespace lockstep::cuda
