// exact_values.hpp - exact sums and products of integers while their parts are joined.
#pragma once

#include <stdint.h>

namespace lockstep::order {

// 192-bit two's complement, least significant limb first.
struct wide {
  uint64_t limb[3];
};

// size is 0 if an element is, whatever the others are; else, once the product has passed 2^64 (beyond), it is 1.
struct exact_factor {
  uint64_t size;
  bool beyond, negative;
};

}  // namespace lockstep::order
