// fake_cudart.cpp - see fake_cudart.hpp. It has the symbols that the module and nvcc's
// launch code (12.x and 13.x) need; a missing one is a link error. A failing call has no
// effect, except calls that free or destroy: they cannot be repeated, and the real ones
// return errors of earlier work.
#include <cuda.h>

#include <algorithm>
#include <cstring>

#include "fake_machine.hpp"

using namespace fake;

namespace {

struct configuration {
  dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local configuration pushed{};

}  // namespace

extern "C" {

// ---- errors, registration: not counted ---------------------------------------
cudaError_t cudaGetLastError() {
  const cudaError_t code = last_error;
  last_error = all().lost;
  return code;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t code) {
  return code == cudaErrorMemoryAllocation ? "out of memory" : "a scripted failure";
}
const char* cudaGetErrorName(cudaError_t code) {
  switch (code) {
    case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation";
    case cudaErrorLaunchOutOfResources: return "cudaErrorLaunchOutOfResources";
    case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress";
    default: return "cudaErrorScripted";
  }
}
void** __cudaRegisterFatBinary(void* binary) { return new void*(binary); }
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void** handle) { delete handle; }
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  all().kernels[host] = name;
}
void __cudaRegisterVar(void**, char* host, char*, const char*, int, size_t, int, int) { all().variables.insert(host); }

// ---- devices --------------------------------------------------------------
cudaError_t cudaGetDeviceCount(int* count) {
  return call("cudaGetDeviceCount", [&](machine& m) {
    if (no_start(m) != cudaSuccess) return no_start(m);
    *count = m.chips.devices;
    return cudaSuccess;
  });
}
cudaError_t cudaDriverGetVersion(int* version) {
  return call("cudaDriverGetVersion", [&](machine& m) { return *version = m.chips.driver, cudaSuccess; });
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  return call("cudaRuntimeGetVersion", [&](machine&) { return *version = CUDART_VERSION, cudaSuccess; });
}
cudaError_t cudaGetDevice(int* device) {
  return call("cudaGetDevice", [&](machine&) { return *device = current, cudaSuccess; });
}
cudaError_t cudaSetDevice(int device) {
  return call("cudaSetDevice", [&](machine& m) {
    if (device < 0 || device >= m.chips.devices) return cudaErrorInvalidDevice;
    current = device;
    return cudaSuccess;
  });
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  return call("cudaDeviceGetAttribute", [&](machine& m) {
    if (device < 0 || device >= m.chips.devices) return cudaErrorInvalidDevice;
    switch (attribute) {
      case cudaDevAttrComputeCapabilityMajor: *value = m.chips.major; break;
      case cudaDevAttrComputeCapabilityMinor: *value = m.chips.minor; break;
      case cudaDevAttrMultiProcessorCount: *value = 132; break;
      case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = 227 * 1024; break;
      case cudaDevAttrL2CacheSize: *value = 50 << 20; break;
      case cudaDevAttrMaxThreadsPerMultiProcessor: *value = 2048; break;
      case cudaDevAttrMemoryPoolsSupported: *value = m.chips.pools; break;
      default:
        blame("the fake does not know device attribute " + std::to_string(attribute));
        return cudaErrorInvalidValue;
    }
    return cudaSuccess;
  });
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int device) {
  return call("cudaGetDeviceProperties", [&](machine& m) {
    if (device < 0 || device >= m.chips.devices) return cudaErrorInvalidDevice;
    *p = {};
    std::strcpy(p->name, "Scripted GPU");
    p->major = m.chips.major, p->minor = m.chips.minor;
    p->multiProcessorCount = 132, p->l2CacheSize = 50 << 20;
    p->sharedMemPerBlockOptin = 227 * 1024, p->totalGlobalMem = most_memory;
    return cudaSuccess;
  });
}

