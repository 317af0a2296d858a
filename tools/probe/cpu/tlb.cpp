// tlb.cpp - H4: one line a page, on pages of 4 KiB and on huge ones.
#include "../patterns.hpp"
#include "cpu.hpp"

namespace lockstep::tool::probe {
namespace {

constexpr size_t page_bytes = 4096;

// A different line of each page. The same line of every page would fall into one set of L1.
unsigned char* place_of(unsigned char* base, uint64_t page) { return base + page * page_bytes + page % 64 * 64; }

}  // namespace

void h4_tlb(const host_row& r) {
  constexpr uint32_t most = 1u << 15;  // 128 MiB of pages, 2 MiB of lines
  constexpr uint32_t steps = 1u << 15;
  for (const bool huge : {false, true}) {
    const pages memory(size_t{most} * page_bytes, huge);
    for (uint32_t n = 16; n <= most; n *= 2) {
      for (uint32_t p = 0; p < n; ++p) {
        unsigned char* next = place_of(memory.data(), lockstep::probe::next_line(p, n));
        std::memcpy(place_of(memory.data(), p), &next, sizeof next);
      }
      const timed t = nanoseconds(r.limits(), [&] {
        const unsigned char* at = memory.data();
        uint64_t sum = 0;
        const uint32_t last = steps;
        for (uint32_t s = 0; s < last; ++s) {
          std::memcpy(&at, at, sizeof at);
          sum += static_cast<uint64_t>(at - memory.data());
        }
        return sum;
      });
      uint64_t expected = 0;
      uint32_t p = 0;
      for (uint32_t s = 0; s < steps; ++s) {
        p = lockstep::probe::next_line(p, n);
        expected += p * page_bytes + p % 64 * 64;
      }
      r.report(huge ? "huge pages" : "4 KiB pages", "ns", n, t.ns.scaled(1.0 / steps), t.sum, expected);
    }
  }
}

}  // namespace lockstep::tool::probe
