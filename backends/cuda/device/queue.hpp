// queue.hpp - the CUDA backend's queue: a device, a stream, scratch, and a word
// of device memory in which kernels report what only they can find out.
//
// A launcher is `lockstep_status launch_idea(lockstep_queue& queue, const
// lockstep_call& call)`; its row names it as on_device<launch_idea>, which makes
// the queue's device current around it.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "../index/leaf.hpp"
#include "device.hpp"

namespace lockstep::cuda {

// What a kernel may report about a sequence. The smallest word wins: the first description of a group, its first
// sequence, and for one sequence the first of these.
enum class fault : unsigned { invalid = 0, overflow = 1, empty = 2 };
// A word's bits of the fault and of the sequence, of which no device's memory has room for more. Those above are the
// description's number in its group, plus 1.
constexpr int fault_bits = 2, sequence_bits = 40;
constexpr uint64_t most_described = (uint64_t{1} << (64 - fault_bits - sequence_bits)) - 2;

// Where one block of a launch leaves a word for another (mailbox.cuh).
struct alignas(16) mailbox {
  uint64_t word, full;
};
// Three words per task, the largest partial result's, for the most tasks of one sequence (leaves_a_task): 768 KiB.
constexpr int64_t mailbox_count = 3 * most_tasks;

// Handed to kernels by value (report() in warp.cuh writes it).
struct report_word {
  unsigned long long* first;  // device memory: the smallest word, ~0 when there was none
  unsigned* raised;           // mapped host memory: finish() looks here first, without a copy
  unsigned long long call;    // the number of the launch's description, 0: none
};

struct pipeline;  // pipeline.cpp

}  // namespace lockstep::cuda

struct lockstep_queue {
  int device = 0;
  const lockstep::cuda::device_facts* facts = nullptr;
  cudaStream_t stream = nullptr;
  bool own_stream = false;
  const lockstep_allocator* allocator = nullptr;
  lockstep::cuda::report_word report{};
  unsigned* raised = nullptr;  // the host's view of report.raised
  // mailbox_count of them in device memory: 0 between calls (who reads one leaves 0), for
  // this queue's stream only, so never in a captured graph.
  lockstep::cuda::mailbox* mailboxes = nullptr;
  void* scratch = nullptr;
  size_t scratch_bytes = 0;
  // Set by a launch under graph capture: its scratch is in a graph that may run
  // as long as the queue lives, so growing keeps the old block.
  bool captured = false;
  std::vector<void*> retired;
  lockstep::cuda::pipeline* pipe = nullptr;  // made by the first call on host memory
  // Mapped host memory, beside raised: where the stream writes the number of the last finish that it has reached.
  unsigned* reached = nullptr;
  CUdeviceptr reached_device = 0;
  unsigned finishes = 0;
};

namespace lockstep::cuda {

template <lockstep_status (*body)(lockstep_queue&, const lockstep_call&)>
lockstep_status on_device(lockstep_queue* queue, const lockstep_call* call) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  return body(*queue, *call);
}

lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue);
void queue_destroy(lockstep_queue* queue);
lockstep_status finish(lockstep_queue* queue);
lockstep_status scratch(lockstep_queue* queue, size_t bytes, void** pointer);
void of_description(lockstep_queue* queue, int64_t index);
bool capturing(const lockstep_queue& queue);
// The driver takes up to a microsecond, so it is asked once per kernel, device and value. An attribute only grows, so
// that another thread's launch never finds less than it has asked for.
lockstep_status grow_attribute(int device, const void* kernel, cudaFuncAttribute attribute, int value);
lockstep_status resident_blocks_of(int device, const void* kernel, int threads, size_t shared_bytes, int* blocks);

#if defined(__CUDACC__)
// kernel<<<grid, block, shared_bytes, queue.stream>>>(arguments...), checked.
template <class... Parameters, class... Arguments>
lockstep_status launch(const lockstep_queue& queue, const char* name, void (*kernel)(Parameters...), dim3 grid,
                       dim3 block, size_t shared_bytes, Arguments&&... arguments) {
  kernel<<<grid, block, shared_bytes, queue.stream>>>(std::forward<Arguments>(arguments)...);
  const cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? LOCKSTEP_OK : failed(code, name);
}

// In a kernel that launch_early starts, before it touches memory: waits for all that came before in the stream, and
// lets the next such kernel be made ready. Not at once: blocks of a third kernel would fill SMs unevenly.
__device__ __forceinline__ void follow_on() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// As launch, for kernels whose every block calls follow_on or ends without having touched memory: where the chip can,
// blocks take their places and do their index arithmetic while the kernel before ends.
template <class... Parameters, class... Arguments>
lockstep_status launch_early(const lockstep_queue& queue, const char* name, void (*kernel)(Parameters...), dim3 grid,
                             dim3 block, size_t shared_bytes, Arguments&&... arguments) {
  if (!queue.facts->early) return launch(queue, name, kernel, grid, block, shared_bytes, arguments...);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid, config.blockDim = block, config.dynamicSmemBytes = shared_bytes, config.stream = queue.stream;
  config.attrs = &early, config.numAttrs = 1;
  if (const cudaError_t code = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
      code != cudaSuccess)
    return failed(code, name);
  return LOCKSTEP_OK;
}

// launch_early where the grid is small. Of a large one a launch is little, and blocks that wait take places from those
// that work.
template <class... Parameters, class... Arguments>
lockstep_status launch_soon(const lockstep_queue& queue, const char* name, void (*kernel)(Parameters...), dim3 grid,
                            dim3 block, size_t shared_bytes, Arguments&&... arguments) {
  return static_cast<int64_t>(grid.x) <= int64_t{early_blocks} * queue.facts->processors
             ? launch_early(queue, name, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...)
             : launch(queue, name, kernel, grid, block, shared_bytes, std::forward<Arguments>(arguments)...);
}

// Lets a kernel have bytes of dynamic shared memory, which must be asked for beyond 48 KiB.
template <class Kernel>
lockstep_status allow_shared(const lockstep_queue& queue, Kernel* kernel, size_t bytes) {
  return bytes <= 48 * 1024 ? LOCKSTEP_OK
                            : grow_attribute(queue.device, reinterpret_cast<const void*>(kernel),
                                             cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
}
// Blocks of a kernel that an SM holds; allow_shared first.
template <class Kernel>
lockstep_status resident_blocks(const lockstep_queue& queue, Kernel* kernel, int threads, size_t shared_bytes,
                                int* blocks) {
  return resident_blocks_of(queue.device, reinterpret_cast<const void*>(kernel), threads, shared_bytes, blocks);
}
#endif

}  // namespace lockstep::cuda
