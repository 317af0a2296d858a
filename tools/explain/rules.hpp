// rules.hpp - the rules that are taught, as formulas. They do not use the kernels' index
// arithmetic; explain compares them with the counts of a replay.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "trace.hpp"

namespace lockstep::tool::explain {

// Lanes on neighbouring elements, starting on a segment boundary: as few segments as the bytes fill.
inline double coalesced(int64_t lanes, int64_t bytes, const machine& chip) {
  return static_cast<double>((lanes * bytes + chip.segment_bytes - 1) / chip.segment_bytes);
}

// Lanes `stride` bytes apart: a segment each, until several fit one.
inline double strided(int64_t lanes, int64_t stride, const machine& chip) {
  return static_cast<double>(
      stride >= chip.segment_bytes ? lanes : (lanes * stride + chip.segment_bytes - 1) / chip.segment_bytes);
}

// Lanes of shared memory `stride` elements of `bytes` apart: they fall on all slots / gcd(stride, slots)
// slots of a row of banks, so that many lanes a wavefront.
inline double conflict_ways(int64_t lanes, int64_t stride, int64_t bytes, const machine& chip) {
  const int64_t slots = std::max<int64_t>(1, chip.banks * 4 / bytes);
  const int64_t at_once = std::min(lanes, slots);  // wider elements go in groups
  const int64_t places = slots / std::gcd(stride, slots);
  return static_cast<double>((at_once + places - 1) / places);
}

}  // namespace lockstep::tool::explain
