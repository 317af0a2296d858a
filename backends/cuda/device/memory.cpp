// memory.cpp - see memory.hpp.
#include "memory.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <utility>

#include "pipeline.hpp"

namespace lockstep::cuda {
namespace {

// Staging allocates and frees on every call; a pool of our own (the device's
// default one belongs to the program) keeps up to this much between calls.
constexpr uint64_t pool_keeps_bytes = uint64_t{1} << 30;

// nullptr where the device has no pools, or none could be made now: cudaMalloc serves then.
cudaMemPool_t pool_of(int device, const device_facts& facts) {
  static std::array<cudaMemPool_t, 64> pools{};
  static std::mutex mutex;
  if (!facts.pools) return nullptr;
  const std::lock_guard lock(mutex);
  cudaMemPool_t& pool = pools[static_cast<size_t>(device) % pools.size()];
  if (pool != nullptr) return pool;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = device;
  uint64_t keep = pool_keeps_bytes;
  cudaMemPool_t fresh = nullptr;
  if (cudaMemPoolCreate(&fresh, &properties) == cudaSuccess) {
    if (cudaMemPoolSetAttribute(fresh, cudaMemPoolAttrReleaseThreshold, &keep) == cudaSuccess) return pool = fresh;
    (void)cudaMemPoolDestroy(fresh);
  }
  (void)cudaGetLastError();
  return nullptr;
}

// Of each device, a bit for every other whose memory it may use.
constexpr int most_linked = 64;
std::array<std::atomic<uint64_t>, most_linked> links;
bool linked(int device, int other) {
  return device < most_linked && other >= 0 && other < most_linked &&
         (links[static_cast<size_t>(device)] >> other & 1) != 0;
}

// Whether the host can read this byte. The kernel copies the signal mask before it
// refuses the unknown request, so the answer is EFAULT or EINVAL, and nothing changes.
bool host_reads(const void* pointer) {
  const int before = errno;
  const uintptr_t word = reinterpret_cast<uintptr_t>(pointer) & ~uintptr_t{7};
  (void)syscall(SYS_rt_sigprocmask, ~0, word, nullptr, sizeof(uint64_t));
  return std::exchange(errno, before) != EFAULT;
}

cudaError_t look_up(const void* pointer, lockstep_memory* kind, int32_t* device) {
  cudaPointerAttributes a{};
  if (const cudaError_t code = cudaPointerGetAttributes(&a, pointer); code != cudaSuccess) return code;
  *kind = a.type == cudaMemoryTypeHost      ? LOCKSTEP_PINNED
          : a.type == cudaMemoryTypeDevice  ? LOCKSTEP_DEVICE
          : a.type == cudaMemoryTypeManaged ? LOCKSTEP_MANAGED
                                            : LOCKSTEP_HOST;
  *device = *kind == LOCKSTEP_DEVICE || *kind == LOCKSTEP_MANAGED ? a.device : -1;
  return cudaSuccess;
}

}  // namespace

lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  switch (kind) {
    case LOCKSTEP_HOST:
      *pointer = queue->allocator->allocate(queue->allocator->user, bytes, 256);
      if (*pointer == nullptr) return failed(LOCKSTEP_OUT_OF_MEMORY, "no host memory for %zu bytes", bytes);
      return LOCKSTEP_OK;
    case LOCKSTEP_PINNED: {
      const relaxed_capture relaxed;
      LOCKSTEP_CUDA(cudaHostAlloc(pointer, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
      return LOCKSTEP_OK;
    }
    case LOCKSTEP_MANAGED: {
      const relaxed_capture relaxed;
      LOCKSTEP_CUDA(cudaMallocManaged(pointer, bytes, cudaMemAttachGlobal));
      return LOCKSTEP_OK;
    }
    case LOCKSTEP_DEVICE: {
      const relaxed_capture relaxed;
      cudaMemPool_t pool = capturing(*queue) ? nullptr : pool_of(queue->device, *queue->facts);
      if (pool == nullptr) {
        LOCKSTEP_CUDA(cudaMalloc(pointer, bytes));
        return LOCKSTEP_OK;
      }
      LOCKSTEP_CUDA(cudaMallocFromPoolAsync(pointer, bytes, pool, queue->stream));
      // Any stream may use it from here on, not only this queue's.
      if (const cudaError_t code = cudaStreamSynchronize(queue->stream); code != cudaSuccess) {
        const lockstep_status status = failed(code, "cudaStreamSynchronize(queue->stream)");
        (void)cudaFreeAsync(std::exchange(*pointer, nullptr), queue->stream);
        (void)cudaGetLastError();
        return status;
      }
      return LOCKSTEP_OK;
    }
  }
  return failed(LOCKSTEP_INVALID_ARGUMENT, "memory kind %d is unknown", static_cast<int>(kind));
}

void share_pool(int device, int with) {
  if (with < most_linked && device < most_linked) links[static_cast<size_t>(with)] |= uint64_t{1} << device;
  const device_facts* facts = nullptr;
  cudaMemPool_t pool = facts_of(device, &facts) == LOCKSTEP_OK ? pool_of(device, *facts) : nullptr;
  if (pool == nullptr) return;
  cudaMemAccessDesc access{};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = with;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (cudaMemPoolSetAccess(pool, &access, 1) != cudaSuccess) (void)cudaGetLastError();
}

void release(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void* pointer) {
  if (kind == LOCKSTEP_HOST) {
    queue->allocator->release(queue->allocator->user, pointer, bytes, 256);
    return;
  }
  if (forked()) return;
  const device_guard guard(queue->device);
  const relaxed_capture relaxed;
  cudaError_t code = cudaSuccess;
  if (kind == LOCKSTEP_PINNED) {
    code = cudaFreeHost(pointer);
  } else if (kind == LOCKSTEP_DEVICE && !capturing(*queue) && queue->facts->pools) {
    code = cudaFreeAsync(pointer, queue->stream);  // takes memory of cudaMalloc too
  } else {
    code = cudaFree(pointer);
  }
  if (code != cudaSuccess) (void)cudaGetLastError();
}

lockstep_status pin(lockstep_queue* queue, void* pointer, size_t bytes) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  lockstep_memory kind = LOCKSTEP_HOST;
  int32_t device = -1;
  LOCKSTEP_CUDA(look_up(pointer, &kind, &device));
  if (kind == LOCKSTEP_DEVICE || kind == LOCKSTEP_MANAGED)
    return failed(LOCKSTEP_INVALID_ARGUMENT, "pointer is %p, memory of device %d; only host memory is page-locked",
                  pointer, device);
  const cudaError_t code = cudaHostRegister(pointer, bytes, cudaHostRegisterPortable);
  if (code == cudaSuccess) return LOCKSTEP_OK;
  if (code == cudaErrorHostMemoryAlreadyRegistered || (code == cudaErrorInvalidValue && kind == LOCKSTEP_PINNED)) {
    (void)cudaGetLastError();
    return failed(LOCKSTEP_INVALID_ARGUMENT,
                  "pointer is %p: some of its %zu bytes are page-locked already; unpin them first", pointer, bytes);
  }
  if (code == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();
    return failed(LOCKSTEP_OUT_OF_MEMORY,
                  "%zu bytes cannot be page-locked; unpin others, or let the process lock more (ulimit -l)", bytes);
  }
  if (code == cudaErrorInvalidValue || code == cudaErrorNotSupported) {
    (void)cudaGetLastError();
    return failed(LOCKSTEP_INVALID_ARGUMENT,
                  "pointer is %p: %zu bytes there cannot be page-locked (%s); pass memory of this process that can be "
                  "read and written",
                  pointer, bytes, cudaGetErrorName(code));
  }
  return failed(code, "cudaHostRegister");
}

lockstep_status unpin(lockstep_queue* queue, void* pointer) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  const cudaError_t code = cudaHostUnregister(pointer);
  if (code == cudaErrorHostMemoryNotRegistered || code == cudaErrorInvalidValue) {
    (void)cudaGetLastError();
    return failed(LOCKSTEP_INVALID_ARGUMENT,
                  "pointer is %p, where lockstep_pin has locked nothing; pass the pointer that it was given", pointer);
  }
  return code == cudaSuccess ? LOCKSTEP_OK : failed(code, "cudaHostUnregister");
}

