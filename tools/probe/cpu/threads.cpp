// threads.cpp - H7: counters that share a line; H8: bandwidth by threads.
#include <memory>

#include "cpu.hpp"

namespace lockstep::tool::probe {
void h7_false_sharing(const host_row& r) {
  constexpr int steps = 100000;
  struct alignas(256) counters {
    std::atomic<uint64_t> one[64];
  };
  const auto all = std::make_unique<counters>();
  // Words between the two threads' counters: 1 shares a line, 16 is two lines away.
  for (const int apart : {1, 16}) {
    for (auto& c : all->one) c = 0;
    int runs = 0;
    const stats t = samples_of(r.limits(), 2, [&](int thread) {
      if (thread == 0) ++runs;
      auto& mine = all->one[thread * apart];
      for (int s = 0; s < steps; ++s) mine.fetch_add(1, std::memory_order_relaxed);
    });
    r.report(apart == 1 ? "two counters in a line" : "two counters in two lines", "ns a count", NAN,
             t.scaled(1.0 / steps), all->one[0] * 3 + all->one[apart], static_cast<uint64_t>(runs) * steps * 4);
  }
}

void h8_threads(const host_row& r) {
  const auto measure = [&](const char* name, size_t bytes_each, int rounds) {
    for (int threads = 1; threads <= r.limits().threads;
         threads = threads < r.limits().threads ? std::min(2 * threads, r.limits().threads) : threads + 1) {
      std::vector<std::unique_ptr<pages>> memory;
      uint64_t expected = 0;
      for (int t = 0; t < threads; ++t) {
        memory.push_back(std::make_unique<pages>(bytes_each, true));
        auto* words = memory.back()->as<uint64_t>();
        for (size_t i = 0; i < bytes_each / 8; ++i)
          expected += words[i] = i * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(t);
      }
      std::vector<uint64_t> sums(static_cast<size_t>(threads) * 8);  // a line each
      const stats t = samples_of(r.limits(), threads, [&](int thread) {
        const unsigned char* from = memory[static_cast<size_t>(thread)]->data();
        uint64_t sum = 0;
        for (int k = 0; k < rounds; ++k) {
          opaque(from);
          sum = read_sum(from, bytes_each);
        }
        sums[static_cast<size_t>(thread) * 8] = sum;
      });
      uint64_t got = 0;
      for (int k = 0; k < threads; ++k) got += sums[static_cast<size_t>(k) * 8];
      r.report(name, "GB/s", threads, t.rate(static_cast<double>(bytes_each) * rounds * threads), got, expected);
    }
  };
  measure("L1", 16 << 10, 20000);
  measure("memory", size_t{128} << 20, 1);
}

}  // namespace lockstep::tool::probe
