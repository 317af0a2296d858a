// fake_module.cpp - a backend "fake" with eight devices for tests of ranks: computes on the CPU by lockstep's own
// calls, but the host cannot touch its memory, and its streams are as late as streams may be. Enqueued work runs only
// when somebody waits, and then the next step is one of any stream, drawn. So what does not wait for its data gets
// other bits.
#include "fake_module.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/backend_peer.h"

namespace {

constexpr int32_t device_count = 8;
constexpr size_t arena_bytes = size_t{1} << 30;  // of address space; only what is used is memory

const lockstep_host* host = nullptr;
std::recursive_mutex all;

lockstep_status failed(lockstep_status status, const std::string& text) {
  host->set_error(text.c_str());
  return status;
}

// ---- memory -----------------------------------------------------------------

struct arena {
  char *shown = nullptr, *real = nullptr;  // the same pages; those shown cannot be read or written
  std::map<size_t, size_t> blocks;         // offset, bytes
};
arena arenas[device_count];

bool open_arenas() {
  for (arena& a : arenas) {
    if (a.shown != nullptr) continue;
    const int file = memfd_create("fake device", 0);
    if (file < 0 || ftruncate(file, arena_bytes) != 0) return false;
    void* shown = mmap(nullptr, arena_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    void* real = mmap(nullptr, arena_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (shown == MAP_FAILED || real == MAP_FAILED) return false;
    a.shown = static_cast<char*>(shown), a.real = static_cast<char*>(real);
  }
  return true;
}

int device_of(const void* pointer) {
  const auto* at = static_cast<const char*>(pointer);
  for (int d = 0; d < device_count; ++d)
    if (arenas[d].shown != nullptr && at >= arenas[d].shown && at < arenas[d].shown + arena_bytes) return d;
  return -1;
}
char* real(const void* pointer) {
  const int d = device_of(pointer);
  auto* at = static_cast<char*>(const_cast<void*>(pointer));
  return d < 0 ? at : arenas[d].real + (at - arenas[d].shown);
}

char* take(int device, size_t bytes) {
  arena& a = arenas[device];
  bytes = (bytes + 255) / 256 * 256;
  size_t at = 0;
  for (const auto& [offset, length] : a.blocks) {
    if (offset - at >= bytes) break;
    at = offset + length;
  }
  if (arena_bytes - at < bytes) return nullptr;
  a.blocks[at] = bytes;
  std::memset(a.real + at, 0xA5, bytes);
  return a.shown + at;
}
void give_back(const void* pointer) {
  arena& a = arenas[device_of(pointer)];
  const auto found = a.blocks.find(static_cast<size_t>(static_cast<const char*>(pointer) - a.shown));
  if (found == a.blocks.end()) std::abort();
  std::memset(a.real + found->first, 0xDB, found->second);  // late work finds other bits
  a.blocks.erase(found);
}

// ---- streams ----------------------------------------------------------------

using fake::ticket;
struct step {
  std::function<void()> work;
  std::shared_ptr<ticket> before;  // it runs once this is done
};
struct stream {
  int device = 0;
  std::deque<step> steps;
};
struct event {
  int device = 0;
  std::shared_ptr<ticket> last;
};
std::set<stream*> streams;
std::mt19937_64 draw(20261124);

// One step of a drawn stream; false: none can run.
bool advance() {
  std::vector<stream*> ready;
  for (stream* s : streams)
    if (!s->steps.empty() && (s->steps.front().before == nullptr || s->steps.front().before->done)) ready.push_back(s);
  if (ready.empty()) return false;
  stream* s = ready[draw() % ready.size()];
  const step now = std::move(s->steps.front());
  s->steps.pop_front();
  if (now.work) now.work();
  return true;
}

stream* of(void* handle) { return static_cast<stream*>(handle); }
bool known(void* handle, int device) { return streams.count(of(handle)) != 0 && of(handle)->device == device; }
lockstep_status unknown(int device) {
  return failed(LOCKSTEP_BACKEND_FAILED, "the stream is none of device " + std::to_string(device));
}

}  // namespace

struct outcome {
  lockstep_status status = LOCKSTEP_OK;
  std::string text;
};

struct lockstep_queue {
  int device = 0;
  stream* on = nullptr;
  bool own = false;
  const lockstep_allocator* allocator = nullptr;
  std::shared_ptr<outcome> told = std::make_shared<outcome>();  // late work may outlive the queue
};

namespace {

lockstep_status devices(int32_t* count) {
  *count = device_count;
  return open_arenas() ? LOCKSTEP_OK : failed(LOCKSTEP_BACKEND_FAILED, "no memory for the devices");
}
lockstep_status device_info(int32_t, lockstep_device_info* info) {
  info->usable = 1;
  return LOCKSTEP_OK;
}
lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** queue) {
  const std::lock_guard lock(all);
  if (options->stream != nullptr && !known(options->stream, options->device)) return unknown(options->device);
  auto* q = new lockstep_queue;
  q->device = options->device;
  q->own = options->stream == nullptr;
  q->on = q->own ? *streams.insert(new stream{q->device, {}}).first : of(options->stream);
  q->allocator = options->allocator;
  *queue = q;
  return LOCKSTEP_OK;
}
lockstep_status finish(lockstep_queue* q) {
  const std::lock_guard lock(all);
  while (!q->on->steps.empty())
    if (!advance()) return failed(LOCKSTEP_BACKEND_FAILED, "the stream waits for what never comes");
  if (q->told->status == LOCKSTEP_OK) return LOCKSTEP_OK;
  return failed(std::exchange(q->told->status, LOCKSTEP_OK), q->told->text);
}
void queue_destroy(lockstep_queue* q) {
  const std::lock_guard lock(all);
  if (q->own) {
    static_cast<void>(finish(q));
    streams.erase(q->on);
    delete q->on;
  }
  delete q;
}
lockstep_status scratch(lockstep_queue*, size_t, void**) { return failed(LOCKSTEP_OUT_OF_MEMORY, "no row needs it"); }
lockstep_status allocate(lockstep_queue* q, lockstep_memory kind, size_t bytes, void** pointer) {
  const std::lock_guard lock(all);
  *pointer = kind == LOCKSTEP_DEVICE ? take(q->device, bytes) : q->allocator->allocate(q->allocator->user, bytes, 256);
  return *pointer != nullptr ? LOCKSTEP_OK : failed(LOCKSTEP_OUT_OF_MEMORY, "the device is full");
}
void release(lockstep_queue* q, lockstep_memory kind, size_t bytes, void* pointer) {
  const std::lock_guard lock(all);
  if (kind == LOCKSTEP_DEVICE)
    give_back(pointer);
  else
    q->allocator->release(q->allocator->user, pointer, bytes, 256);
}
lockstep_status copy(lockstep_queue* q, const void* src, void* dst, size_t bytes) {
  const std::lock_guard lock(all);
  q->on->steps.push_back({[=] { std::memmove(real(dst), real(src), bytes); }, nullptr});
  return LOCKSTEP_OK;
}
void locate(const void* pointer, lockstep_memory* kind, int32_t* device) {
  *device = device_of(pointer);
  *kind = *device < 0 ? LOCKSTEP_HOST : LOCKSTEP_DEVICE;
}
// As after connect: 1 and 2 have no link. The memory of 7 is closed to others, as that of a pool can be.
int writes(int32_t device, const void* pointer) {
  const int owner = device_of(pointer);
  return owner >= 0 && owner != 7 && owner + device != 3;
}
int reachable(const lockstep_queue* q, const void* pointer) {
  return device_of(pointer) == q->device || writes(q->device, pointer) != 0;
}

lockstep_context* on_cpu() {
  static lockstep_context* const context = [] {
    lockstep_context_options o = lockstep_context_defaults();
    o.backend = "cpu";
    o.threads = 1;
    lockstep_context* made = nullptr;
    if (lockstep_context_create(&o, &made) != LOCKSTEP_OK) std::abort();
    return made;
  }();
  return context;
}

lockstep_status compute(lockstep_call& c) {
  const bool has_offsets = c.op == LOCKSTEP_REDUCE || c.op == LOCKSTEP_SQUARE_SUM || c.op == LOCKSTEP_SCAN ||
                           c.op == LOCKSTEP_SUMS;  // at the same place in each
  if (has_offsets) c.reduce.offsets = reinterpret_cast<const int64_t*>(real(c.reduce.offsets));
  if (c.op == LOCKSTEP_SUMS) c.sums.other = real(c.sums.other);
  if (c.op == LOCKSTEP_SCAN) c.scan.before = real(c.scan.before);
  if (c.op == LOCKSTEP_NORMALIZE) {
    lockstep_normalize_desc& d = c.normalize;
    for (const void** side : {&d.weight, &d.bias, &d.residual}) *side = real(*side);
    d.sum = real(d.sum);
    d.given = reinterpret_cast<const double*>(real(d.given));
  }
  const void* src = real(c.src);
  void* dst = real(c.dst);
  switch (c.op) {
    case LOCKSTEP_TRANSPOSE: return lockstep_transpose(on_cpu(), &c.transpose, src, dst, nullptr);
    case LOCKSTEP_PERMUTE: return lockstep_permute(on_cpu(), &c.permute, src, dst, nullptr);
    case LOCKSTEP_SQUARE_SUM: return lockstep_square_sum(on_cpu(), &c.reduce, src, dst, nullptr);
    case LOCKSTEP_REDUCE: return lockstep_reduce(on_cpu(), &c.reduce, src, dst, nullptr);
    case LOCKSTEP_STENCIL: return lockstep_stencil(on_cpu(), &c.stencil, src, dst, nullptr);
    case LOCKSTEP_SHUFFLE: return lockstep_shuffle(on_cpu(), &c.shuffle, src, dst, nullptr);
    case LOCKSTEP_NORMALIZE: return lockstep_normalize(on_cpu(), &c.normalize, src, dst, nullptr);
    case LOCKSTEP_SCAN: return lockstep_scan(on_cpu(), &c.scan, src, dst, nullptr);
    case LOCKSTEP_SUMS: return lockstep_sums(on_cpu(), &c.sums, src, dst, nullptr);
    default: return LOCKSTEP_UNSUPPORTED;
  }
}

lockstep_status launch(lockstep_queue* q, const lockstep_call* given) {
  const std::lock_guard lock(all);
  const bool of_sequences =
      given->op == LOCKSTEP_REDUCE || given->op == LOCKSTEP_SQUARE_SUM || given->op == LOCKSTEP_SUMS;
  const bool reads = !of_sequences || given->reduce.length != 0;  // at the same place in each
  if ((reads && reachable(q, given->src) == 0) || reachable(q, given->dst) == 0)
    return failed(LOCKSTEP_BACKEND_FAILED, "a kernel on device " + std::to_string(q->device) + " used other memory");
  lockstep_call c = *given;
  std::vector<double> coefficients;
  if (c.op == LOCKSTEP_STENCIL)
    coefficients.assign(c.stencil.coefficients, c.stencil.coefficients + c.stencil.coefficient_count);
  q->on->steps.push_back({[told = q->told, c, coefficients]() mutable {
                            if (c.op == LOCKSTEP_STENCIL) c.stencil.coefficients = coefficients.data();
                            const lockstep_status status = compute(c);
                            if (status == LOCKSTEP_OK || told->status != LOCKSTEP_OK) return;
                            told->status = status, told->text = lockstep_last_error();
                          },
                          nullptr});
  return LOCKSTEP_OK;
}

// ---- peers ------------------------------------------------------------------

lockstep_status stream_create(int32_t device, void** out) {
  const std::lock_guard lock(all);
  *out = *streams.insert(new stream{device, {}}).first;
  return LOCKSTEP_OK;
}
void stream_destroy(int32_t, void* handle) {
  const std::lock_guard lock(all);
  while (!of(handle)->steps.empty() && advance()) {
  }
  streams.erase(of(handle));
  delete of(handle);
}
lockstep_status event_create(int32_t device, void** out) {
  *out = new event{device, nullptr};
  return LOCKSTEP_OK;
}
void event_destroy(int32_t, void* e) { delete static_cast<event*>(e); }
lockstep_status record(int32_t device, void* handle, void* e) {
  const std::lock_guard lock(all);
  if (!known(handle, device)) return unknown(device);
  if (static_cast<event*>(e)->device != device)
    return failed(LOCKSTEP_BACKEND_FAILED, "an event of device " + std::to_string(static_cast<event*>(e)->device) +
                                               " was recorded on device " + std::to_string(device));
  const auto t = std::make_shared<ticket>();
  static_cast<event*>(e)->last = t;
  of(handle)->steps.push_back({[t] { t->done = true; }, nullptr});
  return LOCKSTEP_OK;
}
lockstep_status wait(int32_t device, void* handle, void* e) {
  const std::lock_guard lock(all);
  if (!known(handle, device)) return unknown(device);
  if (const auto& t = static_cast<event*>(e)->last) of(handle)->steps.push_back({nullptr, t});
  return LOCKSTEP_OK;
}
lockstep_status passed(int32_t, void* e, int* done) {
  const std::lock_guard lock(all);
  const auto& t = static_cast<event*>(e)->last;
  for (uint64_t k = draw() % 4; k > 0 && t != nullptr && !t->done; --k) advance();
  *done = t == nullptr || t->done;
  return LOCKSTEP_OK;
}
lockstep_status connect(int32_t device, int32_t peer, int* direct) {
  *direct = device + peer != 3;  // 1 and 2 have no link
  return LOCKSTEP_OK;
}
lockstep_status copy_rows(int32_t device, void* handle, const lockstep_peer_rows* given) {
  const std::lock_guard lock(all);
  if (!known(handle, device)) return unknown(device);
  const lockstep_peer_rows r = *given;
  if (device_of(r.src) != r.src_device || device_of(r.dst) != r.dst_device)
    return failed(LOCKSTEP_BACKEND_FAILED, "a copy names other devices than its memory has");
  if (r.src_pitch < r.width || r.dst_pitch < r.width || r.width == 0 || r.height == 0)
    return failed(LOCKSTEP_BACKEND_FAILED, "a copy has a pitch that is less than its width");
  for (size_t k = 0; k < r.height; ++k)  // rows one by one: each may be overtaken by other streams
    of(handle)->steps.push_back(
        {[r, k] { std::memcpy(real(r.dst) + k * r.dst_pitch, real(r.src) + k * r.src_pitch, r.width); }, nullptr});
  return LOCKSTEP_OK;
}

lockstep_status identity(int32_t device, unsigned char id[16]) {
  std::memset(id, 0, 16);
  id[0] = static_cast<unsigned char>(1 + device);
  return LOCKSTEP_OK;
}
thread_local int32_t current = 0;
lockstep_status with_device(int32_t device, void (*call)(void* user), void* user) {
  const int32_t before = std::exchange(current, device);
  call(user);
  current = before;
  return LOCKSTEP_OK;
}

const lockstep_variant row[] = {{"late", "computes on the CPU, late", 0, nullptr, nullptr, nullptr, launch}};

}  // namespace

std::recursive_mutex& fake::lock() { return all; }
int fake::current_device() { return current; }
int fake::device_of_memory(const void* pointer) { return device_of(pointer); }
char* fake::memory(const void* pointer) { return real(pointer); }
bool fake::is_stream_of(void* handle, int device) { return known(handle, device); }
void fake::enqueue(void* handle, std::function<void()> work, std::shared_ptr<ticket> before) {
  of(handle)->steps.push_back({std::move(work), std::move(before)});
}
uint64_t fake::drawn() { return draw(); }

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED const lockstep_backend* lockstep_backend_entry(const lockstep_host* given) {
  host = given;
  static lockstep_table tables[LOCKSTEP_SUMS + 1];
  for (lockstep_table& t : tables) t = {row, 1};
  static lockstep_backend b{};
  b.abi = LOCKSTEP_BACKEND_ABI;
  b.size = sizeof b;
  b.name = "fake";
  b.description = "devices for tests";
  b.devices = devices;
  b.device_info = device_info;
  b.queue_create = queue_create;
  b.queue_destroy = queue_destroy;
  b.finish = finish;
  b.scratch = scratch;
  b.allocate = allocate;
  b.release = release;
  b.copy = copy;
  b.locate = locate;
  b.reachable = reachable;
  b.tables = tables;
  b.table_count = sizeof tables / sizeof *tables;
  b.reads = LOCKSTEP_BACKEND_READS;
  return &b;
}

EXPORTED const lockstep_peer_table* lockstep_peers_entry() {
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
                                            stream_create,
                                            writes};
  return &table;
}