lockstep_status copy(lockstep_queue* queue, const void* src, void* dst, size_t bytes) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  lockstep_memory from = LOCKSTEP_HOST, to = LOCKSTEP_HOST;
  int32_t from_device = -1, to_device = -1;
  LOCKSTEP_CUDA(look_up(src, &from, &from_device));
  LOCKSTEP_CUDA(look_up(dst, &to, &to_device));
  if (from == LOCKSTEP_HOST && to == LOCKSTEP_HOST) {
    LOCKSTEP_CUDA(cudaStreamSynchronize(queue->stream));  // kernels before it may write src
    std::memmove(dst, src, bytes);
    return LOCKSTEP_OK;
  }
  // The driver copies pageable memory with one thread; several pay from a few MiB on.
  if (bytes >= static_cast<size_t>(crew_from) && (from == LOCKSTEP_HOST || to == LOCKSTEP_HOST) &&
      from != LOCKSTEP_PINNED && to != LOCKSTEP_PINNED)
    return copy_pageable(*queue, src, dst, bytes, from == LOCKSTEP_HOST);
  // Memory of a pool can be read by its own device only; this call names both devices and needs no access.
  if (from == LOCKSTEP_DEVICE && to == LOCKSTEP_DEVICE && from_device != to_device) {
    LOCKSTEP_CUDA(cudaMemcpyPeerAsync(dst, to_device, src, from_device, bytes, queue->stream));
    return LOCKSTEP_OK;
  }
  LOCKSTEP_CUDA(cudaMemcpyAsync(dst, src, bytes, cudaMemcpyDefault, queue->stream));
  return LOCKSTEP_OK;
}

