// digests.cu - digests: both sums modulo 2^64 of a sequence's words, each mixed with its place.
//
// Idea    A word's term needs its place alone, so that a thread takes 16 bytes wherever they lie, and joins come in any
//         order. Sequences that begin between two words are read by 4 bytes and shifted
// Moves   every element once
// Limit   memory reads; 27 instructions per word are half of what an SM issues while the memory brings it
// Watch   places count from the sequence's first element, so that rows at odd addresses have whole words too
// Source  lib/bits/digest.hpp
#include "bits/digest.hpp"
#include "digests.hpp"
#include "kernels.cuh"

namespace lockstep::cuda {
namespace {

struct both_sums {
  uint64_t first, second;
};
__device__ __forceinline__ both_sums operator+(const both_sums& a, const both_sums& b) {
  return {a.first + b.first, a.second + b.second};
}
__device__ __forceinline__ both_sums joined(const both_sums& a, const both_sums& b) { return a + b; }

struct digest_results {
  using partial = both_sums;
  static constexpr bool ordered = false, commutes = true;
  static constexpr int blocks = 3;
  __device__ static partial none() { return {}; }
  __device__ static partial join(const partial& a, const partial& b) { return a + b; }
  __device__ static void store(const term_sums& d, int64_t s, const partial& sum, int64_t) {
    auto* const to = static_cast<uint64_t*>(d.dst) + 2 * s;
    to[0] = sum.first, to[1] = sum.second;
  }
  __device__ static void store_empty(const term_sums& d, int64_t s) { store(d, s, {}, 0); }
};

template <class E>
struct digest_terms : digest_results {
  static constexpr int bytes = sizeof(E);

  __device__ __forceinline__ static partial term_of(uint64_t word, uint64_t key) {
    const auto of = digest::terms_of(word, key);
    return {of.first, of.second};
  }

  // Words that whole elements fill, two by one load of 16 bytes. key: of the first word. What is left is from `done`
  // on.
  __device__ static partial aligned_words(const E* x, int words, uint64_t key, int t, partial mine, int* done) {
    constexpr int ahead = 8;
    const auto* const loads = reinterpret_cast<const uint4*>(x);
    const int vectors = words / 2;
    const auto take = [&](const uint4& q, uint64_t at) {
      const auto even = term_of(static_cast<uint64_t>(q.y) << 32 | q.x, at);
      const auto odd = term_of(static_cast<uint64_t>(q.w) << 32 | q.z, at + digest::step);
      mine.first += even.first + odd.first, mine.second += even.second + odd.second;
    };
    key += static_cast<uint64_t>(2 * t) * digest::step;
    int v = t;
#pragma unroll 1
    for (; v + (ahead - 1) * 32 < vectors; v += ahead * 32, key += 2 * 32 * ahead * digest::step) {
      uint4 q[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) q[k] = __ldg(loads + v + k * 32);
#pragma unroll
      for (int k = 0; k < ahead; ++k) take(q[k], key + static_cast<uint64_t>(2 * 32 * k) * digest::step);
    }
    if (v < vectors) {
      uint4 q[ahead];  // in place of missing ones the last again: loads under a condition wait for each other
#pragma unroll
      for (int k = 0; k < ahead; ++k) q[k] = __ldg(loads + min(v + k * 32, vectors - 1));
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (v + k * 32 < vectors) take(q[k], key + static_cast<uint64_t>(2 * 32 * k) * digest::step);
    }
    *done = vectors * 2;
    return mine;
  }

  // Words that begin at any byte, but for the first and the last, whose 4 bytes before and after may be no one's.
  __device__ static partial shifted_words(const E* x, int words, uint64_t key, int t, partial mine) {
    const auto address = reinterpret_cast<uintptr_t>(x);
    const auto* const from = reinterpret_cast<const uint32_t*>(address & ~uintptr_t{3});
    const auto shift = static_cast<uint32_t>(address & 3) * 8;
#pragma unroll 4
    for (int w = 1 + t; w < words - 1; w += 32) {
      const uint32_t a = __ldg(from + 2 * w), b = __ldg(from + 2 * w + 1), c = __ldg(from + 2 * w + 2);
      const uint32_t low = __funnelshift_r(a, b, shift), high = __funnelshift_r(b, c, shift);
      mine = mine + term_of(static_cast<uint64_t>(high) << 32 | low, key + static_cast<uint64_t>(w) * digest::step);
    }
    return mine;
  }

  // Word w of n elements, put together; the last one may lack bytes.
  __device__ static uint64_t gathered_word(const E* x, int64_t stride, int n, int w) {
    constexpr int each = 8 / bytes;
    uint64_t word = 0;
#pragma unroll
    for (int k = 0; k < each; ++k)
      if (const int i = w * each + k; i < n) word |= uint64_t{x[i * stride]} << (8 * bytes * k);
    return word;
  }

  __device__ static partial leaf(const term_sums& d, const pair_places& at, int64_t first, int n, int t, partial mine) {
    const E* const x = static_cast<const E*>(d.src) + at.src + first * d.element_stride;
    const int words = n * bytes / 8, all = (n * bytes + 7) / 8;
    const auto place = static_cast<uint64_t>(d.correction + first) / 8 * bytes;
    const uint64_t key = digest::key_of(place, d.dtype, 0);
    const auto gather = [&](int w) {
      const int missing = w < words ? 0 : 8 - n * bytes % 8;
      const uint64_t at_w = digest::key_of(place + static_cast<uint64_t>(w), d.dtype, missing);
      mine = mine + term_of(gathered_word(x, d.element_stride, n, w), at_w);
    };
    int done = 0;
    if (whole_units(x, d.element_stride, 16)) {
      mine = aligned_words(x, words, key, t, mine, &done);
    } else if (bytes < 4 && d.element_stride == 1 && words > 2) {
      mine = shifted_words(x, words, key, t, mine);
      if (t == 0) gather(0);
      done = words - 1;
    }
#pragma unroll 4
    for (int w = done + t; w < all; w += 32) gather(w);
    return mine;
  }
};

}  // namespace

lockstep_status digest_words(lockstep_queue& queue, const term_sums& d, void* workspace) {
  switch (dtype_bytes(d.dtype)) {
    case 1: return launch_sums<digest_terms<uint8_t>, digest_results>(queue, d, workspace);
    case 2: return launch_sums<digest_terms<uint16_t>, digest_results>(queue, d, workspace);
    case 4: return launch_sums<digest_terms<uint32_t>, digest_results>(queue, d, workspace);
    default: return launch_sums<digest_terms<uint64_t>, digest_results>(queue, d, workspace);
  }
}

}  // namespace lockstep::cuda
