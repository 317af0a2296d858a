// digest.hpp - a word's terms in both sums of a digest, the same source for every instruction set and for GPUs.
// order.md has the formula, tests/oracle_numpy.py has it in NumPy.
#pragma once

#include <stdint.h>

namespace lockstep::digest {

// How much the key of a word grows from one to the next, for each dtype and for each missing byte of the last word.
inline constexpr uint64_t step = 0x9E3779B97F4A7C15u, type_step = 0xC2B2AE3D27D4EB4Fu;

constexpr uint64_t key_of(uint64_t word, int dtype, int missing) {
  return (word + 1) * step + static_cast<uint64_t>(16 * dtype + missing) * type_step;
}

// W: uint64_t, or a vector of them.
template <class W>
struct terms {
  W first, second;
};
template <class W>
constexpr __attribute__((always_inline)) terms<W> terms_of(W word, W key) {
  W x = word + key;
  x = (x ^ (x >> 30)) * uint64_t{0xBF58476D1CE4E5B9u};
  x = (x ^ (x >> 27)) * uint64_t{0x94D049BB133111EBu};
  x = x ^ (x >> 31);
  const W y = (x ^ (x >> 32)) * uint64_t{0xD6E8FEB86659FD93u};
  return {x, y ^ (y >> 32)};
}

}  // namespace lockstep::digest
