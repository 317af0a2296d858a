// pipeline.cpp - see pipeline.hpp. Three stages in three threads' hands:
//   upload    (a thread) host -> pinned slot by the copy crew, slot -> device on
//             its own stream
//   compute   (the caller's thread) waits for the upload, launches on the queue's
//             stream
//   download  (a thread) device -> pinned slot on a third stream, slot -> host by
//             its crew
// Page-locked host memory needs no slot and no crew. Three slots a stage: one
// being filled, one in flight, one being emptied.
// One host thread copies at a fifth of the link's speed: the crews are what makes
// pageable memory bearable.
#include "pipeline.hpp"

#include <sched.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>

#include "memory.hpp"
#include "rows_out.hpp"

namespace lockstep::cuda {
namespace {

constexpr size_t slots = copy_slots, chunk = copy_chunk;

void copy_in(unsigned char* to, const unsigned char* from, size_t bytes) { std::memcpy(to, from, bytes); }
// Whole lines of `to` go around the cache: through it each would be read first, and what the link has just brought
// would be pushed out.
void copy_out(unsigned char* to, const unsigned char* from, size_t bytes) {
#if defined(__SSE2__)
  constexpr size_t line = 64;
  const size_t head = std::min(bytes, static_cast<size_t>(-reinterpret_cast<uintptr_t>(to) % line));
  std::memcpy(to, from, head);
  size_t at = head;
  for (; at + line <= bytes; at += line)
    for (size_t k = 0; k < line; k += 16)
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + at + k),
                       _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + at + k)));
  std::memcpy(to + at, from + at, bytes - at);
#else
  std::memcpy(to, from, bytes);
#endif
}

// What copy_out has written is there for whoever is told that it is.
void written_out() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// Threads that copy parts of a block together with the thread that asks. They wait by atomics:
// std::condition_variable's wait would ask for a libstdc++ of GCC 12.
class copy_crew {
 public:
  // out: what is copied is read by nobody here, but by the caller at the end.
  copy_crew(int threads, bool out) : copy_(out ? copy_out : copy_in) {
    try {
      for (; threads_ < threads; ++threads_) helpers_.emplace_back([this, i = threads_] { help(i); });
    } catch (const std::system_error&) {
    }  // no more threads to be had: fewer copy
  }
  ~copy_crew() {
    stop_.store(true, std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    for (std::thread& t : helpers_) t.join();
  }
  copy_crew(const copy_crew&) = delete;
  copy_crew& operator=(const copy_crew&) = delete;

  // rows of width bytes between two pitches.
  void copy(unsigned char* to, size_t to_pitch, const unsigned char* from, size_t from_pitch, size_t width,
            size_t rows) {
    if (to_pitch == width && from_pitch == width) {  // one block: cut it at pages
      width *= rows;
      rows = (width + 65535) / 65536;
      blocks_ = true;
    } else {
      blocks_ = false;
    }
    to_ = to, from_ = from, to_pitch_ = to_pitch, from_pitch_ = from_pitch, width_ = width, rows_ = rows;
    if (helpers_.empty() || (blocks_ ? width : width * rows) < static_cast<size_t>(crew_block_from)) return part(0, 1);
    busy_.store(static_cast<int>(helpers_.size()), std::memory_order_relaxed);
    generation_.fetch_add(1, std::memory_order_release);
    generation_.notify_all();
    part(0, threads_);
    for (int left = busy_.load(std::memory_order_acquire); left != 0; left = busy_.load(std::memory_order_acquire))
      busy_.wait(left, std::memory_order_acquire);
  }

 private:
  void part(int index, int parts) const {
    const auto cut = [&](int i) { return rows_ * static_cast<size_t>(i) / static_cast<size_t>(parts); };
    if (blocks_) {
      const size_t first = cut(index) * 65536, last = std::min(cut(index + 1) * 65536, width_);
      if (first < last) copy_(to_ + first, from_ + first, last - first);
    } else {
      for (size_t r = cut(index); r < cut(index + 1); ++r) copy_(to_ + r * to_pitch_, from_ + r * from_pitch_, width_);
    }
    if (copy_ == copy_out) written_out();
  }
  void help(int index) {
    // The next generation begins when all have done this one.
    for (int seen = 0;; ++seen) {
      generation_.wait(seen, std::memory_order_acquire);
      if (stop_.load(std::memory_order_relaxed)) return;
      part(index, threads_);
      if (busy_.fetch_sub(1, std::memory_order_acq_rel) == 1) busy_.notify_one();
    }
  }

  void (*copy_)(unsigned char*, const unsigned char*, size_t);
  std::vector<std::thread> helpers_;
  int threads_ = 1;
  std::atomic<int> generation_ = 0, busy_ = 0;
  std::atomic<bool> stop_ = false;
  bool blocks_ = false;
  unsigned char* to_ = nullptr;
  const unsigned char* from_ = nullptr;
  size_t to_pitch_ = 0, from_pitch_ = 0, width_ = 0, rows_ = 0;
};

// A crew a direction, of at most 8 threads: more compete with the caller.
int crew_size() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::clamp(cores / 2, 1, 8);
}

