// fake_cudart.cpp - see fake_cudart.hpp. The symbols are those that the module and
// nvcc's launch code (12.x and 13.x) ask for; a new one shows as a link error.
// A failing call has no effect, but one that frees or destroys: nobody could
// try it again, and the real ones return errors of earlier work.
#include "fake_cudart.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <set>

struct CUstream_st {
  int device;
  bool capturing;
};
struct CUevent_st {
  int device;
};
struct CUmemPoolHandle_st {
  int device;
};

namespace {

constexpr size_t page = 4096, most_memory = size_t{64} << 30;

struct range {
  size_t bytes, mapped;
  cudaMemoryType type;
  int device;
  bool pooled = false;  // of a pool: its own device alone may copy it by cudaMemcpyAsync
};

struct machine {
  std::mutex mutex;
  fake::chips chips;
  long calls = 0, fail_at = 0, launches = 0;
  cudaError_t error = cudaSuccess, lost = cudaSuccess;
  bool sticky = false;
  std::string failed_call, next_call, misuse;
  std::map<uintptr_t, range> memory;
  std::set<cudaStream_t> streams;
  std::set<cudaEvent_t> events;
  std::set<cudaMemPool_t> pools;
  std::set<const void*> kernels, variables;
  int capturing = 0;  // streams
};
machine& all() {
  static machine* const one = new machine;  // module destructors may still call
  return *one;
}

struct configuration {
  dim3 grid, block;
  size_t shared_bytes;
  void* stream;
};
thread_local int current = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;
thread_local configuration pushed{};

void blame(const std::string& text) {
  if (all().misuse.empty()) all().misuse = text;
}

// body() under the lock, unless the script fails this call. frees: the effect takes place all the same.
template <class Body>
cudaError_t call(const char* name, const Body& body, bool frees = false) {
  machine& m = all();
  const std::lock_guard lock(m.mutex);
  cudaError_t code = m.lost;
  if (m.calls == m.fail_at) m.next_call = name;
  if (++m.calls == m.fail_at && code == cudaSuccess) {
    code = m.error;
    m.failed_call = name;
    if (m.sticky) m.lost = code;
  }
  if (code == cudaSuccess || frees) {
    const cudaError_t own = body(m);
    if (code == cudaSuccess) code = own;
  }
  if (code != cudaSuccess) last_error = code;
  return code;
}

cudaError_t no_start(const machine& m) { return m.chips.start; }

// The live range that holds all of [at, at + bytes); memory.end() when it is none's.
std::map<uintptr_t, range>::iterator find(machine& m, const void* at, size_t bytes) {
  const auto address = reinterpret_cast<uintptr_t>(at);
  auto it = m.memory.upper_bound(address);
  if (it == m.memory.begin()) return m.memory.end();
  --it;
  if (address >= it->first + it->second.bytes) return m.memory.end();
  if (address + bytes > it->first + it->second.bytes) blame("a copy or memset ends beyond its allocation");
  return it;
}

cudaError_t map_memory(machine& m, void** out, size_t bytes, cudaMemoryType type, int device) {
  if (no_start(m) != cudaSuccess) return no_start(m);
  if (bytes > most_memory) return cudaErrorMemoryAllocation;
  if (m.capturing != 0 && capture_mode != cudaStreamCaptureModeRelaxed) return cudaErrorStreamCaptureUnsupported;
  const size_t mapped = (bytes + page - 1) / page * page + page;  // a page behind it that nobody may touch
  void* p = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return cudaErrorMemoryAllocation;
  if (type != cudaMemoryTypeDevice) mprotect(p, mapped - page, PROT_READ | PROT_WRITE);
  m.memory[reinterpret_cast<uintptr_t>(p)] = {bytes, mapped, type, device};
  *out = p;
  return cudaSuccess;
}
cudaError_t unmap(machine& m, void* p, bool host, const char* name) {
  if (p == nullptr) return cudaSuccess;
  const auto it = m.memory.find(reinterpret_cast<uintptr_t>(p));
  if (it == m.memory.end() || (it->second.type == cudaMemoryTypeHost) != host) {
    blame(std::string(name) + " of memory that is not live or not its own");
    return cudaErrorInvalidValue;
  }
  munmap(p, it->second.mapped);
  m.memory.erase(it);
  return cudaSuccess;
}

// Opens the pages of device memory for the length of one copy.
class opened {
 public:
  opened(machine& m, const void* at, size_t bytes) {
    const auto it = find(m, at, bytes);
    if (it == m.memory.end() || it->second.type != cudaMemoryTypeDevice) return;
    const uintptr_t first = reinterpret_cast<uintptr_t>(at) / page * page;
    at_ = reinterpret_cast<void*>(first);
    bytes_ = reinterpret_cast<uintptr_t>(at) + bytes - first;
    mprotect(at_, bytes_, PROT_READ | PROT_WRITE);
  }
  ~opened() {
    if (at_ != nullptr) mprotect(at_, bytes_, PROT_NONE);
  }
  opened(const opened&) = delete;
  opened& operator=(const opened&) = delete;
  bool device() const { return at_ != nullptr; }

