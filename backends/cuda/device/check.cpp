// check.cpp - see check.hpp.
#include "check.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>

namespace lockstep::cuda {

const lockstep_host* host = nullptr;

namespace {
std::atomic<bool> is_child{false};
const int fork_handler = pthread_atfork(nullptr, nullptr, [] { is_child.store(true, std::memory_order_relaxed); });
}  // namespace

lockstep_status failed(lockstep_status status, const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  host->set_error(text);
  return status;
}

bool is_sticky(cudaError_t code) {
  switch (code) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorDevicesUnavailable:
    case cudaErrorUnknown: return true;
    default: return false;
  }
}

lockstep_status failed(cudaError_t code, const char* what) {
  (void)cudaGetLastError();  // a later call must not find this one's error
  if (code == cudaErrorMemoryAllocation)
    return failed(LOCKSTEP_OUT_OF_MEMORY, "out of device memory (%s); free some or process the data in parts", what);
  if (is_sticky(code))
    return failed(LOCKSTEP_BACKEND_LOST, "%s: %s (%s); the device context is lost for this process", what,
                  cudaGetErrorString(code), cudaGetErrorName(code));
  return failed(LOCKSTEP_BACKEND_FAILED, "%s: %s (%s)", what, cudaGetErrorString(code), cudaGetErrorName(code));
}

bool forked() { return fork_handler == 0 && is_child.load(std::memory_order_relaxed); }
lockstep_status failed_fork() {
  return failed(LOCKSTEP_BACKEND_LOST,
                "this process is the child of a fork, where CUDA does not work; use exec, or fork "
                "before the first call");
}

}  // namespace lockstep::cuda
