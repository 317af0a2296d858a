// gpu.hpp - what the GPU tests share.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstring>
#include <lockstep/lockstep.hpp>
#include <string>
#include <vector>

namespace lockstep::gpu_test {

inline int devices() {
  for (int32_t i = 0; i < lockstep_backend_count(); ++i) {
    lockstep_backend_info info{};
    info.size = sizeof info;
    if (lockstep_backend_get(i, &info) == LOCKSTEP_OK && std::string(info.name) == "cuda" && info.usable != 0)
      return info.devices;
  }
  return 0;
}

// Every test needs a device.
class gpu : public testing::Test {
 protected:
  void SetUp() override {
    if (devices() == 0) GTEST_SKIP() << "no usable CUDA device";
  }
};

// Cheap, different everywhere, exact in f32.
template <class T>
std::vector<T> data(std::size_t n, uint32_t seed = 1) {
  std::vector<T> v(n);
  uint32_t x = seed * 2654435761u + 1;
  for (T& e : v) {
    x = x * 1664525u + 1013904223u;
    e = static_cast<T>(static_cast<int32_t>(x >> 8) - (1 << 23));
  }
  return v;
}

inline lockstep_options on(const char* backend) {
  lockstep_options o = lockstep_options_defaults();
  o.backend = backend;
  return o;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

}  // namespace lockstep::gpu_test
