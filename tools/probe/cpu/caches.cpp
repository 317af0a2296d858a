// caches.cpp - H1: latency and bandwidth by working set.
#include "../patterns.hpp"
#include "cpu.hpp"

namespace lockstep::tool::probe {
namespace {
using lockstep::probe::next_line;

constexpr size_t line_bytes = 64;

struct alignas(line_bytes) cache_line {
  const cache_line* next;  // an address: an index would add a shift to each step
};

// A pointer chase that continues where the last one stopped, so that with a set larger than
// the caches it never hits lines that it has just loaded.
class chase {
 public:
  chase(cache_line* lines, uint32_t n) : lines_(lines), at_(lines) {
    for (uint32_t i = 0; i < n; ++i) lines[i].next = lines + next_line(i, n);
  }
  uint64_t run(uint32_t steps) {
    const cache_line* at = at_;
    uint64_t sum = 0;
    for (uint32_t s = 0; s < steps; ++s) {
      at = at->next;
      sum += static_cast<uint64_t>(at - lines_);
    }
    at_ = at;
    return sum;
  }
  uint64_t place() const { return static_cast<uint64_t>(at_ - lines_); }
  static uint64_t expected(uint64_t from, uint32_t n, uint32_t steps) {
    uint64_t sum = 0;
    auto at = static_cast<uint32_t>(from);
    for (uint32_t s = 0; s < steps; ++s) sum += at = next_line(at, n);
    return sum;
  }

 private:
  const cache_line *lines_, *at_;
};

}  // namespace

void h1_working_set(const host_row& r) {
  constexpr size_t largest = size_t{256} << 20;
  const pages memory(largest, true);  // huge pages: this row is about caches, H4 about the TLB
  for (size_t bytes = 4096; bytes <= largest; bytes *= 2) {
    const auto n = static_cast<uint32_t>(bytes / line_bytes);
    chase c(memory.as<cache_line>(), n);
    const uint32_t steps = std::min<uint32_t>(std::max<uint32_t>(n, 1024), 16384);
    // One pass brings the set in as far as it fits.
    if (n > steps && n <= (64u << 20) / line_bytes) (void)c.run(n);
    uint64_t before = 0;
    const timed t = nanoseconds(r.limits(), [&] { return before = c.place(), c.run(steps); });
    r.report("latency", "ns", static_cast<double>(bytes), t.ns.scaled(1.0 / steps), t.sum,
             chase::expected(before, n, steps));
  }
  auto* words = memory.as<uint64_t>();
  uint64_t expected = 0;
  size_t filled = 0;
  for (size_t bytes = 4096; bytes <= largest; bytes *= 2) {
    for (; filled < bytes / 8; ++filled) expected += words[filled] = filled * 0x9E3779B97F4A7C15u;
    const int rounds = static_cast<int>(std::max<size_t>(1, (size_t{256} << 10) / bytes));
    const timed t = nanoseconds(r.limits(), [&] { return read_sum(memory.data(), bytes, rounds); });
    r.report("bandwidth", "GB/s", static_cast<double>(bytes), t.ns.rate(static_cast<double>(bytes) * rounds), t.sum,
             static_cast<uint64_t>(rounds) * expected);
  }
}

}  // namespace lockstep::tool::probe
