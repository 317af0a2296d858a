// fake_machine.cpp - memory with its rights, handles, and the rules that a misuse breaks.
#include "fake_machine.hpp"

#include <cxxabi.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace fake {

machine& all() {
  static machine* const one = new machine;  // module destructors may still call
  return *one;
}

thread_local int current = 0;
thread_local cudaError_t last_error = cudaSuccess;
thread_local cudaStreamCaptureMode capture_mode = cudaStreamCaptureModeGlobal;

void blame(const std::string& text) {
  if (all().misuse.empty()) all().misuse = text;
}

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
  if (it == m.memory.end() || (it->second.type == cudaMemoryTypeHost) != host || it->second.mapped == 0) {
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

constexpr size_t end_bytes = 65536;
cudaError_t move(machine& m, void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  const opened from(m, src, bytes), to(m, dst, bytes);
  if (kind != cudaMemcpyDefault) {
    const bool reads_device = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice;
    const bool writes_device = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice;
    if (reads_device != from.device() || writes_device != to.device()) blame("a copy's kind and its pointers disagree");
  }
  if (from.device() != to.device())
    m.crossed.push_back({reinterpret_cast<uintptr_t>(to.device() ? src : dst), bytes, to.device()});
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
  if (capturing(s)) return cudaErrorStreamCaptureUnsupported;
  drained(m, s);
  return cudaSuccess;
}
void drained(machine& m, cudaStream_t s) {
  progress& p = m.work[s];
  p.done = p.launched;
  p.reads = nullptr;
}
void overwritten(machine& m, const char* bytes, cudaStream_t s) {
  if (const auto it = m.readers.find(bytes); it != m.readers.end()) {
    const auto [other, launch] = it->second;
    if (other != s && m.work[other].done < launch && m.work[s].behind[other] < launch)
      blame("__constant__ memory is written while a kernel of another stream may read it");
    m.readers.erase(it);
  }
  m.work[s].reads = bytes;
}
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
  if (m.started.size() == 16) m.started.erase(m.started.begin());
  m.started.push_back({m.kernels[kernel], grid, block});
  progress& p = m.work[s];
  ++p.launched;
  if (p.reads != nullptr) m.readers[p.reads] = {s, p.launched};
  return cudaSuccess;
}

void use(const chips& chips) { all().chips = chips; }
void late_host(bool late) { all().late_host = late; }
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
std::vector<crossed> last_crossed() { return std::exchange(all().crossed, {}); }
std::vector<started> last_started() {
  std::vector<started> found = std::exchange(all().started, {});
  for (started& one : found) {
    char* plain = abi::__cxa_demangle(one.kernel.c_str(), nullptr, nullptr, nullptr);
    if (plain != nullptr) one.kernel = plain;
    std::free(plain);
    one.kernel = one.kernel.substr(0, one.kernel.find('('));
  }
  return found;
}
long launches_on(cudaStream_t stream) { return static_cast<long>(all().work[stream].launched); }
long live() { return static_cast<long>(all().memory.size() + all().streams.size() + all().events.size()); }
std::string listed() {
  machine& m = all();
  std::string text = std::to_string(m.streams.size()) + " streams, " + std::to_string(m.events.size()) + " events";
  for (const auto& [at, r] : m.memory)
    text += ", " + std::to_string(r.bytes) + " bytes of type " + std::to_string(r.type);
  return text;
}
long pools() { return static_cast<long>(all().pools.size()); }
std::string misuse() { return all().misuse; }
void capture(cudaStream_t stream, bool on) {
  if (stream->capturing != on) all().capturing += on ? 1 : -1;
  stream->capturing = on;
}

}  // namespace fake
