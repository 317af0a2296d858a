// shuffle.cpp (ref) - the definition, in the words of the CUDA C++ Programming
// Guide: a warp is 32 lanes, cut into groups of width; each lane reads another's
// value.
#include <cstring>

#include "../ops.hpp"

namespace lockstep::cpu {
namespace {

int source(const lockstep_shuffle_desc& d, int lane) {
  const int group = lane / d.width, id = lane % d.width;  // id: the lane's logical number in its group
  switch (d.kind) {
    case LOCKSTEP_SHUFFLE_IDX: {  // a lane outside [0, width - 1] is taken modulo width
      int wanted = d.operand % d.width;
      if (wanted < 0) wanted += d.width;
      return group * d.width + wanted;
    }
    case LOCKSTEP_SHUFFLE_UP:  // does not wrap around: the lower delta lanes are unchanged
      return d.operand > id ? lane : lane - d.operand;
    case LOCKSTEP_SHUFFLE_DOWN:  // does not wrap around: the upper delta lanes are unchanged
      return d.operand > d.width - 1 - id ? lane : lane + d.operand;
    case LOCKSTEP_SHUFFLE_XOR: {  // earlier groups may be read, a later one gives the own value
      const int wanted = lane ^ d.operand;
      return wanted / d.width > group ? lane : wanted;
    }
  }
  return lane;
}

}  // namespace

lockstep_status ref_shuffle(lockstep_queue*, const lockstep_call* call) {
  const lockstep_shuffle_desc& d = call->shuffle;
  for (int64_t warp = 0; warp < d.count / 32; ++warp) {
    const auto offset = static_cast<size_t>(warp) * 32 * d.element_bytes;
    unsigned char values[32 * 8];
    std::memcpy(values, static_cast<const unsigned char*>(call->src) + offset, 32 * d.element_bytes);
    for (int lane = 0; lane < 32; ++lane)
      std::memcpy(static_cast<unsigned char*>(call->dst) + offset + static_cast<size_t>(lane) * d.element_bytes,
                  values + static_cast<size_t>(source(d, lane)) * d.element_bytes, d.element_bytes);
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::cpu
