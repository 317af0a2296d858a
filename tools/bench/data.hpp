// data.hpp - the input data of benches: fast to make on all cores, random, and of moderate
// size, so that no exact sum overflows. bench passes it to the peer programs.
#pragma once

#include <algorithm>
#include <cstring>
#include <thread>
#include <vector>

#include "cases.hpp"

namespace lockstep::bench_data {

inline void fill(const cases::test_case& c, unsigned char* base) {
  const size_t bytes = c.src.element_bytes, n = c.src.span_bytes() / bytes;
  const auto part = [&](size_t first, size_t last) {
    for (size_t i = first; i < last; ++i) {
      uint64_t x = (i + 1) * 0x9E3779B97F4A7C15u;
      x ^= x >> 29;
      x *= 0xBF58476D1CE4E5B9u;
      x ^= x >> 32;
      unsigned char* at = base + i * bytes;
      const double unit = static_cast<double>(static_cast<int64_t>(x) >> 20) * 0x1p-43;  // -1 to 1
      if (c.dtype == LOCKSTEP_F32) {
        const auto v = static_cast<float>(unit);
        std::memcpy(at, &v, 4);
      } else if (c.dtype == LOCKSTEP_F64) {
        std::memcpy(at, &unit, 8);
      } else if (const char kind = lockstep_dtype_kind(static_cast<lockstep_dtype>(c.dtype)); kind == 'b') {
        *at = x >> 63;
      } else if (kind == 'i') {
        const int64_t v = static_cast<int64_t>(x) >> 48;
        std::memcpy(at, &v, bytes);
      } else if (kind == 'u') {
        const uint64_t v = x >> 48;
        std::memcpy(at, &v, bytes);
      } else if (c.dtype == LOCKSTEP_F16 || c.dtype == LOCKSTEP_BF16) {
        const auto v = static_cast<uint16_t>(0x3800u | (x & 0x83FFu));  // of magnitude below 2
        std::memcpy(at, &v, 2);
      } else {
        // Moved data: normal numbers as float and as double, since some peers multiply by 1 and add 0, which may
        // flush denormals and turns -0.0 into 0.0.
        const uint64_t finite = (x & 0xBFFFFFFFBFFFFFFFu) | 0x2000000020000000u;
        for (size_t k = 0; k < bytes; k += 8) std::memcpy(at + k, &finite, std::min<size_t>(bytes, 8));
      }
    }
  };
  const size_t threads = n < 1 << 20 ? 1 : std::clamp<size_t>(std::thread::hardware_concurrency(), 1, 32);
  std::vector<std::thread> crew;
  for (size_t t = 1; t < threads; ++t) crew.emplace_back(part, n * t / threads, n * (t + 1) / threads);
  part(0, n / threads);
  for (std::thread& one : crew) one.join();
}

}  // namespace lockstep::bench_data
