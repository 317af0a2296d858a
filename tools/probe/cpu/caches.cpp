// caches.cpp - H1: latency and bandwidth by working set.
#include "../patterns.hpp"
#include "cpu.hpp"

namespace lockstep::tool::probe {
namespace {
using lockstep::probe::next_line;

constexpr size_t line_bytes = 64;

struct alignas(line_bytes) cache_line {
  uint64_t next;
};

// A pointer chase that continues where the last one stopped, so that with a set larger than
// the caches it never hits lines that it has just loaded.
class chase {
 public:
  chase(cache_line* lines, uint32_t n) : lines_(lines), n_(n) {
    for (uint32_t i = 0; i < n; ++i) lines[i].next = next_line(i, n);
  }
  uint64_t run(uint32_t steps) {
    uint64_t at = at_, sum = 0;
    for (uint32_t s = 0; s < steps; ++s) sum += at = lines_[at].next;
    at_ = at;
    return sum;
  }
  uint64_t place() const { return at_; }
  static uint64_t expected(uint64_t from, uint32_t n, uint32_t steps) {
    uint64_t sum = 0;
    auto at = static_cast<uint32_t>(from);
    for (uint32_t s = 0; s < steps; ++s) sum += at = next_line(at, n);
    return sum;
  }

 private:
  cache_line* lines_;
  uint32_t n_;
  uint64_t at_ = 0;
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
    const timed t = nanoseconds(r.limits(), [&] { return read_sum(memory.data(), bytes); });
    r.report("bandwidth", "GB/s", static_cast<double>(bytes), t.ns.rate(static_cast<double>(bytes)), t.sum, expected);
  }
}

}  // namespace lockstep::tool::probe
