// checked.hpp - arithmetic on sizes that refuses instead of wrapping.
#pragma once

#include <cstdint>

#include "../call/run.hpp"

namespace lockstep::lib {

inline void require_nonnegative(const char* name, int64_t value) {
  if (value < 0) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}; give 0 or more", name, value);
}
inline void require_positive(const char* name, int64_t value) {
  if (value < 1) fail(LOCKSTEP_INVALID_ARGUMENT, "{} is {}; give 1 or more", name, value);
}

// Bytes from the first element to the end of the last one, where axis k has
// counts[k] >= 1 elements strides[k] >= 0 apart.
template <class Counts, class Strides>
size_t span_bytes(const char* name, int axes, const Counts& counts, const Strides& strides, size_t element_bytes) {
  int64_t last = 0;
  for (int k = 0; k < axes; ++k) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(counts[k] - 1, strides[k], &reach) || __builtin_add_overflow(last, reach, &last))
      fail(LOCKSTEP_INVALID_ARGUMENT,
           "{} would span more than 2^63-1 elements (axis {}: {} elements, stride {}); use smaller sizes", name, k,
           counts[k], strides[k]);
  }
  int64_t bytes = 0;
  if (__builtin_add_overflow(last, int64_t{1}, &last) ||
      __builtin_mul_overflow(last, static_cast<int64_t>(element_bytes), &bytes))
    fail(LOCKSTEP_INVALID_ARGUMENT, "{} would span {} elements of {} bytes, more than 2^63-1 bytes; use smaller sizes",
         name, last, element_bytes);
  return static_cast<size_t>(bytes);
}

template <class Counts>
int64_t product(const char* what, int axes, const Counts& counts) {
  int64_t total = 1;
  for (int k = 0; k < axes; ++k)
    if (__builtin_mul_overflow(total, counts[k], &total))
      fail(LOCKSTEP_INVALID_ARGUMENT, "{} is more than 2^63-1 elements (axis {} has {}); use smaller sizes", what, k,
           counts[k]);
  return total;
}

// Checks the strides of a move from axes to axes of as many elements in another order, none of them empty; fills the
// spans. Axes of one element get stride 0.
void prepare_move(prepared_call& prepared, int rank, const int64_t* shape, int64_t* src_strides,
                  const int64_t* dst_shape, int64_t* dst_strides);

// "F16"; the number if it is not a dtype.
std::string dtype_text(lockstep_dtype dtype);

inline void require_element_bytes(size_t bytes) {
  if (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)
    fail(LOCKSTEP_INVALID_ARGUMENT, "element_bytes is {}; use 1, 2, 4, 8 or 16", bytes);
}

}  // namespace lockstep::lib
