// peer.cpp - how GPUs wait for each other and copy to each other (backend_peer.h).
#include <cstring>

#include "check.hpp"
#include "lockstep/backend_peer.h"
#include "memory.hpp"

namespace lockstep::cuda {
namespace {

cudaStream_t native(void* stream) { return static_cast<cudaStream_t>(stream); }
cudaEvent_t native_event(void* event) { return static_cast<cudaEvent_t>(event); }

lockstep_status create(int32_t device, bool first, void** stream) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  const relaxed_capture relaxed;
  cudaStream_t made = nullptr;
  int least = 0, greatest = 0;
  if (first) LOCKSTEP_CUDA(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  LOCKSTEP_CUDA(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, first ? greatest : 0));
  *stream = made;
  return LOCKSTEP_OK;
}

lockstep_status stream_create(int32_t device, void** stream) { return create(device, false, stream); }
lockstep_status stream_create_first(int32_t device, void** stream) { return create(device, true, stream); }

void stream_destroy(int32_t device, void* stream) {
  if (forked()) return;
  const device_guard guard(device);
  const relaxed_capture relaxed;
  (void)cudaStreamSynchronize(native(stream));
  (void)cudaStreamDestroy(native(stream));
  (void)cudaGetLastError();
}

lockstep_status event_create(int32_t device, void** event) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  const relaxed_capture relaxed;
  cudaEvent_t made = nullptr;
  LOCKSTEP_CUDA(cudaEventCreateWithFlags(&made, cudaEventDisableTiming));
  *event = made;
  return LOCKSTEP_OK;
}

void event_destroy(int32_t device, void* event) {
  if (forked()) return;
  const device_guard guard(device);
  (void)cudaEventDestroy(native_event(event));
  (void)cudaGetLastError();
}

lockstep_status record(int32_t device, void* stream, void* event) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  LOCKSTEP_CUDA(cudaEventRecord(native_event(event), native(stream)));
  return LOCKSTEP_OK;
}

lockstep_status wait(int32_t device, void* stream, void* event) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  LOCKSTEP_CUDA(cudaStreamWaitEvent(native(stream), native_event(event), 0));
  return LOCKSTEP_OK;
}

lockstep_status passed(int32_t device, void* event, int* done) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  const cudaError_t code = cudaEventQuery(native_event(event));
  *done = code == cudaSuccess;
  if (code != cudaErrorNotReady) LOCKSTEP_CUDA(code);
  (void)cudaGetLastError();
  return LOCKSTEP_OK;
}

lockstep_status connect(int32_t device, int32_t peer, int* direct) {
  *direct = device == peer;
  if (device == peer) return LOCKSTEP_OK;
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  LOCKSTEP_CUDA(cudaDeviceCanAccessPeer(direct, device, peer));
  if (*direct == 0) return LOCKSTEP_OK;
  const cudaError_t code = cudaDeviceEnablePeerAccess(peer, 0);
  (void)cudaGetLastError();  // the program, or a call before, may have enabled it
  if (code != cudaSuccess && code != cudaErrorPeerAccessAlreadyEnabled) *direct = 0;
  // Memory of lockstep_alloc is in a pool, which has an access list of its own.
  if (*direct != 0) share_pool(peer, device);
  return LOCKSTEP_OK;
}

lockstep_status copy_rows(int32_t device, void* stream, const lockstep_peer_rows* rows) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  if (rows->src_device == rows->dst_device) {
    LOCKSTEP_CUDA(cudaMemcpy2DAsync(rows->dst, rows->dst_pitch, rows->src, rows->src_pitch, rows->width, rows->height,
                                    cudaMemcpyDeviceToDevice, native(stream)));
    return LOCKSTEP_OK;
  }
  if (rows->height == 1 || (rows->src_pitch == rows->width && rows->dst_pitch == rows->width)) {
    LOCKSTEP_CUDA(cudaMemcpyPeerAsync(rows->dst, rows->dst_device, rows->src, rows->src_device,
                                      rows->width * rows->height, native(stream)));
    return LOCKSTEP_OK;
  }
  // This call names both devices, so it works without peer access too.
  cudaMemcpy3DPeerParms p{};
  p.srcDevice = rows->src_device, p.dstDevice = rows->dst_device;
  p.srcPtr = {const_cast<void*>(rows->src), rows->src_pitch, rows->width, rows->height};
  p.dstPtr = {rows->dst, rows->dst_pitch, rows->width, rows->height};
  p.extent = {rows->width, rows->height, 1};
  LOCKSTEP_CUDA(cudaMemcpy3DPeerAsync(&p, native(stream)));
  return LOCKSTEP_OK;
}

lockstep_status identity(int32_t device, unsigned char id[16]) {
  if (forked()) return failed_fork();
  cudaDeviceProp p{};
  LOCKSTEP_CUDA(cudaGetDeviceProperties(&p, device));
  static_assert(sizeof p.uuid == 16);
  std::memcpy(id, &p.uuid, sizeof p.uuid);
  return LOCKSTEP_OK;
}

lockstep_status with_device(int32_t device, void (*call)(void* user), void* user) {
  if (forked()) return failed_fork();
  const device_guard guard(device);
  LOCKSTEP_CUDA(guard.code());
  call(user);
  return LOCKSTEP_OK;
}

}  // namespace
}  // namespace lockstep::cuda

extern "C" __attribute__((visibility("default"))) const lockstep_peer_table* lockstep_peers_entry() {
  using namespace lockstep::cuda;
  static const lockstep_peer_table table = {LOCKSTEP_BACKEND_ABI,
                                            sizeof(lockstep_peer_table),
                                            stream_create,
                                            stream_destroy,
                                            event_create,
                                            event_destroy,
                                            record,
                                            wait,
                                            passed,
                                            connect,
                                            copy_rows,
                                            "libnccl.so.2",
                                            identity,
                                            with_device,
                                            stream_create_first,
                                            writes};
  return &table;
}
