// backend.cpp - the CPU backend, built into the library. With LOCKSTEP_CPU_PLUGIN its
// reference rows become a module, which tests the interface for modules.
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <fstream>
#include <new>
#include <string>

#include "measure.hpp"
#include "ops.hpp"
#include "team.hpp"

namespace lockstep::cpu {

const lockstep_host* host = nullptr;

namespace {

lockstep_status devices(int32_t* count) {
  *count = 1;
  return LOCKSTEP_OK;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.rfind("model name", 0) == 0 && line.find(": ") != std::string::npos)
      return line.substr(line.find(": ") + 2);
  return "unknown processor";
}

lockstep_status device_info(int32_t, lockstep_device_info* info) {
  const long l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE), l2 = sysconf(_SC_LEVEL2_CACHE_SIZE),
             l3 = sysconf(_SC_LEVEL3_CACHE_SIZE);
  format_to(info->name, "{}", processor_name());
  const cpu_choice best = best_choice();
  const bool special = std::strcmp(best.tuned->name, "default") != 0;
  format_to(info->detail, "{}{}{}, {} threads, L1d {} KiB, L2 {} KiB, L3 {} KiB", isa_name(best.level),
            special ? " tuned for " : "", special ? best.tuned->name : "", default_threads(), l1 / 1024, l2 / 1024,
            l3 / 1024);
  info->memory_bytes = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGE_SIZE);
  info->last_level_cache_bytes = l3 > 0 ? l3 : l2;
  info->processors = default_threads();
  info->usable = 1;
  return LOCKSTEP_OK;
}

void* take(const lockstep_allocator* allocator, size_t bytes) {
  return allocator->allocate(allocator->user, bytes, 256);
}

lockstep_status queue_create(const lockstep_queue_options* options, lockstep_queue** out) {
  cpu_choice chosen = best_choice();
  if (options->cpu_isa != nullptr) {
    const char* why = "";
    if (!parse_isa(options->cpu_isa, chosen, why))
      return failed(LOCKSTEP_INVALID_ARGUMENT, "cpu_isa is \"{}\": {}; choose another or leave it out",
                    options->cpu_isa, why);
  }
  auto* memory = take(options->allocator, sizeof(lockstep_queue));
  if (memory == nullptr)
    return failed(LOCKSTEP_OUT_OF_MEMORY, "no memory for a queue ({} bytes)", sizeof(lockstep_queue));
  auto* queue = new (memory) lockstep_queue;
  queue->threads = options->threads > 0 ? options->threads : default_threads();
  queue->kernels = chosen.kernels();
  queue->tuned = chosen.tuned;
  queue->allocator = options->allocator;
  *out = queue;
  return LOCKSTEP_OK;
}

void queue_destroy(lockstep_queue* queue) {
  const lockstep_allocator* allocator = queue->allocator;
  if (queue->scratch != nullptr) allocator->release(allocator->user, queue->scratch, queue->scratch_bytes, 256);
  queue->~lockstep_queue();
  allocator->release(allocator->user, queue, sizeof(lockstep_queue), 256);
}

lockstep_status finish(lockstep_queue*) { return LOCKSTEP_OK; }

lockstep_status scratch(lockstep_queue* queue, size_t bytes, void** pointer) {
  if (bytes > queue->scratch_bytes) {
    const lockstep_allocator* allocator = queue->allocator;
    if (queue->scratch != nullptr) allocator->release(allocator->user, queue->scratch, queue->scratch_bytes, 256);
    queue->scratch_bytes = 0;
    queue->scratch = take(allocator, bytes);
    if (queue->scratch == nullptr)
      return failed(LOCKSTEP_OUT_OF_MEMORY, "no host memory for {} bytes of workspace", bytes);
    queue->scratch_bytes = bytes;
  }
  *pointer = queue->scratch;
  return LOCKSTEP_OK;
}

