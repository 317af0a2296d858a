// fake_cudart.hpp - a fake CUDA runtime that a test controls. It has devices but no kernels:
// memory is the host's (device memory without access rights, so that reading it on the host
// crashes), streams finish at once, launches do nothing. Calls are counted and the N-th fails.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

namespace fake {

struct chips {
  int devices = 2;
  int major = 9, minor = 0;
  int driver = 13000;               // what cudaDriverGetVersion reports
  cudaError_t start = cudaSuccess;  // what cudaGetDeviceCount returns, its output unwritten
  bool pools = true;
};
void use(const chips& all);

// From here on calls are counted anew, and the nth (from 1; 0: none) fails. Not
// counted: what only asks for errors and texts, and what registers kernels.
// sticky: every later call fails alike, until the process ends.
void fail(long nth, cudaError_t error, bool sticky = false);
long calls();
std::string failed_call();  // the name of the call that failed, "" while none has
std::string next_call();    // and of the one that came after it

long launches();
// The last 16 launches, oldest first, since they were asked for.
struct started {
  std::string kernel;  // its readable name, as far as its parameters
  dim3 grid, block;
};
std::vector<started> last_started();
// The copies over the link since they were asked for: the host's part of each, and which way it went.
struct crossed {
  uintptr_t host;
  size_t bytes;
  bool up;
};
std::vector<crossed> last_crossed();
long launches_on(cudaStream_t stream);
long live();           // memory, streams and events that exist
std::string listed();  // and what they are
long pools();
std::string misuse();  // the first wrong use of the runtime: double frees, copies beyond memory, dead handles ...
void capture(cudaStream_t stream, bool on);
void late_host(bool late);  // whether events have passed when they are asked for

}  // namespace fake
