// axes.hpp - the axes of an array as the library gets them. Arrays of more axes than it takes are given without those
// of length 1, and with neighbours that stay neighbours as one axis, as the Python package does.
#pragma once

#include <cstdint>
#include <vector>

#include "npy.hpp"

namespace lockstep::tool {

int64_t product(const int64_t* begin, const int64_t* end);
// Axis k's elements are so far apart in a file of that order.
int64_t stride_of(const npy::header& h, size_t k);

// The axes that are named, else `axes`, as a permutation; refuses what is none.
std::vector<int32_t> perm_of(const std::vector<int64_t>& named, const std::vector<int64_t>& shape,
                             std::vector<int64_t> axes);
std::vector<int64_t> shape_of(const std::vector<int64_t>& shape, const std::vector<int32_t>& perm);

// Of an array whose result has the axes in another order.
struct moved_axes {
  std::vector<int64_t> shape, strides;  // of the input
  std::vector<int32_t> perm;            // axis k of the result is axis perm[k]
  int32_t rank() const { return static_cast<int32_t>(shape.size()); }
};
moved_axes axes_of(const char* op, const npy::header& h, const std::vector<int32_t>& perm);

// Of an array in C order of which some axes go: goes[k] tells whether axis k is one of them.
struct reduced_axes {
  std::vector<int64_t> shape;
  std::vector<int32_t> going;
};
reduced_axes axes_of(const std::vector<int64_t>& shape, const std::vector<bool>& goes,
                     const std::vector<int32_t>& axes);

}  // namespace lockstep::tool
