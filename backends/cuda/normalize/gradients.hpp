// gradients.hpp - the launches of gradients.cuh, one file a type of elements, and what lies in their workspace.
#pragma once

#include <algorithm>

#include "normalize.hpp"

namespace lockstep::cuda {

// What a row's results take.
struct gradient_row {
  double mean, scale, a, b;
};
// P: double for squares, order::moments.
template <class P>
struct gradient_terms {
  P of_row;
  double a, b;
  friend LOCKSTEP_HD gradient_terms operator+(const gradient_terms& x, const gradient_terms& y) {
    return {x.of_row + y.of_row, x.a + y.a, x.b + y.b};
  }
};

// Lanes of the columns' order that have rows, in all leaves.
inline int64_t gradient_lanes_of(int64_t count) {
  const int64_t leaves = order::leaves(count), last = count - (leaves - 1) * order::leaf;
  return (leaves - 1) * order::lanes + std::min(last, int64_t{order::lanes});
}
// The longest rows that a block holds.
inline int64_t held_gradients(lockstep_dtype dtype) { return order::leaf * (dtype == LOCKSTEP_F64 ? 2 : 4); }

// Rows of lanes of a leaf: of short rows, and of others.
constexpr int few_gradient_rows = 8;
inline int64_t held_gradient_columns(int64_t length) {
  const bool few = length <= few_gradient_rows * order::lanes;
  return order::leaves(length) * order::lanes * (few ? few_gradient_rows : order::rows);
}
// What a block has in shared memory: the weights of its columns as doubles, and a row of src and of gradient, or two of
// each, so that one comes while the other is worked on; and what its threads tell one another, at most told_bytes.
constexpr size_t told_bytes = 16384;
inline size_t held_gradient_bytes(int64_t length, size_t element_bytes, int stages) {
  return static_cast<size_t>(held_gradient_columns(length)) *
             (sizeof(double) + static_cast<size_t>(stages) * 2 * element_bytes) +
         told_bytes;
}

// For each of weight and bias that is wanted: 8 bytes a lane and column, and 8 a leaf of rows and column; of rows that
// no block holds a leaf's gradient_terms and a row's gradient_row besides.
struct gradient_room {
  double *of_weight = nullptr, *of_bias = nullptr, *leaves = nullptr;
  void *values = nullptr, *found = nullptr;
  size_t bytes = 0;
  gradient_room(const lockstep_normalize_desc& d, bool held, void* workspace) {
    auto* const base = static_cast<char*>(workspace);
    const auto take = [&](int64_t count, size_t each) {
      char* const at = base + bytes;
      bytes += (static_cast<size_t>(count) * each + 255) / 256 * 256;
      return at;
    };
    const bool weight = d.weight_gradient != nullptr, bias = d.bias_gradient != nullptr;
    const int64_t lanes = gradient_lanes_of(d.count) * d.length;
    if (weight) of_weight = reinterpret_cast<double*>(take(lanes, 8));
    if (bias) of_bias = reinterpret_cast<double*>(take(lanes, 8));
    if ((weight || bias) && d.count > order::leaf)
      leaves = reinterpret_cast<double*>(take((weight + bias) * order::leaves(d.count) * d.length, 8));
    if (held) return;
    values = take(d.count * order::leaves(d.length), sizeof(gradient_terms<order::moments>));
    found = take(d.count, sizeof(gradient_row));
  }
};

lockstep_status gradients_f16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status gradients_bf16(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status gradients_f32(lockstep_queue& queue, const lockstep_call& call, bool held);
lockstep_status gradients_f64(lockstep_queue& queue, const lockstep_call& call, bool held);
// Joins the sums of lanes to the gradients that are wanted.
lockstep_status sum_gradients(lockstep_queue& queue, const lockstep_normalize_desc& d, const gradient_room& room);

}  // namespace lockstep::cuda