 private:
  void* at_ = nullptr;
  size_t bytes_ = 0;
};

// Both ends of a long block stand for all of it.
constexpr size_t end_bytes = 65536;
cudaError_t move(machine& m, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  const opened from(m, src, bytes), to(m, dst, bytes);
  if (kind != cudaMemcpyDefault) {
    const bool reads_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const bool writes_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    if (reads_device != from.device() || writes_device != to.device()) blame("a copy's kind and its pointers disagree");
  }
  const size_t head = std::min(bytes, end_bytes), tail = std::min(bytes - head, end_bytes);
  std::memmove(dst, src, head);
  std::memmove(static_cast<char*>(dst) + bytes - tail, static_cast<const char*>(src) + bytes - tail, tail);
  return cudaSuccess;
}
cudaError_t set(machine& m, void* dst, int value, size_t bytes) {
  const opened to(m, dst, bytes);
  if (!to.device() && find(m, dst, bytes) == m.memory.end()) blame("memset of memory that is not the runtime's");
  std::memset(dst, value, std::min(bytes, end_bytes));
  return cudaSuccess;
}

bool built_in(cudaStream_t s) { return s == nullptr || s == cudaStreamLegacy || s == cudaStreamPerThread; }
cudaError_t alive(machine& m, cudaStream_t s) {
  if (built_in(s) || m.streams.count(s) != 0) return cudaSuccess;
  blame("a stream that does not exist");
  return cudaErrorInvalidResourceHandle;
}
cudaError_t alive(machine& m, cudaEvent_t e) {
  if (m.events.count(e) != 0) return cudaSuccess;
  blame("an event that does not exist");
  return cudaErrorInvalidResourceHandle;
}
bool capturing(cudaStream_t s) { return !built_in(s) && s->capturing; }
cudaError_t waits(machine& m, cudaStream_t s) {
  if (const cudaError_t code = alive(m, s); code != cudaSuccess) return code;
  return capturing(s) ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}
// A kernel runs where its stream lives.
cudaError_t launch(machine& m, const void* kernel, dim3 grid, dim3 block, cudaStream_t s) {
  if (const cudaError_t code = alive(m, s); code != cudaSuccess) return code;
  if (m.kernels.count(kernel) == 0) blame("a launch of a kernel that was never registered");
  if (!built_in(s) && s->device != current) {
    blame("a launch on another device's stream");
    return cudaErrorInvalidResourceHandle;
  }
  const bool empty = grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  if (empty || grid.y > 65535 || grid.z > 65535 || block.x * block.y * block.z > 1024) {
    blame("a grid or block that no chip takes");
    return cudaErrorInvalidConfiguration;
  }
  ++m.launches;
  return cudaSuccess;
}

}  // namespace

namespace fake {
void use(const chips& chips) { all().chips = chips; }
void fail(long nth, cudaError_t error, bool sticky) {
  machine& m = all();
  const std::lock_guard lock(m.mutex);
  m.calls = 0, m.fail_at = nth, m.error = error, m.sticky = sticky;
  m.failed_call.clear();
  m.next_call.clear();
}
long calls() { return all().calls; }
std::string failed_call() { return all().failed_call; }
std::string next_call() { return all().next_call; }
long launches() { return all().launches; }
long live() { return static_cast<long>(all().memory.size() + all().streams.size() + all().events.size()); }
std::string listed() {
  machine& m = all();
  std::string text = std::to_string(m.streams.size()) + " streams, " + std::to_string(m.events.size()) + " events";
  for (const auto& [at, r] : m.memory) text += ", " + std::to_string(r.bytes) + " bytes of type " + std::to_string(r.type);
  return text;
}
long pools() { return static_cast<long>(all().pools.size()); }
std::string misuse() { return all().misuse; }
void capture(cudaStream_t stream, bool on) {
  if (stream->capturing != on) all().capturing += on ? 1 : -1;
  stream->capturing = on;
}
}  // namespace fake