lockstep_status allocate(lockstep_queue* queue, lockstep_memory kind, size_t bytes, void** pointer) {
  if (kind != LOCKSTEP_HOST)
    return failed(LOCKSTEP_UNSUPPORTED, "the CPU has no memory of kind {}; ask for LOCKSTEP_HOST",
                  static_cast<int>(kind));
  *pointer = take(queue->allocator, bytes);
  return *pointer != nullptr ? LOCKSTEP_OK : failed(LOCKSTEP_OUT_OF_MEMORY, "no host memory for {} bytes", bytes);
}
void release(lockstep_queue* queue, lockstep_memory, size_t bytes, void* pointer) {
  queue->allocator->release(queue->allocator->user, pointer, bytes, 256);
}
lockstep_status copy(lockstep_queue*, const void* src, void* dst, size_t bytes) {
  std::memmove(dst, src, bytes);
  return LOCKSTEP_OK;
}
void locate(const void*, lockstep_memory* kind, int32_t* device) {
  *kind = LOCKSTEP_HOST;
  *device = -1;
}
const char* remark(const lockstep_queue* queue) {
  const int missing = refused_threads();
  if (missing == 0 || queue->threads == 1) return nullptr;
  thread_local char text[96];
  format_to(text, "{} of {} threads could not be made; fewer ran", missing, queue->threads);
  return text;
}
// Everything counts as reachable: the library never passes the CPU device memory of another backend.
int reachable(const lockstep_queue*, const void*) { return 1; }

#if defined(LOCKSTEP_CPU_PLUGIN)
constexpr const char* backend_name = "cpuref";
constexpr const char* backend_description = "the CPU's plain reference loops, as a module";
const lockstep_variant rows[LOCKSTEP_OP_COUNT] = {
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_transpose},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_permute},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_square_sum},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_reduce},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, ref_stencil_workspace, ref_stencil},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_shuffle},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_normalize},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_scan},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_sums},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_reduce_axes},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_convert},
    {"ref", "plain loops", LOCKSTEP_REFERENCE, nullptr, nullptr, nullptr, ref_convert},  // map
};
const lockstep_table* tables() {
  static const lockstep_table all[] = {{&rows[0], 1}, {&rows[1], 1}, {&rows[2], 1},  {&rows[3], 1},
                                       {&rows[4], 1}, {&rows[5], 1}, {&rows[6], 1},  {&rows[7], 1},
                                       {&rows[8], 1}, {&rows[9], 1}, {&rows[10], 1}, {&rows[11], 1}};
  return all;
}
#else
constexpr const char* backend_name = "cpu";
constexpr const char* backend_description = "threads over tiles and leaves, SIMD inside";
const lockstep_table* tables() {
  static const lockstep_table all[] = {
      transpose_table, permute_table, square_sum_table,  reduce_table,  stencil_table, shuffle_table, normalize_table,
      scan_table,      sums_table,    reduce_axes_table, convert_table, convert_table};  // the last: map
  return all;
}
#endif

}  // namespace
}  // namespace lockstep::cpu

#if !defined(LOCKSTEP_CPU_PLUGIN)
// For the library (lib/call/interruptible.cpp).
extern "C" void lockstep_cpu_set_interruption(lockstep_queue* queue, lockstep::interruption* of_call) {
  queue->interrupt = of_call;
}
#endif

#if defined(LOCKSTEP_CPU_PLUGIN)
extern "C" __attribute__((visibility("default"))) const lockstep_backend* lockstep_backend_entry(
    const lockstep_host* host) {
#else
extern "C" const lockstep_backend* lockstep_cpu_backend(const lockstep_host* host) {
#endif
  using namespace lockstep::cpu;
  if (host->abi != LOCKSTEP_BACKEND_ABI) {
    host->set_error("this backend was built for another lockstep; rebuild it");
    return nullptr;
  }
  lockstep::cpu::host = host;
  static const lockstep_backend backend = {LOCKSTEP_BACKEND_ABI,
                                           sizeof(lockstep_backend),
                                           backend_name,
                                           backend_description,
                                           devices,
                                           device_info,
                                           queue_create,
                                           queue_destroy,
                                           finish,
                                           scratch,
                                           allocate,
                                           release,
                                           copy,
                                           locate,
                                           reachable,
                                           tables(),
                                           LOCKSTEP_OP_COUNT,
                                           measure,
                                           limit,
                                           nullptr,
                                           remark,
                                           LOCKSTEP_BACKEND_READS,
                                           nullptr,
                                           nullptr};
  return &backend;
}