// What one direction keeps between calls.
struct direction {
  bool out = false;  // from the device
  cudaStream_t stream = nullptr;
  void* pinned[slots] = {};
  size_t pinned_bytes = 0;
  void* device[slots] = {};
  size_t device_bytes = 0;
  cudaEvent_t moved[slots] = {};  // the copy of a slot has ended
  std::unique_ptr<copy_crew> crew;
};

}  // namespace

struct pipeline {
  direction up, down;
  pipeline() { down.out = true; }
  cudaEvent_t computed[slots] = {};
};

namespace {

lockstep_status make_pipeline(lockstep_queue& queue) {
  auto* pipe = new (std::nothrow) pipeline;
  if (pipe == nullptr) return failed(LOCKSTEP_OUT_OF_MEMORY, "no host memory for a pipeline");
  queue.pipe = pipe;
  for (direction* d : {&pipe->up, &pipe->down}) {
    LOCKSTEP_CUDA(cudaStreamCreateWithFlags(&d->stream, cudaStreamNonBlocking));
    for (cudaEvent_t& e : d->moved) LOCKSTEP_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  }
  for (cudaEvent_t& e : pipe->computed) LOCKSTEP_CUDA(cudaEventCreateWithFlags(&e, cudaEventDisableTiming));
  return LOCKSTEP_OK;
}
lockstep_status open(lockstep_queue& queue) {
  if (queue.pipe != nullptr) return LOCKSTEP_OK;
  const lockstep_status status = make_pipeline(queue);
  if (status != LOCKSTEP_OK) {  // half of one must not serve the next call
    drop_pipeline(queue);
    (void)cudaGetLastError();
  }
  return status;
}

lockstep_status grow(direction& d, size_t device_bytes, size_t pinned_bytes) {
  if (device_bytes > d.device_bytes) {
    d.device_bytes = 0;
    for (void*& p : d.device) {
      if (p != nullptr) LOCKSTEP_CUDA(cudaFree(std::exchange(p, nullptr)));
      LOCKSTEP_CUDA(cudaMalloc(&p, device_bytes));
    }
    d.device_bytes = device_bytes;
  }
  if (pinned_bytes > d.pinned_bytes) {
    d.pinned_bytes = 0;
    for (void*& p : d.pinned) {
      if (p != nullptr) LOCKSTEP_CUDA(cudaFreeHost(std::exchange(p, nullptr)));
      LOCKSTEP_CUDA(cudaHostAlloc(&p, pinned_bytes, cudaHostAllocPortable));
    }
    d.pinned_bytes = pinned_bytes;
  }
  if (pinned_bytes > 0 && d.crew == nullptr) d.crew = std::make_unique<copy_crew>(crew_size(), d.out);
  return LOCKSTEP_OK;
}

bool is_pageable(const void* pointer) {
  lockstep_memory kind = LOCKSTEP_HOST;
  int32_t device = -1;
  locate(pointer, &kind, &device);
  return kind == LOCKSTEP_HOST;
}

// How far each stage has got, in slabs; a failure stops them all.
struct stages {
  std::atomic<size_t> uploaded{0}, computed{0}, downloaded{0};
  std::atomic<int> failure{0};
  std::mutex mutex;
  cudaError_t code = cudaSuccess;

