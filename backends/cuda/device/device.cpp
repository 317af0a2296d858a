// device.cpp - see device.hpp.
#include "device.hpp"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "memory.hpp"

namespace lockstep::cuda {
namespace {

// The architectures of this build, "75,80,90-ptx": machine code of x.y runs on
// x.z with z >= y, PTX on any later chip. "-virtual" is PTX without machine code.
constexpr const char* built_for = LOCKSTEP_GPU_ARCH;
constexpr int oldest = 75;  // what the kernels are written for

bool has_code(int major, int minor, long least = 0) {
  for (const char* at = built_for; *at != '\0';) {
    char* end = nullptr;
    const long arch = std::strtol(at, &end, 10);
    const bool ptx = std::strncmp(end, "-ptx", 4) == 0 || std::strncmp(end, "-virtual", 8) == 0;
    const long chip = major * 10 + minor;
    if (arch >= least && ((arch / 10 == major && arch <= chip) || (ptx && arch <= chip))) return true;
    const char* comma = std::strchr(end, ',');
    if (comma == nullptr) return false;
    at = comma + 1;
  }
  return false;
}

// A device's capability without creating a context on it.
cudaError_t capability(int device, int& major, int& minor) {
  const cudaError_t code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
  return code != cudaSuccess ? code : cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
}

lockstep_status no_driver(cudaError_t code) {
  (void)cudaGetLastError();
  int driver = 0, runtime = 0;
  (void)cudaDriverGetVersion(&driver);
  (void)cudaRuntimeGetVersion(&runtime);
  (void)cudaGetLastError();
  // 35 stands for two things: no driver at all (its version reads 0) and one that is too old.
  if (code == cudaErrorInsufficientDriver && driver == 0)
    return failed(LOCKSTEP_NO_BACKEND, "no NVIDIA driver (libcuda.so.1 was not found)");
  if (code == cudaErrorInsufficientDriver)
    return failed(LOCKSTEP_NO_BACKEND,
                  "the NVIDIA driver serves CUDA %d.%d, older than the %d.%d this build needs; update it",
                  driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
  if (code == cudaErrorNoDevice)
    return failed(LOCKSTEP_NO_BACKEND, "the NVIDIA driver is there but shows no device (CUDA_VISIBLE_DEVICES?)");
  return failed(LOCKSTEP_NO_BACKEND, "the NVIDIA driver does not start: %s (%s)", cudaGetErrorString(code),
                cudaGetErrorName(code));
}

// The kernel module's version, "580.159.04"; "" where it does not show. The runtime
// knows only the CUDA version that a driver serves.
void driver_version(char (&text)[32]) {
  text[0] = '\0';
  if (std::FILE* file = std::fopen("/sys/module/nvidia/version", "re"); file != nullptr) {
    if (std::fscanf(file, "%31s", text) != 1) text[0] = '\0';
    std::fclose(file);
  }
}

}  // namespace

lockstep_status require_usable(int device) {
  int major = 0, minor = 0;
  LOCKSTEP_CUDA(capability(device, major, minor));
  if (major * 10 + minor < oldest)
    return failed(LOCKSTEP_NO_BACKEND, "device %d is an sm_%d%d chip; the kernels need sm_%d or later", device, major,
                  minor, oldest);
  if (!has_code(major, minor))
    return failed(LOCKSTEP_NO_BACKEND, "device %d is an sm_%d%d chip, but this build has code for %s only (gpu_arch)",
                  device, major, minor, built_for);
  return LOCKSTEP_OK;
}

lockstep_status devices(int32_t* count) {
  *count = 0;
  if (forked()) return failed_fork();
  int found = 0;  // error 35 leaves it unwritten
  if (const cudaError_t code = cudaGetDeviceCount(&found); code != cudaSuccess) return no_driver(code);
  if (found == 0) return no_driver(cudaErrorNoDevice);
  lockstep_status first = LOCKSTEP_OK;
  for (int device = found - 1; device >= 0; --device) {
    const lockstep_status status = require_usable(device);
    if (status == LOCKSTEP_OK) {
      *count = found;
    } else {
      first = status;  // the text of the lowest device stands
    }
  }
  return *count != 0 ? LOCKSTEP_OK : first;
}

lockstep_status facts_of(int device, const device_facts** facts) {
  static std::array<device_facts, 64> all;
  static std::array<bool, 64> known{};  // only after every attribute was read
  static std::mutex mutex;
  const size_t slot = static_cast<size_t>(device) % all.size();
  const std::lock_guard lock(mutex);
  if (!known[slot]) {
    device_facts f;
    int pools = 0;
    const std::pair<cudaDeviceAttr, int*> wanted[] = {
        {cudaDevAttrComputeCapabilityMajor, &f.major},   {cudaDevAttrComputeCapabilityMinor, &f.minor},
        {cudaDevAttrMultiProcessorCount, &f.processors}, {cudaDevAttrMaxSharedMemoryPerBlockOptin, &f.shared_bytes},
        {cudaDevAttrL2CacheSize, &f.l2_bytes},           {cudaDevAttrMaxThreadsPerMultiProcessor, &f.resident_threads},
        {cudaDevAttrMemoryPoolsSupported, &pools}};
    for (const auto& [attribute, value] : wanted) LOCKSTEP_CUDA(cudaDeviceGetAttribute(value, attribute, device));
    f.pools = pools != 0;
    // The wait that makes it safe is in code for 9.0 and later only; capture knows the attribute from 12.3 on.
    int driver = 0;
    LOCKSTEP_CUDA(cudaDriverGetVersion(&driver));
    f.early = has_code(f.major, f.minor, 90) && driver >= 12030;
    f.tuned = tuning_for(f);
    f.write_word = reinterpret_cast<decltype(&cuStreamWriteValue32)>(driver_function("cuStreamWriteValue32"));
    all[slot] = f;
    known[slot] = true;
  }
  *facts = &all[slot];
  return LOCKSTEP_OK;
}

lockstep_status device_info(int32_t device, lockstep_device_info* info) {
  if (forked()) return failed_fork();
  cudaDeviceProp p{};
  LOCKSTEP_CUDA(cudaGetDeviceProperties(&p, device));
  int driver = 0, runtime = 0;
  LOCKSTEP_CUDA(cudaDriverGetVersion(&driver));
  LOCKSTEP_CUDA(cudaRuntimeGetVersion(&runtime));
  const lockstep_status usable = require_usable(device);
  if (usable != LOCKSTEP_OK && usable != LOCKSTEP_NO_BACKEND) return usable;  // not known
  info->usable = usable == LOCKSTEP_OK;
  std::snprintf(info->name, sizeof info->name, "%.120s", p.name);
  char version[32];
  driver_version(version);
  std::snprintf(info->detail, sizeof info->detail,
                "sm_%d%d%s, driver %s%sfor CUDA %d.%d, runtime %d.%d, %d multiprocessors, L2 %d MiB, shared memory %zu "
                "KiB a block",
                p.major, p.minor, info->usable ? "" : " (no code in this build)", version,
                version[0] != '\0' ? " " : "", driver / 1000, driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10,
                p.multiProcessorCount, p.l2CacheSize >> 20, p.sharedMemPerBlockOptin >> 10);
  info->memory_bytes = static_cast<int64_t>(p.totalGlobalMem);
  info->last_level_cache_bytes = p.l2CacheSize;
  info->processors = p.multiProcessorCount;
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cuda
