// check.hpp - how CUDA failures become statuses. Every call of the runtime goes
// through LOCKSTEP_CUDA, every kernel through queue.hpp's launch(): both leave
// this thread's last error cleared.
#pragma once

#include <cuda_runtime_api.h>

#include "lockstep/backend.h"

namespace lockstep::cuda {

extern const lockstep_host* host;  // set by lockstep_backend_entry

// Sets this thread's error text (printf) and returns status.
[[gnu::format(printf, 2, 3)]] lockstep_status failed(lockstep_status status, const char* format, ...);

// The status of a CUDA error: OUT_OF_MEMORY, BACKEND_LOST for errors that stay
// (the context is gone), else BACKEND_FAILED. Clears what can be cleared.
lockstep_status failed(cudaError_t code, const char* what);

// Whether the error will be returned by every later call of this process.
bool is_sticky(cudaError_t code);

// CUDA does not survive fork; a child gets BACKEND_LOST before it touches it.
bool forked();
lockstep_status failed_fork();

// Makes the queue's device current and gives the caller's back.
class device_guard {
 public:
  explicit device_guard(int device) : code_(cudaGetDevice(&before_)) {
    if (code_ == cudaSuccess && before_ != device) {
      code_ = cudaSetDevice(device);
      changed_ = code_ == cudaSuccess;
    }
    if (code_ != cudaSuccess) (void)cudaGetLastError();  // not every user of the guard looks at its code
  }
  ~device_guard() {
    if (!changed_ || cudaSetDevice(before_) == cudaSuccess) return;
    (void)cudaSetDevice(before_);  // once more: the caller must not notice that somebody else's error came out here
    (void)cudaGetLastError();
  }
  device_guard(const device_guard&) = delete;
  device_guard& operator=(const device_guard&) = delete;
  cudaError_t code() const { return code_; }

 private:
  int before_ = 0;
  cudaError_t code_;
  bool changed_ = false;
};

// Lets this thread allocate while some stream of the process is being captured.
class relaxed_capture {
 public:
  relaxed_capture() : changed_(exchange()) {}
  ~relaxed_capture() {
    if (changed_ && !exchange()) (void)exchange();  // once more, as above
  }
  relaxed_capture(const relaxed_capture&) = delete;
  relaxed_capture& operator=(const relaxed_capture&) = delete;

 private:
  bool exchange() {
    if (cudaThreadExchangeStreamCaptureMode(&mode_) == cudaSuccess) return true;
    (void)cudaGetLastError();
    return false;
  }
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
  bool changed_;
};

}  // namespace lockstep::cuda

// Returns from the enclosing function (a lockstep_status) when a call fails.
#define LOCKSTEP_CUDA(call)                                                     \
  do {                                                                          \
    if (const cudaError_t lockstep_code = (call); lockstep_code != cudaSuccess) \
      return ::lockstep::cuda::failed(lockstep_code, #call);                    \
  } while (0)