  bool stopped() const { return failure.load(std::memory_order_acquire) != 0; }
  void reach(std::atomic<size_t>& stage, size_t value) {
    stage.store(value, std::memory_order_release);
    stage.notify_all();
  }
  // Waits until a stage has done value slabs; false when something failed.
  bool wait(const std::atomic<size_t>& stage, size_t value) const {
    for (size_t now = stage.load(std::memory_order_acquire); now < value && !stopped();
         now = stage.load(std::memory_order_acquire))
      stage.wait(now, std::memory_order_acquire);
    return !stopped();
  }
  // Wakes everybody: the counters jump beyond any slab.
  void stop(cudaError_t why) {
    {
      const std::lock_guard lock(mutex);
      if (code == cudaSuccess) code = why;
    }
    failure.store(1, std::memory_order_release);
    for (std::atomic<size_t>* stage : {&uploaded, &computed, &downloaded}) reach(*stage, SIZE_MAX / 2);
  }
};

#define LOCKSTEP_STAGE(call)                                                \
  do {                                                                      \
    if (const cudaError_t stage_code = (call); stage_code != cudaSuccess) { \
      state.stop(stage_code);                                               \
      return;                                                               \
    }                                                                       \
  } while (0)

void upload(stages& state, lockstep_queue& queue, const lockstep_slab* slabs, size_t count, const unsigned char* src,
            bool pageable) {
  pipeline& pipe = *queue.pipe;
  direction& up = pipe.up;
  LOCKSTEP_STAGE(cudaSetDevice(queue.device));
  for (size_t i = 0; i < count; ++i) {
    const lockstep_slab& s = slabs[i];
    const size_t slot = i % slots;
    const void* from = src + s.src_offset;
    if (pageable) {
      if (i >= slots) LOCKSTEP_STAGE(cudaEventSynchronize(up.moved[slot]));  // the slot's last copy has left it
      up.crew->copy(static_cast<unsigned char*>(up.pinned[slot]), s.src_bytes, src + s.src_offset, s.src_bytes,
                    s.src_bytes, 1);
      from = up.pinned[slot];
    }
    if (i >= slots) {  // the device slot's last reader
      if (!state.wait(state.computed, i - slots + 1)) return;
      LOCKSTEP_STAGE(cudaStreamWaitEvent(up.stream, pipe.computed[slot], 0));
    }
    LOCKSTEP_STAGE(cudaMemcpyAsync(up.device[slot], from, s.src_bytes, cudaMemcpyHostToDevice, up.stream));
    LOCKSTEP_STAGE(cudaEventRecord(up.moved[slot], up.stream));
    state.reach(state.uploaded, i + 1);
  }
}

void download(stages& state, lockstep_queue& queue, const lockstep_slab* slabs, size_t count, unsigned char* dst,
              bool pageable) {
  pipeline& pipe = *queue.pipe;
  direction& down = pipe.down;
  LOCKSTEP_STAGE(cudaSetDevice(queue.device));
  const auto empty = [&](size_t i) {  // slot -> host, once its copy has arrived
    const lockstep_slab& s = slabs[i];
    if (const cudaError_t code = cudaEventSynchronize(down.moved[i % slots]); code != cudaSuccess) return code;
    if (pageable)
      down.crew->copy(dst + s.dst_offset, s.dst_pitch, static_cast<const unsigned char*>(down.pinned[i % slots]),
                      s.dst_width, s.dst_width, s.dst_rows);
    state.reach(state.downloaded, i + 1);
    return cudaSuccess;
  };
  // One slab behind, so that a copy over the link runs while the crew empties the one before.
  for (size_t i = 0; i < count; ++i) {
    const lockstep_slab& s = slabs[i];
    const size_t slot = i % slots;
    if (!state.wait(state.computed, i + 1)) return;
    LOCKSTEP_STAGE(cudaStreamWaitEvent(down.stream, pipe.computed[slot], 0));
    const auto* from = static_cast<const unsigned char*>(down.device[slot]) + s.dst_skip;
    if (pageable || s.dst_rows == 1) {
      void* to = pageable ? down.pinned[slot] : dst + s.dst_offset;
      LOCKSTEP_STAGE(cudaMemcpyAsync(to, from, s.dst_width * s.dst_rows, cudaMemcpyDeviceToHost, down.stream));
    } else {
      LOCKSTEP_STAGE(rows_to_host(dst + s.dst_offset, s.dst_pitch, from, s.dst_width, s.dst_rows, down.stream));
    }
    LOCKSTEP_STAGE(cudaEventRecord(down.moved[slot], down.stream));
    if (i > 0) LOCKSTEP_STAGE(empty(i - 1));
  }
  LOCKSTEP_STAGE(empty(count - 1));
}

}  // namespace

