// cpu.hpp - how the CPU's probes measure. Every timed body returns a checksum of all values
// that it read, so that it shows if the compiler removes loads.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "../probe.hpp"
#include "../stats.hpp"

namespace lockstep::tool::probe {

using lockstep::probe::stats;
using lockstep::probe::stats_of;

// Pages from the kernel; huge pages if asked for and available.
class pages {
 public:
  explicit pages(size_t bytes, bool huge) : bytes_((bytes + huge_page - 1) / huge_page * huge_page) {
    // Aligned to a huge page, or the first of them would be small ones.
    raw_ =
        mmap(nullptr, bytes_ + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (raw_ == MAP_FAILED) throw std::bad_alloc();
    const auto at = reinterpret_cast<uintptr_t>(raw_);
    data_ = reinterpret_cast<unsigned char*>((at + huge_page - 1) / huge_page * huge_page);
    (void)madvise(data_, bytes_,
                  huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);  // advice: a kernel without it measures what it has
    std::memset(data_, 1, bytes_);
  }
  ~pages() { munmap(raw_, bytes_ + huge_page); }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;
  unsigned char* data() const { return data_; }
  template <class T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }
  size_t size() const { return bytes_; }

 private:
  static constexpr size_t huge_page = size_t{2} << 20;
  size_t bytes_;
  void* raw_;
  unsigned char* data_;
};

// Hides a value from the optimizer: what follows cannot be computed before.
template <class T>
inline void opaque(T& value) {
  asm volatile("" : "+r"(value)::"memory");
}

// Nanoseconds of body(), which returns a checksum: at least 5 samples and 20 us each,
// until the time is used.
struct timed {
  stats ns;
  uint64_t sum;
};
template <class Body>
timed nanoseconds(const host_limits& limits, const Body& body) {
  using clock = std::chrono::steady_clock;
  const auto once = [&](uint64_t& sum, int runs) {
    const auto begin = clock::now();
    for (int i = 0; i < runs; ++i) sum = body();
    return std::chrono::duration<double, std::nano>(clock::now() - begin).count() / runs;
  };
  timed result{};
  (void)once(result.sum, 1);
  const int runs = static_cast<int>(std::min(20000 / std::max(once(result.sum, 1), 1.0), 10000.0)) + 1;
  std::vector<double> samples;
  const auto begin = clock::now();
  while (samples.size() < 5 ||
         (samples.size() < 200 && std::chrono::duration<double>(clock::now() - begin).count() < limits.seconds))
    samples.push_back(once(result.sum, runs));
  result.ns = stats_of(std::move(samples));
  return result;
}

// Nanoseconds from the moment all threads stand ready until the last is done.
template <class Body>
double together(int threads, const Body& body) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> crew;
  for (int t = 0; t < threads; ++t)
    crew.emplace_back([&, t] {
      ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      body(t);
    });
  while (ready.load() < threads) std::this_thread::yield();
  const auto begin = std::chrono::steady_clock::now();
  go.store(true, std::memory_order_release);
  for (std::thread& one : crew) one.join();
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
}

template <class Body>
stats samples_of(const host_limits& limits, int threads, const Body& body) {
  std::vector<double> samples;
  const auto begin = std::chrono::steady_clock::now();
  while (samples.size() < 5 ||
         std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() < limits.seconds)
    samples.push_back(together(threads, body));
  return stats_of(std::move(samples));
}

// What a row's probes report through.
class host_row {
 public:
  host_row(const char* row, const host_limits& limits, readings& to) : row_(row), limits_(limits), to_(to) {}
  const host_limits& limits() const { return limits_; }
  void report(const std::string& name, const char* unit, double x, const stats& s, uint64_t got,
              uint64_t expected) const {
    to_.add({row_, name.c_str(), "", unit, x, s.value, s.low, s.high, got, expected});
  }

 private:
  const char* row_;
  host_limits limits_;
  readings& to_;
};

double l3_bytes();                         // facts.cpp; 0 or less: not told
void host_facts(const host_row& r);        //
void h1_working_set(const host_row& r);    // caches.cpp
void h2_strides(const host_row& r);        // strides.cpp
void h3_borders(const host_row& r);        //
void h4_tlb(const host_row& r);            // tlb.cpp
bool h5_streaming(const host_row& r);      // stores.cpp; false: no such stores here
void h6_aliasing(const host_row& r);       //
void h7_false_sharing(const host_row& r);  // threads.cpp; two threads
void h8_threads(const host_row& r);        //

// Vector loops, at the widest this processor has.
// `rounds` times the sum of the 8-byte words (streams.cpp); bytes is a multiple of 256. The ends of a call take as long
// as some 4 KiB from L1: read sets that fit it more than once.
uint64_t read_sum(const unsigned char* from, size_t bytes, int rounds = 1);
int vector_bytes();

}  // namespace lockstep::tool::probe
