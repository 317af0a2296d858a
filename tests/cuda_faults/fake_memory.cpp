// fake_memory.cpp - the runtime's calls for memory and copies, see fake_cudart.hpp.
#include "fake_machine.hpp"

using namespace fake;

extern "C" {
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
  return call(
      "cudaFree", [&](machine& m) { return unmap(m, p, false, "cudaFree"); }, true);
}
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) {
  return call(
      "cudaFreeAsync",
      [&](machine& m) {
        const cudaError_t code = alive(m, s);
        return code != cudaSuccess ? code : unmap(m, p, false, "cudaFreeAsync");
      },
      true);
}
cudaError_t cudaFreeHost(void* p) {
  return call(
      "cudaFreeHost", [&](machine& m) { return unmap(m, p, true, "cudaFreeHost"); }, true);
}
cudaError_t cudaHostRegister(void* p, size_t bytes, unsigned) {
  return call("cudaHostRegister", [&](machine& m) {
    const uintptr_t begin = reinterpret_cast<uintptr_t>(p);
    if (bytes == 0 || begin < page) return cudaErrorInvalidValue;
    for (const auto& [at, r] : m.memory)
      if (begin < at + r.bytes && at < begin + bytes) return cudaErrorHostMemoryAlreadyRegistered;
    m.memory[begin] = {bytes, 0, cudaMemoryTypeHost, current};
    return cudaSuccess;
  });
}
cudaError_t cudaHostUnregister(void* p) {
  return call(
      "cudaHostUnregister",
      [&](machine& m) {
        const auto it = m.memory.find(reinterpret_cast<uintptr_t>(p));
        if (it == m.memory.end() || it->second.mapped != 0) return cudaErrorHostMemoryNotRegistered;
        m.memory.erase(it);
        return cudaSuccess;
      },
      true);
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
  return call(
      "cudaMemPoolDestroy",
      [&](machine& m) {
        if (m.pools.erase(pool) == 0)
          blame("cudaMemPoolDestroy of a pool that does not exist");
        else
          delete pool;
        return cudaSuccess;
      },
      true);
}
cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr, void*) {
  return call("cudaMemPoolSetAttribute",
              [&](machine& m) { return m.pools.count(pool) != 0 ? cudaSuccess : cudaErrorInvalidValue; });
}
cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc*, size_t) {
  return call("cudaMemPoolSetAccess",
              [&](machine& m) { return m.pools.count(pool) != 0 ? cudaSuccess : cudaErrorInvalidValue; });
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
      if (const auto it = find(m, p, 1); it != m.memory.end() && it->second.pooled && it->second.device != current)
        return cudaErrorInvalidValue;
    return move(m, dst, src, bytes, kind);
  });
}
cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device, size_t bytes,
                                cudaStream_t s) {
  return call("cudaMemcpyPeerAsync", [&](machine& m) {
    const auto to = find(m, dst, bytes), from = find(m, src, bytes);
    if (to == m.memory.end() || to->second.device != dst_device || from == m.memory.end() ||
        from->second.device != src_device)
      blame("a copy between devices names another device than its memory's");
    const cudaError_t code = alive(m, s);
    return code != cudaSuccess ? code : move(m, dst, src, bytes, cudaMemcpyDeviceToDevice);
  });
}
cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width, size_t rows,
                              cudaMemcpyKind kind, cudaStream_t s) {
  return call("cudaMemcpy2DAsync", [&](machine& m) {
    if (width > dst_pitch || width > src_pitch) return cudaErrorInvalidPitchValue;
    const size_t before = m.crossed.size();
    for (const size_t row : {size_t{0}, rows / 2, rows - 1})
      move(m, static_cast<char*>(dst) + row * dst_pitch, static_cast<const char*>(src) + row * src_pitch, width, kind);
    if (m.crossed.size() > before) m.crossed.resize(before + 1), m.crossed.back().bytes = rows * width;
    return alive(m, s);
  });
}
cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* p, cudaStream_t s) {
  return call("cudaMemcpy3DPeerAsync", [&](machine& m) {
    const auto to = find(m, p->dstPtr.ptr, 1), from = find(m, p->srcPtr.ptr, 1);
    if (to == m.memory.end() || to->second.device != p->dstDevice || from == m.memory.end() ||
        from->second.device != p->srcDevice)
      blame("a copy between devices names another device than its memory's");
    return alive(m, s);
  });
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return call("cudaDeviceCanAccessPeer", [&](machine&) { return *can = device != peer, cudaSuccess; });
}
cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return call("cudaDeviceEnablePeerAccess", [&](machine&) { return cudaSuccess; });
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
cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void*, size_t, size_t offset, cudaMemcpyKind,
                                    cudaStream_t s) {
  return call("cudaMemcpyToSymbolAsync", [&](machine& m) {
    if (m.variables.count(symbol) == 0) blame("a copy to a symbol that was never registered");
    if (const cudaError_t code = alive(m, s); code != cudaSuccess) return code;
    overwritten(m, static_cast<const char*>(symbol) + offset, s);
    return cudaSuccess;
  });
}
}
