// stores.cpp - H5: stores that pass the caches; H6: addresses 4 KiB apart.
#include "cpu.hpp"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace lockstep::tool::probe {

#if defined(__SSE2__)
namespace {

template <bool streaming>
[[gnu::noinline]] void fill(unsigned char* to, size_t bytes, uint64_t value) {
  const __m128i v = _mm_set1_epi64x(static_cast<long long>(value));
  for (size_t i = 0; i < bytes; i += 64)
    for (size_t k = 0; k < 64; k += 16) {
      auto* at = reinterpret_cast<__m128i*>(to + i + k);
      if constexpr (streaming)
        _mm_stream_si128(at, v);
      else
        _mm_store_si128(at, v);
      asm volatile("" ::: "memory");  // keeps the compiler from calling memset
    }
  if constexpr (streaming) _mm_sfence();
}

}  // namespace

bool h5_streaming(const host_row& r) {
  const size_t beyond_l3 = std::max(size_t{256} << 20, static_cast<size_t>(std::max(2 * l3_bytes(), 0.0)) / 256 * 256);
  for (const size_t bytes : {size_t{256} << 10, beyond_l3}) {
    const pages memory(bytes, true);
    // One thread waits for its own few lines under way; all together wait for the memory's transfers, which count here.
    const bool far = bytes > (size_t{1} << 20);
    const int threads = far ? std::max(r.limits().threads, 1) : 1;
    const size_t share = bytes / 64 / static_cast<size_t>(threads) * 64;
    const char* where = far ? ", memory" : ", L2";
    for (const bool streaming : {false, true}) {
      uint64_t round = 0, mark = streaming ? 9 : 7;
      const auto write = [&](size_t first, size_t count, uint64_t value) {
        streaming ? fill<true>(memory.data() + first, count, value) : fill<false>(memory.data() + first, count, value);
      };
      const stats ns = far ? samples_of(r.limits(), threads,
                                        [&](int thread) {
                                          const size_t first = static_cast<size_t>(thread) * share;
                                          write(first, thread + 1 < threads ? share : bytes - first, mark);
                                        })
                           : nanoseconds(r.limits(), [&] { return ++round, write(0, bytes, round), round; }).ns;
      // Now every word must have the last round's value.
      r.report((streaming ? std::string("streaming stores") : std::string("plain stores")) + where, "GB/s", NAN,
               ns.rate(static_cast<double>(bytes)), read_sum(memory.data(), bytes), (far ? mark : round) * (bytes / 8));
    }
  }
  return true;
}
#else
bool h5_streaming(const host_row&) { return false; }
#endif

namespace {

// to[i] = from[i] + 1: loads and stores in alternation. to begins a whole number of pages and `lead` bytes after from.
[[gnu::noinline]] void copy_words(uint64_t* to, const uint64_t* from, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    uint64_t v = from[i];
    opaque(v);
    to[i] = v + 1;
  }
}

}  // namespace

void h6_aliasing(const host_row& r) {
  constexpr size_t n = 1024, page = 4096;  // 8 KiB each: in L1
  const pages memory(16 * page, false);
  auto* from = memory.as<uint64_t>();
  for (size_t i = 0; i < n; ++i) from[i] = i * 0x9E3779B97F4A7C15u;
  uint64_t expected = 0;
  for (size_t i = 0; i < n; ++i) expected += from[i] + 1;
  for (const size_t lead : {size_t{0}, size_t{16}, size_t{64}, size_t{256}, size_t{1024}, size_t{2048}}) {
    auto* to = reinterpret_cast<uint64_t*>(memory.data() + 4 * page + lead);
    const timed t = nanoseconds(r.limits(), [&] {
      for (int k = 0; k < 8; ++k) copy_words(to, from, n);
      return to[n - 1];
    });
    uint64_t got = 0;
    for (size_t i = 0; i < n; ++i) got += to[i];
    r.report("copy, target behind by pages and bytes", "ns a word", static_cast<double>(lead),
             t.ns.scaled(1.0 / (8 * n)), got, expected);
  }
}

}  // namespace lockstep::tool::probe