lockstep_status run_slabs(lockstep_queue* queue, const lockstep_variant* variant, const lockstep_slab* slabs,
                          size_t count, const void* src, void* dst) {
  if (forked()) return failed_fork();
  const device_guard guard(queue->device);
  LOCKSTEP_CUDA(guard.code());
  const relaxed_capture relaxed;
  const bool pageable_src = is_pageable(src), pageable_dst = is_pageable(dst);
  size_t src_bytes = 0, dst_bytes = 0, pinned_dst = 0, workspace_bytes = 0;
  for (size_t i = 0; i < count; ++i) {
    src_bytes = std::max(src_bytes, slabs[i].src_bytes);
    dst_bytes = std::max(dst_bytes, slabs[i].dst_device_bytes);
    pinned_dst = std::max(pinned_dst, slabs[i].dst_width * slabs[i].dst_rows);
    if (variant->workspace != nullptr)
      workspace_bytes = std::max(workspace_bytes, variant->workspace(queue, &slabs[i].call));
  }
  if (const lockstep_status s = open(*queue); s != LOCKSTEP_OK) return s;
  pipeline& pipe = *queue->pipe;
  if (const lockstep_status s = grow(pipe.up, src_bytes, pageable_src ? src_bytes : 0); s != LOCKSTEP_OK) return s;
  if (const lockstep_status s = grow(pipe.down, dst_bytes, pageable_dst ? pinned_dst : 0); s != LOCKSTEP_OK) return s;
  void* workspace = nullptr;
  if (workspace_bytes != 0)
    if (const lockstep_status s = scratch(queue, workspace_bytes, &workspace); s != LOCKSTEP_OK) return s;

  stages state;
  lockstep_status status = LOCKSTEP_OK;
  {
    std::thread uploader, downloader;
    try {
      uploader = std::thread(
          [&] { upload(state, *queue, slabs, count, static_cast<const unsigned char*>(src), pageable_src); });
      downloader =
          std::thread([&] { download(state, *queue, slabs, count, static_cast<unsigned char*>(dst), pageable_dst); });
    } catch (const std::system_error&) {
      status = failed(LOCKSTEP_OUT_OF_MEMORY, "no thread for the host pipeline");
      state.stop(cudaSuccess);
    }
    for (size_t i = 0; i < count; ++i) {
      const size_t slot = i % slots;
      // The upload of this slab; and the download that still reads the dst slot.
      if (!state.wait(state.uploaded, i + 1) || (i >= slots && !state.wait(state.downloaded, i - slots + 1))) break;
      cudaError_t code = cudaStreamWaitEvent(queue->stream, pipe.up.moved[slot], 0);
      if (code == cudaSuccess) {
        lockstep_call call = slabs[i].call;
        call.src = pipe.up.device[slot];
        call.dst = pipe.down.device[slot];
        call.workspace = workspace;
        call.workspace_bytes = workspace_bytes;
        status = variant->launch(queue, &call);
        code = cudaEventRecord(pipe.computed[slot], queue->stream);
      }
      if (status != LOCKSTEP_OK || code != cudaSuccess) {
        state.stop(code);
        break;
      }
      state.reach(state.computed, i + 1);
    }
    for (std::thread* stage : {&uploader, &downloader})
      if (stage->joinable()) stage->join();
  }
  if (status == LOCKSTEP_OK && state.stopped()) status = failed(state.code, "a stage of the host pipeline");
  if (status == LOCKSTEP_OK) return finish(queue);
  // Nothing may still use the slots when the caller goes on.
  for (cudaStream_t stream : {pipe.up.stream, queue->stream, pipe.down.stream})
    if (cudaStreamSynchronize(stream) != cudaSuccess) (void)cudaGetLastError();
  return status;
}