// ---- streams and events ---------------------------------------------------
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned) {
  return call("cudaStreamCreateWithFlags", [&](machine& m) {
    *s = new CUstream_st{current, false};
    m.streams.insert(*s);
    return cudaSuccess;
  });
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* s, unsigned flags, int) {
  return cudaStreamCreateWithFlags(s, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return call("cudaDeviceGetStreamPriorityRange", [&](machine&) {
    *least = 0, *greatest = -1;
    return cudaSuccess;
  });
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  return call(
      "cudaStreamDestroy",
      [&](machine& m) {
        if (m.streams.erase(s) == 0)
          return blame("cudaStreamDestroy of a stream that does not exist"), cudaErrorInvalidResourceHandle;
        drained(m, s);
        delete s;
        return cudaSuccess;
      },
      true);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  return call("cudaStreamSynchronize", [&](machine& m) { return waits(m, s); });
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
  return call("cudaStreamQuery", [&](machine& m) { return waits(m, s); });
}
// The two functions of the driver that the module asks for.
static CUresult write_word(CUstream s, CUdeviceptr at, cuuint32_t value, unsigned) {
  const cudaError_t code = call("cuStreamWriteValue32", [&](machine& m) {
    const cudaError_t done = waits(m, s);
    if (done == cudaSuccess) *reinterpret_cast<cuuint32_t*>(at) = value;
    return done;
  });
  last_error = all().lost;  // the driver keeps no error for the runtime
  return code == cudaSuccess ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
}
// No device of the fake can write to another's memory.
static CUresult access_of(void* answer, CUpointer_attribute attribute, CUdeviceptr) {
  if (attribute != CU_POINTER_ATTRIBUTE_ACCESS_FLAGS)
    blame("the fake does not know pointer attribute " + std::to_string(attribute));
  *static_cast<CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS*>(answer) = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  return CUDA_SUCCESS;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult* how) {
  return call("cudaGetDriverEntryPoint", [&](machine&) {
    const bool words = std::strcmp(symbol, "cuStreamWriteValue32") == 0;
    const bool known = words || std::strcmp(symbol, "cuPointerGetAttribute") == 0;
    if (!known) blame(std::string("the fake does not know ") + symbol);
    *function = words ? reinterpret_cast<void*>(write_word) : known ? reinterpret_cast<void*>(access_of) : nullptr;
    *how = known ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
    return cudaSuccess;
  });
}
cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long flags,
                                    cudaDriverEntryPointQueryResult* how) {
  return cudaGetDriverEntryPointByVersion(symbol, function, 12000, flags, how);
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  return call("cudaStreamWaitEvent", [&](machine& m) {
    cudaError_t code = alive(m, s);
    if (code == cudaSuccess) code = alive(m, e);
    if (code == cudaSuccess && e->of != nullptr) {
      long& behind = m.work[s].behind[e->of];
      behind = std::max(behind, e->launch);
    }
    return code;
  });
}
cudaError_t cudaStreamIsCapturing(cudaStream_t s, cudaStreamCaptureStatus* status) {
  return call("cudaStreamIsCapturing", [&](machine& m) {
    if (const cudaError_t code = alive(m, s); code != cudaSuccess) return code;
    *status = capturing(s) ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
    return cudaSuccess;
  });
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return call("cudaThreadExchangeStreamCaptureMode",
              [&](machine&) { return std::swap(*mode, capture_mode), cudaSuccess; });
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned) {
  return call("cudaEventCreateWithFlags", [&](machine& m) {
    *e = new CUevent_st{current};
    m.events.insert(*e);
    return cudaSuccess;
  });
}
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t e) {
  return call(
      "cudaEventDestroy",
      [&](machine& m) {
        if (m.events.erase(e) == 0)
          return blame("cudaEventDestroy of an event that does not exist"), cudaErrorInvalidResourceHandle;
        delete e;
        return cudaSuccess;
      },
      true);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  return call("cudaEventRecord", [&](machine& m) {
    cudaError_t code = alive(m, e);
    if (code == cudaSuccess) code = alive(m, s);
    if (code != cudaSuccess) return code;
    progress& p = m.work[s];
    p.reads = nullptr;
    e->of = s, e->launch = p.launched;
    return cudaSuccess;
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return call("cudaEventSynchronize", [&](machine& m) { return alive(m, e); });
}
// A held stream's event has not passed, unless the script's host is late. No error: nothing is left to be fetched.
cudaError_t cudaEventQuery(cudaEvent_t e) {
  bool late = false;
  const cudaError_t code = call("cudaEventQuery", [&](machine& m) { return late = m.late_host, alive(m, e); });
  return code != cudaSuccess || late ? code : cudaErrorNotReady;
}
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  return call("cudaEventElapsedTime", [&](machine& m) {
    *ms = 0.01f;
    const cudaError_t code = alive(m, a);
    return code != cudaSuccess ? code : alive(m, b);
  });
}

// ---- launches -------------------------------------------------------------
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes, CUstream_st* stream) {
  return call("<<<>>>", [&](machine&) { return pushed = {grid, block, shared_bytes, stream}, cudaSuccess; });
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared_bytes, void* stream) {
  *grid = pushed.grid, *block = pushed.block, *shared_bytes = pushed.shared_bytes;
  *static_cast<void**>(stream) = pushed.stream;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void**, size_t, cudaStream_t s) {
  return call("cudaLaunchKernel", [&](machine& m) { return launch(m, kernel, grid, block, s); });
}
cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  *kernel = reinterpret_cast<cudaKernel_t>(const_cast<void*>(function));
  return cudaSuccess;
}
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes,
                               cudaStream_t s) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, s);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**) {
  return call("cudaLaunchKernelEx",
              [&](machine& m) { return launch(m, kernel, config->gridDim, config->blockDim, config->stream); });
}
cudaError_t cudaCtxResetPersistingL2Cache() {
  return call("cudaCtxResetPersistingL2Cache", [](machine&) { return cudaSuccess; });
}
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) {
  return call("cudaFuncSetAttribute", [](machine&) { return cudaSuccess; });
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* a, const void*) {
  return call("cudaFuncGetAttributes", [&](machine& m) {
    *a = {};
    a->ptxVersion = a->binaryVersion = 10 * m.chips.major + m.chips.minor;
    a->maxThreadsPerBlock = 1024;
    return cudaSuccess;
  });
}
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void*, int, size_t, unsigned) {
  return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&](machine&) { return *blocks = 4, cudaSuccess; });
}
}