extern "C" {

// ---- errors, registration: not counted ---------------------------------------
cudaError_t cudaGetLastError() {
  const cudaError_t code = last_error;
  last_error = all().lost;
  return code;
}
cudaError_t cudaPeekAtLastError() { return last_error; }
const char* cudaGetErrorString(cudaError_t code) { return code == cudaErrorMemoryAllocation ? "out of memory" : "a scripted failure"; }
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
void __cudaRegisterFunction(void**, const char* host, char*, const char*, int, uint3*, uint3*, dim3*, dim3*, int*) { all().kernels.insert(host); }
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
      default: blame("the fake does not know device attribute " + std::to_string(attribute)); return cudaErrorInvalidValue;
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

// ---- memory ---------------------------------------------------------------
cudaError_t cudaMalloc(void** p, size_t bytes) {
  return call("cudaMalloc", [&](machine& m) { return map_memory(m, p, bytes, cudaMemoryTypeDevice, current); });
}
cudaError_t cudaMallocManaged(void** p, size_t bytes, unsigned) {
  return call("cudaMallocManaged", [&](machine& m) { return map_memory(m, p, bytes, cudaMemoryTypeManaged, current); });
}
cudaError_t cudaHostAlloc(void** p, size_t bytes, unsigned) {
  return call("cudaHostAlloc", [&](machine& m) { return map_memory(m, p, bytes, cudaMemoryTypeHost, current); });
}
cudaError_t cudaMallocFromPoolAsync(void** p, size_t bytes, cudaMemPool_t pool, cudaStream_t s) {
  return call("cudaMallocFromPoolAsync", [&](machine& m) {
    if (m.pools.count(pool) == 0) blame("a pool that does not exist");
    const cudaError_t code = alive(m, s);
    if (code != cudaSuccess) return code;
    const cudaError_t mapped = map_memory(m, p, bytes, cudaMemoryTypeDevice, pool->device);
    if (mapped == cudaSuccess) find(m, *p, 1)->second.pooled = true;
    return mapped;
  });
}
cudaError_t cudaFree(void* p) {
  return call("cudaFree", [&](machine& m) { return unmap(m, p, false, "cudaFree"); }, true);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  return call("cudaFreeAsync", [&](machine& m) {
    const cudaError_t code = alive(m, s);
    return code != cudaSuccess ? code : unmap(m, p, false, "cudaFreeAsync");
  }, true);
}
cudaError_t cudaFreeHost(void* p) {
  return call("cudaFreeHost", [&](machine& m) { return unmap(m, p, true, "cudaFreeHost"); }, true);
}
cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned) {
  return call("cudaHostGetDevicePointer", [&](machine& m) {
    if (find(m, host, 1) == m.memory.end()) return cudaErrorInvalidValue;
    *device = host;
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* properties) {
  return call("cudaMemPoolCreate", [&](machine& m) {
    *pool = new CUmemPoolHandle_st{properties->location.id};
    m.pools.insert(*pool);
    return cudaSuccess;
  });
}
cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return call("cudaMemPoolDestroy", [&](machine& m) {
    if (m.pools.erase(pool) == 0) blame("cudaMemPoolDestroy of a pool that does not exist");
    else delete pool;
    return cudaSuccess;
  }, true);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void*) {
  return call("cudaMemPoolSetAttribute", [&](machine& m) { return m.pools.count(pool) != 0 ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* a, const void* p) {
  return call("cudaPointerGetAttributes", [&](machine& m) {
    *a = {};
    a->type = cudaMemoryTypeUnregistered;
    a->device = -1;
    const auto it = find(m, p, 1);
    if (it == m.memory.end()) return cudaSuccess;
    a->type = it->second.type;
    a->device = it->second.device;
    a->devicePointer = const_cast<void*>(p);
    return cudaSuccess;
  });
}

// ---- copies ---------------------------------------------------------------
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, cudaStream_t s) {
  return call("cudaMemcpyAsync", [&](machine& m) {
    const cudaError_t code = alive(m, s);
    if (code != cudaSuccess) return code;
    for (const void* p : {static_cast<const void*>(dst), src})
      if (const auto it = find(m, p, 1); it != m.memory.end() && it->second.pooled && it->second.device != current) return cudaErrorInvalidValue;
    return move(m, dst, src, bytes, kind);
  });
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t bytes, cudaStream_t s) {
  return call("cudaMemcpyPeerAsync", [&](machine& m) {
    const auto to = find(m, dst, bytes), from = find(m, src, bytes);
    if (to == m.memory.end() || to->second.device != dst_device || from == m.memory.end() || from->second.device != src_device)
      blame("a copy between devices names another device than its memory's");
    const cudaError_t code = alive(m, s);
    return code != cudaSuccess ? code : move(m, dst, src, bytes, cudaMemcpyDeviceToDevice);
  });
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t rows, cudaMemcpyKind kind,
                              cudaStream_t s) {
  return call("cudaMemcpy2DAsync", [&](machine& m) {
    if (width > dst_pitch || width > src_pitch) return cudaErrorInvalidPitchValue;
    for (const size_t row : {size_t{0}, rows / 2, rows - 1})
      move(m, static_cast<char*>(dst) + row * dst_pitch, static_cast<const char*>(src) + row * src_pitch, width, kind);
    return alive(m, s);
  });
}
cudaError_t cudaMemset(void* dst, int value, size_t bytes) {
  return call("cudaMemset", [&](machine& m) { return set(m, dst, value, bytes); });
}
cudaError_t cudaMemsetAsync(void* dst, int value, size_t bytes, cudaStream_t s) {
  return call("cudaMemsetAsync", [&](machine& m) {
    const cudaError_t code = alive(m, s);
    return code != cudaSuccess ? code : set(m, dst, value, bytes);
  });
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void*, size_t, size_t, cudaMemcpyKind) {  // planted bugs only
  return call("cudaMemcpyToSymbol", [&](machine& m) {
    if (m.variables.count(symbol) == 0) blame("a copy to a symbol that was never registered");
    return cudaSuccess;
  });
}
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void*, size_t, size_t, cudaMemcpyKind, cudaStream_t s) {
  return call("cudaMemcpyToSymbolAsync", [&](machine& m) {
    if (m.variables.count(symbol) == 0) blame("a copy to a symbol that was never registered");
    return alive(m, s);
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
cudaError_t cudaStreamDestroy(cudaStream_t s) {
  return call("cudaStreamDestroy", [&](machine& m) {
    if (m.streams.erase(s) == 0) return blame("cudaStreamDestroy of a stream that does not exist"), cudaErrorInvalidResourceHandle;
    delete s;
    return cudaSuccess;
  }, true);
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
  return call("cudaStreamSynchronize", [&](machine& m) { return waits(m, s); });
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) {
  return call("cudaStreamWaitEvent", [&](machine& m) {
    const cudaError_t code = alive(m, s);
    return code != cudaSuccess ? code : alive(m, e);
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
  return call("cudaThreadExchangeStreamCaptureMode", [&](machine&) { return std::swap(*mode, capture_mode), cudaSuccess; });
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
  return call("cudaEventDestroy", [&](machine& m) {
    if (m.events.erase(e) == 0) return blame("cudaEventDestroy of an event that does not exist"), cudaErrorInvalidResourceHandle;
    delete e;
    return cudaSuccess;
  }, true);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
  return call("cudaEventRecord", [&](machine& m) {
    const cudaError_t code = alive(m, e);
    return code != cudaSuccess ? code : alive(m, s);
  });
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
  return call("cudaEventSynchronize", [&](machine& m) { return alive(m, e); });
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
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared_bytes, cudaStream_t s) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, s);
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void**) {
  return call("cudaLaunchKernelEx", [&](machine& m) { return launch(m, kernel, config->gridDim, config->blockDim, config->stream); });
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