lockstep_status copy_pageable(lockstep_queue& queue, const void* src, void* dst, size_t bytes, bool upload) {
  if (const lockstep_status s = open(queue); s != LOCKSTEP_OK) return s;
  direction& d = upload ? queue.pipe->up : queue.pipe->down;
  if (const lockstep_status s = grow(d, 0, chunk); s != LOCKSTEP_OK) return s;
  const auto* from = static_cast<const unsigned char*>(src);
  auto* to = static_cast<unsigned char*>(dst);
  const size_t count = (bytes + chunk - 1) / chunk;
  const auto size_of = [&](size_t i) { return std::min(chunk, bytes - i * chunk); };
  for (size_t i = 0; i < count; ++i) {
    const size_t slot = i % slots, n = size_of(i);
    if (i >= slots) LOCKSTEP_CUDA(cudaEventSynchronize(d.moved[slot]));
    if (upload) {
      d.crew->copy(static_cast<unsigned char*>(d.pinned[slot]), n, from + i * chunk, n, n, 1);
      LOCKSTEP_CUDA(cudaMemcpyAsync(to + i * chunk, d.pinned[slot], n, cudaMemcpyHostToDevice, queue.stream));
      LOCKSTEP_CUDA(cudaEventRecord(d.moved[slot], queue.stream));
      continue;
    }
    // Two chunks are on their way while the crew empties the oldest.
    if (i >= slots)
      d.crew->copy(to + (i - slots) * chunk, chunk, static_cast<const unsigned char*>(d.pinned[slot]), chunk, chunk, 1);
    LOCKSTEP_CUDA(cudaMemcpyAsync(d.pinned[slot], from + i * chunk, n, cudaMemcpyDeviceToHost, queue.stream));
    LOCKSTEP_CUDA(cudaEventRecord(d.moved[slot], queue.stream));
  }
  if (upload) {
    // The last slots may be refilled by the next copy only after they have left.
    LOCKSTEP_CUDA(cudaStreamSynchronize(queue.stream));
    return LOCKSTEP_OK;
  }
  for (size_t i = count > slots ? count - slots : 0; i < count; ++i) {
    LOCKSTEP_CUDA(cudaEventSynchronize(d.moved[i % slots]));
    const size_t n = size_of(i);
    d.crew->copy(to + i * chunk, n, static_cast<const unsigned char*>(d.pinned[i % slots]), n, n, 1);
  }
  return LOCKSTEP_OK;
}

void drop_pipeline(lockstep_queue& queue) {
  if (queue.pipe == nullptr) return;
  for (direction* d : {&queue.pipe->up, &queue.pipe->down}) {
    if (d->stream != nullptr) (void)cudaStreamDestroy(d->stream);
    for (cudaEvent_t e : d->moved)
      if (e != nullptr) (void)cudaEventDestroy(e);
    for (void* p : d->device)
      if (p != nullptr) (void)cudaFree(p);
    for (void* p : d->pinned)
      if (p != nullptr) (void)cudaFreeHost(p);
  }
  for (cudaEvent_t e : queue.pipe->computed)
    if (e != nullptr) (void)cudaEventDestroy(e);
  delete std::exchange(queue.pipe, nullptr);
}

}  // namespace lockstep::cuda
