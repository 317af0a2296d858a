// queue.cpp - see queue.hpp.
#include "queue.hpp"

#include <array>
#include <cstdio>
#include <mutex>
#include <new>

#include "faults.hpp"
#include "pipeline.hpp"

namespace lockstep::cuda {
namespace {

// Frees what the queue holds on its device. Errors of earlier work show up here
// again; nobody can be told any more.
void drop(lockstep_queue* queue) {
  if (!forked()) {
    const device_guard guard(queue->device);
    const relaxed_capture relaxed;
    // A caller's stream may be gone by now; the library has waited for its work.
    if (queue->own_stream && queue->stream != nullptr) (void)cudaStreamSynchronize(queue->stream);
    drop_pipeline(*queue);
    for (void* block : queue->retired) (void)cudaFree(block);
    if (queue->scratch != nullptr) (void)cudaFree(queue->scratch);
    if (queue->report.first != nullptr) (void)cudaFree(queue->report.first);
    if (queue->mailboxes != nullptr) (void)cudaFree(queue->mailboxes);
    if (queue->raised != nullptr) (void)cudaFreeHost(queue->raised);
    if (queue->own_stream && queue->stream != nullptr) (void)cudaStreamDestroy(queue->stream);
    (void)cudaGetLastError();
  }
  const lockstep_allocator* allocator = queue->allocator;
  queue->~lockstep_queue();
  allocator->release(allocator->user, queue, sizeof(lockstep_queue), 256);
}

lockstep_status open(lockstep_queue& queue) {
  if (const lockstep_status status = require_usable(queue.device); status != LOCKSTEP_OK) return status;
  const device_guard guard(queue.device);
  LOCKSTEP_CUDA(guard.code());
  const relaxed_capture relaxed;
  if (const lockstep_status status = facts_of(queue.device, &queue.facts); status != LOCKSTEP_OK) return status;
  if (queue.own_stream) LOCKSTEP_CUDA(cudaStreamCreateWithFlags(&queue.stream, cudaStreamNonBlocking));
  void* memory = nullptr;
  LOCKSTEP_CUDA(cudaMalloc(&memory, sizeof *queue.report.first));
  queue.report.first = static_cast<unsigned long long*>(memory);
  constexpr size_t line = 64 / sizeof *queue.raised;  // the host looks at the one word while a kernel writes the other
  LOCKSTEP_CUDA(cudaHostAlloc(&memory, 2 * line * sizeof *queue.raised, cudaHostAllocMapped | cudaHostAllocPortable));
  queue.raised = static_cast<unsigned*>(memory);
  queue.reached = queue.raised + line;
  LOCKSTEP_CUDA(cudaHostGetDevicePointer(&memory, queue.raised, 0));
  queue.report.raised = static_cast<unsigned*>(memory);
  queue.reached_device = reinterpret_cast<CUdeviceptr>(queue.report.raised + line);
  *queue.raised = *queue.reached = 0;
  LOCKSTEP_CUDA(cudaMalloc(&memory, mailbox_count * sizeof *queue.mailboxes));
  queue.mailboxes = static_cast<mailbox*>(memory);
  LOCKSTEP_CUDA(cudaMemset(queue.mailboxes, 0, mailbox_count * sizeof *queue.mailboxes));
  // An own stream does not wait for the legacy one, which cudaMemset uses.
  LOCKSTEP_CUDA(cudaMemset(queue.report.first, 0xff, sizeof *queue.report.first));
  LOCKSTEP_CUDA(cudaStreamSynchronize(cudaStreamLegacy));
  return LOCKSTEP_OK;
}

}  // namespace

bool capturing(const lockstep_queue& queue) {
  if (queue.own_stream) return false;  // nobody else has its handle
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (cudaStreamIsCapturing(queue.stream, &status) != cudaSuccess) (void)cudaGetLastError();
  return status != cudaStreamCaptureStatusNone;
}

namespace {

// What the driver was told and has said of kernels.
struct kernel_fact {
  const void* kernel = nullptr;
  int device = 0, what = 0;  // an attribute, or minus the threads of a block
  size_t shared_bytes = 0;
  int value = 0;
};
class known_kernels {
 public:
  std::mutex mutex;
  // The entry of this question, or the free one that it may have; nullptr: there is no room, so ask each time.
  kernel_fact* find(const kernel_fact& asked) {
    constexpr size_t probes = 32;
    const size_t first = reinterpret_cast<uintptr_t>(asked.kernel) / 16;
    for (size_t k = 0; k < probes; ++k) {
      kernel_fact& e = all_[(first + k) % all_.size()];
      if (e.kernel == nullptr) return &e;
      if (e.kernel == asked.kernel && e.device == asked.device && e.what == asked.what &&
          e.shared_bytes == asked.shared_bytes)
        return &e;
    }
    return nullptr;
  }

 private:
  std::array<kernel_fact, 1024> all_{};
};
known_kernels& known() {
  static known_kernels one;
  return one;
}

}  // namespace

lockstep_status grow_attribute(int device, const void* kernel, cudaFuncAttribute attribute, int value) {
  kernel_fact asked{kernel, device, static_cast<int>(attribute), 0, value};
  const std::lock_guard lock(known().mutex);
  kernel_fact* const e = known().find(asked);
  if (e != nullptr && e->kernel != nullptr && e->value >= value) return LOCKSTEP_OK;
  LOCKSTEP_CUDA(cudaFuncSetAttribute(kernel, attribute, value));
  if (e != nullptr) *e = asked;
  return LOCKSTEP_OK;
}

lockstep_status resident_blocks_of(int device, const void* kernel, int threads, size_t shared_bytes, int* blocks) {
  kernel_fact asked{kernel, device, -threads, shared_bytes, 0};
  const std::lock_guard lock(known().mutex);
  kernel_fact* const e = known().find(asked);
  if (e == nullptr || e->kernel == nullptr) {
    LOCKSTEP_CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&asked.value, kernel, threads, shared_bytes,
                                                                         cudaOccupancyDefault));
    if (e != nullptr) *e = asked;
  }
  *blocks = e != nullptr ? e->value : asked.value;
  return LOCKSTEP_OK;
}

lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** out) {
  if (forked()) return failed_fork();
  int count = 0;
  LOCKSTEP_CUDA(cudaGetDeviceCount(&count));
  if (options->device < 0 || options->device >= count)
    return failed(LOCKSTEP_NO_BACKEND, "there is no device %d; the driver shows %d", options->device, count);
  const lockstep_allocator* allocator = options->allocator;
  void* memory = allocator->allocate(allocator->user, sizeof(lockstep_queue), 256);
  if (memory == nullptr)
    return failed(LOCKSTEP_OUT_OF_MEMORY, "no memory for a queue (%zu bytes)", sizeof(lockstep_queue));
  auto* queue = new (memory) lockstep_queue;
  queue->allocator = allocator;
  queue->device = options->device;
  queue->stream = static_cast<cudaStream_t>(options->stream);
  queue->own_stream = options->stream == nullptr;
  if (const lockstep_status status = open(*queue); status != LOCKSTEP_OK) {
    drop(queue);
    return status;
  }
  *out = queue;
  return LOCKSTEP_OK;
}

void queue_destroy(lockstep_queue* queue) { drop(queue); }

namespace {

// Waits for the queue's work. A word that the stream writes behind it is seen sooner than cudaStreamSynchronize
// returns. For long work, and where the word does not come, that waits after all; it also knows what has failed.
cudaError_t wait(lockstep_queue& queue) {
  const auto write = queue.facts->write_word;
  const unsigned mine = ++queue.finishes;
  if (write != nullptr &&
      write(queue.stream, queue.reached_device, mine, CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS)
    for (int look = 1; look <= finish_looks; ++look) {
      if (__atomic_load_n(queue.reached, __ATOMIC_ACQUIRE) == mine) return cudaSuccess;
      if (look % finish_asks != 0) continue;
      const cudaError_t code = cudaStreamQuery(queue.stream);
      if (code != cudaErrorNotReady) return code;
      (void)cudaGetLastError();
    }
  return cudaStreamSynchronize(queue.stream);
}

}  // namespace

lockstep_status finish(lockstep_queue* queue) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  if (capturing(*queue))
    return failed(LOCKSTEP_INVALID_ARGUMENT,
                  "the stream is being captured and cannot be waited for; set LOCKSTEP_ASYNC");
  LOCKSTEP_CUDA(wait(*queue));
  if (*static_cast<volatile unsigned*>(queue->raised) == 0) return LOCKSTEP_OK;
  unsigned long long first = ~0ull;
  LOCKSTEP_CUDA(cudaMemcpyAsync(&first, queue->report.first, sizeof first, cudaMemcpyDeviceToHost, queue->stream));
  LOCKSTEP_CUDA(cudaMemsetAsync(queue->report.first, 0xff, sizeof first, queue->stream));
  LOCKSTEP_CUDA(cudaStreamSynchronize(queue->stream));
  *queue->raised = 0;  // last: if reading the word failed, the next finish reads it
  const auto call = first >> (fault_bits + sequence_bits);
  const auto sequence = first >> fault_bits & ((1ull << sequence_bits) - 1);
  char described[40] = "";
  if (call != 0) std::snprintf(described, sizeof described, "descs[%llu]: ", call - 1);
  switch (static_cast<fault>(first & ((1ull << fault_bits) - 1))) {
    case fault::overflow:
      return failed(LOCKSTEP_OVERFLOW,
                    "%sthe exact result of sequence %llu does not fit its type; dst[%llu] holds the nearest value",
                    described, sequence, sequence);
    case fault::empty:
      return failed(LOCKSTEP_EMPTY,
                    "%ssequence %llu is empty and has no minimum or maximum; dst[%llu] is left as it was", described,
                    sequence, sequence);
    case fault_of_label:
      return failed(
          LOCKSTEP_INVALID_ARGUMENT,
          "%slabels[%llu] names no element of its row; give 0 to length - 1; dst of row %llu is left as it was",
          described, sequence, sequence);
    case fault::invalid: break;
  }
  return failed(
      LOCKSTEP_INVALID_ARGUMENT,
      "%soffsets[%llu] is negative or more than offsets[%llu], or that is beyond src's end; segments must not "
      "decrease, nor reach beyond src",
      described, sequence, sequence + 1);
}

void of_description(lockstep_queue* queue, int64_t index) {
  const auto number = static_cast<uint64_t>(index) + 1;
  queue->report.call = index >= 0 && number <= most_described ? number : 0;
}

lockstep_status scratch(lockstep_queue* queue, size_t bytes, void** pointer) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  queue->captured = queue->captured || capturing(*queue);
  if (bytes > queue->scratch_bytes) {
    const relaxed_capture relaxed;
    void* old = std::exchange(queue->scratch, nullptr);
    queue->scratch_bytes = 0;
    if (old != nullptr && queue->captured) {
      queue->retired.push_back(old);
    } else if (old != nullptr) {
      const cudaError_t waited = cudaStreamSynchronize(queue->stream);  // earlier kernels may still use it
      const cudaError_t freed = cudaFree(old);
      LOCKSTEP_CUDA(waited);
      LOCKSTEP_CUDA(freed);
    }
    LOCKSTEP_CUDA(cudaMalloc(&queue->scratch, bytes));
    queue->scratch_bytes = bytes;
  }
  *pointer = queue->scratch;
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cuda
