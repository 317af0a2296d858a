// strides.cpp - H2: bandwidth by stride; H3: loads across the borders of lines and pages.
#include "cpu.hpp"

namespace lockstep::tool::probe {
namespace {

uint64_t value_at(uint64_t i) { return i * 0x9E3779B97F4A7C15u + 1; }

// The sum of n words, `stride` bytes apart. The compiler must not join loads.
[[gnu::noinline]] uint64_t read_strided(const unsigned char* from, size_t n, size_t stride) {
  uint64_t sum[4] = {};
  for (size_t i = 0; i < n; i += 4)
    for (size_t k = 0; k < 4; ++k) {
      uint64_t v;
      std::memcpy(&v, from + (i + k) * stride, sizeof v);
      opaque(v);
      sum[k] += v;
    }
  return sum[0] + sum[1] + sum[2] + sum[3];
}

// `rounds` times the sum of `count` words, `stride` bytes apart.
[[gnu::noinline]] uint64_t read_again(const unsigned char* from, int count, size_t stride, int rounds) {
  uint64_t sum = 0;
  for (int r = 0; r < rounds; ++r)
    for (int i = 0; i < count; ++i) {
      uint64_t v;
      std::memcpy(&v, from + static_cast<size_t>(i) * stride, sizeof v);
      opaque(v);
      sum += v;
    }
  return sum;
}

uint64_t expected_words(const unsigned char* from, size_t n, size_t stride) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t b = 0; b < 8; ++b)
      sum += static_cast<uint64_t>(from[i * stride + b]) << (8 * b);  // little-endian, a byte at a time
  return sum;
}

}  // namespace

void h2_strides(const host_row& r) {
  constexpr size_t bytes = size_t{256} << 20;
  const pages memory(bytes, true);
  auto* words = memory.as<uint64_t>();
  for (size_t i = 0; i < bytes / 8; ++i) words[i] = value_at(i);
  for (size_t stride = 8; stride <= 2048; stride *= 2) {
    const size_t n = bytes / stride;
    uint64_t expected = 0;
    for (size_t i = 0; i < n; ++i) expected += value_at(i * (stride / 8));
    const timed t = nanoseconds(r.limits(), [&] { return read_strided(memory.data(), n, stride); });
    r.report("stride", "GB/s", static_cast<double>(stride), t.ns.rate(static_cast<double>(n) * 8), t.sum, expected);
  }
}

void h3_borders(const host_row& r) {
  constexpr size_t page = 4096;
  const pages memory(64 * page, false);
  for (size_t i = 0; i < memory.size(); ++i) memory.data()[i] = static_cast<unsigned char>(i * 167 + (i >> 8));
  constexpr int rounds = 2048, count = 8;
  // Eight words a page apart; each may cross a border.
  const auto words = [&](const char* name, size_t offset) {
    const unsigned char* from = memory.data() + offset;
    const timed t = nanoseconds(r.limits(), [&] { return read_again(from, count, page, rounds); });
    r.report(name, "ns a load", NAN, t.ns.scaled(1.0 / (rounds * count)), t.sum,
             rounds * expected_words(from, count, page));
  };
  words("8 bytes, aligned", 0);
  words("8 bytes, misaligned in a line", 3);
  words("8 bytes, across a line", 64 - 4);
  words("8 bytes, across a page", page - 4);
  constexpr size_t contiguous = 16 << 10;  // in L1
  for (const size_t offset : {size_t{0}, size_t{4}, size_t{16}, size_t{32}, size_t{60}}) {
    constexpr int passes = 32;
    const timed t = nanoseconds(r.limits(), [&] { return read_sum(memory.data() + offset, contiguous, passes); });
    r.report("vectors, offset", "GB/s", static_cast<double>(offset), t.ns.rate(contiguous * passes), t.sum,
             passes * expected_words(memory.data() + offset, contiguous / 8, 8));
  }
}

}  // namespace lockstep::tool::probe
