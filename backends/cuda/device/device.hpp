// device.hpp - the devices, why one is not usable, and what launches need to know.
#pragma once

#include <cuda.h>

#include "../tuning.hpp"
#include "check.hpp"

namespace lockstep::cuda {

// Read once a device.
struct device_facts {
  int major = 0, minor = 0;  // compute capability
  int processors = 0;        // SMs
  int shared_bytes = 0;      // a block's dynamic shared memory after opting in
  int l2_bytes = 0;
  int resident_threads = 0;  // per SM
  bool pools = false;        // stream-ordered allocation
  bool early = false;        // kernels may be made ready while the one before ends, in captured graphs too
  tuning tuned{};
  decltype(&cuStreamWriteValue32) write_word = nullptr;  // the driver's; NULL: there is none
};
lockstep_status facts_of(int device, const device_facts** facts);

lockstep_status devices(int32_t* count);
lockstep_status device_info(int32_t device, lockstep_device_info* info);
// LOCKSTEP_OK, or why this build has no code for the device.
lockstep_status require_usable(int device);

}  // namespace lockstep::cuda
