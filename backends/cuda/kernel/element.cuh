// element.cuh - the types in which elements of 1, 2, 4, 8 and 16 bytes are moved.
#pragma once

#include <cstddef>
#include <cstdint>

#include "../device/check.hpp"

namespace lockstep::cuda {

template <int bytes>
struct element_of;
template <>
struct element_of<1> {
  using type = uint8_t;
};
template <>
struct element_of<2> {
  using type = uint16_t;
};
template <>
struct element_of<4> {
  using type = uint32_t;
};
template <>
struct element_of<8> {
  using type = uint2;
};
template <>
struct element_of<16> {
  using type = uint4;
};

// Calls body with a value of the type that has this many bytes.
template <class Body>
lockstep_status by_element(size_t bytes, const Body& body) {
  switch (bytes) {
    case 1: return body(uint8_t{});
    case 2: return body(uint16_t{});
    case 4: return body(uint32_t{});
    case 8: return body(uint2{});
    default: return body(uint4{});
  }
}

}  // namespace lockstep::cuda