void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  if (!forked() && look_up(pointer, kind, device) == cudaSuccess) return;
  *kind = LOCKSTEP_HOST;
  *device = -1;
  if (!forked()) (void)cudaGetLastError();
  // The runtime does not answer: what the host cannot read must not be taken for its memory.
  if (!host_reads(pointer)) *kind = LOCKSTEP_DEVICE;
}

void* driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how = cudaDriverEntryPointSymbolNotFound;
#if CUDART_VERSION >= 12050
  const cudaError_t code = cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &how);
#else
  const cudaError_t code = cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &how);
#endif
  if (code != cudaSuccess) (void)cudaGetLastError();
  return code == cudaSuccess && how == cudaDriverEntryPointSuccess ? found : nullptr;
}

int writes(int32_t device, const void* pointer) {
  if (forked()) return 0;
  static const auto ask = reinterpret_cast<decltype(&cuPointerGetAttribute)>(driver_function("cuPointerGetAttribute"));
  const device_guard guard(device);
  CUDA_POINTER_ATTRIBUTE_ACCESS_FLAGS access = CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE;
  return ask != nullptr && guard.code() == cudaSuccess &&
         ask(&access, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS &&
         access == CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE;
}

int reachable(const lockstep_queue* queue, const void* pointer) {
  lockstep_memory kind = LOCKSTEP_HOST;
  int32_t device = -1;
  locate(pointer, &kind, &device);
  // A kernel that uses another device's memory in place goes over the link as a copy would.
  return kind == LOCKSTEP_MANAGED ||
         (kind == LOCKSTEP_DEVICE &&
          (device == queue->device || (linked(queue->device, device) && writes(queue->device, pointer) != 0)));
}

}  // namespace lockstep::cuda
