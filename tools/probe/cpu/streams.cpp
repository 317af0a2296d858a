// streams.cpp - loops over contiguous memory with the widest vectors of the CPU.
#include "cpu.hpp"

namespace lockstep::tool::probe {
namespace {

template <int words>
struct wide {
  typedef uint64_t vector __attribute__((vector_size(8 * words)));
};

// The sum of 8-byte words in four independent vectors, because one chain of additions is slower than the loads.
template <int words>
[[gnu::always_inline]] inline uint64_t sum_words(const unsigned char* from, size_t bytes, int rounds) {
  using vector = typename wide<words>::vector;
  vector total[4] = {};
  for (int r = 0; r < rounds; ++r) {
    opaque(from);  // the compiler must not read once for all rounds
    for (size_t i = 0; i < bytes; i += 4 * sizeof(vector))
      for (size_t k = 0; k < 4; ++k) {
        vector v;
        std::memcpy(&v, from + i + k * sizeof v, sizeof v);
        total[k] += v;
      }
  }
  uint64_t sum = 0;
  for (size_t k = 0; k < 4; ++k)
    for (int w = 0; w < words; ++w) sum += total[k][w];
  return sum;
}

#if defined(__x86_64__)
[[gnu::target("avx512f")]] uint64_t read_avx512(const unsigned char* from, size_t bytes, int rounds) {
  return sum_words<8>(from, bytes, rounds);
}
[[gnu::target("avx2")]] uint64_t read_avx2(const unsigned char* from, size_t bytes, int rounds) {
  return sum_words<4>(from, bytes, rounds);
}
#endif
uint64_t read_baseline(const unsigned char* from, size_t bytes, int rounds) {
  return sum_words<2>(from, bytes, rounds);
}

}  // namespace

int vector_bytes() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return 64;
  if (__builtin_cpu_supports("avx2")) return 32;
#endif
  return 16;
}

uint64_t read_sum(const unsigned char* from, size_t bytes, int rounds) {
#if defined(__x86_64__)
  if (vector_bytes() == 64) return read_avx512(from, bytes, rounds);
  if (vector_bytes() == 32) return read_avx2(from, bytes, rounds);
#endif
  return read_baseline(from, bytes, rounds);
}

}  // namespace lockstep::tool::probe
