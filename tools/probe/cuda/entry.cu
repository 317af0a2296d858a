// entry.cu - the module's one exported symbol: its table, and what turns failures into
// sentences at the seam.
#include <cstdio>
#include <cstring>

#include "bench.cuh"
#include "rows.hpp"

namespace lockstep::probe {

void device_facts(bench& b) {
  const cudaDeviceProp& d = b.device();
  const auto attribute = [&](cudaDeviceAttr which) {
    int value = 0;
    PROBE_CUDA(cudaDeviceGetAttribute(&value, which, b.device_number()));
    return static_cast<double>(value);
  };
  int driver = 0, runtime = 0;
  PROBE_CUDA(cudaDriverGetVersion(&driver));
  PROBE_CUDA(cudaRuntimeGetVersion(&runtime));
  b.fact("capability", d.major * 10 + d.minor);
  b.fact("driver_cuda", driver);
  b.fact("runtime_cuda", runtime);
  b.fact("processors", d.multiProcessorCount);
  b.fact("clock_ghz", attribute(cudaDevAttrClockRate) * 1e-6, "GHz");
  b.fact("memory_clock_ghz", attribute(cudaDevAttrMemoryClockRate) * 1e-6, "GHz");
  b.fact("memory_bus_bits", attribute(cudaDevAttrGlobalMemoryBusWidth));
  b.fact("memory_bytes", static_cast<double>(d.totalGlobalMem), "B");
  b.fact("l2_bytes", d.l2CacheSize, "B");
  b.fact("constant_bytes", static_cast<double>(d.totalConstMem), "B");
  b.fact("registers_a_processor", d.regsPerMultiprocessor);
  b.fact("registers_a_block", d.regsPerBlock);
  b.fact("shared_bytes_a_processor", static_cast<double>(d.sharedMemPerMultiprocessor), "B");
  b.fact("shared_bytes_a_block", static_cast<double>(d.sharedMemPerBlock), "B");
  b.fact("shared_bytes_a_block_optin", static_cast<double>(d.sharedMemPerBlockOptin), "B");
  b.fact("shared_bytes_reserved", static_cast<double>(d.reservedSharedMemPerBlock), "B");
  b.fact("threads_a_processor", d.maxThreadsPerMultiProcessor);
  b.fact("threads_a_block", d.maxThreadsPerBlock);
  b.fact("blocks_a_processor", d.maxBlocksPerMultiProcessor);
  b.fact("warp", d.warpSize);
}

namespace {

struct row_entry {
  const char* id;
  void (*measure)(bench& b);
};
constexpr row_entry rows[] = {
    {"device", device_facts}, {"E1", e1_local},       {"E2", e2_static_dynamic}, {"E3", e3_banks},
    {"E4", e4_constant},      {"E5", e5_read_only},   {"E6", e6_texture},        {"E7", e7_global},
    {"E8", e8_coalescing},    {"E9", e9_host},        {"E10", e10_ladder},       {"E11", e11_shuffle},
    {"E12", e12_elements},    {"E13", e13_occupancy}, {"E14", e14_limits},
};

void explain(const char* text, char* why, size_t why_bytes) {
  if (why_bytes > 0) std::snprintf(why, why_bytes, "%s", text);
}

int32_t devices(char* why, size_t why_bytes) {
  int count = 0;
  const cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess) return count;
  (void)cudaGetLastError();
  explain(cudaGetErrorString(code), why, why_bytes);
  return 0;
}

int32_t run(int32_t device, const char* row, double seconds, sink to, void* user, char* why, size_t why_bytes) {
  for (const row_entry& entry : rows) {
    if (std::strcmp(entry.id, row) != 0) continue;
    try {
      bench b(device, seconds, to, user);
      b.row(entry.id);
      entry.measure(b);
      return 0;
    } catch (const std::exception& e) {
      explain(e.what(), why, why_bytes);
      return 1;
    }
  }
  explain("this module has no such row; rebuild it with this program", why, why_bytes);
  return 1;
}

const char* name(int32_t device) {
  static thread_local cudaDeviceProp d;
  return cudaGetDeviceProperties(&d, device) == cudaSuccess ? d.name : "";
}

const char* detail(int32_t device) {
  static thread_local char text[160];
  cudaDeviceProp d{};
  int driver = 0, runtime = 0;
  if (cudaGetDeviceProperties(&d, device) != cudaSuccess || cudaDriverGetVersion(&driver) != cudaSuccess ||
      cudaRuntimeGetVersion(&runtime) != cudaSuccess)
    return "";
  std::snprintf(text, sizeof text, "sm_%d%d, %d multiprocessors, driver for CUDA %d.%d, runtime %d.%d", d.major,
                d.minor, d.multiProcessorCount, driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  return text;
}

constexpr module table = {module_abi, sizeof(module), devices, run, name, detail};

}  // namespace
}  // namespace lockstep::probe

extern "C" __attribute__((visibility("default"))) const lockstep::probe::module* lockstep_probe_module() {
  return &lockstep::probe::table;
}
