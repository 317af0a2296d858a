// patterns.hpp - the word that each lane of a warp reads. The kernels, the predictions and
// the expected checksums all use these functions.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define PROBE_BOTH __host__ __device__
#else
#define PROBE_BOTH
#endif

namespace lockstep::probe {

enum class pattern : int {
  stride,     // lane l takes word l * value
  permuted,   // a permutation of the 32 words of one row
  broadcast,  // every lane takes word 0
  multicast,  // groups of value lanes share one word
  offset,     // lane l takes word l + value
  scattered,  // groups of value lanes a 128-byte line of their own, far from the others', each lane a sector of it
};

PROBE_BOTH constexpr uint32_t lane_word(pattern kind, uint32_t value, uint32_t lane) {
  switch (kind) {
    case pattern::stride: return lane * value;
    case pattern::permuted: return (lane * 13 + 5) % 32;  // 13 is odd: each word once
    case pattern::broadcast: return 0;
    case pattern::multicast: return lane / value;
    case pattern::offset: return lane + value;
    case pattern::scattered: return 0;  // see scattered_word
  }
  return 0;
}

// Lane `lane` of request `request` among `lines` (a power of two) lines of 32 words, which groups of 1, 2 or 4 lanes
// share.
PROBE_BOTH constexpr uint32_t scattered_word(uint32_t request, uint32_t lane, uint32_t lines, uint32_t group = 1) {
  const uint32_t line = ((request * 32 + lane / group) * 2654435761u) >> 7;
  return (line & (lines - 1)) * 32 + lane % group * 8;
}

// The value of word i of a probed array.
PROBE_BOTH constexpr uint32_t word_value(uint32_t i) { return i * 2654435761u + 12345u; }

// The next line of a pointer chase through n (a power of two) lines: a full-period
// linear congruence, so that a cycle visits each line once in an order without strides.
PROBE_BOTH constexpr uint32_t next_line(uint32_t line, uint32_t n) { return (line * 1664525u + 1013904223u) & (n - 1); }

}  // namespace lockstep::probe
